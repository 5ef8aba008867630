"""Plots: figures of a run as SVG, about as wide as on a screen; colours come from the page's style sheet."""

import html
from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from urllib.parse import quote

from msgspec import Struct

from swink.eval.reports.outcomes import percent
from swink.eval.statistics import Interval
from swink.system.shorten import clip

WIDTH = 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 14, 12, 40
_HEIGHT = 240
_DOT_ROW = 26

Label = Callable[[float], str]


class TagRate(Struct, frozen=True):
    """A pass rate with its interval, of one tag; `before` is that of an earlier run."""

    name: str
    rate: float
    interval: Interval
    cases: int
    before: float | None = None


class Point(Struct, frozen=True):
    """A case somewhere in a plane."""

    id: str
    x: float
    y: float
    state: str
    told: str


def rates(rows: Sequence[TagRate], total: float) -> str:
    """Pass rates below each other, each with its interval; a thin line marks that of the whole run."""
    left, right = 138, 52
    span = WIDTH - left - right
    bottom = 8 + _DOT_ROW * len(rows)

    def at(value: float) -> float:
        return left + span * value

    parts = [_line("grid", at(tick / 4), 4, at(tick / 4), bottom) for tick in range(5)]
    parts += [_text(at(tick / 4), bottom + 16, f"{25 * tick} %", "middle") for tick in range(5)]
    parts.append(_line("whole", at(total), 4, at(total), bottom))
    for number, row in enumerate(rows):
        y = 8 + _DOT_ROW * (number + 0.5)
        low, high = row.interval
        told = f"{row.name}: {percent(row.rate)} of {row.cases:,} cases, {percent(low)} to {percent(high)}"
        told += f"; before {percent(row.before)}" if row.before is not None else ""
        marks = [
            f'<rect class="hit" x="0" y="{y - _DOT_ROW / 2:g}" width="{WIDTH}" height="{_DOT_ROW}"/>',
            _text(left - 10, y + 4, clip(row.name, 19), "end", "name"),
            _line("whisker", at(low), y, at(high), y),
        ]
        if row.before is not None:
            marks.append(f'<circle class="before" cx="{at(row.before):.1f}" cy="{y:g}" r="4"/>')
        marks.append(f'<circle class="dot" cx="{at(row.rate):.1f}" cy="{y:g}" r="4.5"/>')
        marks.append(_text(WIDTH, y + 4, percent(row.rate, 0), "end", "value"))
        parts.append(_link(f"tag={quote(row.name, safe='')}", told, "".join(marks)))
    return _svg(bottom + 24, "".join(parts), "Pass rate by tag")


