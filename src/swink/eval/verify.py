"""Verification: whether the results of a run are those that were written.

results.jsonl is a hash chain over every line. Its head, which summary.json keeps with a digest of run.json,
shows lines cut off at the end; until there is a summary, results.head does. If all files are changed so that
they agree, only the run's key shows it.
"""

import hmac
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from swink.eval.evalrun import SUMMARY, read_summary
from swink.eval.result import Manifest, RunSummary
from swink.eval.resultfile import (
    HEAD,
    MANIFEST,
    RESULTS,
    BadResults,
    digest,
    load_results,
    read_beside,
    read_manifest,
    signature,
)
from swink.eval.summary import summarise
from swink.policies import chain
from swink.policies.chain import Head, head_of

_NOT_COMPUTED = frozenset({"name", "duration", "head", "complete"})  # what a summary knows from elsewhere
_ROUNDING = 1e-9


class VerifyResult(Struct, frozen=True, kw_only=True):
    """What reading a run came to."""

    records: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be checked."""

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return not self.problems


def verify(directory: str | Path, key: str | bytes | None = None) -> VerifyResult:
    """Check every line of results.jsonl of a run's `directory`, and run.json and summary.json; names each
    problem.

    Args:
        key: the key of the chain, if the run had one
    """
    directory = Path(directory)
    results, _ = load_results(directory)
    problems, notes = list(results.problems), list[str]()
    unsure = f"nobody can tell whether lines at the end of {RESULTS} are missing"
    summary: RunSummary | None = None
    manifest: Manifest | None = None
    try:
        manifest = read_manifest(directory)
        summary = read_summary(directory)
    except BadResults as error:
        problems.append(str(error))
    else:
        if summary is None:
            problems += _unfinished(directory, key)
    head = summary.head if summary else None
    if summary and head is None and (directory / HEAD).exists():
        problems += _unfinished(directory, key)
    checked = chain.verify(directory / RESULTS, key=key, head=_head(head))
    problems += [f"{RESULTS}: {problem}" for problem in checked.problems]
    if summary and head is None:
        (notes if key is None else problems).append(
            f"{SUMMARY} has no head: {unsure}"
        )  # with a key it had one
    if head is not None:
        problems += _sealed(directory, head, key)
    if summary and not problems:
        try:
            problems += _figures(summary, summarise(results, manifest))
        except BadResults as error:
            problems.append(str(error))
    return VerifyResult(records=checked.records, problems=tuple(problems), notes=tuple(notes))


def _unfinished(directory: Path, key: str | bytes | None) -> list[str]:
    """What is wrong with a run that has no summary: interrupted, or taken away with some lines."""
    try:
        kept = read_beside(directory / HEAD, dict[str, Any])
    except BadResults as error:
        return [str(error)]
    if kept is None:
        return [f"{SUMMARY} and {HEAD} are gone: nobody can tell whether lines of {RESULTS} are missing"]
    if key is not None and not hmac.compare_digest(
        str(kept.get("seal")).encode(), signature(kept, key).encode()
    ):
        return [f"{HEAD}: was changed, or sealed with another key"]
    match kept:
        case {"records": 0}:
            return []
        case {"records": int(records), "hash": str(newest)}:
            lines = (directory / RESULTS).read_bytes().split(b"\n")
        case _:
            return [f"{HEAD}: does not say how many lines there are"]
    whole = len(lines) - 1
    if whole < records:
        return [f"{RESULTS}: {records} lines were written, {whole} are left"]
    found = head_of(lines[records - 1])  # a crash may have come between a line and what is said of it
    wrong = found is None or (found.records, found.hash) != (records, newest)
    return [f"{RESULTS}: line {records} is not the one that was written"] if wrong else []


def _head(head: dict[str, Any] | None) -> Head | None:
    match head:
        case None:
            return None
        case {"records": int(records), "hash": str(digest)}:
            return Head(records, digest)
        case _:
            return Head(-1, "")  # of no file


def _sealed(directory: Path, head: dict[str, Any], key: str | bytes | None) -> list[str]:
    problems: list[str] = []
    if head.get("run") is not None and head["run"] != digest(directory / MANIFEST):
        problems.append(f"{MANIFEST}: was changed")
    if key is not None:
        given = head.get("seal")
        if not isinstance(given, str):
            problems.append(f"{SUMMARY}: has no seal, but the run should have been written with a key")
        elif not hmac.compare_digest(given.encode(), signature(head, key).encode()):
            problems.append(f"{SUMMARY}: its head was changed, or sealed with another key")
    return problems


def _figures(written: RunSummary, computed: RunSummary) -> list[str]:
    """Where summary.json does not say what the results come to."""
    ours, theirs = msgspec.to_builtins(computed), msgspec.to_builtins(written)
    checked = [name for name in ours if name not in _NOT_COMPUTED]
    wrong = [name for name in checked if not _agree(ours[name], theirs[name])]
    return [f"{SUMMARY}: {name} is not what the results come to" for name in wrong]


def _agree(one: Any, other: Any) -> bool:
    """Whether two pieces of JSON data are equal up to rounding."""
    match one, other:
        case (dict(), dict()):
            ones, others = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
            return ones.keys() == others.keys() and all(_agree(ones[key], others[key]) for key in ones)
        case (list() | tuple(), list() | tuple()):
            items, rest = cast("list[Any]", one), cast("list[Any]", other)
            return len(items) == len(rest) and all(map(_agree, items, rest))
        case (int() | float(), int() | float()):
            return abs(one - other) <= _ROUNDING * max(1.0, abs(one))
        case _:
            return one == other
