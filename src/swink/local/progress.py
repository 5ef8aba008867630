"""Progress of a download for people: a bar on a terminal, a few lines elsewhere."""

import sys
import time
from typing import TextIO

from swink.local.states import Downloading, Listener, State

_WIDTH = 24


def say_on_stderr(stream: TextIO | None = None) -> Listener:
    """A listener that shows downloads, and nothing else, on a `stream` (stderr); `pull` takes it too."""
    shown = stream or sys.stderr
    return _Bar(shown).show_state if shown else lambda _: None  # a program without a console has no stderr


class _Bar:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._said = False
        self._drawn = 0.0
        self._quarter = 0

    def show_state(self, state: State) -> None:
        match state:
            case Downloading(step="waiting", model=model):
                self._first(f"swink: waiting for another download of {model}")
            case Downloading(model=model, done=done, total=total, step="downloading") as download:
                size = f" ({megabytes(total)})" if total else ""
                self._first(f"swink: fetching local:{model}{size}, once; it is kept for the next time")
                if total and done:
                    self._advance(download)
            case _ if self._drawn:
                self._drawn = 0.0
                print(file=self._stream, flush=True)
            case _:
                pass

    def _first(self, text: str) -> None:
        if not self._said:
            self._said = True
            print(text, file=self._stream, flush=True)

    def _advance(self, download: Downloading) -> None:
        share = download.done / download.total
        if self._live:
            if time.monotonic() - self._drawn >= 0.1 or share >= 1:
                self._drawn = time.monotonic()
                print(f"\r{bar(download)}", end="", file=self._stream, flush=True)
        elif int(share * 4) > self._quarter:
            self._quarter = int(share * 4)
            print(f"swink: {bar(download)}", file=self._stream, flush=True)


def bar(download: Downloading) -> str:
    """One line for a `download`: bar, bytes, rate."""
    share = download.done / download.total if download.total else 0.0
    filled = round(share * _WIDTH)
    rate = f"  {megabytes(download.rate)}/s" if download.rate else ""
    drawn = "#" * filled + "." * (_WIDTH - filled)
    return f"[{drawn}] {share:4.0%}  {megabytes(download.done)} of {megabytes(download.total)}{rate}"


def megabytes(count: float) -> str:
    """A number of bytes, `count`, for people."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
