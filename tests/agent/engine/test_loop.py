"""The loop: turn order, events, retry, fallback, overflow, steering, policies; rule by rule."""

import asyncio
import re
from typing import Any

import pytest

from swink import (
    Agent,
    AgentContext,
    AgentLoopConfig,
    AssistantMessage,
    AuthError,
    ContextWindowOverflow,
    CustomMessage,
    ExponentialBackoff,
    Inject,
    InvalidContinue,
    ModelSpec,
    ModelThrottled,
    NetworkError,
    NoMessages,
    Policy,
    Price,
    Replace,
    Stop,
    StreamOptions,
    Text,
    Thinking,
    Timeout,
    ToolCall,
    ToolContext,
    ToolResultMessage,
    Transfer,
    Usage,
    UserMessage,
    agent_loop,
    agent_loop_continue,
    tool,
)
from swink.agent.policy import NudgeReasoningOnly
from swink.events import (
    AgentEnd,
    ContextCompacted,
    CustomEvent,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    ModelFallback,
    RetryScheduled,
    StateChanged,
    TurnEnd,
)
from swink.stream import (
    Done,
    Error,
    PromptProgress,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from swink.testing import EventCollector, Pause, ScriptedModel, history_problems

FAST = ExponentialBackoff(base_delay=0.001, max_delay=0.002)


@tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


def make(script: list[Any], **options: Any) -> tuple[Agent, ScriptedModel, EventCollector]:
    model = ScriptedModel(script)
    agent = Agent("test:m", stream_fn=model, **{"retry": FAST, **options})
    collector = EventCollector()
    agent.subscribe(collector)
    return agent, model, collector


# Turn order


async def test_events_of_a_single_turn_come_in_lifecycle_order():
    agent, _, seen = make([["Hel", "lo"]])
    await agent.run("hi")
    assert seen.names == [
        "AgentStart",
        "MessageStart",
        "MessageEnd",
        "TurnStart",
        "MessageStart",
        "MessageUpdate",
        "MessageUpdate",
        "MessageEnd",
        "TurnEnd",
        "AgentEnd",
    ]
    seen.check()


async def test_events_of_a_tool_turn_come_in_lifecycle_order():
    agent, _, seen = make([[ToolCall("1", "echo", {"text": "x"})], "done"], tools=[echo])
    await agent.run("hi")
    assert seen.names[3:14] == [
        "TurnStart",
        "MessageStart",
        "MessageUpdate",
        "MessageUpdate",
        "MessageEnd",
        "ToolExecutionStart",
        "ToolExecutionEnd",
        "MessageStart",
        "MessageEnd",
        "TurnEnd",
        "TurnStart",
    ]
    assert [event.delta for event in seen.of(MessageUpdate)][:2] == [
        ToolCallStart(0, "1", "echo"),
        ToolCallDelta(0, '{"text":"x"}'),
    ]
    assert [event.reason for event in seen.of(TurnEnd)] == ["tools_executed", "complete"]


async def test_how_much_of_the_prompt_was_read_is_told_before_the_reply():
    agent, _, seen = make([[PromptProgress(16, 20), PromptProgress(20, 20), "Hello"]])
    assert (await agent.run("hi")).text == "Hello"
    assert seen.names[4:8] == ["MessageStart", "CustomEvent", "CustomEvent", "MessageUpdate"]
    assert seen.of(CustomEvent)[0] == CustomEvent("prompt_progress", {"done": 16, "total": 20})
    seen.check()


async def test_the_context_is_transformed_before_it_is_converted_on_every_turn():
    order: list[str] = []

    async def later(messages: Any, overflow: bool) -> Any:
        order.append("async")
        return messages

    def transform(messages: Any, overflow: bool) -> Any:
        order.append("sync")
        return messages

    def convert(message: Any) -> Any:
        if order[-1] != "convert":
            order.append("convert")
        return message

    agent, _, _ = make(
        [[ToolCall("1", "echo", {"text": "x"})], "done"],
        tools=[echo],
        transform_context=[transform, later],
        convert_to_llm=convert,
    )
    await agent.run("hi")
    assert order == ["async", "sync", "convert"] * 2


async def test_the_key_is_asked_for_on_every_turn():
    keys = iter(["one", "two"])
    agent, model, _ = make(
        [[ToolCall("1", "echo", {"text": "x"})], "done"],
        tools=[echo],
        get_api_key=lambda provider: next(keys),
    )
    await agent.run("hi")
    assert [options.api_key for options in model.options] == ["one", "two"]


async def test_a_snapshot_never_changes_and_keeps_the_same_objects():
    agent, model, _ = make([[ToolCall("1", "echo", {"text": "x"})], "done"], tools=[echo])
    await agent.run("hi")
    first, second = model.calls[0].messages, model.calls[1].messages
    assert len(first) == 1
    assert len(second) == 3
    assert first[0] is second[0]


async def test_text_before_a_tool_call_is_not_the_answer():
    for text in ("thinking aloud", " ", "\n"):
        agent, _, _ = make([[text, ToolCall("1", "echo", {"text": "x"})], "the answer"], tools=[echo])
        assert (await agent.run("hi")).text == "the answer"


async def test_a_call_is_run_even_if_the_provider_said_stop():
    script = [
        [
            Start(),
            ToolCallStart(0, "1", "echo"),
            ToolCallDelta(0, '{"text":"x"}'),
            ToolCallEnd(0),
            Done("stop"),
        ],
        "end",
    ]
    agent, _, _ = make(script, tools=[echo])
    assert (await agent.run("hi")).text == "end"
    assert agent.messages[2].text == "x"


async def test_a_tool_that_the_model_left_without_arguments_gets_an_empty_object():
    seen: list[dict[str, Any]] = []

    @tool
    async def bare() -> str:
        seen.append({})
        return "ran"

    agent, _, _ = make(
        [[Start(), ToolCallStart(0, "1", "bare"), ToolCallEnd(0), Done("tool_use")], "end"], tools=[bare]
    )
    await agent.run("hi")
    assert seen == [{}]


# The stream


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([Start(), TextDelta(0, "x"), Done()], "text_delta for block 0"),
        ([Start(), Start(), Done()], "second start"),
        ([Start(), TextStart(1), Done()], "opens block 1, expected 0"),
        ([Start(), TextStart(0), Done()], "still open"),
        ([Start(), TextStart(0), TextEnd(0), Done(), TextDelta(0, "x")], "after done"),
        ([Start(), Done("error")], r"done\(error\)"),
    ],
)
async def test_a_protocol_violation_is_an_error_that_names_it_and_is_not_retried(
    events: list[Any], words: str
):
    agent, model, seen = make([events, "unused"])
    result = await agent.run("hi")
    assert result.stop_reason == "error"
    assert result.error_kind == "stream"
    assert re.search(words, result.error or "")
    assert len(model.calls) == 1
    seen.check()


