"""The test doubles that ship: scripts, chaos, the collector, and the checks they make."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import Agent, ExponentialBackoff, NetworkError, ToolCall, tool
from swink.events import AgentEnd, AgentStart, MessageEnd, MessageStart, ToolExecutionEnd, TurnStart
from swink.messages import ToolResult, UserMessage
from swink.testing import ChaosModel, EventCollector, Pause, ScriptedModel, history_problems, nesting_problems

FAST = ExponentialBackoff(max_attempts=3, base_delay=0.0001, max_delay=0.0002)


@tool
async def echo(text: str) -> str:
    """Say it back."""
    await asyncio.sleep(0)
    return text


SCRIPT = [
    ["Let me see. ", ToolCall("1", "echo", {"text": "a"}), ToolCall("2", "echo", {"text": "b"})],
    ["All ", "done."],
]


class Endless(ScriptedModel):
    """The script, begun anew for every conversation however many attempts it takes."""

    async def __call__(self, model: Any, context: Any, options: Any) -> Any:
        self._next = 1 if any(message.role == "tool_result" for message in context.messages) else 0
        async for event in super().__call__(model, context, options):
            yield event


@pytest.mark.parametrize(
    "what", ["disconnect", "malformed", "error", "cancel", 0.0005, NetworkError("injected")]
)
async def test_chaos_at_every_event_of_every_request_leaves_the_agent_sound(what: Any):
    disturbed = 0
    for request in range(2):
        for number in range(12):
            fired = False

            def disturb(asked: int, event: int) -> Any:
                nonlocal fired
                if (asked, event) == (request, number):
                    fired = True
                    return what
                return None

            agent = Agent("test:m", stream_fn=ChaosModel(Endless(SCRIPT), disturb), tools=[echo], retry=FAST)
            seen = EventCollector()
            agent.subscribe(seen)
            result = await agent.run("go")
            seen.check()
            assert history_problems(agent.messages) == []
            disturbed += fired
            if fired and what in ("malformed",):
                assert result.error_kind == "stream"
            elif fired and what == "cancel":
                assert result.stop_reason == "aborted"
            else:
                assert result.text == "All done."
            assert (
                await Agent("test:m", stream_fn=ScriptedModel(["ok"]), messages=agent.messages).run("next")
            ).text == "ok"
    assert disturbed >= 12


@tried(25, 60)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 9)),
        st.sampled_from(["disconnect", "error", "malformed", "cancel", 0.0]),
    )
)
def test_any_mixture_of_chaos_leaves_the_agent_sound(plan: dict[tuple[int, int], Any]):
    async def main() -> None:
        agent = Agent(
            "test:m",
            stream_fn=ChaosModel(Endless(SCRIPT), lambda *at: plan.get(at)),
            tools=[echo],
            retry=FAST,
        )
        seen = EventCollector()
        agent.subscribe(seen)
        agent.follow_up("and then")
        result = await agent.run("go")
        seen.check()
        assert history_problems(agent.messages) == []
        assert not agent.is_running
        assert result.stop_reason in ("stop", "error", "aborted")
        queued = sum(message.text == "and then" for message in (*agent.messages, *agent._queues.follow_up))
        assert queued == 1

    asyncio.run(main())


async def test_a_script_that_ends_too_early_says_so():
    result = await Agent("test:m", stream_fn=ScriptedModel([])).run("hi")
    assert "asked once more" in (result.error or "")


async def test_a_reply_may_be_a_function_of_the_context():
    model = ScriptedModel([lambda context: f"you said {context.messages[-1].text}"])
    assert (await Agent("test:m", stream_fn=model).run("hi")).text == "you said hi"


async def test_a_script_may_pause():
    result = await Agent("test:m", stream_fn=ScriptedModel([["a", Pause(0.001), "b"]])).run("hi")
    assert result.text == "ab"


@pytest.mark.parametrize(
    "events",
    [
        [AgentStart()],
        [AgentEnd(())],
        [AgentStart(), TurnStart(1), AgentEnd(())],
        [AgentStart(), MessageStart("user"), AgentEnd(())],
        [AgentStart(), MessageEnd(UserMessage("x")), AgentEnd(())],
        [
            AgentStart(),
            TurnStart(1),
            ToolExecutionEnd("1", "x", ToolResult()),
            ToolExecutionEnd("1", "x", ToolResult()),
        ],
        [TurnStart(1)],
    ],
)
def test_the_nesting_check_finds_what_is_wrong(events: list[Any]):
    assert nesting_problems(events)


@pytest.mark.parametrize(("replies", "said"), [(["a"], "has 1 reply,"), (["a", "b"], "has 2 replies,")])
async def test_a_script_that_is_used_up_says_how_long_it_was(replies: list[str], said: str):
    agent = Agent("test:scripted", stream_fn=ScriptedModel(replies))
    for _ in replies:
        await agent.run("more")
    assert said in ((await agent.run("more")).error or "")
