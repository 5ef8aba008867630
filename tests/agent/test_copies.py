"""Copies share nothing that changes; policies of one run bind that run; closing an agent ends what it does."""

import asyncio
import threading
from typing import Any

import pytest
from tests.patience import until

from swink import (
    Agent,
    ExponentialBackoff,
    ModelSpec,
    Policy,
    Replace,
    Stop,
    StreamOptions,
    ToolCall,
    ToolContext,
    UserMessage,
    tool,
)
from swink.errors import AlreadyRunning, InvalidInput
from swink.events import MessageUpdate
from swink.testing import EventCollector, Pause, ScriptedModel, history_problems


def agent_on(*script: Any, **options: Any) -> Agent:
    return Agent(**{"model": "test:m", "stream_fn": ScriptedModel(list(script)), **options})


def texts(agent: Agent) -> list[str]:
    return [message.text for message in agent.messages]


@tool
async def noop() -> str:
    return "ok"


class Kept:
    def __init__(self, *messages: Any, **state: Any) -> None:
        self.messages = list(messages)
        self.state = state
        self.appended: list[Any] = []

    async def append(self, messages: Any) -> None:
        self.appended.extend(messages)


# Copies


async def test_history_queues_and_state_are_copied_and_independent_both_ways():
    agent = agent_on("one", "two", "three", "four", state={"seen": ["a"]}, tools=[noop])
    await agent.run("q")
    agent.steer("steering")
    agent.follow_up("following")
    other = agent.copy(stream_fn=ScriptedModel(["other one", "other two"]))
    assert texts(other) == ["q", "one"]
    assert other.state == {"seen": ["a"]}
    assert other.has_pending

    other.state["seen"].append("other's")
    agent.state["seen"].append("mine")
    other.clear_queues()
    other.steer("only other")
    await other.run("other q")
    assert agent.state == {"seen": ["a", "mine"]}
    assert other.state == {"seen": ["a", "other's"]}
    assert texts(agent) == ["q", "one"]
    await agent.run("again")
    assert texts(agent) == ["q", "one", "again", "steering", "two", "following", "three"]
    assert texts(other) == ["q", "one", "other q", "only other", "other one"]
    other.tools = []
    other.system_prompt = "changed"
    other.model = "test:other"
    other.clear_messages()
    assert (agent.tools, agent.system_prompt, str(agent.model)) == ((noop,), "", "test:m")
    assert len(agent.messages) == 7


async def test_a_copy_and_its_original_run_at_the_same_time():
    agent = agent_on(["a", Pause(0.02), "b"])
    other = agent.copy(stream_fn=ScriptedModel(["c"]))
    results = await asyncio.gather(agent.run("1"), other.run("2"))
    assert [result.text for result in results] == ["ab", "c"]


async def test_subscribers_and_errors_stay_with_the_original():
    agent, collector = agent_on(LookupError("x")), EventCollector()
    agent.subscribe(collector)
    await agent.run("q")
    heard = len(collector.events)
    other = agent.copy(stream_fn=ScriptedModel(["fine"]))
    assert other.error is None
    assert (await other.run("q")).text == "fine"
    assert len(collector.events) == heard


async def test_a_session_is_not_copied_and_another_may_be_given():
    session = Kept(UserMessage("old"), user="Ada")
    agent = agent_on("one", "more", session=session)
    await agent.run("q")
    assert len(session.appended) == 2
    other = agent.copy(stream_fn=ScriptedModel(["two"]))
    assert texts(other) == ["old", "q", "one"]
    assert other.state == {"user": "Ada"}
    await other.run("elsewhere")
    assert len(session.appended) == 2, "the copy writes nowhere"
    await agent.run("q")
    assert len(session.appended) == 4
    second = Kept()
    third = agent.copy(stream_fn=ScriptedModel(["three"]), session=second)
    await third.run("third")
    assert [message.text for message in second.appended] == ["third", "three"]


