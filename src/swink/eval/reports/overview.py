"""The overview: which plots of a run are worth drawing, and of what."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from swink.eval.reports.comparison import TwoRuns
from swink.eval.reports.outcomes import CaseOutcome, dollars, score_of, seconds
from swink.eval.reports.plots import Point, TagRate, floor_of, histogram, log_edges, rates, scatter
from swink.eval.result import CaseResult, RunSummary
from swink.eval.statistics import interval, percentile

_MOST_TAGS = 14


def plots_of(
    outcomes: Sequence[CaseOutcome], summary: RunSummary, comparison: TwoRuns | None
) -> Iterator[tuple[str, str, str]]:
    """The name of each plot, a note to it, and its SVG."""
    before = [was for was, _ in comparison.both] if comparison is not None else []
    by_tag = _by_tag(outcomes)
    if by_tag:
        was = _by_tag(before)
        shown = sorted(by_tag, key=lambda tag: (-len(by_tag[tag]), tag))[:_MOST_TAGS]
        rows: list[TagRate] = []
        for tag in shown:
            rate, old_rate = fmean(by_tag[tag]), fmean(was[tag]) if tag in was else None
            rows.append(TagRate(tag, rate, interval(by_tag[tag]), len(by_tag[tag]), old_rate))
        rows.sort(key=lambda row: (row.rate, row.name))
        note = "with 95 % intervals" + ("; hollow: before" if was else "")
        note += f"; the {_MOST_TAGS} largest of {len(by_tag)} tags" if len(by_tag) > _MOST_TAGS else ""
        yield "Pass rate by tag", note, rates(rows, summary.pass_rate)
    attempts = [attempt for outcome in outcomes for attempt in outcome.attempts]
    old = [attempt for outcome in before for attempt in outcome.attempts]
    outlined = "; outline: before" if old else ""
    scored = [(score, attempt.passed) for attempt in attempts if (score := score_of(attempt)) is not None]
    if scored:
        plot = histogram(
            [score for score, passed in scored if passed],
            [score for score, passed in scored if not passed],
            [tenth / 10 for tenth in range(11)],
            "{:g}".format,
            "Distribution of scores",
            [score for attempt in old if (score := score_of(attempt)) is not None],
        )
        yield "Score distribution", f"attempts by mean of their metrics{outlined}", plot
    priced: list[Point] = []
    for outcome in outcomes:
        if outcome.cost is not None and outcome.score is not None:
            told = f"{outcome.id}: score {outcome.score:.2f}, {dollars(outcome.cost)}"
            priced.append(Point(outcome.id, outcome.cost, outcome.score, outcome.state, told))
    if any(point.x for point in priced):
        most = max(point.x for point in priced)
        low = floor_of([point.y for point in priced])
        plot = scatter(priced, (0, most * 1.04), low, "${:g}".format, ("cost", "score"), "Cost against score")
        yield "Cost against score", "a dot per case", plot
    times = [attempt.duration for attempt in attempts if attempt.duration > 0]
    if times:
        yield "Latency", f"attempts by duration{outlined}", _latency(attempts, old, times)


def paired_plot(comparison: TwoRuns) -> str:
    """The scores of the cases that both runs have; nothing if none has two scores."""
    points: list[Point] = []
    for was, now in comparison.both:
        if was.score is not None and now.score is not None:
            told = f"{now.id}: {was.score:.2f} before, {now.score:.2f} now"
            points.append(Point(now.id, was.score, now.score, now.state, told))
    if not points:
        return ""
    low = floor_of([score for point in points for score in (point.x, point.y)])
    names = ("score before", "score now")
    return scatter(points, (low, 1), low, "{:g}".format, names, "Scores before and now", diagonal=True)


def _by_tag(outcomes: Sequence[CaseOutcome]) -> dict[str, list[float]]:
    """The pass rates of the cases of each tag."""
    by_tag: dict[str, list[float]] = {}
    for outcome in outcomes:
        for tag in outcome.tags:
            by_tag.setdefault(tag, []).append(outcome.pass_rate)
    return by_tag


def _latency(attempts: Sequence[CaseResult], old: Sequence[CaseResult], times: Sequence[float]) -> str:
    times = sorted(times)
    middle = percentile(times, 0.5)
    marks = [(middle, f"median {seconds(middle)}")]
    if len(times) >= 20:
        high = percentile(times, 0.95)
        marks = [(middle, f"median {seconds(middle)}"), (high, f"95 %: {seconds(high)}")]
    return histogram(
        [attempt.duration for attempt in attempts if attempt.passed],
        [attempt.duration for attempt in attempts if not attempt.passed],
        log_edges(times),
        _brief,
        "Latency",
        [attempt.duration for attempt in old],
        marks,
    )


def _brief(duration: float) -> str:
    """A duration as it fits below an axis."""
    if duration < 1:
        return f"{1000 * duration:.3g} ms"
    return f"{duration:.3g} s" if duration < 120 else f"{duration / 60:.3g} min"
