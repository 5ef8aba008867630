"""The console table: what a run came to, in the width of a terminal."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence

from swink.eval.reports.outcomes import CaseOutcome, dollars, outcomes_of, percent, seconds
from swink.eval.result import CaseResult, RunSummary
from swink.events.transcript.blockkinds import counted
from swink.messages.jsondata import clean
from swink.system.oneline import shorten, strip_controls, width_of

_MOST = 40  # cases that a table lists; of more, only those that have not passed
_MOST_LINES = 12  # of one reason why a case has not passed
_MARKS = {"passed": "✓", "failed": "✗", "error": "!"}
_CODES = {"passed": "32", "failed": "31", "error": "33", "dim": "2", "bold": "1"}

_Paint = Callable[[str, str], str]  # a text in a style


def console_table(
    summary: RunSummary, results: Sequence[CaseResult], *, colour: bool = False, columns: int | None = None
) -> str:
    """The cases, why some have not passed, the mean of every metric and the totals.

    `columns` is the width, by default that of the terminal.

    Args:
        summary: the totals
        results: the attempts of the run
        colour: paint it with escape sequences
        columns: its width
    """
    columns = columns or max(60, shutil.get_terminal_size().columns - 1)

    def paint(text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour else text

    outcomes = outcomes_of(results)
    bad = [outcome for outcome in outcomes if outcome.state != "passed"]
    listed = outcomes if len(outcomes) <= _MOST else bad[:_MOST]
    lines = _cases(listed, columns, paint) if listed else []
    if len(outcomes) > _MOST and len(bad) > _MOST:
        lines.append(paint(f"  and {len(bad) - _MOST:,} more that have not passed: see the report", "dim"))
    parts = [lines, _metrics(summary), _totals(summary, paint)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _cases(outcomes: Sequence[CaseOutcome], columns: int, paint: _Paint) -> list[str]:
    is_repeated = any(len(outcome.attempts) > 1 for outcome in outcomes)
    head = ["case", "result", "score", "attempts", "cost", "time", "turns"]
    rows = [head]
    rows += [[outcome.id, outcome.state, *outcome.cells, f"{outcome.turns:g}"] for outcome in outcomes]
    if not is_repeated:
        rows = [row[:3] + row[4:] for row in rows]
    widths = [max(width_of(row[index]) for row in rows) for index in range(len(rows[0]))]
    widths[0] = max(8, min(widths[0], columns - sum(widths[1:]) - 2 * len(widths) - 2))
    lines = [paint(f"  {_row(rows[0], widths)}", "dim")]
    errors = Counter(why for outcome in outcomes for why in outcome.whys if why.startswith("error: "))
    told: set[str] = set()
    for outcome, row in zip(outcomes, rows[1:], strict=True):
        mark = paint(_MARKS[outcome.state], outcome.state)
        lines.append(f"{mark} {_row(row, widths)}")
        if outcome.state != "passed":
            new = [why for why in outcome.whys if why not in told]  # a missing key fails every case alike
            told.update(why for why in new if why in errors)
            for why in new[:3]:
                shown = f"{why} ({errors[why]:,} cases)" if errors[why] > 1 else why
                lines += [paint(f"    {line}", "dim") for line in _folded(shown, columns - 4)]
            if len(new) > 3:
                lines.append(paint(f"    and {len(new) - 3} more", "dim"))
    return lines


def _folded(text: str, room: int) -> list[str]:
    """The text in lines of at most `room` columns: what to do often stands at its end."""
    folded: list[str] = []
    for line in strip_controls(text).splitlines():
        first, *words = line.split(" ")
        folded.append(first)
        for word in words:
            if folded[-1].strip() and width_of(f"{folded[-1]} {word}") > room:
                folded.append(word)
            else:
                folded[-1] += f" {word}"
    if len(folded) > _MOST_LINES:
        folded[_MOST_LINES - 1 :] = ["… and more: see the report"]
    return [line if width_of(line) <= room else shorten(line, room) for line in folded]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Texts to the left, numbers to the right."""
    made: list[str] = []
    for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        cell = shorten(cell, width)
        space = " " * (width - width_of(cell))
        made.append(cell + space if index < 2 else space + cell)
    return "  ".join(made).rstrip()


def _metrics(summary: RunSummary) -> list[str]:
    if not summary.metrics:
        return []
    named = {shorten(clean(name), 40): figures for name, figures in sorted(summary.metrics.items())}
    width = max(map(width_of, named))
    lines: list[str] = []
    for name, figures in named.items():
        mean = figures.get("mean", 0.0)
        bar = "█" * round(20 * max(0.0, min(1.0, mean)))
        errors = f"  {figures['errors']:g} errors" if figures.get("errors") else ""
        lines.append(f"  {name}{' ' * (width - width_of(name))}  {mean:.2f}  {bar}{errors}".rstrip())
    return lines


def _totals(summary: RunSummary, paint: _Paint) -> list[str]:
    parts = [paint(f"{summary.passed:,} passed", "passed")]
    parts += [paint(f"{summary.failed:,} failed", "failed")] if summary.failed else []
    parts += [paint(counted(summary.errors, "error"), "error")] if summary.errors else []
    rate = f"pass rate {percent(summary.pass_rate)}"
    if summary.pass_rate_interval is not None:
        low, high = summary.pass_rate_interval
        rate += f" (95 % interval {percent(low)} to {percent(high)})"
    cost = "cost unknown" if summary.cost is None else dollars(summary.cost)
    lines = [f"{paint(counted(summary.cases, 'case'), 'bold')}: {', '.join(parts)}"]
    cached = f" · {summary.cached:,} of {counted(summary.attempts, 'attempt')} from the cache" * bool(
        summary.cached
    )
    lines.append(f"{rate} · {cost} · {seconds(summary.duration)}{cached}")
    if len(summary.pass_at_k) > 1:
        at = [f"pass@{k} {percent(value)}" for k, value in summary.pass_at_k.items()]
        hat = [f"pass^{k} {percent(value)}" for k, value in summary.pass_hat_k.items()]
        lines.append(" · ".join([*at, *hat]))
    if not summary.complete:
        lines.append(paint("The run is incomplete: continue it with --resume.", "error"))
    return lines
