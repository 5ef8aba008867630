"""Reports: what a run came to, for people, for CI and for GitHub.

results → outcomes (one per case) → console table, report.html, report.md, junit.xml, annotations
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from swink.eval.compare import compare_results
from swink.eval.reports.comparison import TwoRuns
from swink.eval.reports.console import console_table as console_table
from swink.eval.reports.github import annotations as annotations
from swink.eval.reports.htmlreport import write_page
from swink.eval.reports.junit import write_junit
from swink.eval.reports.markdownreport import write_markdown
from swink.eval.reports.outcomes import outcomes_of
from swink.eval.result import CaseResult, Manifest, RunSummary
from swink.messages.jsondata import encode
from swink.system.files import write_whole


def write_reports(
    directory: Path,
    summary: RunSummary,
    results: Sequence[CaseResult],
    manifest: Manifest,
    baseline: Sequence[CaseResult] | None = None,
    baseline_name: str = "",
) -> None:
    """Write summary.json, report.md, junit.xml and report.html.

    It takes seconds for thousands of cases: call it in a thread.

    Args:
        directory: where they are written
        summary: the totals
        results: the attempts of the run
        manifest: what the run was about
        baseline: the attempts of an earlier run to compare with
        baseline_name: what people call that
    """
    outcomes = outcomes_of(results)
    comparison = None
    if baseline is not None:  # with the test that `swink eval compare` makes
        chance = compare_results(baseline, results).pass_rate.p
        comparison = TwoRuns.between(outcomes_of(baseline), outcomes, chance, baseline_name, baseline)
    written = {
        "summary.json": msgspec.json.format(encode(summary), indent=2).decode() + "\n",
        "report.md": write_markdown(summary, outcomes, manifest, comparison),
        "junit.xml": write_junit(summary, outcomes, manifest),
        "report.html": write_page(summary, outcomes, results, manifest, comparison),
    }
    for name, text in written.items():
        write_whole(directory / name, text.encode("utf-8", "replace"), make_parents=True)
