"""Data of the page: a row for every case with what the table shows, and chunks of details in compressed JSON
(metrics, errors, conversations), unpacked when a case is opened."""

import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from swink.eval.reports.comparison import TwoRuns
from swink.eval.reports.outcomes import CaseOutcome, score_of
from swink.eval.reports.timetree import time_tree
from swink.eval.reports.transcriptrows import conversation
from swink.eval.result import CaseResult, Metric
from swink.eval.summary import cost_of
from swink.messages.jsondata import clean, encode
from swink.messages.redact import redact_text

STATES = ("passed", "failed", "error")
MOST_CASES = 20_000
"""In the page; of more, those that have not passed come first."""
_ROOM = 40_000_000  # characters of all conversations together
_MOST_ROOM = 60_000  # characters of one conversation
_CHUNK = 400_000  # bytes of details that are compressed together
_LONGEST = 2_000  # characters of an explanation


class PageData(Struct, frozen=True):
    """What the page's script reads."""

    rows: str
    """JSON that may stand in a script element."""
    chunks: list[str]
    left_out: int
    """Cases that the page has not."""


def page_data(
    outcomes: Sequence[CaseOutcome], results: Sequence[CaseResult], comparison: TwoRuns | None
) -> PageData:
    """The data of a run; its results are looked at one at a time."""
    shown = outcomes
    if len(outcomes) > MOST_CASES:
        shown = sorted(outcomes, key=lambda outcome: outcome.state == "passed")[:MOST_CASES]
    tags = _numbers(tag for outcome in shown for tag in outcome.tags)
    metrics = _numbers(clean(m.name) for o in shown for attempt in o.attempts for m in attempt.metrics)
    attempts = sum(len(outcome.attempts) for outcome in shown)
    attempts += 0 if comparison is None else sum(len(was.attempts) for was, _ in comparison.both)
    room = min(_MOST_ROOM, _ROOM // max(1, attempts))
    rows: list[list[Any]] = []
    chunks: list[str] = []
    pending: list[bytes] = []
    for outcome in shown:
        rows.append([*_row(outcome, tags, metrics, comparison), len(chunks), len(pending)])
        pending.append(encode(_details(outcome, results, comparison, room)))
        if sum(map(len, pending)) > _CHUNK:
            chunks.append(_packed(pending))
            pending = []
    if pending:
        chunks.append(_packed(pending))
    data: dict[str, Any] = {
        "rows": rows,
        "tags": list(tags),
        "metrics": list(metrics),
        "compared": comparison is not None,
    }
    data["baseline"] = "" if comparison is None else redact_text(clean(comparison.name)) or "the baseline"
    return PageData(embedded(data), chunks, len(outcomes) - len(shown))


def embedded(data: Any) -> str:
    """JSON that ends no script element and begins no comment, whatever is in it."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _numbers(names: Iterator[str]) -> dict[str, int]:
    """Each name once, with its number, the most frequent first."""
    counts = Counter(names)
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: number for number, name in enumerate(ordered)}


def _row(
    outcome: CaseOutcome, tags: dict[str, int], metrics: dict[str, int], comparison: TwoRuns | None
) -> list[Any]:
    """In the order that the script names: see `FIELDS` there."""
    failed = {clean(m.name) for attempt in outcome.attempts for m in attempt.metrics if not m.passed}
    before = None
    if comparison is not None and (was := comparison.before.get(outcome.id)) is not None:
        before = [STATES.index(was.state), _short(was.score), _exact(was.cost), _short(was.duration)]
    return [
        outcome.id,
        outcome.name[:300],
        STATES.index(outcome.state),
        _short(outcome.score),
        outcome.passed,
        len(outcome.attempts),
        _exact(outcome.cost),
        _short(outcome.duration),
        outcome.turns,
        outcome.tokens,
        [tags[tag] for tag in outcome.tags],
        sorted(metrics[name] for name in failed),
        outcome.whys[0][:160] if outcome.whys else "",
        before,
    ]


def _details(
    outcome: CaseOutcome, results: Sequence[CaseResult], comparison: TwoRuns | None, room: int
) -> dict[str, Any]:
    details: dict[str, Any] = {"attempts": [_attempt(results[place], room) for place in outcome.places]}
    if outcome.place is not None:
        details["place"] = str(outcome.place)
    if comparison is not None and (was := comparison.before.get(outcome.id)) is not None:
        details["before"] = [why[:_LONGEST] for why in was.whys[:5]]
        tried = [comparison.results[place] for place in was.places] if comparison.results else []
        details["earlier"] = [_earlier(attempt, room) for attempt in tried]
    return details


def _earlier(attempt: CaseResult, room: int) -> dict[str, Any]:
    """An attempt of the earlier run, as far as it is shown beside that of this one."""
    return {
        "passed": attempt.passed,
        "values": {metric.name: _short(metric.value) for metric in attempt.metrics if metric.error is None},
        "talk": conversation(attempt, room),
    }


def _attempt(attempt: CaseResult, room: int) -> dict[str, Any]:
    usage = attempt.usage
    return {
        "passed": attempt.passed,
        "error": _text(attempt.error),
        "source": attempt.error_source,
        "reason": _text(attempt.reason),
        "stop": attempt.stop_reason,
        "score": _short(score_of(attempt)),
        "cost": _exact(cost_of(attempt)),
        "time": _short(attempt.duration),
        "turns": attempt.turns,
        "tokens": [usage.input + usage.cache_read + usage.cache_write, usage.output],
        "model": attempt.model,
        "cached": attempt.cached,
        "metrics": [_metric(metric) for metric in attempt.metrics],
        "talk": conversation(attempt, room),
        "tree": redact_text(time_tree(attempt)),
    }


def _metric(metric: Metric) -> list[Any]:
    said = [[verdict.judge, _short(verdict.value), _text(verdict.why)] for verdict in metric.verdicts]
    told = _text(metric.why), _text(metric.error)
    return [metric.name, _short(metric.value), metric.threshold, metric.passed, *told, said]


def _text(text: str | None) -> str:
    clear = redact_text((text or "")[: 2 * _LONGEST])
    rest = len(text or "") - _LONGEST
    return clear if rest <= 0 else f"{clear[:_LONGEST]}… {rest:,} more characters in results.jsonl"


def _short(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)


def _exact(cost: float | None) -> float | None:
    """A cost in four digits that count, however small it is."""
    return None if cost is None else float(f"{cost:.4g}")


def _packed(details: Sequence[bytes]) -> str:
    return b64encode(zlib.compress(b"[" + b",".join(details) + b"]", 6)).decode()
