"""The table of a comparison: what `swink eval compare` prints."""

from collections.abc import Callable, Sequence
from functools import partial

from swink.eval.compare import Change, Comparison, Flip
from swink.messages.modelspec import format_dollars
from swink.system.oneline import strip_controls

_SHOWN = 20
Show = Callable[[float], str]


def comparison_table(comparison: Comparison) -> str:
    """A comparison for people, as plain text."""
    lines = [
        f"before  {strip_controls(comparison.before)}",
        f"after   {strip_controls(comparison.after)}",
        f"{comparison.cases} cases in both runs",
        *_named("only before, not compared", comparison.only_before),
        *_named("only after, not compared", comparison.only_after),
        *_named("failed by a provider or the harness, in no test", comparison.troubled),
        "",
        *_columns(
            [
                ("", "cases", "before", "after", "change", "95 % interval", "p", "", "detectable"),
                _row(comparison.pass_rate, percent, "pass rate", lambda value: f"{100 * value:.1f} points"),
                *[_row(change, "{:.3f}".format, name) for name, change in comparison.metrics.items()],
                _row(comparison.cost, partial(format_dollars, places=4), "agent cost"),
                _row(comparison.duration, "{:.2f} s".format, "duration"),
                _row(comparison.tokens, "{:,.0f}".format, "agent tokens"),
            ]
        ),
        "",
        *_flips("regressions", comparison.regressions),
        *_flips("improvements", comparison.improvements),
        *[f"note: {strip_controls(note)}" for note in comparison.notes],
        "* p < 0.05 in a paired test over cases, corrected for the number of figures (Holm); detectable: the "
        "smallest change that this many cases show four times out of five; intervals are of one figure alone",
    ]
    return "\n".join(lines)


def _row(change: Change, show: Show, name: str, show_change: Show | None = None) -> tuple[str, ...]:
    if change.before is None or change.after is None or change.difference is None:
        return (strip_controls(name), str(change.cases), "unknown", "", "", "", "", "", "")

    def signed(value: float) -> str:
        return ("-" if value < 0 else "+") + (show_change or show)(abs(value))

    between = f"{signed(change.interval[0])} to {signed(change.interval[1])}" if change.interval else ""
    return (
        strip_controls(name),
        str(change.cases),
        show(change.before),
        show(change.after),
        signed(change.difference),
        between,
        "" if change.p is None else "<0.001" if change.p < 0.001 else f"{change.p:.3f}",
        "*" if change.significant else "",
        "" if change.detectable is None else (show_change or show)(change.detectable),
    )


def _flips(title: str, flips: Sequence[Flip]) -> list[str]:
    if not flips:
        return [f"{title}: none"]
    lines = [f"{title}: {len(flips)}"]
    for flip in flips[:_SHOWN]:
        line = f"  {strip_controls(flip.case_id)}: {flip.before} -> {flip.after}"
        if {flip.rate_before, flip.rate_after} != {0.0, 1.0}:
            line += f" ({flip.rate_before:.0%} -> {flip.rate_after:.0%} of attempts)"
        lines.append(line)
    more = len(flips) - _SHOWN
    return [*lines, f"  and {more} more (--json lists all)"] if more > 0 else lines


def _named(title: str, cases: Sequence[str]) -> list[str]:
    if not cases:
        return []
    more = f" and {len(cases) - _SHOWN} more" if len(cases) > _SHOWN else ""
    return [f"{len(cases)} {title}: {', '.join(map(strip_controls, cases[:_SHOWN]))}{more}"]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines


def percent(value: float) -> str:
    """A share in percent, with one digit after the point."""
    return f"{100 * value:.1f} %"
