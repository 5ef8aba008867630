"""Nothing bricks a conversation: whatever text or value comes in, wherever it comes in, the conversation stays
savable, restorable and sendable."""

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from tests.counts import in_cells

from swink import Agent, Policy, ToolContext, tool
from swink.agent.agentresult import AgentResult
from swink.agent.policy import Approved, Inject, Rejected, Rewrite, Skip, Stop
from swink.agent.retry import ExponentialBackoff
from swink.app.cli.jsonlines import JsonPrinter
from swink.errors import InvalidInput, NetworkError, StreamError
from swink.events import AgentEvent, decode_agent_event, encode_agent_event
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Extension,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.codec import decode_messages, encode_messages
from swink.messages.modelspec import ModelSpec
from swink.policies.saving import Checkpoint
from swink.providers.convert import paired_messages, prepare
from swink.stream import (
    Done,
    Error,
    Start,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from swink.testing import ScriptedModel
from swink.tools import ToolError, ToolResult, Transfer

TEXTS = ["\ud800", "a\udc80b.txt", "\ud83d\ude00", "\x00", "", " ", "ü" * 500, "\u202e🦊"]
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CALL = ToolCall("1", "act", {"text": "x"})


class Cut:
    """A session that keeps what is appended as JSON."""

    def __init__(self) -> None:
        self.messages: Sequence[Message] = ()
        self.state: dict[str, Any] = {}
        self.lines: list[bytes] = []

    async def append(self, messages: Sequence[Message]) -> None:
        self.lines.append(encode_messages(messages))


async def nothing(text: str) -> str:
    """Do nothing."""
    return "done"


def raising(error: Exception) -> Callable[..., Any]:
    async def act(text: str) -> str:
        raise error

    return act


def returning(value: Any) -> Callable[..., Any]:
    async def act(text: str) -> Any:
        return value

    return act


def reporting(value: Any) -> Callable[..., Any]:
    async def act(text: str, ctx: ToolContext) -> str:
        ctx.update({"at": value})
        ctx.update(value)
        return "done"

    return act


def remembering(value: Any) -> Callable[..., Any]:
    async def act(text: str, ctx: ToolContext) -> str:
        ctx.state["kept"] = value
        if isinstance(value, str):
            ctx.state[value] = value
        return "done"

    return act


def deciding(make: Callable[[], Any], slot: str = "pre_dispatch") -> Policy:
    return type("Deciding", (Policy,), {slot: lambda self, *values: make()})()  # pyright: ignore


def approving(make: Callable[[], Any]) -> dict[str, Any]:
    return {"approve": lambda request: make(), "approval_mode": "on"}  # pyright: ignore


def events(id: str, name: str, text: str) -> list[Any]:
    return [
        Start(),
        ToolCallStart(0, id, name),
        ToolCallDelta(0, text),
        ToolCallEnd(0),
        Done("tool_use"),
    ]


async def converse(script: Sequence[Any], input: Any = "go", act: Any = nothing, **options: Any) -> None:
    """Run a conversation; save it in every way, restore it, and go on."""
    seen: list[AgentEvent] = []
    saved: list[Any] = []
    session = Cut()
    model = ScriptedModel([*script, "end"])
    policies = [*options.pop("policies", []), Checkpoint(saved.append)]
    offered = [tool(name="act")(act)]
    agent = Agent(
        "test:model",
        stream_fn=model,
        tools=offered,
        session=session,
        policies=policies,
        retry=ExponentialBackoff(max_attempts=1),
        **options,
    )
    agent.subscribe(seen.append)
    result = await agent.run(input)
    check_command_line(seen, result)
    for event in seen:
        data = encode_agent_event(event)
        assert encode_agent_event(decode_agent_event(data)) == data
    kept = [message for line in session.lines for message in decode_messages(line)]
    assert encode_messages(kept) == encode_messages(agent.messages)
    assert len(saved) >= 1, "the policy saved the conversation"
    for data in (agent.checkpoint(), saved[-1]):
        text = json.dumps(data, allow_nan=False).encode()
        await go_on(json.loads(text), agent, offered)


def check_command_line(events: Sequence[AgentEvent], result: AgentResult[Any]) -> None:
    """What `swink run --output json` prints: a line of JSON for every event, and the result as the last."""
    written: list[bytes] = []
    printer = JsonPrinter(written.append)
    for event in events:
        printer.print_event(event)
    printer.print_result(result)
    lines = [json.loads(line) for line in b"".join(written).split(b"\n") if line]
    assert len(lines) == len(events) + 1
    assert lines[-1]["type"] == "result"


async def go_on(data: dict[str, Any], agent: Agent, tools: Sequence[Any]) -> None:
    model = ScriptedModel(["later", [ToolCall("last", "final_output", {"value": 1})]])
    again = Agent.restore(data, stream_fn=model, tools=tools)
    assert len(again.messages) >= len(agent.messages)
    assert (await again.run("and now?")).text == "later"
    assert (await again.run("how many?", output=int)).output == 1
    for context in model.calls:
        sent = prepare(paired_messages(context.messages), ModelSpec("a", "b"))
        assert decode_messages(encode_messages(sent))
        calls = [call.name for item in sent if isinstance(item, AssistantMessage) for call in item.tool_calls]
        results = [item.tool_name for item in sent if isinstance(item, ToolResultMessage)]
        assert calls == results
        assert all(NAME.fullmatch(name) for name in calls)


TEXT_WAYS: dict[str, Callable[[str], Any]] = {
    "prompt": lambda text: converse([], [text, "?"]),
    "block": lambda text: converse([], [Text(text), "?"]),
    "message": lambda text: converse([], UserMessage([Text(text), "?"])),
    "extension": lambda text: converse([], ["?", Extension(text, {text: [text]})]),
    "custom": lambda text: converse([], [CustomMessage(text, {text: text}), "?"]),
    "system prompt": lambda text: converse([], system_prompt=text),
    "state": lambda text: converse([], state={text: text}),
    "reply": lambda text: converse([[text, CALL]]),
    "thinking": lambda text: converse([[Thinking(text, text), CALL]]),
    "call name": lambda text: converse([events("1", text, "{}")]),
    "call id": lambda text: converse([events(text, "act", '{"text":"x"}')]),
    "arguments": lambda text: converse([[ToolCall("1", "act", {"text": text})]]),
    "argument names": lambda text: converse([[ToolCall("1", "act", {text: {text: [text]}})]]),
    "broken arguments": lambda text: converse([events("1", "act", '{"text": ' + text)]),
    "escaped arguments": lambda text: converse([events("1", "act", json.dumps({"text": text}))]),
    "result": lambda text: converse([CALL], act=returning(text)),
    "result data": lambda text: converse([CALL], act=returning({text: [text]})),
    "result blocks": lambda text: converse([CALL], act=returning([Text(text), Extension(text, text)])),
    "details": lambda text: converse([CALL], act=returning(ToolResult(text, details={text: text}))),
    "tool error": lambda text: converse([CALL], act=raising(ToolError(text, details=text))),
    "exception": lambda text: converse([CALL], act=raising(FileNotFoundError(2, "no file", text))),
    "update": lambda text: converse([CALL], act=reporting(text)),
    "tool's state": lambda text: converse([CALL], act=remembering(text)),
    "transfer": lambda text: converse([CALL], act=returning(Transfer(text, text))),
    "skip": lambda text: converse([CALL], policies=[deciding(lambda: Skip(text))]),
    "stop": lambda text: converse([CALL], policies=[deciding(lambda: Stop(text))]),
    "inject": lambda text: converse([CALL], policies=[deciding(lambda: Inject([text, "?"]), "pre_turn")]),
    "rewrite": lambda text: converse([CALL], policies=[deciding(lambda: Rewrite({"text": text}))]),
    "rejected": lambda text: converse([CALL], **approving(lambda: Rejected(text))),
    "approved": lambda text: converse([CALL], **approving(lambda: Approved({"text": text}, text))),
    "model raises": lambda text: converse([StreamError(text)]),
    "model fails": lambda text: converse([[Start(), Error(text, "stream")]]),
    "model retired": lambda text: converse([[Start(), Error(text)]]),
    "network": lambda text: converse([NetworkError(text)]),
}


@in_cells("way", TEXT_WAYS, every=4)
async def test_no_text_bricks_a_conversation(way: str):
    for text in TEXTS:
        await TEXT_WAYS[way](text)


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


def circular() -> Any:
    value: dict[str, Any] = {"a": 1}
    value["self"] = value["list"] = [value, value]
    return value


class Stubborn:
    def model_dump(self, **options: Any) -> Any:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


@dataclasses.dataclass
class Holder:
    inner: Any


VALUES: dict[str, Callable[[], Any]] = {
    "object": object,
    "set": lambda: {1, 2},
    "bytes": lambda: b"\xff\x00",
    "infinite": lambda: [float("inf"), float("-inf")],
    "no number": lambda: {"n": float("nan")},
    "huge": lambda: 10**5000,
    "circular": circular,
    "600 levels": lambda: nested(600),
    "10,000 levels": lambda: nested(10_000),
    "odd keys": lambda: {(1, 2): 1, None: 2, 3: 4, "\ud800": object()},
    "function": lambda: lambda: None,
    "generator": lambda: (x for x in "ab"),
    "stubborn": Stubborn,
    "dataclass": lambda: Holder(circular()),
    "decimal": lambda: Decimal("1.50"),
    "class": lambda: Holder,
    "tagged": lambda: {"$number": "inf"},
}
VALUE_WAYS: dict[str, Callable[[Any], Any]] = {
    "details": lambda value: converse([CALL], act=returning(ToolResult("ok", details=value))),
    "nested details": lambda value: converse([CALL], act=returning(ToolResult("ok", details={"a": [value]}))),
    "error details": lambda value: converse([CALL], act=raising(ToolError("no", details=value))),
    "result": lambda value: converse([CALL], act=returning(value)),
    "update": lambda value: converse([CALL], act=reporting(value)),
    "tool's state": lambda value: converse([CALL], act=remembering(value)),
    "extension": lambda value: converse([], ["?", Extension("x", value)]),
    "custom": lambda value: converse([], [CustomMessage("x", value), "?"]),
    "rewrite": lambda value: converse([CALL], policies=[deciding(lambda: Rewrite({"text": value}))]),
    "approved": lambda value: converse([CALL], **approving(lambda: Approved({"text": value}))),
}


@in_cells("way", VALUE_WAYS, every=3)
async def test_no_value_bricks_a_conversation(way: str):
    for make in VALUES.values():
        await VALUE_WAYS[way](make())


@pytest.mark.parametrize("levels", [100, 600, 10_000])
@pytest.mark.parametrize(
    "options",
    [{}, {"policies": [deciding(lambda: None)]}, approving(lambda: True)],
    ids=["alone", "policy", "approval"],
)
async def test_arguments_of_any_depth_cost_at_most_their_call(levels: int, options: dict[str, Any]):
    text = '{"text": ' + "[" * levels + "]" * levels + "}"
    await converse([events("1", "act", text)], **options)


async def test_a_cut_result_keeps_its_full_text_in_the_session_and_not_in_every_checkpoint():
    async def act(text: str) -> ToolResult:
        return ToolResult("long " * 100_000, details={"own": 1})

    saved: list[Any] = []
    session = Cut()
    model = ScriptedModel([CALL, "end"])
    options: dict[str, Any] = {"session": session, "policies": [Checkpoint(saved.append)]}
    agent = Agent("test:m", stream_fn=model, tools=[tool(max_result=1000)(act)], **options)
    await agent.run("go")
    expected = {"full_length": 500_000, "details": {"own": 1}}
    for data in (agent.checkpoint(), saved[0], saved[-1]):
        assert data["messages"][2]["details"] == expected
        assert len(json.dumps(data)) < 10_000
    assert b"".join(session.lines).count(b"long " * 100_000) == 1
    assert agent.messages[2].details["full_text"] == "long " * 100_000  # pyright: ignore
    restored = Agent.restore(saved[-1], stream_fn=model)
    assert restored.messages[2].text == agent.messages[2].text


async def test_details_of_the_tools_own_that_look_like_a_cut_result_are_saved_whole():
    model = ScriptedModel([CALL, "end"])
    details = {"full_text": "whole"}
    agent = Agent("test:m", stream_fn=model, tools=[tool(name="act")(returning(ToolResult("ok", details)))])
    await agent.run("go")
    assert agent.checkpoint()["messages"][2]["details"] == details


async def test_output_before_a_restore_does_not_stop_output_after_it():
    model = ScriptedModel([[ToolCall("1", "final_output", {"value": 3})]])
    agent = Agent("test:m", stream_fn=model)
    assert (await agent.run("how many?", output=int)).output == 3
    await go_on(agent.checkpoint(), agent, [])


@pytest.mark.parametrize("block", [Thinking("x"), ToolCall("1", "act")])
def test_a_message_that_could_not_be_read_back_is_refused(block: Any):
    for make in (UserMessage, ToolResult, lambda content: ToolResultMessage("1", "t", content)):
        with pytest.raises(InvalidInput, match="takes text, images, documents, audio and extensions, not a"):
            make([block])
    with pytest.raises(InvalidInput, match="stop_reason is 'stop'"):
        AssistantMessage("x", stop_reason="odd")  # pyright: ignore