async def test_a_stream_that_ends_without_a_terminal_is_retried_as_a_network_error():
    agent, model, _ = make([[Start(), TextStart(0), TextDelta(0, "half")], "whole"])
    result = await agent.run("hi")
    assert result.text == "whole"
    assert len(model.calls) == 2


async def test_deltas_are_live_and_those_of_a_failed_attempt_are_discarded_in_words():
    agent, _, seen = make([["wrong ", NetworkError("cut")], ["right"]])
    result = await agent.run("hi")
    kinds = [type(event) for event in seen.events]
    assert kinds.index(MessageDiscarded) < kinds.index(RetryScheduled)
    assert result.text == "right"
    assert agent.messages[-1].text == "right"
    assert sum(event.message.role == "assistant" for event in seen.of(MessageEnd)) == 1
    assert seen.names.count("TurnStart") == 1
    seen.check()


async def test_a_failure_without_content_discards_nothing():
    agent, _, seen = make([NetworkError("refused"), "ok"])
    await agent.run("hi")
    assert not seen.of(MessageDiscarded)


async def test_partial_text_and_usage_of_a_failed_turn_are_kept_and_counted():
    agent, _, _ = make(
        [[Start(), TextStart(0), TextDelta(0, "par"), Error("bad key", "auth", usage=Usage(10, 5))]]
    )
    result = await agent.run("hi")
    last = agent.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.text, last.stop_reason, last.error_kind, last.usage.total) == ("par", "error", "auth", 15)
    assert result.usage.total == 15


async def test_usage_of_discarded_attempts_is_counted_too():
    agent, _, _ = make(
        [[Start(), Error("cut", "network", usage=Usage(10, 5))], [Start(), Done(usage=Usage(1, 1))]]
    )
    assert (await agent.run("hi")).usage.total == 17


