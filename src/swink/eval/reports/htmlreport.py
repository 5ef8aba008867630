"""report.html: a run as one page that needs nothing else: no request, no server.

headline figures → comparison → plots → metrics → table of cases, which the script fills from the data
"""

import html
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from swink.eval.reports.comparison import TwoRuns
from swink.eval.reports.outcomes import CaseOutcome, dollars, joined, percent, seconds
from swink.eval.reports.overview import paired_plot, plots_of
from swink.eval.reports.pagedata import MOST_CASES, PageData, page_data
from swink.eval.reports.plots import gauge, shares
from swink.eval.result import CaseResult, Manifest, RunSummary
from swink.memory.exports.facts import date_of
from swink.memory.exports.page import page_frame
from swink.messages.jsondata import clean
from swink.messages.redact import redact_text


@joined
def write_page(
    summary: RunSummary,
    outcomes: Sequence[CaseOutcome],
    results: Sequence[CaseResult],
    manifest: Manifest,
    comparison: TwoRuns | None,
) -> Iterator[str]:
    """The run as one HTML page: headline, comparison, plots, metrics, and the table of its cases."""
    title = _safe(manifest.name or "Evaluation")
    head, end = page_frame("swink.eval.reports", f"{percent(summary.pass_rate)} · {title}")
    yield f'{head}<a class="skip" href="#cases">Skip to the cases</a>\n'
    yield from _header(summary, manifest, title)
    yield "<main>\n"
    yield from _headline(summary, outcomes)
    if comparison is not None:
        yield from _comparison(comparison)
    if outcomes:
        yield '<section class="plots" aria-label="Plots">\n'
        for name, note, plot in plots_of(outcomes, summary, comparison):
            caption = f"<figcaption><b>{name}</b><span>{note}</span></figcaption>"
            yield f'<figure class="card">{caption}{plot}</figure>\n'
        yield "</section>\n"
    yield from _metrics(summary)
    data = page_data(outcomes, results, comparison)
    yield from _cases(data, outcomes)
    yield (
        f"</main>\n<footer>Written by swink {_safe(manifest.version)}. "
        "Every attempt is whole in results.jsonl. "
        "<span>Keys: <kbd>/</kbd> search, <kbd>↑</kbd> <kbd>↓</kbd> move between cases, "
        "<kbd>Enter</kbd> opens one.</span></footer>\n"
    )
    yield f'<script type="application/json" id="data">{data.rows}</script>\n'
    for chunk in data.chunks:
        yield f'<script type="text/plain" class="chunk">{chunk}</script>\n'
    yield end


def _header(summary: RunSummary, manifest: Manifest, title: str) -> Iterator[str]:
    told = [manifest.model or "", manifest.agent, date_of(manifest.started)]
    told += [f"{manifest.repeat} attempts each"] if manifest.repeat > 1 else []
    yield '<header>\n<div class="bar"><span class="brand">swink eval</span>'
    yield '<button type="button" id="theme" hidden>Theme: auto</button></div>\n'
    yield f"<h1>{title}</h1>\n"
    yield f'<p class="about">{" · ".join(_safe(part) for part in told if part)}</p>\n</header>\n'


def _headline(summary: RunSummary, outcomes: Sequence[CaseOutcome]) -> Iterator[str]:
    yield '<section class="headline" aria-label="Headline figures">\n'
    if not summary.complete:
        yield (
            '<p class="warning"><b>This run is incomplete.</b> Some attempts are missing: '
            "it was interrupted, or its budget ran out. <code>--resume</code> continues it.</p>\n"
        )
    if not outcomes:
        yield '<p class="warning"><b>There are no results.</b> A run without cases has not passed.</p>\n'
    interval = ""
    if summary.pass_rate_interval is not None:
        low, high = map(percent, summary.pass_rate_interval)
        interval = f"95 % interval {low} to {high}"
    number, unit = percent(summary.pass_rate).split()
    yield '<div class="hero"><div class="rate">'
    yield f'<p class="big">{number}<small>{unit}</small></p>'
    yield f'<p class="under"><b>pass rate</b> {interval}</p></div>'
    yield '<dl class="figures">'
    for name, figure, note in _figures(summary):
        small = f"<small>{note}</small>" if note else ""
        yield f"<div><dt>{name}</dt><dd>{figure}{small}</dd></div>"
    yield "</dl></div>\n"
    counts = (("passed", summary.passed), ("failed", summary.failed), ("error", summary.errors))
    yield shares(counts)
    yield '<ul class="legend">'
    for state, count in counts:
        name = "errors" if state == "error" else state
        yield f'<li class="{state}"><a href="#status={state}"><b>{count:,}</b> {name}</a></li>'
    yield "</ul>\n</section>\n"


