"""Read-only data: what is in the history cannot be changed through an event, a policy or a context."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from tests import strategies
from tests.counts import tried

from swink import Agent, Policy, tool
from swink.agent.policy import ApprovalRequest, Approved, Rewrite
from swink.errors import InvalidInput
from swink.events import MessageEnd, ToolExecutionStart
from swink.messages import AssistantMessage, ToolCall
from swink.messages.readonly import ReadOnlyDict, freeze, thaw
from swink.testing import ScriptedModel

GIVEN = {"text": "x", "list": [1, {"a": 2}], "empty": {}}

CHANGES: list[Callable[[Any], Any]] = [
    lambda data: data.update(text="y"),
    lambda data: data.__setitem__("text", "y"),
    lambda data: data.__delitem__("text"),
    lambda data: data.pop("text"),
    lambda data: data.popitem(),
    lambda data: data.clear(),
    lambda data: data.setdefault("new", 1),
    lambda data: data.__ior__({"new": 1}),
    lambda data: data["list"].append(1),
    lambda data: data["list"].extend([1]),
    lambda data: data["list"].insert(0, 1),
    lambda data: data["list"].remove(1),
    lambda data: data["list"].pop(),
    lambda data: data["list"].sort(),
    lambda data: data["list"].reverse(),
    lambda data: data["list"].clear(),
    lambda data: data["list"].__setitem__(0, 1),
    lambda data: data["list"].__delitem__(0),
    lambda data: data["list"].__iadd__([1]),
    lambda data: data["list"].__imul__(2),
    lambda data: data["list"][1].update(a=3),
]


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_changes_it_and_the_error_says_what_to_do(change: Callable[[Any], Any]):
    arguments = ToolCall("1", "act", GIVEN).arguments
    with pytest.raises(TypeError, match=r"change a copy: \.copy\(\)"):
        change(arguments)
    assert arguments == GIVEN


@given(strategies.json_objects)
@tried(50, 1000)
def test_it_reads_like_the_data_it_was_made_of(value: dict[str, Any]):
    frozen = freeze(value)
    assert frozen == value
    assert repr(frozen) == repr(value)
    assert json.dumps(frozen) == json.dumps(value)
    assert msgspec.json.encode(frozen) == msgspec.json.encode(value)
    assert freeze(frozen) is frozen
    back = pickle.loads(pickle.dumps(frozen))
    assert back == value
    assert type(back) is ReadOnlyDict
    for copied in (frozen.copy(), copy.copy(frozen), copy.deepcopy(frozen), thaw(frozen)):
        assert copied == value
        assert type(copied) is dict


def test_a_copy_can_be_changed_at_every_level():
    frozen = freeze(GIVEN)
    copied = frozen.copy()
    copied["list"][1]["a"] = 3
    copied["new"] = 1
    assert frozen == GIVEN


def test_what_was_given_can_still_be_changed_by_its_owner_alone():
    given = {"list": [1]}
    call = ToolCall("1", "act", given)
    given["list"].append(2)
    assert call.arguments == {"list": [1]}


def test_a_copied_call_is_read_only_again():
    call = ToolCall("1", "act", GIVEN)
    for copied in (copy.deepcopy(call), pickle.loads(pickle.dumps(call))):
        assert copied == call
        assert type(copied.arguments) is ReadOnlyDict


@pytest.mark.parametrize("arguments", [None, [1], "x", {"a": object()}])
def test_arguments_that_could_not_be_read_back_are_refused(arguments: Any):
    with pytest.raises(InvalidInput, match=r"takes Mapping|JSON-able"):
        ToolCall("1", "act", arguments)


def test_arguments_without_end_are_refused_with_the_limit():
    value: Any = 1
    for _ in range(200):
        value = [value]
    with pytest.raises(InvalidInput, match="more than 128 levels"):
        ToolCall("1", "act", {"a": value})


async def test_the_history_cannot_be_changed_from_anywhere_and_the_tool_owns_its_arguments():
    refused: list[str] = []

    def spoil(where: str, data: Any) -> None:
        try:
            data["items"].append("spoiled")
        except TypeError:
            refused.append(where)

    class Sly(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            spoil("call", call.arguments)
            spoil("context", ctx.messages[-1].tool_calls[0].arguments)
            return Rewrite({"items": ["rewritten"]}) if call.arguments == {"items": ["x"]} else None

    def approve(request: ApprovalRequest) -> Approved:
        request.arguments["items"].append("edited")
        return Approved(request.arguments)

    def watch(event: Any) -> None:
        if isinstance(event, ToolExecutionStart):
            spoil("start", event.arguments)
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            spoil("message", event.message.tool_calls[0].arguments) if event.message.tool_calls else None

    @tool(requires_approval=True)
    async def act(items: list[str]) -> str:
        items.append("own")
        return ",".join(items)

    model = ScriptedModel([ToolCall("1", "act", {"items": ["x"]}), "end"])
    agent = Agent("test:m", stream_fn=model, tools=[act], policies=[Sly()], approve=approve)
    agent.subscribe(watch)
    await agent.run("go")
    assert set(refused) == {"call", "context", "start", "message"}
    reply = agent.messages[1]
    assert isinstance(reply, AssistantMessage)
    assert reply.tool_calls[0].arguments == {"items": ["x"]}
    assert agent.messages[2].text == "rewritten,edited,own"
