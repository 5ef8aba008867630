"""What a model is sent (T1, T8, T12): the order of a turn, windows by model, and repair of what hooks break."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.counts import tried
from tests.strategies import paired_histories

from swink import (
    Agent,
    AssistantMessage,
    ContextWindowOverflow,
    CustomMessage,
    ExponentialBackoff,
    InvalidInput,
    ModelSpec,
    NetworkError,
    Policy,
    SlidingWindow,
    StreamOptions,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    tool,
)
from swink.agent.engine.repair import LEFT_OUT, with_pairs, with_prompt
from swink.events import ContextCompacted
from swink.messages.history import History, violations
from swink.testing import ScriptedModel

NO_RETRY = ExponentialBackoff(max_attempts=1)
CALL = [ToolCall("1", "work")]


@tool
async def work() -> str:
    """Work."""
    return "done"


def agent_on(*replies: Any, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(list(replies))
    return Agent("test:m", **{"stream_fn": model, "tools": [work], **settings}), model


def texts(messages: Sequence[Any]) -> list[str]:
    return [message.text or "call" for message in messages]


def talk(turns: int) -> list[Any]:
    return [kind("word " * 50) for _ in range(turns) for kind in (UserMessage, AssistantMessage)]


# The order of a turn (T1)


async def test_a_turn_is_taken_in_order():
    steps: list[str] = []

    async def asynchronous(messages: Any, overflow: bool) -> Any:
        steps.append("async transformer" + " after overflow" * overflow)
        return messages[-1:] if overflow else messages

    def synchronous(messages: Any, overflow: bool) -> Any:
        steps.append("sync transformer" + " after overflow" * overflow)
        return messages

    class Watching(Policy):
        def pre_turn(self, ctx: Any) -> None:
            steps.append(f"pre_turn, {len(ctx.fresh)} fresh")

        def post_turn(self, ctx: Any, turn: Any) -> None:
            steps.append("post_turn")

    def convert(message: Any) -> Any:
        if message.text in ("prompt", "done"):
            steps.append(f"convert {message.text}")
        return message

    def key(provider: str) -> str:
        steps.append(f"key for {provider}")
        return "k"

    def ask(model: ModelSpec, context: Any, options: StreamOptions) -> Any:
        steps.append(f"ask with {options.api_key}")
        return script(model, context, options)

    script = ScriptedModel([ContextWindowOverflow("full"), CALL, NetworkError("cut"), "fine"])
    agent = Agent(
        "test:m",
        stream_fn=ask,
        tools=[work],
        messages=talk(1),
        transform_context=[synchronous, asynchronous],
        policies=[Watching()],
        convert_to_llm=convert,
        get_api_key=key,
        system_prompt=lambda ctx: steps.append("system prompt") or "be brief",
        retry=ExponentialBackoff(max_attempts=2, base_delay=0.001),
    )
    named = {
        "AgentStart",
        "TurnStart",
        "MessageStart",
        "MessageEnd",
        "ContextCompacted",
        "TurnEnd",
        "AgentEnd",
    }
    agent.subscribe(
        lambda event: steps.append(name) if (name := type(event).__name__) in named else None  # type: ignore[arg-type,return-value]
    )
    await agent.run("prompt")
    assert steps == [
        "AgentStart",
        "MessageStart",
        "MessageEnd",
        "system prompt",
        "async transformer",
        "sync transformer",
        "pre_turn, 1 fresh",
        "TurnStart",
        "MessageStart",
        "convert prompt",
        "key for test",
        "ask with k",
        "async transformer after overflow",
        "ContextCompacted",
        "sync transformer after overflow",
        "convert prompt",
        "key for test",
        "ask with k",
        "MessageEnd",
        "MessageStart",
        "MessageEnd",
        "post_turn",
        "TurnEnd",
        "async transformer",
        "sync transformer",
        "pre_turn, 0 fresh",
        "TurnStart",
        "MessageStart",
        "convert prompt",
        "convert done",
        "key for test",
        "ask with k",
        "convert prompt",
        "convert done",
        "key for test",
        "ask with k",
        "MessageEnd",
        "post_turn",
        "TurnEnd",
        "AgentEnd",
    ]


# Windows by model


async def test_the_window_is_sized_for_each_model_that_is_asked():
    small, big = ModelSpec("test", "small", context_window=1_000), ModelSpec("test", "big")
    model = ScriptedModel(["a", "b"])
    agent = Agent(big, stream_fn=model, messages=talk(20))
    await agent.run("q")
    agent.model = small
    await agent.run("q")
    assert len(model.calls[0].messages) == 41
    assert len(model.calls[1].messages) < 20


async def test_a_fallback_with_a_smaller_window_is_sent_less():
    small = ModelSpec("test", "small", context_window=1_000)
    model = ScriptedModel([NetworkError("down"), "fine", "again"])
    agent = Agent(
        ModelSpec("test", "big"),
        stream_fn=model,
        messages=talk(20),
        retry=NO_RETRY,
        fallback_models=[small],
    )
    compacted: list[Any] = []
    agent.subscribe(lambda event: compacted.append(event) if isinstance(event, ContextCompacted) else None)
    assert (await agent.run("q")).text == "fine"
    sent = model.calls[1].messages
    assert len(model.calls[0].messages) == 41
    assert len(sent) < 20
    assert sent[-1].text == "q"
    assert len(compacted) == 1
    await agent.run("again")
    assert len(model.calls[2].messages) == 43, "the window of the first model is not cut"


async def test_a_transformer_of_ones_own_may_be_sized_for_the_model_too():
    class Last:
        def __init__(self, count: int = 100) -> None:
            self.count = count

        def sized_for(self, model: ModelSpec) -> "Last":
            return Last(model.context_window or 100)

        def __call__(self, messages: Any, overflow: bool) -> Any:
            return messages[-self.count :]

    model = ScriptedModel(["fine"])
    spec = ModelSpec("test", "m", context_window=3)
    await Agent(spec, stream_fn=model, messages=talk(20), transform_context=Last()).run("q")
    assert len(model.calls[0].messages) == 3


# Repair


BROKEN: list[tuple[str, Any, list[str]]] = [
    ("an orphan result", lambda messages: messages[-1:], ["q"]),
    (
        "a call without its result",
        lambda messages: [message for message in messages if message.role != "tool_result"],
        ["q", "call", LEFT_OUT],
    ),
    ("the prompt", lambda messages: messages[1:], ["q", "call", "done"]),
    ("everything", lambda messages: [], ["q"]),
    ("the prompt for a summary", lambda messages: [UserMessage("old"), *messages[2:]], ["old", "q"]),
]


@pytest.mark.parametrize(("what", "breaks", "sent"), BROKEN, ids=[what for what, _, _ in BROKEN])
async def test_what_a_transformer_breaks_is_repaired_and_told_once(
    what: str, breaks: Any, sent: list[str], caplog: pytest.LogCaptureFixture
):
    def careless(messages: Any, overflow: bool) -> Any:
        return breaks(messages) if len(messages) > 1 else messages

    agent, model = agent_on(CALL, "fine", transform_context=careless)
    with caplog.at_level(logging.WARNING):
        assert (await agent.run("q")).text == "fine"
    assert texts(model.calls[1].messages) == sent
    assert violations(model.calls[1].messages) == []
    assert texts(agent.messages) == ["q", "call", "done", "fine"], "the history is as it was"
    told = [line.getMessage() for line in caplog.records]
    assert told
    assert len(set(told)) == len(told)
    assert all("careless" in line and "repaired" in line for line in told)


async def test_a_broken_transformer_is_told_once_for_many_turns(caplog: pytest.LogCaptureFixture):
    def careless(messages: Any, overflow: bool) -> Any:
        return messages[1:]

    agent, model = agent_on(*[[ToolCall(str(number), "work")] for number in range(5)], "fine", "ok")
    agent = agent.copy(transform_context=careless)
    await agent.run("q")
    await agent.run("again")
    assert [line.getMessage() for line in caplog.records] == [
        "careless dropped the newest user message; keep it in what it returns; "
        "the context was repaired before it was sent"
    ]
    assert model.calls[0].messages[0].text == "q"


async def test_what_a_conversion_breaks_is_repaired(caplog: pytest.LogCaptureFixture):
    def convert(message: Any) -> Any:
        return None if isinstance(message, AssistantMessage) else message

    agent, model = agent_on(CALL, "fine", convert_to_llm=convert)
    assert (await agent.run("q")).text == "fine"
    assert texts(model.calls[1].messages) == ["q"]
    assert "convert_to_llm parted tool calls from their results" in caplog.text


async def test_a_conversion_that_leaves_nothing_is_an_error_and_nothing_is_sent():
    agent, model = agent_on("unused", convert_to_llm=lambda message: None)
    result = await agent.run("q")
    assert result.stop_reason == "error"
    assert "convert_to_llm" in (result.error or "")
    assert model.calls == []


async def test_custom_messages_alone_are_nothing_to_send():
    agent, model = agent_on("unused")
    result = await agent.run([CustomMessage("note", "x")])
    assert result.stop_reason == "error"
    assert model.calls == []


REWRITTEN: list[Any] = [
    lambda message: replace(message, content=(Text("rewritten"),)),
    lambda message: UserMessage("rewritten"),
]


@pytest.mark.parametrize("rewrite", REWRITTEN)
@pytest.mark.parametrize("also", [False, True])
async def test_a_prompt_that_is_rewritten_is_not_put_back(
    rewrite: Any, also: bool, caplog: pytest.LogCaptureFixture
):
    def change(message: Any) -> Any:
        if message.role == "user":
            return rewrite(message)
        return replace(message, timestamp=0) if also else message

    def rewriting(messages: Any, overflow: bool) -> Any:
        return [change(message) for message in messages]

    agent, model = agent_on(CALL, "fine", transform_context=rewriting, messages=talk(2))
    await agent.run("q")
    assert [message.text for message in model.calls[1].messages if message.role == "user"] == [
        "rewritten"
    ] * 3
    assert caplog.records == []


async def test_a_summary_before_the_prompt_is_sent_as_it_is(caplog: pytest.LogCaptureFixture):
    def summarise(messages: Any, overflow: bool) -> Any:
        return [UserMessage("so far"), *messages[4:]]

    agent, model = agent_on(CALL, "fine", transform_context=summarise, messages=talk(2))
    await agent.run("q")
    assert texts(model.calls[1].messages) == ["so far", "q", "call", "done"]
    assert caplog.records == []


async def test_a_transformer_that_returns_no_messages_says_so():
    def forgetful(messages: Any, overflow: bool) -> Any:
        pass

    agent, _ = agent_on("unused", transform_context=forgetful)
    with pytest.raises(InvalidInput, match="forgetful returned NoneType"):
        await agent.run("q")


async def test_a_window_after_another_transformer_is_repaired_like_any():
    def tail(messages: Any, overflow: bool) -> Any:
        return list(messages[-2:])

    agent, model = agent_on(CALL, "fine", transform_context=[tail, SlidingWindow(10)], messages=talk(3))
    await agent.run("q")
    assert texts(model.calls[1].messages) == ["q", "call", "done"]


async def test_a_context_nobody_changed_is_not_looked_at(monkeypatch: pytest.MonkeyPatch):
    def refuse(*values: Any) -> Any:
        raise AssertionError("looked at")

    monkeypatch.setattr("swink.agent.transform.with_pairs", refuse)
    monkeypatch.setattr("swink.agent.transform.with_prompt", refuse)
    agent, model = agent_on(CALL, "fine", messages=talk(100), convert_to_llm=lambda message: message)
    agent.model = ModelSpec("test", "small", context_window=1_000)
    assert (await agent.run("q")).text == "fine"
    assert len(model.calls[1].messages) < 30


@given(paired_histories(), st.data())
@tried(150, 1_000)
def test_whatever_a_transformer_leaves_out_the_rest_is_sound_and_has_the_prompt(messages: Any, data: Any):
    history = History(messages)
    before = list(history.items)
    left = [message for message in before if data.draw(st.booleans())]
    sent = with_prompt(with_pairs(left, "t", []), history.snapshot(), "t", [])
    assert violations(sent) == []
    asked = [message for message in before if isinstance(message, UserMessage)][-1:]
    assert all(any(message is one for message in sent) for one in asked)
    assert history.items == before
    if violations(left) == [] and all(any(message is one for message in left) for one in asked):
        assert sent is left
    results = [message for message in sent if isinstance(message, ToolResultMessage)]
    assert all(any(one is message for message in left) or one.text == LEFT_OUT for one in results)


def test_a_prompt_is_put_back_before_the_call_whose_results_are_left():
    call = AssistantMessage([ToolCall("1", "work"), ToolCall("2", "work")])
    results = [ToolResultMessage("1", "work", "one"), ToolResultMessage("2", "work", "two")]
    history = History([UserMessage("q"), call, *results])
    copied = replace(call)  # the hook returned another reply, so what is known of the rest are its results
    sent = with_prompt([copied, *results], history.snapshot(), "t", [])
    assert [type(message) for message in sent] == [
        UserMessage,
        AssistantMessage,
        ToolResultMessage,
        ToolResultMessage,
    ]


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda prompt: UserMessage("other words", timestamp=prompt.timestamp),
        lambda prompt: UserMessage(prompt.content, timestamp=prompt.timestamp),
    ],
)
def test_a_rewritten_prompt_is_known_by_its_time_or_its_words(rewrite: Any):
    history = History([UserMessage("q"), AssistantMessage("a"), UserMessage("newest"), AssistantMessage("b")])
    sent = [rewrite(history.items[2]), AssistantMessage("added"), history.items[3]]
    assert with_prompt(sent, history.snapshot(), "t", []) is sent
