"""Dependencies reach tools, prompts and policies and nothing else; instructions may be written anew for each run."""

import asyncio
import json
from typing import Any

import pytest

from swink import Agent, ExponentialBackoff, NetworkError, Policy, ToolCall, ToolContext, UserMessage, tool
from swink.agent.config import AgentContext, AgentLoopConfig, PromptContext
from swink.agent.functions import agent_loop
from swink.errors import InvalidInput
from swink.messages import ModelSpec
from swink.testing import EventCollector, Pause, ScriptedModel, history_problems

SECRET = "postgres-dsn-4711"


class Db:
    """Not JSON-able, not picklable, and its repr must never be seen."""

    def __init__(self, name: str = SECRET) -> None:
        self.name = name
        self.lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"Db({self.name})"

    def __reduce__(self) -> Any:
        raise AssertionError("dependencies are never serialised")

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError("dependencies are never copied")


@tool
async def query(ctx: ToolContext[Db]) -> str:
    """Ask the database."""
    return f"length {len(ctx.deps.name)}"


@tool
def query_in_thread(ctx: ToolContext[Db]) -> str:
    """Ask the database."""
    return f"thread {len(ctx.deps.name)}"


@tool
async def whose(ctx: ToolContext[Any]) -> str:
    return str(ctx.deps)


def call(name: str) -> list[Any]:
    return [ToolCall("1", name)]


def agent_on(*script: Any, **options: Any) -> Agent:
    return Agent("test:m", stream_fn=ScriptedModel(list(script)), **options)


def model_of(agent: Agent) -> ScriptedModel:
    return agent._config.stream_fn  # type: ignore[return-value]


# Dependencies


@pytest.mark.parametrize(("used", "text"), [(query, "length 17"), (query_in_thread, "thread 17")])
async def test_a_tool_gets_the_agents_dependencies_async_and_in_a_thread(used: Any, text: str):
    agent = agent_on(call(used.name), "done", tools=[used], deps=Db())
    await agent.run("q")
    assert agent.messages[2].text == text


async def test_a_runs_dependencies_replace_the_agents_for_that_run_alone():
    agent = agent_on(
        call("whose"), "a", call("whose"), "b", call("whose"), "c", tools=[whose], deps="agent's"
    )
    for given, expected in ((None, "agent's"), ("run's", "run's"), (None, "agent's")):
        result = await agent.run("q", deps=given)
        assert result.messages[2].text == expected


@pytest.mark.parametrize("falsy", [0, "", {}, False])
async def test_dependencies_that_are_falsy_are_dependencies(falsy: Any):
    agent = agent_on(call("whose"), "a", tools=[whose], deps="agent's")
    assert (await agent.run("q", deps=falsy)).messages[2].text == str(falsy)


async def test_without_dependencies_there_is_none():
    agent = agent_on(call("whose"), "a", tools=[whose])
    assert (await agent.run("q")).messages[2].text == "None"


async def test_the_context_is_no_parameter_of_the_tool():
    assert query.parameters_schema["properties"] == {}


