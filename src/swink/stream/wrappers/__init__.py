"""Wrappers: stream function in, stream function out. Compose them; the loop never knows."""

from swink.stream import through
from swink.stream.wrappers.recording import cached, recorded, replayed
from swink.stream.wrappers.sending import fallback, rate_limited

__all__ = ["cached", "fallback", "rate_limited", "recorded", "replayed", "through"]
