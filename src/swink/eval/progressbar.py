"""Progress of an evaluation: how much is done, what it cost, how long it will take; and how that is shown."""

import sys
import time
from typing import TextIO

from msgspec import Struct

from swink.eval import summary
from swink.eval.result import CaseResult
from swink.messages.modelspec import format_dollars

_PLAIN_EVERY = 10.0  # seconds between two lines where there is no terminal
_LIVE_EVERY = 0.1
_WIDTH = 24


class Progress(Struct, frozen=True, kw_only=True):
    """Where a run is; attempts that an earlier one left are in `done`.

    Args:
        total: attempts in all
        passed: attempts that passed
        failed: attempts that did not
        errors: attempts that could not be judged
        elapsed: seconds since the beginning
    """

    total: int
    done: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    cost: float = 0.0
    """Dollars, of agents and judges, as far as they are known."""
    unpriced: int = 0
    """Attempts of which the cost is unknown."""
    elapsed: float = 0.0
    left: float | None = None
    """Seconds, estimated; None: nothing to go by."""
    result: CaseResult | None = None
    """The attempt that has just ended."""


class Tally:
    """Counts results as they come, and estimates how long the rest will take."""

    def __init__(self, total: int) -> None:
        self._began = time.monotonic()
        self._before = 0
        self.progress = Progress(total=total)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def add(self, result: CaseResult, *, is_resumed: bool = False) -> Progress:
        """Count a result that has just come, or one of the run that is resumed."""
        self._before += is_resumed
        was, cost = self.progress, cost_of(result)
        done, elapsed = was.done + 1, self.elapsed
        made = done - self._before
        self.progress = Progress(
            total=was.total,
            done=done,
            passed=was.passed + result.passed,
            failed=was.failed + (not result.passed and result.error is None),
            errors=was.errors + (result.error is not None),
            cost=was.cost + (cost or 0.0),
            unpriced=was.unpriced + (cost is None),
            elapsed=elapsed,
            left=elapsed / made * (was.total - done) if made > 0 else None,
            result=result,
        )
        return self.progress


def cost_of(result: CaseResult) -> float | None:
    """Dollars that this run spent on an attempt; None: unknown. Cached ones cost nothing."""
    return 0.0 if result.cached else summary.cost_of(result)


class ProgressBar:
    """Shows progress on one line of a terminal, and as a line now and then where there is none.

    Args:
        stream: where it writes (default: standard error)
        live: whether one line is written over and over (default: on a terminal)

    >>> await evaluate(factory, cases, progress=ProgressBar())
    """

    def __init__(self, stream: TextIO | None = None, live: bool | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty() if live is None else live
        self._shown = 0.0 if self._live else time.monotonic()
        self._length = 0

    def __call__(self, progress: Progress) -> None:
        """Show where the run is."""
        now, over = time.monotonic(), progress.done >= progress.total
        if not over and now - self._shown < (_LIVE_EVERY if self._live else _PLAIN_EVERY):
            return
        self._shown = now
        if self._live:
            text = line(progress, bar=True)
            self._stream.write("\r" + text.ljust(self._length))
            self._length = len(text)
        else:
            self._stream.write(line(progress) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line, so that others can write."""
        if self._length:
            self._stream.write("\n")
            self._stream.flush()
            self._length = 0


def line(progress: Progress, bar: bool = False) -> str:
    """Progress in one line: `12/40  10 passed  1 failed  1 error  $0.0123  1:05 left`."""
    parts = [f"{progress.done}/{progress.total}", f"{progress.passed} passed"]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.errors:
        parts.append(f"{progress.errors} error{'s' if progress.errors > 1 else ''}")
    if progress.cost or not progress.unpriced:
        parts.append(f"{'≥ ' if progress.unpriced else ''}{format_dollars(progress.cost, 4)}")
    if progress.left is not None and progress.done < progress.total:
        parts.append(f"{clock(progress.left)} left")
    elif progress.done >= progress.total:
        parts.append(f"in {clock(progress.elapsed)}")
    text = "  ".join(parts)
    if not bar:
        return text
    filled = _WIDTH * progress.done // max(1, progress.total)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {text}"


def clock(seconds: float) -> str:
    """Seconds as people read them: 0:07, 12:05, 1:02:03."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
