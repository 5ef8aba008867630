"""A model behind a swink proxy."""

from swink.providers.proxy.adapter import ProxyStreamFn

__all__ = ["ProxyStreamFn"]