def histogram(
    passed: Sequence[float],
    others: Sequence[float],
    edges: Sequence[float],
    label: Label,
    title: str,
    before: Sequence[float] = (),
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """How often values lie between two edges: those that passed below, the others on top of them.

    `before` is drawn as an outline, scaled to as many values; `marks` are lines with a name. The x-axis has
    the edges at equal distances, whatever they are.
    """
    good, bad, was = (_counts(values, edges) for values in (passed, others, before))
    scale = (len(passed) + len(others)) / len(before) if before else 0.0
    most = max([1.0, *[up + down for up, down in zip(good, bad, strict=True)], *[scale * n for n in was]])
    ticks = _ticks(most)
    top = max(most, ticks[-1])
    step = (WIDTH - _LEFT - _RIGHT) / len(good)

    high_up = _TOP + (19 * len(marks) if marks else 0)  # above the bars there is room for their names

    def height(count: float) -> float:
        return (_HEIGHT - high_up - _BOTTOM) * count / top

    base = _HEIGHT - _BOTTOM
    parts = [_level(base - height(tick), f"{tick:,.0f}") for tick in ticks]
    for index, (up, down) in enumerate(zip(good, bad, strict=True)):
        x = _LEFT + index * step
        low, high = label(edges[index]), label(edges[index + 1])
        bars = f'<rect class="hit" x="{x:.1f}" y="{_TOP}" width="{step:.1f}" height="{base - _TOP}"/>'
        bars += _bar("good", x, base - height(up), step, height(up))
        bars += _bar("bad", x, base - height(up + down), step, height(down))
        if up or down:
            told = f"{low} to {high}: {up:,} passed, {down:,} not"
            parts.append(f"<g><title>{html.escape(told)}</title>{bars}</g>")
    if before:
        points = [f"{_LEFT:g},{base:g}"]
        for index, count in enumerate(was):
            y = base - height(scale * count)
            points += [f"{_LEFT + index * step:.1f},{y:.1f}", f"{_LEFT + (index + 1) * step:.1f},{y:.1f}"]
        parts.append(f'<polyline class="outline" points="{" ".join(points)} {WIDTH - _RIGHT:g},{base:g}"/>')
    every = max(1, ceil(len(edges) / 7))
    for index in range(0, len(edges), every):
        parts.append(_text(_LEFT + index * step, base + 16, label(edges[index]), "middle"))
    for row, (value, name) in enumerate(marks):  # each on a line of its own, since two may be in one place
        x, y = _LEFT + step * _place(value, edges), _TOP + 6 + 19 * row
        parts.append(_line("mark", x, y - 8, x, base))
        at, anchor = (x + 5, "start") if x < WIDTH * 0.7 else (x - 5, "end")
        parts.append(_text(at, y, name, anchor, "value halo"))
    return _svg(_HEIGHT - 14, "".join(parts), title)


def scatter(
    points: Sequence[Point],
    x_range: tuple[float, float],
    y_low: float,
    label: Label,
    names: tuple[str, str],
    title: str,
    *,
    diagonal: bool = False,
) -> str:
    """Cases in a plane, y up to 1; those in one place are one dot, larger and counted."""
    low, high = x_range
    span = (high - low) or 1.0
    width, base, top = WIDTH - _LEFT - _RIGHT, _HEIGHT - _BOTTOM, 2 * _TOP

    def at(x: float, y: float) -> tuple[float, float]:
        share = (max(y_low, min(1.0, y)) - y_low) / (1 - y_low)
        return _LEFT + width * (x - low) / span, base - (base - top) * share

    parts = [_level(at(low, tick)[1], f"{tick:g}") for tick in _steps(y_low, 1.0)]
    for tick in _steps(low, high):
        x = at(tick, 0)[0]
        parts.append(_line("grid", x, top, x, base))
        parts.append(_text(x, base + 16, label(tick), "middle"))
    if diagonal:
        parts.append(_line("whole", *at(low, low), *at(1, 1)))
    places: dict[tuple[int, int, str], list[Point]] = {}
    for point in points:
        x, y = at(point.x, point.y)
        places.setdefault((round(x / 4), round(y / 4), point.state), []).append(point)
    order = {"passed": 0, "failed": 1, "error": 2}
    for group in sorted(places.values(), key=lambda group: (order.get(group[0].state, 0), -len(group))):
        first = group[0]
        x, y = at(first.x, first.y)
        more = f", and {len(group) - 1:,} more here" if len(group) > 1 else ""
        radius = min(11.0, 3.4 + 0.9 * (len(group) - 1) ** 0.5)
        circle = f'<circle class="{first.state}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        parts.append(_link(f"case={quote(first.id, safe='')}", f"{first.told}{more}", circle))
    parts.append(_text(WIDTH - _RIGHT, _HEIGHT - 8, names[0], "end", "axis"))
    parts.append(_text(0, 9, names[1], "start", "axis"))
    return _svg(_HEIGHT, "".join(parts), title)


def shares(counts: Sequence[tuple[str, int]]) -> str:
    """A bar that is parted as the cases are."""
    total = sum(count for _, count in counts) or 1
    x, parts = 0.0, list[str]()
    for state, count in counts:
        if count:
            width = 1000 * count / total
            parts.append(f'<rect class="{state}" x="{x:.2f}" y="0" width="{width:.2f}" height="10"/>')
            x += width
    told = ", ".join(f"{count:,} {state}" for state, count in counts)
    box = 'viewBox="0 0 1000 10" preserveAspectRatio="none"'
    return f'<svg class="shares" {box} role="img" aria-label="{told}">{"".join(parts)}</svg>'


def gauge(value: float, interval: Interval | None = None) -> str:
    """A value between 0 and 1 as a bar; its interval as a line on it."""
    bar = '<rect class="track" width="100" height="8"/>'
    bar += f'<rect class="dot" width="{100 * value:.1f}" height="8"/>'
    if interval is not None:
        low, high = interval
        width = max(0.5, 100 * (high - low))
        bar += f'<rect class="whisker" x="{100 * low:.1f}" y="3" width="{width:.1f}" height="2"/>'
    return f'<svg class="gauge" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{bar}</svg>'


def floor_of(values: Sequence[float]) -> float:
    """Where an axis up to 1 may begin: at a multiple of a fifth with some room below the least value."""
    return max(0.0, min(0.8, floor(min(values) * 5 - 0.2) / 5))


def log_edges(values: Sequence[float]) -> list[float]:
    """Edges around values of different magnitude: 1, 1.5, 2, 3, 5, 7 and their powers of ten."""
    low, high = (max(least, 1e-3) for least in (min(values), max(values)))
    powers = range(floor(log10(low)) - 1, ceil(log10(high)) + 2)
    ladder = [step * 10.0**power for power in powers for step in (1, 1.5, 2, 3, 5, 7)]
    first = max(index for index, edge in enumerate(ladder) if edge <= low)
    last = min(index for index, edge in enumerate(ladder) if edge > high)
    return ladder[first : last + 1]


def _counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    counts = [0] * (len(edges) - 1)
    for value in values:
        counts[min(len(counts) - 1, max(0, int(_place(value, edges))))] += 1
    return counts


def _place(value: float, edges: Sequence[float]) -> float:
    """Between which edges a value lies, and how far."""
    for index in range(len(edges) - 1):
        if value < edges[index + 1]:
            return index + max(0.0, (value - edges[index]) / (edges[index + 1] - edges[index]))
    return float(len(edges) - 1)


def _ticks(most: float) -> list[int]:
    """Whole numbers for an axis of counts."""
    step = max(1, round(_step(most / 4)))
    return list(range(0, ceil(most / step) * step + 1, step))


def _steps(low: float, high: float) -> list[float]:
    step = _step((high - low) / 5 or 1.0)
    return [number * step for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not below."""
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough * 0.9999), 10 * power)


def _svg(height: float, body: str, title: str) -> str:
    label = html.escape(title)
    return f'<svg class="plot" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{label}">{body}</svg>'


def _link(fragment: str, told: str, body: str) -> str:
    """Something that leads to its rows of the table; the keyboard has the table's own filters for that."""
    return f'<a href="#{html.escape(fragment)}" tabindex="-1"><title>{html.escape(told)}</title>{body}</a>'


def _level(y: float, name: str) -> str:
    return _line("grid", _LEFT, y, WIDTH - _RIGHT, y) + _text(_LEFT - 8, y + 4, name, "end")


def _bar(kind: str, x: float, y: float, width: float, height: float) -> str:
    if height <= 0:
        return ""
    inner = max(1.0, width - 2)
    return f'<rect class="{kind}" x="{x + 1:.1f}" y="{y:.1f}" width="{inner:.1f}" height="{height:.1f}"/>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    name, shown = f' class="{kind}"' if kind else "", html.escape(text, quote=False)
    return f'<text{name} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'
