"""What the report of 2,000 cases costs: writing it, its size, and opening it in Chromium.

python benchmarks/report.py [--quick]
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.eval.report_runs import manifest_of, run, summary_of
from tests.export_pages import CHROMIUM, open_browser

from swink.eval.reports import write_reports

ROUNDS = 5
OPENED = "document.querySelectorAll('tr.case').length > 0"
"""The script has run to its end: rows are there, and the filters work."""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the cases")
    count = 200 if parser.parse_args().quick else 2_000
    results = run(count, length=100)  # about 10 kB in every transcript
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        write_reports(Path(folder), summary_of(results), results, manifest_of(results), run(count, seed=2))
        wrote = time.process_time() - started
        page = Path(folder, "report.html")
        print(f"{count:,} cases".ljust(34))
        print("writing all reports, CPU".ljust(34), f"{wrote:8.2f} s")
        print("report.html".ljust(34), f"{page.stat().st_size / 1e6:8.2f} MB")
        if CHROMIUM is None:
            print("there is no chromium here to open it with")
            return
        with open_browser(Path(folder, "profile")) as browser:
            opened, searched = zip(*[_open(browser, page) for _ in range(ROUNDS)], strict=True)
        print("opening it until rows are shown".ljust(34), f"{statistics.median(opened):8.2f} s (limit 2)")
        print("first search in all transcripts".ljust(34), f"{statistics.median(searched):8.2f} s")


def _open(browser: Any, path: Path) -> tuple[float, float]:
    page = browser.new_page()
    started = time.perf_counter()
    page.goto(path.as_uri())
    assert page.evaluate(OPENED)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    opened = time.perf_counter() - started
    started = time.perf_counter()
    page.fill("#filters input", "forecast nairobi")
    while "q=" not in page.url or "Searching" in page.inner_text("#more"):
        page.wait_for_timeout(5)
    searched = time.perf_counter() - started
    page.close()
    return opened, searched


if __name__ == "__main__":
    main()
