"""The guard of the prompt cache: a request that does not begin with the one before it is told, once per cause."""

from typing import Any

import pytest
from msgspec.structs import replace

from swink import Agent, ModelSpec, StreamOptions, Tool, tool
from swink.agent.retry import ExponentialBackoff
from swink.errors import NetworkError
from swink.events import ContextCompacted, CustomEvent
from swink.messages import AssistantMessage, Text, ToolCall, UserMessage
from swink.testing import EventCollector, ScriptedModel

KEY = "sk-ant-REDACTED"


@tool
async def work() -> str:
    """Work."""
    return "done " * 20


def calls(count: int) -> list[Any]:
    return [[ToolCall(str(number), "work")] for number in range(count)]


def watched(*replies: Any, **settings: Any) -> tuple[Agent, EventCollector]:
    agent = Agent("test:m", **{"stream_fn": ScriptedModel(list(replies)), "tools": [work], **settings})
    seen = EventCollector()
    agent.subscribe(seen)
    return agent, seen


def told(seen: EventCollector) -> list[dict[str, Any]]:
    return [event.data for event in seen.of(CustomEvent) if event.name == "cache_prefix_broken"]


def talk(turns: int) -> list[Any]:
    return [kind("word " * 50) for _ in range(turns) for kind in (UserMessage, AssistantMessage)]


async def test_a_run_of_many_turns_and_the_next_one_break_nothing():
    agent, seen = watched(*calls(20), "fine", *calls(3), "fine")
    await agent.run("q")
    await agent.run("again")
    assert told(seen) == []


async def test_a_transformer_that_rewrites_is_named_by_the_first_message_it_changed():
    def stamped(messages: Any, overflow: bool) -> Any:
        first = replace(messages[0], content=(Text(f"It is turn {len(messages)}. Hello."),))
        return [first, *messages[1:]]

    agent, seen = watched(*calls(4), "fine", transform_context=stamped)
    await agent.run("q")
    assert told(seen) == [
        {
            "model": "test:m",
            "part": "messages",
            "at": 0,
            "before": "user: It is turn 1. Hello.",
            "after": "user: It is turn 3. Hello.",
        }
    ]


async def test_a_conversion_that_makes_equal_messages_breaks_nothing():
    agent, seen = watched(*calls(3), "fine", convert_to_llm=lambda message: replace(message))
    await agent.run("q")
    assert told(seen) == []


async def test_a_conversion_that_leaves_the_end_out_is_named_by_the_first_message_it_left_out():
    model = ScriptedModel([*calls(3), "fine"])

    def converted(message: Any) -> Any:
        return None if len(model.calls) == 3 and message.role != "user" else message

    agent, seen = watched(stream_fn=model, convert_to_llm=converted)
    await agent.run("q")
    assert [(data["part"], data["at"]) for data in told(seen)] == [("messages", 1)]


async def test_a_system_prompt_with_the_time_in_it_is_told_at_the_second_run():
    times = iter(range(100))
    prompt = "You are brief. " * 20 + "It is {} o'clock. Be kind."
    agent, seen = watched("a", "b", "c", system_prompt=lambda context: prompt.format(next(times)))
    for _ in range(3):
        await agent.run("q")
    (broken,) = told(seen)
    assert (broken["part"], broken["at"]) == ("system", prompt.index("{}"))
    assert broken["before"].endswith("It is 0 o'clock. Be kind.")
    assert broken["after"].endswith("It is 1 o'clock. Be kind.")
    assert len(broken["after"]) < 100


@pytest.mark.parametrize(
    ("tools", "name"),
    [
        ([], "work"),
        ([work, Tool.raw("more", "More.", {"type": "object"}, lambda *_: "x")], "more"),
        ([Tool.raw("work", "Other.", {"type": "object"}, lambda *_: "x")], "work"),
    ],
)
async def test_other_tools_are_told_by_their_name(tools: list[Any], name: str):
    agent, seen = watched("a", "b")
    await agent.run("q")
    agent.tools = tools
    await agent.run("q")
    (broken,) = told(seen)
    assert (broken["part"], broken["at"]) == ("tools", name)


