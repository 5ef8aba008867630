"""docs/project/engine.md names what exists, and a run takes the steps it lists in the order it lists them."""

import importlib
import importlib.util
import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest
from tests.pages import ROOT

from swink import Agent, ApprovalRequest, Approved, Policy, ToolCall, tool
from swink.agent.policy import CallVerdict, Ending, PolicyContext, ReplyVerdict, Turn, TurnVerdict
from swink.messages import Message
from swink.testing import ScriptedModel

PAGE = (ROOT / "docs" / "project" / "engine.md").read_text("utf-8")
NAMES = sorted(set(re.findall(r"`([a-z]+(?:\.\w+)+)`", PAGE)))
WALKS = {
    title: re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE)
    for title, text in (part.split("\n", 1) for part in PAGE.split("\n## ")[2:])
}


class Watching(Policy):
    """Fills every slot that the page mentions."""

    def pre_turn(self, ctx: PolicyContext) -> TurnVerdict: ...
    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict: ...
    def post_turn(self, ctx: PolicyContext, turn: Turn) -> ReplyVerdict: ...
    def post_loop(self, ctx: PolicyContext) -> TurnVerdict: ...
    def post_run(self, ctx: PolicyContext, ending: Ending) -> None: ...


class Memory:
    """A session."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.state: dict[str, Any] = {}

    async def append(self, messages: Sequence[Message], *, state: Any = None, records: Any = ()) -> None:
        self.messages.extend(messages)


@tool(requires_approval=True)
async def weather(city: str) -> str:
    """Current weather."""
    return f"clear in {city}"


def approve(request: ApprovalRequest) -> Approved:
    return Approved()


ROOMS = (
    "swink.agent.engine",
    "swink.agent.session",
    "swink.agent",
    "swink.messages",
    "swink.stream",
    "swink",
)


def resolve(name: str) -> Any:
    """What a name of the page stands for: the first of the rooms that has a module of that name."""
    module, *rest = name.split(".")
    room = next(room for room in ROOMS if importlib.util.find_spec(f"{room}.{module}") is not None)
    value: Any = importlib.import_module(f"{room}.{module}")
    for part in rest:
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists(name: str):
    assert resolve(name) is not None


async def test_a_run_takes_the_steps_in_this_order():
    calls: list[Any] = []

    def note(frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            calls.append(frame.f_code)

    script = [["Let me ", "see. ", ToolCall("1", "weather", {"city": "Oslo"})], "Clear."]
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel(script),
        tools=[weather],
        approve=approve,
        policies=[Watching()],
        session=Memory(),
    )
    sys.setprofile(note)
    try:
        (await agent.run("Oslo?")).raise_for_error()
    finally:
        sys.setprofile(None)
    whole = list(calls)
    calls.clear()
    sys.setprofile(note)
    try:
        async with Agent("test:m", stream_fn=ScriptedModel(["Hi."])).stream("Hello") as run:
            read = [event async for event in run]
    finally:
        sys.setprofile(None)
    assert read
    assert list(WALKS) == ["A prompt", "A delta", "A tool call", "The end"]
    for title, names in WALKS.items():
        taken = iter(calls if title == "A delta" else whole)
        for name in names:
            code = resolve(name).__code__
            assert any(item is code for item in taken), (
                f"{title}: {name} is not called, or not after the step before"
            )
