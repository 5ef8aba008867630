"""Results of evaluation runs to do statistics on."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from swink.eval import CaseResult, Metric
from swink.eval.result import Manifest
from swink.eval.resultfile import ResultFile, write_manifest
from swink.eval.summary import summarise


def result(case_id: str = "oslo", passed: bool = True, repeat: int = 0, **fields: Any) -> CaseResult:
    """One attempt; it passed or failed by a scorer named `response`."""
    values: dict[str, Any] = {
        "metrics": (Metric("response", float(passed), 1.0, passed),),
        "cost": 0.01,
        "duration": 1.0,
        "started": 1000.0 + repeat,
    }
    return CaseResult(case_id=case_id, passed=passed, repeat=repeat, **(values | fields))


def outcomes(text: str, **fields: Any) -> list[CaseResult]:
    """Attempts at cases c0, c1, …: `+` passed, `-` failed; a word has the attempts at one case."""
    return [
        result(f"c{number}", mark == "+", repeat, **fields)
        for number, word in enumerate(text.split())
        for repeat, mark in enumerate(word)
    ]


def save(
    directory: Path,
    results: Sequence[CaseResult],
    *,
    case_ids: Iterable[str] | None = None,
    key: bytes | None = None,
    duration: float = 10.0,
    digest: str = "",
) -> Path:
    """Write a run as the runner does."""
    ids = dict.fromkeys(result.case_id for result in results) if case_ids is None else case_ids
    repeat = max([result.repeat for result in results], default=0) + 1
    manifest = Manifest(
        name="suite", started=1000.0, version="1", repeat=repeat, case_ids=tuple(ids), digest=digest
    )
    write_manifest(directory, manifest)
    with ResultFile(directory, key=key) as file:
        for one in results:
            file.append(one)
        head = file.seal()
    summary = summarise(results, manifest, duration, head)
    (directory / "summary.json").write_bytes(msgspec.json.encode(summary))
    return directory
