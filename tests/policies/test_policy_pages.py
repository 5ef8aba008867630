"""The examples of the pages, and those in the docstrings of the policies, run and say what they promise."""

import ast
import asyncio
import functools
import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, Policy, policies
from swink.testing import ScriptedModel

DOCS = Path(__file__).parents[2] / "docs"


async def execute(code: str, name: str, names: dict[str, Any]) -> None:
    """Run code that may await at its top."""
    compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(compiled, names)
    if inspect.iscoroutine(value):
        await value


async def run_page(page: str) -> None:
    names: dict[str, Any] = {"__name__": page}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.S):
        await execute(block, page, names)


async def test_the_page_on_policies_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    await run_page("library/policies.md")
    said = capsys.readouterr().out
    assert "budget: cost 0 of 0.01 used, and the next call may need 0.017" in said
    assert "loop detected: read called with the same arguments 3 times in a row" in said
    assert "'contents of notes.txt'" in said
    assert "['I am [email], card [card].', 'Hello, [email]!']" in said
    assert "AuditLogger True" in said


async def test_the_page_on_teams_runs(capsys: pytest.CaptureFixture[str]):
    await run_page("library/teams.md")
    said = capsys.readouterr().out
    for promised in (
        "In 1610. 6",
        "research Working.",
        "Your refund is on its way. billing",
        "You are welcome.",
        "A text.",
        "v2 APPROVED",
        "('b',) Two.",
    ):
        assert promised in said
    assert "legal:\nYes.\n\nmoney:\nNo." in said


async def test_the_page_on_mcp_runs(capsys: pytest.CaptureFixture[str]):
    if find_spec("mcp") is None or find_spec("mcp_server_time") is None:
        pytest.skip("mcp-server-time is not installed")
    await run_page("coding-agent/mcp.md")
    assert '"timezone": "Europe/Oslo"' in capsys.readouterr().out


POLICIES = [
    item
    for name in policies.__all__
    if isinstance(item := getattr(policies, name), type) and issubclass(item, Policy)
]


def test_every_policy_is_among_those_whose_examples_run():
    assert {policy.__name__ for policy in POLICIES} == {
        "AuditLogger",
        "Budget",
        "Checkpoint",
        "ContentFilter",
        "LoopDetection",
        "MaxTurns",
        "PiiRedactor",
        "PromptInjectionGuard",
        "PathGuard",
        "ShellHook",
        "ToolAllowList",
        "ToolDenyList",
    }


@pytest.mark.parametrize(
    "policy", [*POLICIES, policies.RecommendedPolicies], ids=lambda policy: policy.__name__
)
async def test_the_example_in_the_docstring_runs(
    policy: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    await asyncio.to_thread((tmp_path / "audit.jsonl").write_bytes, b"")
    await asyncio.to_thread((tmp_path / "audit.head").write_text, '{"records":0,"hash":"' + "0" * 64 + '"}')
    lines = re.findall(r"^\s*>>> (.*)$", policy.__doc__ or "", re.M)
    assert lines
    names: dict[str, Any] = {
        **{name: getattr(policies, name) for name in policies.__all__},
        "Agent": functools.partial(Agent, stream_fn=ScriptedModel([])),
        "model": "test:model",
        "re": re,
        "store": lambda data: None,
        "coding_tools": lambda root: [],
    }
    await execute("\n".join(lines), policy.__name__, names)
    assert names["agent"]._config.policies