def _figures(summary: RunSummary) -> Iterator[tuple[str, str, str]]:
    attempts = f"{summary.attempts:,} attempts" if summary.attempts > summary.cases else ""
    yield "Cases", f"{summary.cases:,}", attempts
    yield "Cost", dollars(summary.cost), _each(summary)
    yield "Duration", seconds(summary.duration), ""
    usage = summary.usage
    read = usage.input + usage.cache_read + usage.cache_write
    if usage.total:
        yield "Tokens", _short(usage.total), f"{_short(read)} in, {_short(usage.output)} out"
    if len(summary.pass_at_k) > 1:
        last = next(reversed(summary.pass_at_k))
        yield f"pass@{last}", percent(summary.pass_at_k[last]), "at least one attempt passes"
        if last in summary.pass_hat_k:
            yield f"pass^{last}", percent(summary.pass_hat_k[last]), "all attempts pass"


def _each(summary: RunSummary) -> str:
    if summary.cost is None and summary.unpriced:
        return f"no price for {summary.unpriced:,} of {summary.attempts:,} attempts"
    if not summary.cost or not summary.attempts:
        return ""
    return f"{dollars(summary.cost / summary.attempts)} an attempt"


def _short(count: int) -> str:
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:,.0f} k" if count < 1_000_000 else f"{count / 1_000_000:,.1f} M"


def _comparison(comparison: TwoRuns) -> Iterator[str]:
    yield '<section class="card compared">\n<div>'
    yield f"<h2>{_safe(comparison.title)}</h2>\n"
    yield f"<p>{_safe(comparison.verdict)}</p>\n"
    if comparison.figures:
        yield '<table class="plain"><thead><tr><th></th><th>before</th><th>now</th><th>change</th></tr>'
        yield "</thead><tbody>"
        for what, *cells in comparison.figures:
            changed = "".join(f"<td>{_safe(cell)}</td>" for cell in cells)
            yield f'<tr><th scope="row">{what}</th>{changed}</tr>'
        yield "</tbody></table>\n"
    yield '<p class="chips">'
    for kind, name in {"broke": "newly failing", "fixed": "newly passing", "new": "new in this run"}.items():
        if count := len(getattr(comparison, kind)):
            yield f'<a class="chip {kind}" href="#change={kind}"><b>{count:,}</b> {name}</a>'
    if comparison.gone:
        ids = ", ".join(comparison.gone[:20]) + (" …" if len(comparison.gone) > 20 else "")
        yield f'<span class="chip" title="{_safe(ids)}"><b>{len(comparison.gone):,}</b> missing now</span>'
    yield "</p></div>\n"
    if plot := paired_plot(comparison):
        note = "above the line: better than before"
        caption = f"<figcaption><b>Score, before and now</b><span>{note}</span></figcaption>"
        yield f"<figure>{caption}{plot}</figure>"
    yield "</section>\n"


def _metrics(summary: RunSummary) -> Iterator[str]:
    if not summary.metrics:
        return
    yield '<section class="card metrics">\n<h2>Metrics</h2>\n<table class="plain"><thead><tr><th>metric</th>'
    yield '<th class="wide">mean</th><th></th><th>passed</th><th>errors</th></tr></thead><tbody>'
    for name, figures in sorted(summary.metrics.items(), key=lambda item: item[1].get("mean", -1.0)):
        bar, mean, span = "", "–", ""
        if "mean" in figures:
            interval = figures.get("low", figures["mean"]), figures.get("high", figures["mean"])
            bar, mean = gauge(figures["mean"], interval), f"{figures['mean']:.2f}"
            span = f"95 % interval {interval[0]:.2f} to {interval[1]:.2f}"
        passed, count = figures.get("passed", 0), figures.get("count", 0)
        errors = figures.get("errors", 0)
        yield (
            f'<tr><th scope="row"><a href="#metric={quote(clean(name), safe="")}">{_safe(name)}</a></th>'
            f'<td class="wide" title="{span}">{bar}</td><td title="{span}">{mean}</td>'
            f'<td>{passed:,.0f}<span class="of"> of {count:,.0f}</span></td>'
            f"<td{' class=error' if errors else ''}>{errors:,.0f}</td></tr>"
        )
    yield "</tbody></table>\n</section>\n"


def _cases(data: PageData, outcomes: Sequence[CaseOutcome]) -> Iterator[str]:
    yield '<section id="cases" tabindex="-1">\n<h2>Cases</h2>\n'
    if data.left_out:
        yield (
            f'<p class="warning">The page has {MOST_CASES:,} of {len(outcomes):,} cases, '
            "those that have not passed first; all of them are in results.jsonl.</p>\n"
        )
    yield (
        "<noscript><p class=warning>This table needs JavaScript; report.md has the cases as text.</p>"
        "</noscript>\n"
        '<div id="filters" role="search" aria-label="Filters" hidden></div>\n'
        '<p id="count" role="status"></p>\n<table id="table" hidden><thead></thead></table>\n'
        '<p id="more"></p>\n</section>\n'
    )


def _safe(text: str) -> str:
    return html.escape(redact_text(clean(text)))
