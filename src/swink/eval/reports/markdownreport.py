"""report.md: a run for a pull request or the summary of a CI step, which takes at most 1 MiB."""

import html
import re
from collections.abc import Iterator, Sequence

from swink.eval.reports.comparison import TwoRuns
from swink.eval.reports.outcomes import CaseOutcome, dollars, joined, percent, seconds
from swink.eval.result import Manifest, RunSummary
from swink.memory.exports.facts import date_of
from swink.memory.exports.markdown import fence
from swink.messages.redact import redact_text
from swink.system.shorten import clip_end

_MOST_BAD = 100
_MOST = 500  # cases in the table
_LONGEST = 2_000  # characters of the reasons for one case
_MARKUP = re.compile(r"[\\`*_\[\]|~@]")
_MARKS = {"passed": "✅", "failed": "❌", "error": "⚠️"}


@joined
def write_markdown(
    summary: RunSummary, outcomes: Sequence[CaseOutcome], manifest: Manifest, comparison: TwoRuns | None
) -> Iterator[str]:
    """The run as Markdown: figures, comparison, metrics, what failed and why, and a table of the cases."""
    yield f"# {_plain(manifest.name)}\n\n"
    told = [manifest.model or "", manifest.agent, date_of(manifest.started)]
    told += [f"{manifest.repeat} attempts each"] if manifest.repeat > 1 else []
    if any(told):
        yield " · ".join(_plain(part) for part in told if part) + "\n\n"
    if not summary.complete:
        yield "> **The run is incomplete**: some attempts are missing.\n\n"
    if not outcomes:
        yield "> **There are no results.**\n\n"
    yield from _figures(summary)
    if comparison is not None:
        yield from _comparison(comparison)
    yield from _metrics(summary)
    yield from _bad([outcome for outcome in outcomes if outcome.state != "passed"])
    yield from _cases(outcomes)


def _figures(summary: RunSummary) -> Iterator[str]:
    interval = ""
    if summary.pass_rate_interval is not None:
        low, high = map(percent, summary.pass_rate_interval)
        interval = f" ({low} to {high})"
    figures = {
        "Pass rate": f"**{percent(summary.pass_rate)}**{interval}",
        "Cases": f"{summary.cases:,}",
        "Passed": f"{summary.passed:,}",
        "Failed": f"{summary.failed:,}",
        "Errors": f"{summary.errors:,}",
        "Cost": dollars(summary.cost),
        "Duration": seconds(summary.duration),
        **{f"pass@{k}": percent(value) for k, value in summary.pass_at_k.items()},
        **{f"pass^{k}": percent(value) for k, value in summary.pass_hat_k.items()},
    }
    yield from _table(list(figures), [list(figures.values())], numbers=range(len(figures)))


def _comparison(comparison: TwoRuns) -> Iterator[str]:
    yield f"## {_plain(comparison.title)}\n\n"
    yield "".join(f"- {_plain(line)}\n" for line in comparison.lines) + "\n"
    for title, changed in (("Newly failing", comparison.broke), ("Newly passing", comparison.fixed)):
        if changed:
            ids = ", ".join(_code(id) for id in changed[:_MOST_BAD])
            more = f" and {len(changed) - _MOST_BAD:,} more" if len(changed) > _MOST_BAD else ""
            yield f"**{title}** ({len(changed):,}): {ids}{more}\n\n"


def _metrics(summary: RunSummary) -> Iterator[str]:
    if not summary.metrics:
        return
    yield "## Metrics\n\n"
    rows = [
        [
            _code(name),
            f"{figures.get('mean', 0.0):.3f}",
            f"{figures.get('deviation', 0.0):.3f}",
            f"{figures.get('low', 0.0):.3f} to {figures.get('high', 0.0):.3f}",
            f"{figures.get('errors', 0):g}",
        ]
        for name, figures in sorted(summary.metrics.items())
    ]
    yield from _table(["metric", "mean", "deviation", "95 % interval", "errors"], rows, numbers=range(1, 5))


def _bad(outcomes: Sequence[CaseOutcome]) -> Iterator[str]:
    if not outcomes:
        return
    yield f"## Not passed ({len(outcomes):,})\n\n"
    for outcome in outcomes[:_MOST_BAD]:
        name = f" {html.escape(_one_line(outcome.name), quote=False)}" if outcome.name else ""
        id = html.escape(_one_line(outcome.id), quote=False)
        summary = f"{_MARKS[outcome.state]} <code>{id}</code>{name}"
        if len(outcome.attempts) > 1:
            summary += f" · {outcome.passed} of {len(outcome.attempts)} attempts passed"
        cut = clip_end("\n".join(outcome.whys), _LONGEST, "… (the rest is in results.jsonl)")
        yield f"<details>\n<summary>{summary}</summary>\n\n{fence(cut, 'text')}</details>\n\n"
    if len(outcomes) > _MOST_BAD:
        yield f"And {len(outcomes) - _MOST_BAD:,} more: see report.html.\n\n"


def _cases(outcomes: Sequence[CaseOutcome]) -> Iterator[str]:
    if not outcomes:
        return
    yield "## Cases\n\n"
    rows = [
        [_MARKS[outcome.state], _code(outcome.id), *outcome.cells, ", ".join(map(_plain, outcome.tags))]
        for outcome in outcomes[:_MOST]
    ]
    head = ["", "case", "score", "attempts passed", "cost", "time", "tags"]
    yield from _table(head, rows, numbers=range(2, 6))
    if len(outcomes) > _MOST:
        yield f"And {len(outcomes) - _MOST:,} more: see report.html.\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> Iterator[str]:
    rule = ["--:" if index in numbers else "---" for index in range(len(head))]
    for row in (head, rule, *rows):
        yield f"| {' | '.join(row)} |\n"
    yield "\n"


def _one_line(text: str) -> str:
    return " ".join(redact_text(text[:400]).split())


def _plain(text: str) -> str:
    """Text in one line that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>#|~@])", r"\\\1", _one_line(text))


def _code(text: str) -> str:
    """Text in one line as code, also in a table; no content ends it."""
    escaped = html.escape(_one_line(text), quote=False)
    return f"<code>{_MARKUP.sub(lambda found: f'&#{ord(found[0])};', escaped)}</code>"
