"""Notices: an option that an adapter cannot honour is reported once, by name, never silently ignored."""

import logging
from collections.abc import Iterable
from operator import attrgetter

from swink.stream import StreamOptions

logger = logging.getLogger("swink.providers")

ALL_OPTIONS = frozenset(StreamOptions.__struct_fields__)
_DEFAULTS = StreamOptions()


class Notices:
    """What one adapter has already reported."""

    def __init__(self, provider: str, honoured: Iterable[str]) -> None:
        self._provider = provider
        self._unhonoured = sorted(ALL_OPTIONS - set(honoured))
        self._values = attrgetter("transport", "transport", *self._unhonoured)
        self._defaults = self._values(_DEFAULTS)
        self._reported: set[tuple[str, int]] = set()

    def check(self, options: StreamOptions) -> None:
        """Report the options that are set but that this adapter does not know."""
        if self._values(options) == self._defaults:
            return
        for name in self._unhonoured:
            if getattr(options, name) != getattr(_DEFAULTS, name):
                self.report(name, "this provider has no such option")
        if options.transport == "websocket":
            self.report("transport", "replies are streamed over HTTP")

    def report(self, name: str, why: str, level: int = logging.WARNING) -> None:
        """Report one option, the first time it comes up."""
        if (name, level) not in self._reported:
            self._reported.add((name, level))
            logger.log(level, "%s: option %r is ignored: %s", self._provider, name, why)