async def test_every_setting_is_kept_and_each_can_be_changed():
    class Sound(Policy):
        pass

    policy, options, retry = Sound(), StreamOptions(temperature=0.5), ExponentialBackoff(1)
    settings: dict[str, Any] = {
        "system_prompt": "Be brief.",
        "tools": [noop],
        "options": options,
        "retry": retry,
        "policies": [policy],
        "approve": lambda request: True,
        "approval_mode": "on",
        "transform_context": lambda messages, overflow: messages,
        "convert_to_llm": lambda message: message,
        "get_api_key": lambda provider: "k",
        "steering_mode": "all",
        "follow_up_mode": "all",
        "tool_execution": "sequential",
        "tool_timeout": 3,
        "deps": object(),
        "fallback_models": ["test:b"],
        "state": {"a": 1},
        "messages": [UserMessage("old")],
    }
    agent = agent_on("x", **settings)
    other = agent.copy()
    for name in AgentFields:
        assert getattr(other._config, name) == getattr(agent._config, name), name
    for name in ("system_prompt", "tools", "steering_mode", "follow_up_mode", "model", "state"):
        assert getattr(other, name) == getattr(agent, name), name
    assert texts(other) == ["old"]
    plain = agent_on().copy(**settings)
    for name in (*AgentFields, "fallbacks"):
        if name not in ("model", "stream_fn", "fallbacks"):
            assert list_of(getattr(plain._config, name)) == list_of(getattr(agent._config, name)), name
    assert [str(model) for model, _ in plain._config.routes()[1:]] == ["test:b"]


AgentFields = (
    "model",
    "stream_fn",
    "options",
    "retry",
    "fallbacks",
    "policies",
    "approve",
    "approval_mode",
    "transform_context",
    "convert_to_llm",
    "get_api_key",
    "tool_execution",
    "tool_timeout",
    "deps",
    "state",
)