async def test_a_stalled_stream_is_given_up_and_retried():
    agent, _, _ = make(
        [["par", Pause(600)], "whole"], options=StreamOptions(timeout=Timeout(idle=0.05, first=0.05))
    )
    result = await agent.run("hi")
    assert result.text == "whole"


async def test_a_stream_that_never_gives_content_is_given_up_after_its_own_limit():
    agent, _, _ = make(
        [[Pause(5)], [Pause(5)], [Pause(5)]], options=StreamOptions(timeout=Timeout(idle=5, first=0.02))
    )
    result = await agent.run("hi")
    assert result.error_kind == "network"
    assert "no content for 0.02 s" in (result.error or "")


async def test_a_stream_function_that_does_not_end_after_its_terminal_is_ended():
    async def lingering(model: Any, context: Any, options: Any) -> Any:
        yield Start()
        yield Done()
        await asyncio.sleep(10)

    agent = Agent("test:m", stream_fn=lingering, options=StreamOptions(timeout=0.1))
    assert (await agent.run("hi")).stop_reason == "stop"


async def test_a_stream_function_that_raises_anything_is_a_failed_reply():
    class Odd(Exception):
        pass

    agent, _, _ = make([Odd("key sk-proj-abcdefghijklmnopqrst")])
    result = await agent.run("hi")
    assert result.error_kind == "stream"
    assert "Odd" in (result.error or "")
    assert "abcdefghij" not in (result.error or "")


async def test_a_third_party_error_is_classified_by_its_wording():
    agent, model, _ = make([ConnectionResetError("connection reset by peer"), "ok"])
    assert (await agent.run("hi")).text == "ok"
    agent, model, _ = make(
        [ValueError("This model's maximum context length is 10 tokens")], transform_context=()
    )
    assert (await agent.run("hi")).error_kind == "context_window_exceeded"


# Retry and fallback


async def test_only_throttled_and_network_are_retried_by_default():
    for error, calls in ((ModelThrottled("slow"), 3), (NetworkError("net"), 3), (AuthError("key"), 1)):
        agent, model, _ = make([error] * 5)
        assert (await agent.run("hi")).error_kind == error.kind
        assert len(model.calls) == calls


async def test_retry_after_is_waited_for_up_to_the_cap():
    agent, _, seen = make(
        [ModelThrottled("slow", retry_after=0.05), "ok"],
        retry=ExponentialBackoff(base_delay=0, max_delay=0.06),
    )
    earlier: list[None] = []
    asyncio.get_running_loop().call_later(0.04, earlier.append, None)
    await agent.run("hi")
    assert earlier
    agent, _, seen = make([ModelThrottled("slow", retry_after=3600), "ok"])
    await agent.run("hi")
    assert seen.of(RetryScheduled)[0].delay == FAST.max_delay


async def test_back_off_is_cut_short_by_abort():
    agent, _, seen = make([NetworkError("net"), "never"], retry=ExponentialBackoff(base_delay=30))
    task = asyncio.create_task(agent.run("hi"))
    while not seen.of(RetryScheduled):
        await asyncio.sleep(0)
    agent.abort()
    assert (await asyncio.wait_for(task, 20)).stop_reason == "aborted"


async def test_fallback_models_are_tried_in_order_each_with_its_own_key_and_budget():
    keys: list[str] = []
    agent, model, seen = make(
        [NetworkError("a")] * 3 + [NetworkError("b")] * 3 + ["from c"],
        fallback_models=["other:b", ModelSpec("third", "c")],
        get_api_key=lambda provider: keys.append(provider) or provider,
    )
    result = await agent.run("hi")
    assert result.text == "from c"
    assert [str(spec) for spec in model.models] == ["test:m"] * 3 + ["other:b"] * 3 + ["third:c"]
    assert keys == ["test"] * 3 + ["other"] * 3 + ["third"]
    assert [(event.from_model, event.to_model) for event in seen.of(ModelFallback)] == [
        ("test:m", "other:b"),
        ("other:b", "third:c"),
    ]
    assert agent.messages[-1].model == "c"
    seen.check()


