"""State and details that are no JSON: they cost neither the run nor its checkpoint."""

import asyncio
import json
from typing import Any

import pytest
from tests.scripted import make

from swink import (
    Agent,
    ToolCall,
    ToolContext,
    tool,
)
from swink.messages import ToolResult, ToolResultMessage
from swink.messages.codec import decode_messages, encode_messages
from swink.testing import ScriptedModel


@pytest.mark.parametrize("value", ["\ud800", []])
async def test_state_that_no_file_takes_ends_nothing(value: Any, caplog: pytest.LogCaptureFixture):
    if value == []:
        value.append(value)

    @tool
    async def spoil(ctx: ToolContext) -> str:
        ctx.state["k"] = value
        return "ok"

    agent, seen = make([[ToolCall("1", "spoil")], "end"], tools=[spoil])
    assert (await agent.run("go")).text == "end"
    seen.check()
    assert agent.checkpoint()["state"] == ({} if isinstance(value, list) else {"k": "\ufffd"})


async def test_state_that_fails_to_say_what_it_is_does_not_hold_up_the_run():
    class Odd:
        def model_dump(self, mode: str) -> Any:
            raise KeyError("odd")

    @tool
    async def keep(text: str, ctx: ToolContext) -> str:
        """Keep."""
        ctx.state["odd"] = Odd()
        return text

    agent, _ = make([[ToolCall("1", "keep", {"text": "x"})], "done"], tools=[keep])
    async with asyncio.timeout(60):
        assert (await agent.run("go")).text == "done"


async def test_details_that_are_no_json_do_not_cost_a_checkpoint():
    @tool
    async def odd(text: str) -> ToolResult:
        """Look."""
        return ToolResult("fine", details={(1, 2): object()})

    agent, _ = make([[ToolCall("1", "odd", {"text": "x"})], "done"], tools=[odd])
    await agent.run("go")
    restored = Agent.restore(
        json.loads(json.dumps(agent.checkpoint())), stream_fn=ScriptedModel(["later"]), tools=[odd]
    )
    assert [message.text for message in restored.messages] == [message.text for message in agent.messages]
    kept = [message.details for message in restored.messages if isinstance(message, ToolResultMessage)]
    assert kept == [{"[1,2]": "<object>"}]
    assert decode_messages(encode_messages(agent.messages)) == list(restored.messages)
