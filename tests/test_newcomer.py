"""What people do in their first hour, and what they are told."""

import contextlib
import logging
import traceback
from dataclasses import dataclass
from typing import Any

import pytest

from swink import Agent, InvalidInput, MissingKey, Policy, StructuredOutputFailed, ToolCall, tool
from swink.testing import ScriptedModel


@dataclass
class City:
    name: str
    people: int


def test_an_error_of_run_sync_has_no_false_cause(monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(MissingKey) as raised:
        Agent("anthropic:claude-sonnet-4-6").run_sync("hi")
    assert "no running event loop" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("verdict", [True, False, "too few people"])
def test_a_validator_that_returns_no_value_of_the_type_is_an_error(
    verdict: Any, caplog: pytest.LogCaptureFixture
):
    call = ToolCall("1", "final_output", {"name": "Oslo", "people": 7})
    agent = Agent("test:m", stream_fn=ScriptedModel([[call]]))
    result = agent.run_sync("x", output=City, validate=lambda city: verdict, max_output_retries=0)
    with pytest.raises(StructuredOutputFailed):
        _ = result.output
    assert f"validate returned {type(verdict).__name__}" in caplog.text


@pytest.mark.parametrize("name", ["policies", "approve", "approval_mode", "options", "retry", "system_promt"])
def test_what_cannot_be_assigned_is_no_attribute(name: str):
    with pytest.raises(AttributeError, match=name):
        setattr(Agent("test:m", stream_fn=ScriptedModel([])), name, ())


@pytest.mark.parametrize("approve", [None, lambda request: None])
def test_a_call_that_nobody_approved_is_logged(approve: Any, caplog: pytest.LogCaptureFixture):
    @tool(requires_approval=True)
    def wipe() -> str:
        """Wipe it."""
        return "gone"

    agent = Agent(
        "test:m", stream_fn=ScriptedModel([ToolCall("1", "wipe", {}), "ok"]), tools=[wipe], approve=approve
    )
    agent.run_sync("x").raise_for_error()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "wipe" in caplog.text


def test_a_script_is_a_list():
    with pytest.raises(InvalidInput, match="list of replies"):
        ScriptedModel("hello")


KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize("where", ["tool", "policy", "approve", "subscriber", "session"])
async def test_no_log_of_an_exception_shows_a_secret(where: str, caplog: pytest.LogCaptureFixture):
    def fail(*values: object) -> Any:
        raise RuntimeError(f"refused with {KEY}")

    class Failing(Policy):
        pre_turn = pre_commit = fail if where == "policy" else None  # type: ignore[assignment]

    class FailingSession:
        messages, state = (), {}

        async def append(self, messages: object) -> None:
            fail()

    @tool(requires_approval=where == "approve")
    def look() -> str:
        """Look."""
        return fail() if where == "tool" else "seen"

    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([ToolCall("1", "look", {}), "done"]),
        tools=[look],
        approve=fail,
        policies=[Failing()] if where == "policy" else [],
        session=FailingSession() if where == "session" else None,
    )
    if where == "subscriber":
        agent.subscribe(fail)
    with contextlib.suppress(RuntimeError):
        await agent.run("x")
    assert "refused with" in caplog.text
    assert KEY not in caplog.text
