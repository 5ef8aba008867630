"""What people do in their first hour, and what they are told."""

import contextlib
import gc
import logging
import traceback
from dataclasses import dataclass
from typing import Any

import pytest

from swink import (
    Agent,
    ApprovalRequest,
    InvalidInput,
    MissingKey,
    Policy,
    StreamOptions,
    StructuredOutputFailed,
    ToolCall,
    tool,
)
from swink.errors import MisuseError
from swink.models import catalog
from swink.models.catalog import has_provider, register_provider
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


@pytest.mark.parametrize("name", ["policies", "approval_mode", "options", "retry", "system_promt"])
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


def test_a_stream_that_nobody_read_is_reported(caplog: pytest.LogCaptureFixture):
    model = ScriptedModel(["Hi."])
    Agent("test:m", stream_fn=model).stream("x")
    gc.collect()
    assert not model.calls
    assert "never read" in caplog.text


async def test_a_stream_that_could_not_begin_is_not_reported_as_unread(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(MissingKey):
        async with Agent("anthropic:claude-sonnet-4-6").stream("x"):
            pass
    gc.collect()
    assert "never read" not in caplog.text


def test_an_async_subscriber_is_refused():
    async def listen(event: Any) -> None: ...

    with pytest.raises(InvalidInput, match="plain function"):
        Agent("test:m", stream_fn=ScriptedModel([])).subscribe(listen)  # pyright: ignore[reportArgumentType]


def test_an_approval_that_edits_the_request_in_place_is_told_what_to_return(caplog: pytest.LogCaptureFixture):
    @tool(requires_approval=True)
    async def delete(path: str) -> str:
        return f"deleted {path}"

    def approve(request: ApprovalRequest) -> bool:
        request.arguments["path"] = "tmp/a"
        return True

    script = [ToolCall("1", "delete", {"path": "src/a"}), "Done."]
    agent = Agent("test:m", stream_fn=ScriptedModel(script), tools=[delete], approve=approve)
    assert agent.run_sync("x").messages[2].text == "deleted src/a"
    assert "return Approved(arguments)" in caplog.text


def test_a_provider_is_registered_with_a_function_that_makes_its_stream_function():
    with pytest.raises(InvalidInput, match="takes no arguments"):
        register_provider("unmade", ScriptedModel(["Hi."]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="takes no arguments"):
        register_provider("unmade", ScriptedModel)  # pyright: ignore[reportArgumentType]
    assert not has_provider("unmade")
    register_provider("nothing", lambda: None)  # pyright: ignore[reportArgumentType]
    try:
        with pytest.raises(
            InvalidInput, match="'nothing' was registered with a function that returns NoneType"
        ):
            Agent("nothing:one")
    finally:
        catalog._registered.pop("nothing")


def test_what_a_transport_is_can_be_read_in_one_go():
    with pytest.raises(InvalidInput, match=r"'auto' \(an HTTP client is passed as http=\), not 'http2'"):
        StreamOptions(transport="http2")  # pyright: ignore[reportArgumentType]


def test_what_is_no_checkpoint_is_not_called_one_of_another_release():
    with pytest.raises(MisuseError, match="what checkpoint"):
        Agent.restore({})


def test_all_options_of_a_tool_are_listed():
    with pytest.raises(InvalidInput, match="the options are name, description, "):
        tool(timout=3)  # pyright: ignore


def test_the_class_of_a_stream_function_is_refused_with_what_to_write():
    with pytest.raises(InvalidInput, match=r"write ScriptedModel\(\.\.\.\)"):
        Agent("test:m", stream_fn=ScriptedModel)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["preturn", "preTurn", "PreTurn", "Pre_Turn"])
def test_a_slot_that_is_spelled_otherwise_is_refused(name: str):
    with pytest.raises(InvalidInput, match=f"Guard.{name} would never be called; the slot is named pre_turn"):
        type("Guard", (Policy,), {name: lambda self, ctx: None})
    assert type("Guard", (Policy,), {"pre_turn": lambda self, ctx: None, "_preturn": 1})
