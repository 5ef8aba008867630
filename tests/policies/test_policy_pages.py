"""The examples in the docstrings of the policies run."""

import ast
import asyncio
import functools
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, Policy, policies
from swink.testing import ScriptedModel


async def execute(code: str, name: str, names: dict[str, Any]) -> None:
    """Run code that may await at its top."""
    compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(compiled, names)
    if inspect.iscoroutine(value):
        await value


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
