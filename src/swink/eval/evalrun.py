"""Runs: what an evaluation came to, in memory, and as it was left in its directory."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from swink.eval.result import CaseResult, Manifest, RunSummary
from swink.eval.resultfile import (
    MANIFEST,
    ResultFile,
    load_results,
    read_beside,
    read_manifest,
    seal,
    write_manifest,
)
from swink.eval.summary import Attempts, by_case, missing, summarise
from swink.messages.jsondata import encode
from swink.policies.chain import Head
from swink.system.files import write_whole

SUMMARY = "summary.json"


class EvalRun(Struct, eq=False, dict=True, weakref=True):
    """The results of an evaluation, in the order of its cases, and their summary.

    With a `directory`, results are read from there one by one when they are asked for.

    Args:
        manifest: what was run, as run.json has it
        duration: seconds
        head: the newest record of the chain of results
    """

    manifest: Manifest
    cases: Sequence[CaseResult]
    """One for each attempt."""
    duration: float = 0.0
    directory: Path | None = None
    head: Head | dict[str, Any] | None = None
    stopped: str | None = None
    """Why attempts are missing; None if none is."""

    @cached_property
    def summary(self) -> RunSummary:
        return summarise(self.cases, self.manifest, self.duration, self.head)

    @property
    def passed(self) -> int:
        """How many cases passed, in every attempt."""
        return self.summary.passed

    @property
    def failed(self) -> int:
        """The results that did not pass."""
        return self.summary.failed

    @property
    def errors(self) -> int:
        """How many cases could not be judged: an attempt at them ended in an error."""
        return self.summary.errors

    def save(self, directory: str | Path) -> None:
        """Write the results, the summary and the reports to a directory."""
        directory = Path(directory)
        if self.directory is None or not directory.exists() or not directory.samefile(self.directory):
            with ResultFile(directory) as file:
                write_manifest(directory, self.manifest)
                for result in self.cases:
                    file.append(result)
                self.head, self.cases, self.directory = file.seal(), file.results(), directory
            vars(self).pop("summary", None)  # its head is another one now
        self.write_summary()
        from swink.eval.reports import write_reports

        write_reports(directory, self.summary, self.cases, self.manifest)

    def write_summary(self) -> None:
        """Write summary.json beside the results, if they are in a directory."""
        if self.directory is not None:
            summary = json.format(encode(self.summary)) + b"\n"
            write_whole(self.directory / SUMMARY, summary, make_parents=True)

    def __repr__(self) -> str:
        cases, errors = self.summary.cases, self.errors
        return f"EvalRun({cases} cases, {self.passed} passed, {self.failed} failed, {errors} errors)"


def open_run(directory: str | Path, key: str | bytes | None = None) -> EvalRun:
    """The run that was written to a directory, finished or not; the `key` signs its summary."""
    results, head = load_results(directory)
    manifest = read_manifest(directory) or Manifest(name=Path(directory).name, started=0.0, version="")
    order = {id: place for place, id in enumerate(manifest.case_ids)}
    results = results.in_order(lambda entry: (order.get(entry.case_id, len(order)), entry.repeat))
    duration = busy([(entry.started, entry.duration) for entry in results.entries])
    return EvalRun(manifest, results, duration, Path(directory), seal(head, Path(directory) / MANIFEST, key))


def busy(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds in which something went on; spans are beginnings and durations, and may overlap."""
    total, end = 0.0, -inf
    for start, duration in sorted(spans):
        total += max(0.0, start + duration - max(start, end))
        end = max(end, start + duration)
    return total


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
    manifest, summary = read_manifest(directory), read_summary(directory)
    return SavedRun(str(directory), by_case(results), manifest, summary, tuple(results.problems))


def read_summary(directory: str | Path) -> RunSummary | None:
    """What summary.json says; None if there is none."""
    return read_beside(Path(directory) / SUMMARY, RunSummary, "; `swink eval report` writes it anew")