def list_of(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def test_a_copy_takes_every_keyword_of_the_constructor():
    import inspect

    agent = agent_on()
    names = [name for name in inspect.signature(Agent).parameters if name != "session"]
    current: dict[str, Any] = {
        "messages": [],
        "tools": [],
        "state": {},
        "policies": [],
        "fallback_models": [],
    }
    for name in names:
        if name in current:
            agent.copy(**{name: current[name]})
    values = {name: parameter.default for name, parameter in inspect.signature(Agent).parameters.items()}
    for name, value in values.items():
        if value is not inspect.Parameter.empty and name not in ("model", "stream_fn"):
            agent.copy(**{name: value})


def test_an_unknown_keyword_is_refused():
    with pytest.raises(InvalidInput, match="'sytem_prompt'"):
        agent_on().copy(sytem_prompt="x")
    with pytest.raises(TypeError):
        agent_on().copy("test:b")  # type: ignore[call-arg]


async def test_another_model_is_asked_the_way_it_would_be_if_it_were_assigned(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    own = ScriptedModel(["a", "b", "c"])
    agent = Agent("test:m", stream_fn=own)
    same = agent.copy(model="test:other")
    assert (await same.run("q")).text == "a"
    assert str(own.models[-1]) == "test:other"
    known = agent.copy(model="anthropic:claude-sonnet-4-6")
    agent.model = "anthropic:claude-sonnet-4-6"
    assert (await known.run("q")).text == "b"
    assert (await agent.run("q")).text == "c"
    assert [str(model) for model in own.models[1:]] == ["anthropic:claude-sonnet-4-6"] * 2


async def test_a_model_nobody_knows_comes_with_its_stream_function(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    agent = Agent("anthropic:claude-sonnet-4-6")
    other = agent.copy(model="nobody:m", stream_fn=ScriptedModel(["a"]))
    assert (await other.run("q")).text == "a"


async def test_the_window_follows_the_model_unless_it_was_chosen():
    agent = agent_on("a")
    small = agent.copy(model=ModelSpec("test", "small", context_window=1000))
    assert small._config.transform_context.sized_for(small.model).budget < 1000  # type: ignore[arg-type,union-attr]

    def chosen(messages: Any, overflow: bool) -> Any:
        return messages

    kept = agent_on("a", transform_context=chosen).copy(model=ModelSpec("test", "small", context_window=1000))
    assert kept._config.transform_context is chosen


async def test_a_key_in_the_options_stays_with_the_provider_it_was_given_for():
    stream = ScriptedModel(["a", "b"])
    agent = Agent("test:m", stream_fn=stream, options=StreamOptions(api_key="sk-test"))
    await agent.copy(model="elsewhere:m").run("q")
    assert stream.options[-1].api_key is None
    await agent.copy(model="elsewhere:m", options=StreamOptions(api_key="sk-theirs")).run("q")
    assert stream.options[-1].api_key == "sk-theirs"


async def test_reset_of_a_copy_goes_back_to_what_the_original_goes_back_to_or_to_the_change():
    agent = agent_on("a", system_prompt="first", messages=[UserMessage("old")], state={"a": 1})
    await agent.run("q")
    agent.system_prompt = "second"
    agent.state["b"] = 2
    other = agent.copy()
    assert other.system_prompt == "second"
    other.reset()
    assert (other.system_prompt, texts(other), other.state) == ("first", ["old"], {"a": 1})
    changed = agent.copy(system_prompt="third", state={"c": 3})
    changed.reset()
    assert (changed.system_prompt, texts(changed), changed.state) == ("third", ["old"], {"c": 3})
    changed.state["d"] = 4
    assert agent.state == {"a": 1, "b": 2}


async def test_a_copy_of_a_running_agent_is_idle_pairs_its_calls_and_has_what_waits():
    copies: list[Agent] = []

    @tool
    async def fork(ctx: ToolContext) -> str:
        agent.follow_up("later")
        copies.append(agent.copy(stream_fn=ScriptedModel(["b"])))
        return "forked"

    agent = agent_on([ToolCall("1", "fork")], "a", "c", tools=[fork])
    await agent.run("q")
    (other,) = copies
    assert not other.is_running
    assert history_problems(other.messages) == []
    assert texts(other)[0] == "q"
    assert other.has_pending
    other.clear_queues()
    assert (await other.run("and")).text == "b"


async def test_steering_that_the_run_has_taken_but_not_delivered_is_in_the_copy():
    """As in a checkpoint: the message is in exactly one place of the original, and in one of the copy."""
    taken: list[list[str]] = []

    def peek(event: Any) -> None:
        run = second._running.active
        if run is not None and any(message.text == "steered" for message in run.ledger.inbox.pending):
            forked = second.copy()
            taken.append([*texts(forked), *[message.text for message in forked._queues.steering]])

    @tool
    async def work() -> str:
        second.steer("steered")
        return "ok"

    second = agent_on([ToolCall("1", "work")], "end", tools=[work])
    second.subscribe(peek)
    await second.run("q")
    assert taken
    for places in taken:
        assert places.count("steered") == 1, places


# Policies of one run


class Count(Policy):
    def __init__(self) -> None:
        self.turns = 0

    def pre_turn(self, ctx: Any) -> Any:
        self.turns += 1


async def test_policies_of_a_run_are_added_for_that_run_alone():
    own, added = Count(), Count()
    agent = agent_on("a", "b", policies=[own])
    await agent.run("q", policies=[added])
    await agent.run("q")
    assert (own.turns, added.turns) == (2, 1)
    assert agent._config.policies == (own,)


async def test_a_policy_given_twice_is_asked_once():
    own = Count()
    agent = agent_on("a", policies=[own])
    await agent.run("q", policies=[own])
    assert own.turns == 1


async def test_a_policy_of_a_run_can_stop_and_rewrite_what_is_kept():
    class Guard(Policy):
        def pre_commit(self, message: Any) -> Any:
            return Replace(UserMessage("[removed]")) if message.text == "secret" else None

        def post_turn(self, ctx: Any, turn: Any) -> Any:
            return Stop("seen enough")

    agent = agent_on("a", "b")
    agent.follow_up("more")
    result = await agent.run("secret", policies=[Guard()])
    assert result.reason == "seen enough"
    assert texts(agent)[:2] == ["[removed]", "a"]
    await agent.run("secret")
    assert "secret" in texts(agent), "and only for that run"


async def test_a_run_that_is_refused_or_fails_leaves_no_policy_behind():
    class Failing(Policy):
        fail_closed = True

        def pre_turn(self, ctx: Any) -> Any:
            raise LookupError("x")

    agent = agent_on("a")
    result = await agent.run("q", policies=[Failing()])
    assert result.reason == "Failing failed: LookupError"
    with pytest.raises(InvalidInput):
        await agent.run("q", policies=[Failing])  # type: ignore[list-item]
    assert (await agent.run("q")).text == "a"


async def test_policies_of_a_stream_and_of_run_sync_work_the_same():
    stopped = await agent_on("a").stream("q", policies=[Stopping()]).result()
    assert stopped.reason == "not today"
    result = await asyncio.to_thread(lambda: agent_on("a").run_sync("q", policies=[Stopping()]))
    assert result.reason == "not today"


class Stopping(Policy):
    def pre_turn(self, ctx: Any) -> Any:
        return Stop("not today")


# Closing


async def test_closing_an_idle_agent_does_nothing_and_it_can_be_used_again():
    agent = agent_on("a")
    await agent.aclose()
    await agent.aclose()
    assert (await agent.run("q")).text == "a"


async def test_closing_ends_the_run_and_waits_until_it_is_saved():
    class Slow(Kept):
        async def append(self, messages: Any) -> None:
            await asyncio.sleep(0.02)
            await Kept.append(self, messages)

    session = Slow()
    agent = agent_on(["par", Pause(10), "tial"], "later", session=session)
    task = asyncio.create_task(agent.run("q"))
    await until(lambda: agent.streaming_message and agent.streaming_message.text)
    await agent.aclose()
    assert not agent.is_running
    assert [message.text for message in session.appended] == ["q", "par"]
    assert (await task).stop_reason == "aborted"
    assert (await agent.run("q")).text == "later"


async def test_the_block_of_an_agent_closes_it_also_on_an_error():
    async with agent_on("a") as agent:
        assert isinstance(agent, Agent)
        assert (await agent.run("q")).text == "a"
    with pytest.raises(LookupError):
        async with agent_on([Pause(10)]) as agent:
            task = asyncio.create_task(agent.run("q"))
            await asyncio.sleep(0.01)
            raise LookupError
    assert not agent.is_running
    assert (await task).stop_reason == "aborted"


async def test_closing_ends_a_detached_run_and_a_stream_that_is_read():
    agent = agent_on([Pause(10)], ["x", Pause(10)])
    stream = agent.stream("q")
    async with stream:
        stream.detach()
    await asyncio.sleep(0.01)
    assert agent.is_running
    await agent.aclose()
    assert not agent.is_running
    events: list[Any] = []
    async with agent.stream("q") as run:
        async for event in run:
            events.append(event)
            if isinstance(event, MessageUpdate):
                await agent.aclose()
    assert type(events[-1]).__name__ == "AgentEnd"


async def test_closing_twice_at_once_and_while_cancelled_leaves_nothing_running():
    agent = agent_on([Pause(10)])
    task = asyncio.create_task(agent.run("q"))
    await asyncio.sleep(0.01)
    closing = [asyncio.create_task(agent.aclose()) for _ in range(3)]
    await asyncio.sleep(0)
    closing[0].cancel()
    await asyncio.wait(closing)
    await asyncio.wait([task])
    assert closing[0].cancelled() or closing[0].done()
    assert not agent.is_running
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_tool_that_closes_its_own_agent_ends_the_run_without_hanging():
    @tool
    async def shut() -> str:
        await agent.aclose()
        return "unreachable"

    agent = agent_on([ToolCall("1", "shut")], "later", tools=[shut])
    result = await asyncio.wait_for(agent.run("q"), 20)
    assert result.stop_reason == "aborted"
    assert history_problems(agent.messages) == []
    assert (await agent.run("q")).text == "later"


def test_an_agent_is_closed_from_another_thread_and_event_loop():
    agent = agent_on([Pause(10)])
    begun = threading.Event()
    agent.subscribe(lambda event: begun.set())
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(agent.run_sync("q")))
    thread.start()
    assert begun.wait(60)
    asyncio.run(agent.aclose())
    assert not agent.is_running
    thread.join(60)
    assert results[0].stop_reason == "aborted"


async def test_a_closed_agent_that_still_runs_elsewhere_refuses_a_second_run_until_then():
    agent = agent_on([Pause(10)])
    task = asyncio.create_task(agent.run("q"))
    await asyncio.sleep(0.01)
    with pytest.raises(AlreadyRunning):
        await agent.run("q")
    await agent.aclose()
    await task