async def test_dependencies_are_seen_by_no_model_event_policy_checkpoint_session_repr_or_log(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(0)
    seen: list[str] = []

    class Look(Policy):
        def pre_turn(self, ctx: Any) -> Any:
            seen.append(repr(ctx))

        def post_run(self, ctx: Any, ending: Any) -> Any:
            seen.append(repr(ctx) + repr(ending))

    class Kept:
        messages: tuple[Any, ...] = ()
        state: dict[str, Any] = {}

        async def append(self, messages: Any) -> None:
            seen.append(repr(messages))

    def prompt(context: PromptContext) -> str:
        seen.append(repr(context))
        assert context.deps.name == SECRET
        return "Be brief."

    @tool
    async def broken(ctx: ToolContext[Db]) -> None:
        seen.append(repr(ctx))
        raise LookupError("broken")

    agent = agent_on(
        [*call("query"), ToolCall("2", "broken")],
        "done",
        tools=[query, broken],
        deps=Db(),
        policies=[Look()],
        session=Kept(),
        system_prompt=prompt,
        state={"a": 1},
    )
    collector = EventCollector()
    agent.subscribe(collector)
    result = await agent.run("q")
    model = model_of(agent)
    seen += [repr(collector.events), repr(result), repr(agent), repr(vars(model)), caplog.text]
    seen += [
        repr(agent._config),
        repr(agent.tools),
        repr(agent._state.context),
        json.dumps(agent.checkpoint()),
    ]
    assert len(seen) > 10
    assert SECRET not in "".join(seen)


async def test_a_checkpoint_has_no_dependencies_and_restore_takes_new_ones():
    agent = agent_on("a", deps=Db())
    await agent.run("q")
    saved = json.loads(json.dumps(agent.checkpoint()))
    assert "deps" not in saved
    model = ScriptedModel([call("whose"), "b"])
    again = Agent.restore(saved, stream_fn=model, tools=[whose], deps="new ones")
    assert (await again.run("q")).messages[2].text == "new ones"


async def test_the_bare_loop_has_dependencies_too():
    config = AgentLoopConfig(
        model=ModelSpec("test", "m"), stream_fn=ScriptedModel([call("whose"), "x"]), deps="of the loop"
    )
    stream = agent_loop("q", AgentContext(lambda ctx: f"for {ctx.deps}", (), [whose]), config)
    result = await stream.result()
    assert result.messages[2].text == "of the loop"
    assert config.stream_fn.calls[0].system_prompt == "for of the loop"  # type: ignore[attr-defined]


# Instructions


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_writes_the_prompt_and_sees_dependencies_state_and_messages(is_async: bool):
    seen: list[PromptContext] = []

    def write(context: PromptContext) -> str:
        seen.append(context)
        return f"{context.deps} {context.state['user']} {len(context.messages)}"

    async def write_later(context: PromptContext) -> str:
        await asyncio.sleep(0)
        return write(context)

    agent = agent_on(
        "a", "b", system_prompt=write_later if is_async else write, deps="db", state={"user": "Ada"}
    )
    await agent.run("first")
    await agent.run("second", deps="other")
    prompts = [context.system_prompt for context in model_of(agent).calls]
    assert prompts == ["db Ada 1", "other Ada 3"]
    assert seen[0].messages[0].text == "first"
    assert len(seen[0].messages) == 1, "what it was given stays as it was"


async def test_an_object_with_an_async_call_may_write_the_prompt():
    class Writer:
        async def __call__(self, context: PromptContext) -> str:
            return "from an object"

    agent = agent_on("a", system_prompt=Writer())
    await agent.run("q")
    assert model_of(agent).calls[0].system_prompt == "from an object"


async def test_the_state_it_sees_is_a_copy():
    def write(context: PromptContext) -> str:
        context.state["list"].append("changed")  # type: ignore[index]
        return "x"

    agent = agent_on("a", system_prompt=write, state={"list": []})
    await agent.run("q")
    assert agent.state == {"list": []}


async def test_it_is_asked_once_a_run_however_many_turns_retries_and_fallbacks():
    asked: list[int] = []

    def write(context: PromptContext) -> str:
        asked.append(len(asked))
        return f"version {len(asked)}"

    dead = NetworkError("down")
    agent = agent_on(
        dead,
        call("whose"),
        dead,
        dead,
        "from the fallback",
        "again",
        tools=[whose],
        system_prompt=write,
        retry=ExponentialBackoff(2, 0, 0),
        fallback_models=["test:b"],
    )
    await agent.run("q")
    assert asked == [0]
    assert {context.system_prompt for context in model_of(agent).calls} == {"version 1"}
    await agent.run("q")
    assert asked == [0, 1]
    assert model_of(agent).calls[-1].system_prompt == "version 2"


async def test_policies_see_the_prompt_that_was_written():
    seen: list[str] = []

    class Look(Policy):
        def pre_turn(self, ctx: Any) -> Any:
            seen.append(ctx.system_prompt)

    await agent_on("a", system_prompt=lambda context: "written", policies=[Look()]).run("q")
    assert seen == ["written"]


async def test_a_function_that_raises_is_the_callers_to_see_and_the_next_run_works():
    attempts = 0

    def write(context: PromptContext) -> str:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise LookupError("no template")
        return "found"

    agent, collector = agent_on("a", system_prompt=write), EventCollector()
    agent.subscribe(collector)
    with pytest.raises(LookupError, match="no template"):
        await agent.run("q")
    collector.check()
    assert agent.error == "LookupError: no template"
    assert not agent.is_running
    assert [message.text for message in agent.messages] == ["q"]
    assert (await agent.run()).text == "a"
    assert model_of(agent).calls[0].system_prompt == "found"


@pytest.mark.parametrize("wrong", [None, 5, b"bytes", ["list"]])
async def test_a_function_that_returns_no_text_is_refused_with_what_it_returned(wrong: Any):
    agent = agent_on("a", system_prompt=lambda context: wrong)
    with pytest.raises(InvalidInput, match=f"returned {type(wrong).__name__}; it returns a str"):
        await agent.run("q")
    assert model_of(agent).calls == [], "nothing was sent"


async def test_a_prompt_replaced_during_a_run_is_used_from_the_next_turn_and_a_function_asked_once():
    asked: list[str] = []

    def second(context: PromptContext) -> str:
        asked.append("second")
        return "second"

    @tool
    async def switch(to: str) -> None:
        agent.system_prompt = {"second": second, "text": "text"}[to]

    def step(to: str) -> list[Any]:
        return [ToolCall("1", "switch", {"to": to})]

    agent = agent_on(
        step("second"), step("second"), step("text"), "end", tools=[switch], system_prompt=lambda ctx: "first"
    )
    await agent.run("q")
    prompts = [context.system_prompt for context in model_of(agent).calls]
    assert prompts == ["first", "second", "second", "text"]
    assert asked == ["second"]


async def test_a_checkpoint_keeps_a_text_and_leaves_a_function_to_be_given_again():
    agent = agent_on("a", system_prompt=lambda context: "written")
    await agent.run("q")
    saved = json.loads(json.dumps(agent.checkpoint()))
    assert saved["system_prompt"] == ""
    bare = Agent.restore(saved, stream_fn=ScriptedModel([]))
    assert bare.system_prompt == ""
    given = Agent.restore(saved, stream_fn=ScriptedModel(["b"]), system_prompt=lambda context: "again")
    await given.run("q")
    assert model_of(given).calls[0].system_prompt == "again"
    assert (
        Agent.restore(agent_on(system_prompt="text").checkpoint(), stream_fn=ScriptedModel([])).system_prompt
        == "text"
    )


async def test_a_copy_and_a_reset_keep_the_function():
    def write(context: PromptContext) -> str:
        return f"asked with {context.deps}"

    agent = agent_on("a", system_prompt=write, deps=1)
    other = agent.copy(stream_fn=ScriptedModel(["b"]), deps=2)
    await other.run("q")
    assert model_of(other).calls[0].system_prompt == "asked with 2"
    agent.system_prompt = "text"
    agent.reset()
    await agent.run("q")
    assert model_of(agent).calls[0].system_prompt == "asked with 1"


@pytest.mark.parametrize("how", ["abort", "cancel", "deadline"])
async def test_a_function_that_takes_its_time_is_cancelled_with_the_run(how: str):
    entered, ended = asyncio.Event(), asyncio.Event()

    async def write(context: PromptContext) -> str:
        if len(context.messages) > 1:
            return "quick"
        entered.set()
        try:
            await asyncio.sleep(10)
        finally:
            ended.set()
        return "slow"

    agent = agent_on("a", system_prompt=write)
    task = asyncio.create_task(agent.run("q", deadline=0.02 if how == "deadline" else None))
    await entered.wait()
    if how == "abort":
        agent.abort()
    elif how == "cancel":
        task.cancel()
    await asyncio.wait([task])
    assert ended.is_set()
    assert history_problems(agent.messages) == []
    assert model_of(agent).calls == []
    assert (await agent.run("again")).text == "a"


async def test_a_function_that_swallows_its_cancellation_cannot_hold_the_run():
    async def write(context: PromptContext) -> str:
        if len(context.messages) > 1:
            return "quick"
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    released = asyncio.Event()
    agent = agent_on("a", system_prompt=write)
    result = await asyncio.wait_for(agent.run("q", deadline=0.01), 20)
    assert result.stop_reason == "aborted"
    assert (await agent.run("again")).text == "a"
    released.set()
    await asyncio.sleep(0.01)
    assert len(agent.messages) == 3
    assert model_of(agent).calls[0].system_prompt == "quick"


async def test_the_prompt_of_a_team_member_is_its_own():
    from swink.teams import sequential

    first = agent_on("one", system_prompt=lambda context: f"first for {context.deps}", deps="a")
    second = agent_on("two", system_prompt=lambda context: f"second for {context.deps}", deps="b")
    await sequential(first, second).run("q")
    assert model_of(first).calls[0].system_prompt == "first for a"
    assert model_of(second).calls[0].system_prompt == "second for b"


async def test_queued_messages_are_there_when_the_prompt_is_written():
    seen: list[int] = []

    def write(context: PromptContext) -> str:
        seen.append(len(context.messages))
        return "x"

    agent = agent_on("a", system_prompt=write, messages=[UserMessage("old")])
    agent.steer("steered")
    await agent.run("q")
    assert seen == [3]


async def test_a_slow_model_does_not_make_the_function_be_asked_again():
    asked: list[int] = []
    agent = agent_on(["a", Pause(0.01), "b"], system_prompt=lambda context: asked.append(1) or "x")
    await agent.run("q")
    assert asked == [1]
