"""Deferred approvals and agents inside others: the tool of an agent can wait for a word, a call inside it cannot."""

from typing import Any

from swink import Agent, ToolCall, defer, tool
from swink.memory import MemoryStore
from swink.teams import agent_tool
from swink.testing import ScriptedModel

ran: list[str] = []


@tool(requires_approval=True)
async def danger() -> str:
    """Do it."""
    ran.append("danger")
    return "done"


def worker(*script: Any, **options: Any) -> Agent:
    return Agent("test:worker", stream_fn=ScriptedModel(list(script)), tools=[danger], **options)


async def test_a_call_inside_that_would_wait_is_not_run_and_the_caller_is_told():
    ran.clear()
    inside = worker([ToolCall("x", "danger")], approve=defer)
    lead = Agent(
        "test:lead",
        stream_fn=ScriptedModel([[ToolCall("a", "work", {"task": "go"})], "I see"]),
        tools=[agent_tool(inside, "work", "Works.")],
    )
    result = await lead.run("go")
    assert ran == []
    assert (result.text, result.reason, result.pending, lead.pending) == ("I see", None, (), ())
    told = lead.messages[2]
    assert told.text.startswith("'work' was stopped: danger needs approval, which cannot be deferred inside")
    assert "requires_approval on 'work'" in told.text


async def test_the_tool_of_an_agent_waits_like_any_other():
    ran.clear()
    store = MemoryStore()
    session = await store.create()
    inside = worker([ToolCall("x", "danger")], "worked", approve=lambda request: True)
    tools = [agent_tool(inside, "work", "Works.", requires_approval=True)]
    script = [[ToolCall("a", "work", {"task": "go"})], "never"]
    lead = Agent("test:lead", stream_fn=ScriptedModel(script), tools=tools, session=session, approve=defer)
    assert (await lead.run("go")).reason == "approval"
    assert ran == []
    other = Agent(session=await store.open(session.id), stream_fn=ScriptedModel(["fine"]), tools=tools)
    assert (await other.run(approvals={"a": True})).text == "fine"
    assert ran == ["danger"]
    assert other.messages[2].text == "worked"