async def test_tools_made_anew_that_say_the_same_break_nothing():
    def made() -> Tool:
        return Tool.raw("same", "Same.", {"type": "object"}, lambda *_: "x")

    agent, seen = watched("a", "b", tools=[made()])
    await agent.run("q")
    agent.tools = [made()]
    await agent.run("q")
    assert told(seen) == []


@pytest.mark.parametrize("way", ["window", "prune", "summary"])
async def test_a_compaction_is_announced_and_not_told_as_a_break(way: str):
    model = ScriptedModel([*calls(120), "fine"])

    def answer(spec: Any, context: Any, options: Any) -> Any:
        if "You condense" in context.system_prompt:
            return ScriptedModel(["Task: work"])(spec, context, options)
        return model(spec, context, options)

    spec = ModelSpec("test", "m", context_window=3_000)
    agent = Agent(spec, stream_fn=answer, tools=[work], transform_context=way, messages=talk(10))
    seen = EventCollector()
    agent.subscribe(seen)
    await agent.run("q")
    assert len(seen.of(ContextCompacted)) > 1
    assert told(seen) == []


async def test_compact_and_a_history_that_is_replaced_between_runs_are_not_told():
    agent, seen = watched("a", "b", "c", messages=talk(10))
    await agent.run("q")
    await agent.compact()
    await agent.run("q")
    agent.messages = [UserMessage("other"), AssistantMessage("words")]
    await agent.run("q")
    assert told(seen) == []


async def test_a_history_that_is_replaced_within_a_run_is_told():
    agent, seen = watched(*calls(2), "fine", messages=talk(3))

    @tool
    async def forget() -> str:
        """Forget."""
        agent.messages = [UserMessage("other"), AssistantMessage("words"), UserMessage("go on")]
        return "ok"

    agent.tools = [forget, work]
    script = ScriptedModel([[ToolCall("f", "forget")], *calls(1), "fine"])
    agent = agent.copy(stream_fn=script)
    agent.subscribe(seen)
    await agent.run("q")
    assert [(broken["part"], broken["at"]) for broken in told(seen)] == [("messages", 0)]


async def test_another_model_has_a_cache_of_its_own():
    agent, seen = watched("a", "b")
    await agent.run("q")
    agent.model, agent.system_prompt = "test:other", "Be brief."
    await agent.run("q")
    assert told(seen) == []


async def test_a_model_that_is_made_anew_has_the_cache_of_its_name():
    prompts = iter(["It is one.", "It is two."])
    agent, seen = watched("a", "b", system_prompt=lambda ctx: next(prompts))
    await agent.run("q")
    agent.model = ModelSpec("test", "m", thinking_level="high")
    await agent.run("again")
    assert [broken["part"] for broken in told(seen)] == ["system"]


async def test_a_retry_sends_the_same_and_a_fallback_is_no_break():
    agent, seen = watched(
        NetworkError("cut"),
        *calls(2),
        "fine",
        retry=ExponentialBackoff(max_attempts=2, base_delay=0),
        fallback_models=["test:b"],
    )
    await agent.run("q")
    assert told(seen) == []


async def test_without_a_cache_nothing_is_told():
    agent, seen = watched("a", "b", options=StreamOptions(cache=False))
    await agent.run("q")
    agent.system_prompt = "Be brief."
    await agent.run("q")
    assert told(seen) == []


async def test_what_is_told_holds_no_secrets():
    agent, seen = watched("a", "b", system_prompt=f"The key is {KEY}. One.")
    await agent.run("q")
    agent.system_prompt = f"The key is {KEY}. Two."
    await agent.run("q")
    (broken,) = told(seen)
    assert KEY[:12] not in str(broken)
    assert "One" in broken["before"]


async def test_a_failed_reply_before_the_next_prompt_breaks_nothing():
    agent, seen = watched(NetworkError("cut"), "fine", retry=ExponentialBackoff(max_attempts=1))
    await agent.run("q")
    await agent.run("again")
    assert told(seen) == []


async def test_a_run_with_an_output_between_others_is_not_told():
    answer = [ToolCall("o", "final_output", {"value": 1})]
    agent, seen = watched("fine", *calls(1), answer, "fine")
    await agent.run("q")
    assert (await agent.run("how many?", output=int)).output == 1
    await agent.run("q")
    assert told(seen) == []