async def test_an_error_that_is_not_retryable_does_not_fall_back():
    agent, model, _ = make([AuthError("key")], fallback_models=["other:b"])
    assert (await agent.run("hi")).error_kind == "auth"
    assert len(model.calls) == 1


# Overflow and max tokens


OLD = [
    UserMessage("long " * 200),
    AssistantMessage("long " * 200),
    UserMessage("long " * 200),
    AssistantMessage("ok"),
]


async def test_overflow_is_recovered_once_per_turn_outside_the_retry_budget():
    flags: list[bool] = []

    def prune(messages: Any, overflow: bool) -> Any:
        flags.append(overflow)
        return messages[-1:] if overflow else messages

    agent, model, seen = make(
        [NetworkError("x"), ContextWindowOverflow("big"), NetworkError("y"), "ok"],
        messages=OLD,
        transform_context=prune,
    )
    result = await agent.run("hi")
    assert result.text == "ok"
    assert flags == [False, True]
    assert len(model.calls[-1].messages) == 1
    assert len(seen.of(ContextCompacted)) == 1
    assert len(agent.messages) == len(OLD) + 2


@pytest.mark.parametrize("transform", [(), lambda messages, overflow: messages])
async def test_overflow_that_nothing_can_be_dropped_for_surfaces_with_the_history_intact(transform: Any):
    agent, model, seen = make([ContextWindowOverflow("big")], messages=OLD, transform_context=transform)
    result = await agent.run("hi")
    assert (result.stop_reason, result.error_kind) == ("error", "context_window_exceeded")
    assert list(agent.messages[:5]) == [*OLD, UserMessage("hi")]
    assert len(model.calls) == 1
    seen.check()


async def test_a_second_overflow_surfaces_and_the_next_run_starts_with_overflow_set():
    flags: list[bool] = []

    def prune(messages: Any, overflow: bool) -> Any:
        flags.append(overflow)
        return messages[-1:] if overflow else messages

    agent, _, _ = make(
        [ContextWindowOverflow("big"), ContextWindowOverflow("still"), "ok"],
        messages=OLD,
        transform_context=prune,
    )
    assert (await agent.run("hi")).error_kind == "context_window_exceeded"
    assert (await agent.run()).text == "ok"
    assert flags == [False, True, True]


async def test_the_default_window_recovers_from_an_overflow():
    long = [
        UserMessage("word " * 2000) if n % 2 == 0 else AssistantMessage("word " * 2000) for n in range(100)
    ]
    agent, model, _ = make([ContextWindowOverflow("big"), "ok"], messages=long)
    assert (await agent.run("hi")).text == "ok"
    assert len(model.calls[1].messages) < len(model.calls[0].messages)


async def test_a_call_cut_off_by_max_tokens_is_not_run_and_complete_ones_are():
    script = [
        [
            Start(),
            ToolCallStart(0, "1", "echo"),
            ToolCallDelta(0, '{"text":"x"}'),
            ToolCallEnd(0),
            ToolCallStart(1, "2", "echo"),
            ToolCallDelta(1, '{"text":"y'),
            Done("length"),
        ],
        "end",
    ]
    agent, model, _ = make(script, tools=[echo])
    await agent.run("hi")
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert results[0].text == "x"
    assert results[1].text == "error: tool call was incomplete due to max tokens reached"
    assert results[1].is_error
    reply = agent.messages[1]
    assert isinstance(reply, AssistantMessage)
    assert reply.tool_calls[1].arguments == {}
    assert history_problems(agent.messages) == []


async def test_malformed_arguments_are_shown_to_the_model_and_the_loop_goes_on():
    for bad in ('{"text": }', "[1]", '"x"'):
        agent, _, _ = make([[ToolCall("1", "echo", {}, bad)], "repaired"], tools=[echo])
        assert (await agent.run("hi")).text == "repaired"
        assert bad in agent.messages[2].text


# Reasoning only, transfer, ends


async def test_a_reply_of_thinking_alone_ends_the_turn_as_reasoning_only():
    agent, _, seen = make([Thinking("hm")])
    await agent.run("hi")
    assert seen.of(TurnEnd)[0].reason == "reasoning_only"


async def test_a_reasoning_only_reply_can_be_nudged_once():
    agent, model, _ = make([Thinking("hm"), Thinking("hm again")], policies=[NudgeReasoningOnly("Answer!")])
    await agent.run("hi")
    assert len(model.calls) == 2
    assert model.calls[1].messages[-1].text == "Answer!"


