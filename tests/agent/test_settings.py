"""Settings of an agent (A7, D5, T1): who is asked and how, and when a change takes effect."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from swink import (
    Agent,
    AgentContext,
    AgentLoopConfig,
    ContextWindowOverflow,
    ExponentialBackoff,
    ModelSpec,
    NetworkError,
    Policy,
    StreamOptions,
    ToolCall,
    UnknownModel,
    agent_loop,
    tool,
)
from swink.events import MessageUpdate
from swink.models import catalog
from swink.testing import ScriptedModel

QUICK = ExponentialBackoff(max_attempts=2, base_delay=0.001)
CALL = [ToolCall("1", "work")]


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_registered", {})


def asked(model: ScriptedModel) -> list[str]:
    return [str(spec) for spec in model.models]


# The caller's stream function


async def test_the_stream_function_given_asks_every_model():
    own = ScriptedModel(["a", "b", "c", "d"])
    agent = Agent("test:m", stream_fn=own)
    await agent.run("q")
    agent.model = "anthropic:claude-sonnet-4-6"
    await agent.run("q")
    await agent.copy(model="openai:gpt-5").run("q")
    agent.reset()
    await agent.run("q")
    assert asked(own) == ["test:m", "anthropic:claude-sonnet-4-6", "openai:gpt-5", "test:m"]


async def test_fallbacks_that_are_assigned_hold_from_the_next_turn_on_and_wrong_ones_change_nothing():
    model = ScriptedModel([NetworkError("down"), "from b"])
    agent = Agent("test:a", stream_fn=model, retry=ExponentialBackoff(1))
    agent.fallback_models = ["test:a", "test:b"]
    with pytest.raises(UnknownModel, match="provider:model"):
        agent.fallback_models = ["nope"]
    assert agent.fallback_models == ("test:a", "test:b")
    assert (await agent.run("hi")).text == "from b"
    assert [spec.model_id for spec in model.models] == ["a", "b"], "the model itself is no fallback"


async def test_the_stream_function_given_asks_fallbacks_given_by_name():
    own = ScriptedModel([NetworkError("down"), "fine"])
    agent = Agent(
        "test:m", stream_fn=own, retry=ExponentialBackoff(max_attempts=1), fallback_models=["openai:gpt-5"]
    )
    assert (await agent.run("q")).text == "fine"
    assert asked(own) == ["test:m", "openai:gpt-5"]


async def test_the_stream_function_given_asks_a_restored_model():
    own = ScriptedModel(["a", "b"])
    agent = Agent("test:m", stream_fn=own)
    agent.model = "openai:gpt-5"
    await Agent.restore(agent.checkpoint(), stream_fn=own).run("q")
    assert asked(own) == ["openai:gpt-5"]


async def test_a_registered_model_brings_its_own_stream_function():
    own, theirs = ScriptedModel(["a", "b"]), ScriptedModel(["c", "d", "e"])
    catalog.register_provider("acme", lambda: theirs)
    agent = Agent("test:m", stream_fn=own)
    agent.model = "acme:m"
    await agent.run("q")
    await agent.copy().run("q")
    agent.model = "test:n"
    await agent.run("q")
    assert (asked(own), asked(theirs)) == (["test:n"], ["acme:m", "acme:m"])
    agent.model = "acme:m"
    agent.reset()
    await agent.run("q")
    assert asked(own)[-1] == "test:m"


async def test_a_stream_function_given_for_a_registered_provider_is_the_one_asked():
    own, theirs = ScriptedModel(["a"]), ScriptedModel([])
    catalog.register_provider("acme", lambda: theirs)
    await Agent("acme:m", stream_fn=own).run("q")
    assert asked(own) == ["acme:m"]


async def test_a_change_of_thinking_keeps_the_stream_function():
    made: list[ScriptedModel] = []

    def make() -> ScriptedModel:
        made.append(ScriptedModel(["a", "b"]))
        return made[-1]

    catalog.register_provider("acme", make)
    agent = Agent("acme:m")
    await agent.run("q")
    agent.thinking_level = "high"
    await agent.run("q")
    assert [model.thinking_level for model in made[0].models] == ["off", "high"]
    assert len(made) == 1


def test_an_unknown_model_is_refused_when_it_is_assigned():
    catalog.register_provider("acme", lambda: ScriptedModel([]))
    agent = Agent("acme:m")
    with pytest.raises(UnknownModel, match="acne"):
        agent.model = "acne:m"
    assert str(agent.model) == "acme:m"


# The loop without an agent (D5)


async def test_a_configuration_takes_names_of_models():
    theirs = ScriptedModel([NetworkError("down"), "fine"])
    catalog.register_provider("acme", lambda: theirs)
    config = AgentLoopConfig(model="acme:m", fallbacks=["acme:n"], retry=ExponentialBackoff(max_attempts=1))
    result = await agent_loop("q", AgentContext(), config).result()
    assert result.text == "fine"
    assert asked(theirs) == ["acme:m", "acme:n"]


async def test_a_name_brings_what_the_catalog_knows():
    config = AgentLoopConfig(model="anthropic:claude-sonnet-4-6", stream_fn=ScriptedModel([]))
    assert config.spec.context_window == catalog.parse_model("anthropic:claude-sonnet-4-6").context_window


async def test_a_changed_configuration_brings_the_stream_function_of_its_model():
    first, second = ScriptedModel([CALL]), ScriptedModel(["fine"])
    catalog.register_provider("first", lambda: first)
    catalog.register_provider("second", lambda: second)

    @tool
    async def work() -> None:
        config.model = "second:m"

    context = AgentContext(tools=[work])
    config = AgentLoopConfig(model="first:m")
    assert (await agent_loop("q", context, config).result()).text == "fine"
    assert (asked(first), asked(second)) == (["first:m"], ["second:m"])


async def test_a_changed_context_takes_effect_at_the_next_turn_of_a_bare_loop():
    @tool
    async def work() -> None:
        context.tools = []
        context.system_prompt = "after"

    model = ScriptedModel([CALL, "fine"])
    context = AgentContext("before", tools=[work])
    await agent_loop("q", context, AgentLoopConfig(model="test:m", stream_fn=model)).result()
    assert [(call.system_prompt, len(call.tools)) for call in model.calls] == [("before", 1), ("after", 0)]


# A change takes effect at the next turn, never inside one


@tool
async def work() -> str:
    """Work."""
    return "done"


@tool
async def other() -> str:
    """Do something else."""
    return "done"


class Scene:
    """An agent on two registered providers, whose settings are all changed at some moment."""

    def __init__(self, first: list[Any], second: list[Any], **settings: Any) -> None:
        self.first, self.second = ScriptedModel(first), ScriptedModel(second)
        catalog.register_provider("first", lambda: self.first)
        catalog.register_provider("second", lambda: self.second)
        self.agent = Agent(
            "first:m", **{"tools": [work], "system_prompt": "before", "retry": QUICK, **settings}
        )

    def change(self) -> None:
        agent = self.agent
        agent.model = "second:m"
        agent.thinking_level = "high"
        agent.tools = [work, other]
        agent.system_prompt = "after"

    def requests(self) -> list[tuple[str, str, str, int]]:
        return [
            (str(spec), spec.thinking_level, call.system_prompt, len(call.tools))
            for model in (self.first, self.second)
            for spec, call in zip(model.models, model.calls, strict=True)
        ]


BEFORE = ("first:m", "off", "before", 1)
AFTER = ("second:m", "high", "after", 2)


async def test_a_change_by_a_subscriber_in_the_middle_of_a_reply_spares_its_retry():
    scene = Scene([["par", NetworkError("cut")], CALL], ["fine"])
    scene.agent.subscribe(lambda event: scene.change() if isinstance(event, MessageUpdate) else None)
    assert (await scene.agent.run("q")).text == "fine"
    assert scene.requests() == [BEFORE, BEFORE, AFTER]


async def test_a_change_in_the_middle_of_a_reply_spares_its_fallback():
    third = ScriptedModel([CALL])
    scene = Scene(
        [["par", NetworkError("cut")]],
        ["fine"],
        retry=ExponentialBackoff(max_attempts=1),
        fallback_models=[("third:m", third)],
    )
    scene.agent.subscribe(lambda event: scene.change() if isinstance(event, MessageUpdate) else None)
    assert (await scene.agent.run("q")).text == "fine"
    assert scene.requests() == [BEFORE, AFTER]
    assert [(str(third.models[0]), third.calls[0].system_prompt, len(third.calls[0].tools))] == [
        ("third:m", "before", 1)
    ]


async def test_a_change_in_the_middle_of_a_reply_spares_overflow_recovery():
    overflows: list[bool] = []

    def shrink(messages: Any, overflow: bool) -> Any:
        overflows.append(overflow)
        if overflow:
            scene.change()
            return messages[-1:]
        return messages

    scene = Scene([ContextWindowOverflow("full"), CALL], ["fine"], transform_context=shrink)
    scene.agent.append_messages("an old message")
    assert (await scene.agent.run("q")).text == "fine"
    assert overflows == [False, True, False]
    assert scene.requests() == [BEFORE, BEFORE, AFTER]


async def test_a_change_by_a_tool_takes_effect_at_the_next_turn():
    scene = Scene([CALL], ["fine"])

    @tool(name="work")
    async def changing() -> None:
        scene.change()

    scene.agent.tools = [changing]
    assert (await scene.agent.run("q")).text == "fine"
    assert scene.requests() == [BEFORE, AFTER]


@pytest.mark.parametrize("slot", ["pre_turn", "pre_dispatch", "post_turn", "pre_retry"])
async def test_a_change_by_a_policy_takes_effect_at_the_next_turn(slot: str):
    class Changes(Policy):
        pass

    setattr(Changes, slot, lambda self, *values: scene.change())
    scene = Scene([NetworkError("cut"), CALL], ["fine"], policies=[Changes()])
    assert (await scene.agent.run("q")).text == "fine"
    assert scene.requests() == [BEFORE, BEFORE, AFTER]


async def test_a_change_by_a_key_function_takes_effect_at_the_next_turn():
    scene = Scene([NetworkError("cut"), CALL], ["fine"])

    def key(provider: str) -> str:
        scene.change()
        return "k"

    scene.agent = scene.agent.copy(get_api_key=key)
    assert (await scene.agent.run("q")).text == "fine"
    assert scene.requests() == [BEFORE, BEFORE, AFTER]


async def test_changes_from_another_thread_never_part_a_model_from_its_stream_function():
    def make(provider: str) -> Callable[[], ScriptedModel]:
        def ask(model: ModelSpec, context: Any, options: StreamOptions) -> Any:
            parted.extend([] if model.provider == provider else [(provider, str(model))])
            return ScriptedModel([[ToolCall(str(len(context.messages)), "work")]])(model, context, options)

        return lambda: ask  # type: ignore[return-value]

    parted: list[Any] = []
    catalog.register_provider("first", make("first"))
    catalog.register_provider("second", make("second"))
    agent = Agent("first:m", tools=[work])
    stop = threading.Event()

    def switch() -> None:
        while not stop.is_set():
            agent.model = "second:m"
            agent.model = "first:m"

    class Enough(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            if ctx.turn >= 200:
                agent.abort()

    thread = threading.Thread(target=switch, daemon=True)
    thread.start()
    try:
        await agent.run("q", policies=[Enough()])
    finally:
        stop.set()
        await asyncio.to_thread(thread.join)
    assert parted == []


# Sources of tools


class Shelf:
    """A source of tools that somebody fills."""

    def __init__(self, *tools: Any) -> None:
        self.held = list(tools)
        self.asked: list[str] = []

    def tools(self) -> list[Any]:
        self.asked.append(threading.current_thread().name)
        return list(self.held)


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[spec.name for spec in call.tools] for call in model.calls]


async def test_a_source_is_asked_once_per_turn_off_the_event_loop():
    shelf = Shelf()

    @tool(name="work")
    async def growing() -> None:
        shelf.held.append(other)

    shelf.held.append(growing)
    model = ScriptedModel([CALL, NetworkError("cut"), [ToolCall("2", "other")], "fine"])
    agent = Agent("test:m", stream_fn=model, tools=[shelf], retry=QUICK)
    assert (await agent.run("q")).text == "fine"
    assert offered(model) == [["work"], ["work", "other"], ["work", "other"], ["work", "other"]]
    assert len(shelf.asked) == 3
    assert threading.main_thread().name not in shelf.asked
    assert agent.tools == (shelf,)


async def test_a_tool_named_by_itself_stays_before_one_of_a_source(caplog: pytest.LogCaptureFixture):
    @tool(name="work", description="Work.")
    async def impostor() -> str:
        return "no"

    model = ScriptedModel([CALL, "fine"])
    agent = Agent("test:m", stream_fn=model, tools=[Shelf(impostor), work, Shelf(impostor, other)])
    result = await agent.run("q")
    assert result.messages[2].text == "done"  # type: ignore[union-attr]
    assert offered(model) == [["work", "other"]] * 2
    assert [line.getMessage() for line in caplog.records] == [
        "Shelf: there is another tool named 'work'; rename one"
    ]


async def test_an_output_tool_stays_before_one_of_a_source():
    @tool(name="final_output")
    async def impostor() -> str:
        return "no"

    model = ScriptedModel([[ToolCall("1", "final_output", {"value": 4})]])
    agent = Agent("test:m", stream_fn=model, tools=[Shelf(impostor)])
    assert (await agent.run("q", output=int)).output == 4


async def test_a_source_that_fails_fails_the_run_and_not_the_history():
    class Broken:
        def tools(self) -> list[Any]:
            raise OSError("no such folder")

    agent = Agent("test:m", stream_fn=ScriptedModel([]), tools=[Broken()])
    with pytest.raises(OSError, match="no such folder"):
        await agent.run("q")
    assert [message.role for message in agent.messages] == ["user"]


async def test_a_source_that_never_answers_is_abandoned_at_the_deadline():
    release = threading.Event()

    class Stuck:
        def tools(self) -> list[Any]:
            release.wait(60)
            return []

    agent = Agent("test:m", stream_fn=ScriptedModel([]), tools=[Stuck()])
    try:
        result = await agent.run("q", deadline=0.05)
    finally:
        release.set()
    assert result.stop_reason == "aborted"
    assert not agent.is_running


async def test_a_restored_agent_has_the_tools_of_its_sources():
    model = ScriptedModel([CALL, "fine", CALL, "fine"])
    shelf = Shelf(work)
    agent = Agent("test:m", stream_fn=model, tools=[shelf])
    await agent.run("q")
    again = Agent.restore(agent.checkpoint(), stream_fn=model, tools=[shelf])
    result = await again.run("q")
    assert result.messages[2].text == "done"  # type: ignore[union-attr]


@pytest.mark.parametrize("given", [Shelf, 5])
def test_what_is_no_source_is_refused(given: Any):
    with pytest.raises(Exception, match=r"Shelf|5"):
        Agent("test:m", stream_fn=ScriptedModel([]), tools=[given])
