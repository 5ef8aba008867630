"""Who may ask a server that wants no key: programs on this machine, and no web page.

A page anywhere on the web can make a browser send requests to this machine. The browser says whose page it is
in `Origin`; a name that the page's owner points at this machine (DNS rebinding) stands in `Host`.
"""

from collections.abc import Iterable

from swink.serve.wire import Refused
from swink.stream.urls import is_loopback

_REMEDY = (
    "this server has no key, so only programs on this machine may ask; serve with a key to let others in"
)


def check_visitor(headers: Iterable[tuple[bytes, bytes]], scheme: str) -> None:
    """Refuse a request that is for another host than this machine, or comes from a web page elsewhere."""
    listed = [(name.lower(), value.decode("latin-1").strip().lower()) for name, value in headers]
    hosts = [value for name, value in listed if name == b"host"]
    if len(hosts) != 1 or not is_loopback(_without_port(hosts[0])):
        raise Refused(403, f"the header Host is not 127.0.0.1, [::1] or localhost: {_REMEDY}")
    if any(name == b"origin" and value != f"{scheme}://{hosts[0]}" for name, value in listed):
        raise Refused(403, f"the header Origin names a web page: {_REMEDY}")


def check_json(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a body that is not said to be JSON: a page may send any other without being asked for leave."""
    kinds = [value for name, value in headers if name.lower() == b"content-type"]
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
        raise Refused(415, "send JSON, with the header Content-Type: application/json")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and not name.endswith(":") else host
