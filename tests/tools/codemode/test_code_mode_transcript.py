"""The calls of a program, for people who watch: inside of the call that runs it."""

from typing import Any

from swink import Agent, ToolCall, tool
from swink.events.transcript import ToolBlock, Transcript
from swink.testing import ScriptedModel
from swink.tools import code_mode


def calls_of(transcript: Transcript) -> list[ToolBlock]:
    return [block for block in transcript.blocks if isinstance(block, ToolBlock)]


async def test_the_calls_of_a_program_stand_inside_of_its_call():
    states: list[tuple[str, str]] = []

    @tool(requires_approval=True)
    async def add(name: str) -> str:
        """Add a name."""
        states.extend((block.name, block.state) for block in calls_of(inner()))
        return f"added {name}"

    async def approve(request: Any) -> bool:
        states.extend((block.name, block.state) for block in calls_of(inner()))
        return request.arguments["name"] == "a"

    def inner() -> Transcript:
        return transcript.inside(calls_of(transcript)[0])["calls"]

    transcript = Transcript()
    code = "add('a')\ntry:\n    add('b')\nexcept RuntimeError:\n    pass"
    model = ScriptedModel([[ToolCall("c", "run_code", {"code": code})], "done"])
    agent = Agent("test:m", stream_fn=model, tools=[code_mode([add])], approve=approve)
    agent.subscribe(transcript.take)
    await agent.run("go")
    assert states == [("add", "approval"), ("add", "running"), ("add", "done"), ("add", "approval")]
    assert [(block.call_id, block.state) for block in calls_of(inner())] == [
        ("c.1", "done"),
        ("c.2", "rejected"),
    ]
    assert calls_of(inner())[0].text == "added a"
    assert calls_of(inner())[0].shown == {"name": "a"}
    assert [block.name for block in calls_of(transcript)] == ["run_code"]
