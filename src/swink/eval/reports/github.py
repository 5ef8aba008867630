"""Annotations: failed cases on the lines of a pull request, as commands that GitHub reads from stdout."""

import os
from collections.abc import Sequence
from pathlib import Path

from swink.eval.reports.outcomes import CaseOutcome, outcomes_of
from swink.eval.result import CaseResult

_MOST = 10  # GitHub shows that many errors of a step
_LONGEST = 4_000


def annotations(results: Sequence[CaseResult], root: Path | None = None) -> list[str]:
    """A line for every case that has not passed; of more than GitHub shows, the last line counts the rest.

    `root` is the directory of the repository, by default `$GITHUB_WORKSPACE` or the current one.

    Args:
        results: the attempts of a run
        root: makes the paths in the lines relative
    """
    root = root or Path(os.environ.get("GITHUB_WORKSPACE") or ".")
    bad = [outcome for outcome in outcomes_of(results) if outcome.state != "passed"]
    if len(bad) <= _MOST:
        return [_annotation(outcome, root) for outcome in bad]
    rest = f"::error title=More cases failed::{len(bad) - _MOST + 1} more cases failed; see the report."
    return [*[_annotation(outcome, root) for outcome in bad[: _MOST - 1]], rest]


def _annotation(outcome: CaseOutcome, root: Path) -> str:
    verb = "could not be run" if outcome.state == "error" else "failed"
    title = f"{outcome.id} {verb}"
    if len(outcome.attempts) > 1:
        title += f" ({outcome.passed} of {len(outcome.attempts)} attempts passed)"
    properties = {"title": title}
    if (place := outcome.place) is not None:
        # As GitHub wants it: from the root of the repository, with slashes.
        path, base = Path(place.path).absolute(), root.absolute()
        file = path.relative_to(base).as_posix() if path.is_relative_to(base) else place.path
        properties = {"file": file, "line": str(place.line), **properties}
    escaped = {name: _data(value).replace(":", "%3A") for name, value in properties.items()}
    told = ",".join(f"{name}={value.replace(',', '%2C')}" for name, value in escaped.items())
    return f"::error {told}::{_data(chr(10).join(outcome.whys)[:_LONGEST])}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
