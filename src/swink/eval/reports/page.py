"""report.html: a run as one page that needs nothing else: no request, no server."""

from collections.abc import Sequence

from swink.eval.reports.comparison import Comparison
from swink.eval.reports.outcomes import Outcome
from swink.eval.result import Manifest, Summary


def write_page(
    summary: Summary, outcomes: Sequence[Outcome], manifest: Manifest, comparison: Comparison | None
) -> str:
    """The document."""
    return "<!doctype html>\n"
