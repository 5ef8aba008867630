"""Verify: whether the results of a run are those that were written."""

from pathlib import Path

from msgspec import Struct


class VerifyResult(Struct, frozen=True, kw_only=True):
    """What reading a run came to; `ok` if nothing in it was changed."""

    records: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be checked."""

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return not self.problems


def verify(directory: str | Path, key: str | bytes | None = None) -> VerifyResult:
    """Check every line of results.jsonl, and summary.json against them; every problem is named."""
    raise NotImplementedError
