"""A pytest plugin for CI: the names of the tests that failed, and how the run ended, as JSON in a file."""

import json
import os
from pathlib import Path

import pytest

_failed: dict[str, None] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workerinput"):
        return  # the process that started this worker hears of its failures, and of its death
    ended = {"status": int(exitstatus), "failed": list(_failed)}
    Path(os.environ["SWINK_TEST_FAILURES"]).write_text(json.dumps(ended))