async def test_a_transfer_ends_the_run_after_the_post_turn_policies():
    saw: list[str] = []

    class Watch(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> None:
            saw.append(turn.reason)

    @tool
    async def hand_over() -> Transfer:
        return Transfer("billing")

    agent, _, seen = make([[ToolCall("1", "hand_over")]], tools=[hand_over], policies=[Watch()])
    agent.follow_up("not yet")
    result = await agent.run("hi")
    assert (result.stop_reason, result.reason, saw) == ("transfer", "billing", ["transfer"])
    assert agent.has_pending
    seen.check()


async def test_after_an_error_neither_follow_ups_nor_steering_are_touched():
    for script in ([AuthError("key")], [["par", Pause(1)]]):
        agent, _, _ = make(script)
        agent.follow_up("later")
        await agent.run("hi", deadline=0.05)
        assert agent.has_pending


# Steering and follow-up


async def test_steering_interrupts_the_rest_of_the_batch_and_is_heard_next_turn():
    @tool
    async def first() -> str:
        agent.steer("change of plan")
        return "one"

    @tool
    async def slow() -> str:
        await asyncio.sleep(600)
        return "never"

    agent, model, seen = make(
        [[ToolCall("1", "first"), ToolCall("2", "slow"), ToolCall("3", "slow")], "heard"], tools=[first, slow]
    )
    await asyncio.wait_for(agent.run("hi"), 20)
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert [result.text for result in results] == ["one"] + [
        "tool call cancelled: user requested steering interrupt"
    ] * 2
    assert seen.of(TurnEnd)[0].reason == "steering_interrupt"
    assert model.calls[1].messages[-1].text == "change of plan"
    seen.check()


async def test_steering_after_a_text_only_turn_starts_another():
    agent, model, _ = make(["one", "two"])
    agent.subscribe(
        lambda event: (
            agent.steer("wait") if isinstance(event, MessageUpdate) and len(model.calls) == 1 else None
        )
    )
    await agent.run("hi")
    assert [message.text for message in agent.messages] == ["hi", "one", "wait", "two"]


async def test_steering_while_idle_joins_the_next_run():
    agent, model, _ = make(["ok"])
    agent.steer("by the way")
    await agent.run("hi")
    assert [message.text for message in model.calls[0].messages] == ["hi", "by the way"]


async def test_follow_ups_continue_after_the_agent_would_stop_one_at_a_time():
    agent, model, _ = make(["one", "two", "three"])
    agent.follow_up("second")
    agent.follow_up("third")
    await agent.run("first")
    assert [message.text for message in agent.messages] == ["first", "one", "second", "two", "third", "three"]


async def test_queues_can_deliver_all_at_once():
    agent, model, _ = make(["one", "two"], follow_up_mode="all")
    agent.follow_up("b")
    agent.follow_up("c")
    await agent.run("a")
    assert [message.text for message in agent.messages] == ["a", "one", "b", "c", "two"]


async def test_a_steering_message_has_exactly_one_receipt_when_it_enters_the_context():
    agent, _, seen = make(["one", "two"])
    agent.follow_up("later")
    await agent.run("hi")
    receipts = [event for event in seen.of(MessageEnd) if event.message.text == "later"]
    assert len(receipts) == 1


async def test_closure_providers_lose_nothing_when_a_tool_end_polls_them():
    waiting = [UserMessage("closure")]

    def drain() -> list[Any]:
        taken, waiting[:] = list(waiting), []
        return taken

    @tool
    async def slow() -> str:
        await asyncio.sleep(5)
        return "never"

    @tool
    async def quick() -> str:
        waiting.append(UserMessage("during tools"))
        return "ok"

    model = ScriptedModel([[ToolCall("1", "quick"), ToolCall("2", "slow")], "end"])
    config = AgentLoopConfig(model=ModelSpec("test", "m"), stream_fn=model, get_steering=drain)
    seen = EventCollector()
    async with agent_loop("hi", AgentContext(tools=[quick, slow]), config) as run:
        async for event in run:
            seen(event)
    seen.check()
    texts = [message.text for message in seen.of(AgentEnd)[0].messages if isinstance(message, UserMessage)]
    assert texts == ["hi", "closure", "during tools"]


# The functional face


async def test_agent_loop_leaves_the_callers_context_alone():
    messages = [UserMessage("old"), AssistantMessage("reply")]
    context = AgentContext("be brief", messages, [echo])
    model = ScriptedModel(["ok"])
    async with agent_loop(
        "hi", context, AgentLoopConfig(model=ModelSpec("test", "m"), stream_fn=model)
    ) as run:
        result = await run.result()
    assert result.text == "ok"
    assert messages == [UserMessage("old"), AssistantMessage("reply")]
    assert context.messages is messages
    assert model.calls[0].system_prompt == "be brief"


async def test_agent_loop_continue_refuses_what_it_cannot_answer():
    config = AgentLoopConfig(model=ModelSpec("test", "m"), stream_fn=ScriptedModel([]))
    with pytest.raises(NoMessages):
        agent_loop_continue(AgentContext(), config)
    with pytest.raises(InvalidContinue):
        agent_loop_continue(AgentContext(messages=[UserMessage("q"), AssistantMessage("a")]), config)


async def test_agent_loop_continue_goes_on_after_tool_results():
    history = [
        UserMessage("q"),
        AssistantMessage([ToolCall("1", "echo", {"text": "x"})]),
        ToolResultMessage("1", "echo", "x"),
    ]
    config = AgentLoopConfig(model=ModelSpec("test", "m"), stream_fn=ScriptedModel(["done"]))
    async with agent_loop_continue(AgentContext(messages=history, tools=[echo]), config) as run:
        assert (await run.result()).text == "done"


# What the model gets to see


async def test_custom_messages_are_kept_and_shown_but_not_sent():
    agent, model, seen = make(["ok"], messages=[CustomMessage("note", {"a": 1})])
    await agent.run([CustomMessage("note", {"b": 2}), "hi"])
    assert [message.role for message in model.calls[0].messages] == ["user"]
    assert [message.role for message in agent.messages] == ["custom", "custom", "user", "assistant"]


async def test_a_failed_reply_at_the_end_is_not_sent_as_a_prefill():
    agent, model, _ = make([["par", AuthError("key")], "ok"])
    await agent.run("hi")
    await agent.run()
    assert [message.role for message in model.calls[1].messages] == ["user"]
    assert [message.stop_reason for message in agent.messages if isinstance(message, AssistantMessage)] == [
        "error",
        "stop",
    ]


# Cost


async def test_cost_is_priced_before_the_message_ends():
    model = ModelSpec("test", "m", price=Price(input=3, output=15, cache_read=0.3))
    agent = Agent(
        model, stream_fn=ScriptedModel([[Start(), Done(usage=Usage(1_000_000, 1_000_000, 1_000_000))]])
    )
    seen = EventCollector()
    agent.subscribe(seen)
    result = await agent.run("hi")
    message = seen.of(MessageEnd)[-1].message
    assert isinstance(message, AssistantMessage)
    assert message.cost is not None
    assert message.cost.total == pytest.approx(18.3)
    assert result.cost is not None
    assert result.cost.total == pytest.approx(18.3)


async def test_the_cost_of_an_unknown_model_is_unknown_and_not_zero():
    agent, _, _ = make(["ok"])
    result = await agent.run("hi")
    assert result.cost is None
    assert agent.messages[-1].cost is None


async def test_the_bundled_price_is_used_for_a_known_model():
    agent = Agent(
        "anthropic:claude-sonnet-4-6", stream_fn=ScriptedModel([[Start(), Done(usage=Usage(1_000_000))]])
    )
    result = await agent.run("hi")
    assert result.cost is not None
    assert result.cost.total == pytest.approx(3.0)


# Policies in the loop


async def test_pre_turn_stop_ends_the_run_before_the_turn():
    class Halt(Policy):
        def pre_turn(self, ctx: Any) -> Any:
            return Stop("no budget")

    agent, model, seen = make(["never"], policies=[Halt()])
    agent.follow_up("later")
    result = await agent.run("hi")
    assert result.reason == "no budget"
    assert seen.of(AgentEnd)[0].reason == "no budget"
    assert not model.calls
    assert "TurnStart" not in seen.names
    assert agent.has_pending


async def test_post_turn_sees_the_committed_history_and_may_replace_the_reply():
    class Redact(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            assert ctx.messages[-1] is turn.message
            return Replace(AssistantMessage("clean"))

    agent, _, seen = make(["dirty"], policies=[Redact()])
    result = await agent.run("hi")
    assert agent.messages[-1].text == "clean"
    assert result.text == "clean"
    assert seen.of(TurnEnd)[0].message.text == "clean"


async def test_a_replacement_that_changes_the_tool_calls_is_refused():
    class Meddle(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            return Replace(AssistantMessage([Text("text only")])) if turn.message.tool_calls else None

    agent, _, _ = make([[ToolCall("1", "echo", {"text": "x"})], "end"], tools=[echo], policies=[Meddle()])
    await agent.run("hi")
    assert history_problems(agent.messages) == []
    assert agent.messages[1].tool_calls


async def test_pre_commit_changes_what_is_stored_and_sent_on_tool_turns_too():
    class Mask(Policy):
        def pre_commit(self, message: Any) -> Any:
            if isinstance(message, UserMessage):
                return Replace(UserMessage(message.text.replace("secret", "***")))
            if isinstance(message, ToolResultMessage):
                return Replace(ToolResultMessage(message.tool_call_id, message.tool_name, "***"))
            return None

    agent, model, _ = make([[ToolCall("1", "echo", {"text": "x"})], "end"], tools=[echo], policies=[Mask()])
    await agent.run("my secret")
    assert [message.text for message in agent.messages[:3]] == ["my ***", "", "***"]
    assert model.calls[0].messages[0].text == "my ***"


async def test_post_loop_inject_starts_another_turn():
    class Once(Policy):
        def post_loop(self, ctx: Any) -> Any:
            return Inject("one more") if ctx.turn == 1 else None

    agent, model, _ = make(["a", "b"], policies=[Once()])
    await agent.run("hi")
    assert [message.text for message in agent.messages] == ["hi", "a", "one more", "b"]


async def test_a_policy_that_raises_is_ignored_unless_it_guards(caplog: pytest.LogCaptureFixture):
    class Broken(Policy):
        def pre_turn(self, ctx: Any) -> Any:
            raise ValueError("oops")

    class Guard(Broken):
        fail_closed = True

    agent, _, _ = make(["ok"], policies=[Broken()])
    assert (await agent.run("hi")).text == "ok"
    assert "Broken failed in pre_turn" in caplog.text
    agent, model, _ = make(["never"], policies=[Guard()])
    assert "Guard failed" in ((await agent.run("hi")).reason or "")
    assert not model.calls


async def test_a_policy_gets_values_and_cannot_reach_live_state():
    class Grab(Policy):
        def pre_turn(self, ctx: Any) -> Any:
            ctx.state["mine"] = True

    agent, _, _ = make(["ok"], policies=[Grab()])
    await agent.run("hi")
    assert agent.state == {}


# State


async def test_changes_of_the_session_state_come_as_one_delta_per_turn():
    @tool
    async def write(ctx: ToolContext) -> str:
        ctx.state["a"] = 1
        ctx.state["b"] = {"deep": [1]}
        ctx.state.pop("old", None)
        return "ok"

    agent, _, seen = make([[ToolCall("1", "write")], "end"], tools=[write], state={"old": 0})
    await agent.run("hi")
    assert [(event.delta, event.removed) for event in seen.of(StateChanged)] == [
        ({"a": 1, "b": {"deep": [1]}}, ("old",))
    ]
    assert agent.state == {"a": 1, "b": {"deep": [1]}}


async def test_state_that_is_no_json_is_kept_from_policies_and_files_but_ends_nothing(
    caplog: pytest.LogCaptureFixture,
):
    class Look(Policy):
        def pre_turn(self, ctx: Any) -> None:
            states.append(dict(ctx.state))

    states: list[Any] = []
    agent, _, _ = make(["ok"], policies=[Look()], state={"fine": 1})
    agent.state["odd"] = object()
    assert (await agent.run("hi")).text == "ok"
    assert states == [{"fine": 1}]
    assert "not JSON-able" in caplog.text


async def test_the_result_says_how_the_last_reply_stopped():
    agent, _, seen = make([["half", Done("length")]])
    result = await agent.run("hi")
    assert result.stop_reason == seen.of(AgentEnd)[0].stop_reason == "length"
