"""Saved runs: what a run left in its directory, without the transcripts."""

from pathlib import Path

from msgspec import Struct

from swink.eval.result import CaseResult, Manifest, RunSummary
from swink.eval.resultfile import load_results, read_beside, read_manifest
from swink.eval.summary import Attempts, by_case, missing

SUMMARY = "summary.json"


class SavedRun(Struct, frozen=True):
    """The attempts of a run, and what it wrote about itself."""

    directory: str
    cases: Attempts
    manifest: Manifest | None
    summary: RunSummary | None
    """As it was written; figures are made anew of the attempts."""
    problems: tuple[str, ...]
    """Lines that cannot be read."""

    @property
    def attempts(self) -> list[CaseResult]:
        return [attempt for tried in self.cases.values() for attempt in tried]

    @property
    def missing(self) -> int:
        """How many attempts that the run set out to make have no result."""
        return missing(self.cases, self.manifest) if self.manifest else 0

    @property
    def duration(self) -> float | None:
        """Seconds on the clock: as the run wrote down, or from its first attempt to the end of its last."""
        if self.summary and self.summary.duration:
            return self.summary.duration
        timed = [attempt for attempt in self.attempts if attempt.started and not attempt.cached]
        ends = [attempt.started + attempt.duration for attempt in timed]
        return max(ends) - min(attempt.started for attempt in timed) if timed else None


def read_run(directory: str | Path) -> SavedRun:
    """What is in the directory of a run."""
    results, _ = load_results(directory)
    return SavedRun(
        str(directory),
        by_case(results),
        read_manifest(directory),
        read_summary(directory),
        tuple(results.problems),
    )


def read_summary(directory: str | Path) -> RunSummary | None:
    """What summary.json says; None if there is none."""
    return read_beside(Path(directory) / SUMMARY, RunSummary, "; `swink eval report` writes it anew")
