"""One generation in its own thread; llama.cpp calls back for every chunk."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from swink.local.lifetime import start_thread
from swink.local.llamacpp import LlamaServer
from swink.local.prefix import FIXED, PrefixStates, as_read
from swink.local.readingpace import ReadingPace, ReadingWatch


class Generation:
    """One generation: its chunks go to the event loop that asked for it, until it is stopped."""

    def __init__(
        self,
        server: LlamaServer,
        request: Mapping[str, Any],
        ended: Callable[["Generation"], None],
        states: PrefixStates | None = None,
        pace: ReadingPace | None = None,
        *,
        only_beginning: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = server
        self._request = request
        self._ended = ended
        self._states = states
        self._pace = pace
        self._only_beginning = only_beginning
        self._watch = ReadingWatch()
        self._fresh = 0
        self.chunks: asyncio.Queue[dict[str, Any] | Exception | None] = asyncio.Queue()
        self.stop = threading.Event()
        self.unloaded = False
        self.silent = False

    def start(self) -> None:
        """Start the thread; `ended` is called in it at the end, whatever happens."""
        start_thread("swink-local-generate", self._run)

    def _run(self) -> None:
        end: Exception | None = None
        try:
            if self._states is not None:
                self._fresh = self._states.prepare(self._server, self._request, self._take_chunk, self.stop)
            if not self.stop.is_set() and not self._only_beginning:
                request = {name: value for name, value in self._request.items() if name != FIXED}
                self._server.handle_chat_completions(request, self._take_chunk)
        except (ValueError, RuntimeError) as error:  # what xllamacpp raises when llama.cpp refuses a request
            end = error
        finally:
            del self._server
            self._ended(self)
            if not self.silent:
                self._put(end)
        if self._pace is not None and self._watch.speed:
            self._pace.note(self._watch.speed)

    def _take_chunk(self, chunk: dict[str, Any]) -> bool:
        """Called by llama.cpp for every chunk; True stops the generation."""
        self._watch.take_chunk(chunk)
        return self.stop.is_set() or not self._put(as_read(chunk, self._fresh) if self._fresh else chunk)

    def _put(self, item: dict[str, Any] | Exception | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self.chunks.put_nowait, item)
        except RuntimeError:  # the event loop is closed
            return False
        return True
