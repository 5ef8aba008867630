"""How fast a model reads on this machine, and how many tokens it therefore reads at a time.

A request can be stopped between batches only, and others wait for the end of one: a batch is as large as a
quarter of a second allows. The speed is guessed by the size of the weights until it was measured; the fastest
that was seen is remembered, as what else the machine did meanwhile only makes it slower.
"""

import logging
import time
from pathlib import Path
from typing import Any

import msgspec

from swink.local.llamacpp import reading_threads, require_runtime
from swink.system.files import write_whole
from swink.system.places import cache_dir

logger = logging.getLogger("swink.local")

SECONDS = 0.25
"""What a batch may take on an idle machine."""
FEWEST, MOST = 2, 64
"""Tokens of a batch: llama.cpp ends the process if it has one; more than these are hardly faster."""
_UNMEASURED = 16
_PER_BYTE, _PER_BYTE_QUICK = 0.28e-9, 0.07e-9
"""Seconds that a core takes for a token and a byte of the weights: measured without, guessed with the
instructions below."""
_QUICK = ("DOTPROD", "MATMUL_INT8", "SVE", "AVX2", "AVX512", "AVX_VNNI")
_SURE = 16  # tokens that have to be read at a stretch before they tell a speed
_FASTER = 1.25  # how much faster it has to be to be remembered
_REMEMBERED = 20


class ReadingPace:
    """The tokens a second that one model reads with so many threads."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self._size = path.stat().st_size
        self._threads = reading_threads(threads)
        version = require_runtime().__version__
        self._key = f"{path.name} {self._size} {self._threads} {version}"

    def batch(self, parallel: int = 1) -> int:
        """How many tokens to read at a time, with at least one for each of the conversations."""
        remembered = _read().get(self._key)
        most = _UNMEASURED if remembered is None else MOST
        speed = self._guess() if remembered is None else remembered
        return max(FEWEST, parallel, min(most, int(SECONDS * speed)))

    def note(self, speed: float) -> None:
        """Remember a speed that was measured, if it is the fastest so far. Blocking."""
        paces = _read()
        if speed <= paces.pop(self._key, 0.0) * _FASTER:
            return
        newest = [*paces.items(), (self._key, round(speed, 2))][-_REMEMBERED:]
        try:
            write_whole(_file(), msgspec.json.encode(dict(newest)), durable=False, make_parents=True)
        except OSError as error:
            logger.debug("how fast a model reads is not remembered: %s", error)

    def _guess(self) -> float:
        can = str(require_runtime().get_system_info())
        quick = any(f"{name} = 1" in can for name in _QUICK)
        return self._threads / (self._size * (_PER_BYTE_QUICK if quick else _PER_BYTE))


class ReadingWatch:
    """The progress of one prompt, as it is told batch by batch."""

    def __init__(self) -> None:
        self.speed = 0.0
        """The tokens a second of the longest stretch so far; 0 if it was too short to tell."""
        self._began: tuple[int, float] | None = None
        self._last = self._most = 0

    def take_chunk(self, chunk: dict[str, Any]) -> None:
        progress = chunk.get("prompt_progress")
        if progress is None:
            return
        done, now = int(progress["processed"]), time.perf_counter()
        if self._began is None or done <= self._last:  # another request, which goes on elsewhere
            self._began = (done, now)
        self._last = done
        read = done - self._began[0]
        if read >= max(_SURE, self._most + 1) and now > self._began[1]:
            self._most, self.speed = read, read / (now - self._began[1])


def _file() -> Path:
    return cache_dir() / "reading.json"


def _read() -> dict[str, float]:
    try:
        return msgspec.json.decode(_file().read_bytes(), type=dict[str, float])
    except (OSError, ValueError, msgspec.MsgspecError):
        return {}
