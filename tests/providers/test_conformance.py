"""The conformance kit: every adapter passes it, and stream functions that are broken on purpose do not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from adapters import EVERY, KEY, AdapterCase
from faults import Connection, FaultServer, Talk, answering

from swink.errors import AuthError
from swink.messages import ModelSpec, Usage
from swink.stream import (
    AssistantMessageEvent,
    Done,
    Error,
    LlmContext,
    Start,
    StreamOptions,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from swink.testing import TEXT_PROMPT, TOOL_PROMPT, check_stream_fn, stream_problems

# --- every adapter -------------------------------------------------------------------------------------------------------


def prompted(adapter: AdapterCase) -> Talk:
    """A provider that calls the tool when it is asked to, and says hello otherwise."""

    async def talk(connection: Connection) -> None:
        body = adapter.calls if TOOL_PROMPT.encode() in connection.request else adapter.text
        await connection.head(200, adapter.media_type)
        for event in body:
            await connection.chunk(event)
        await connection.end()

    return talk


@pytest.mark.parametrize("adapter", EVERY.values(), ids=EVERY)
async def test_every_adapter_keeps_the_contract(adapter: AdapterCase):
    refusal = answering(401, f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode())
    async with FaultServer(prompted(adapter)) as server, FaultServer(refusal) as refusing:
        fn, failing = adapter.make(server.url, KEY), adapter.make(refusing.url, KEY)
        await check_stream_fn(fn, model=adapter.model, failing=failing, secret=KEY, seconds=10)
        await fn.aclose()
        await failing.aclose()
        await server.all_closed()


# --- broken on purpose ---------------------------------------------------------------------------------------------------

HELLO = [Start(), TextStart(0), TextDelta(0, "Hello"), TextEnd(0), Done("stop", Usage(1, 1))]
CALL = [
    Start(),
    ToolCallStart(0, "c1", "weather"),
    ToolCallDelta(0, '{"city": '),
    ToolCallDelta(0, '"Oslo"}'),
    ToolCallEnd(0),
    Done("tool_use"),
]


def replaying(
    text: list[Any] = HELLO, call: list[Any] = CALL
) -> Callable[..., AsyncIterator[AssistantMessageEvent]]:
    """A stream function without a provider: these events for the one prompt, those for the other."""

    async def fn(
        model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]:
        for event in call if context.messages[-1].text == TOOL_PROMPT else text:
            await asyncio.sleep(0)
            if isinstance(event, BaseException):
                raise event
            yield event

    return fn


async def problems_of(fn: Any, **keywords: Any) -> str:
    """What the kit says about a stream function."""
    try:
        await check_stream_fn(fn, **{"seconds": 1.0, **keywords})
    except AssertionError as error:
        return str(error)
    return ""


async def test_a_stream_function_of_ten_lines_passes():
    assert await problems_of(replaying()) == ""
    assert await problems_of(replaying(), failing=replaying([Start(), Error("no", "network")])) == ""
    assert await problems_of(replaying(), failing=replaying([AuthError("no key")]), model="mine:m") == ""


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([], "ends without done or error"),
        (HELLO[1:], "text_start before start"),
        ([Start(), *HELLO], "a second start"),
        (HELLO[:-1], "ends without done or error"),
        ([*HELLO, TextDelta(0, "more")], "text_delta after done"),
        ([*HELLO, Done()], "done after done"),
        ([Start(), TextDelta(0, "x"), Done()], "which is not open"),
        ([Start(), TextStart(1), Done()], "opens block 1, expected 0"),
        ([Start(), TextStart(0), ThinkingDelta(0, "x"), TextEnd(0), Done()], "which is not open for it"),
        ([Start(), ThinkingStart(0), ThinkingDelta(0, "x"), Done()], "still open"),
        ([Start(), TextStart(0), TextDelta(0, None), TextEnd(0), Done()], "does not survive JSON"),
        ([Start(), TextStart(0), TextDelta(0, b"x"), TextEnd(0), Done()], "does not survive JSON"),
        ([Start(), "text", Done()], "does not survive JSON"),
        ([*HELLO[:-1], Done("error")], "done(error)"),
        ([*HELLO[:-1], Done("finished")], "does not survive JSON"),
        ([*HELLO[:-1], Done("tool_use")], "done(tool_use) without a tool call"),
        ([*HELLO[:-1], Done("stop", Usage(-1, 1))], "usage counts below zero"),
        ([Start(), Done()], "the reply has no text"),
        ([Start(), Error("")], "an error without a message"),
        ([Start(), Error("it broke", "network")], "it fails: it broke (network)"),
        ([Start(), ValueError("oops")], "it raises ValueError: oops"),
        ([asyncio.CancelledError()], "it cancels itself"),
    ],
)
async def test_a_broken_reply_is_named(events: list[Any], says: str):
    assert says in await problems_of(replaying(events), tools=False, cancellations=0)


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (HELLO, "the reply calls no tool"),
        ([*CALL[:-1], Done("stop")], "it should be tool_use"),
        (
            [Start(), ToolCallStart(0, "", "weather"), ToolCallEnd(0), Done("tool_use")],
            "without an id or a name",
        ),
        ([Start(), ToolCallStart(0, "c", "shot"), ToolCallEnd(0), Done("tool_use")], "the call is of 'shot'"),
        (
            [*CALL[:2], ToolCallDelta(0, '{"city": '), *CALL[4:]],
            "do not add up to a JSON object: '{\"city\": '",
        ),
        ([*CALL[:2], ToolCallDelta(0, "{}"), *CALL[4:]], "not those of the schema"),
        (
            [*CALL[:5], ToolCallStart(1, "c1", "weather"), ToolCallEnd(1), Done("tool_use")],
            "have the same id",
        ),
    ],
)
async def test_a_broken_call_is_named(events: list[Any], says: str):
    assert says in await problems_of(replaying(call=events), cancellations=0)


async def test_a_stream_that_never_ends_is_named():
    async def fn(model: Any, context: Any, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        yield Start()
        await asyncio.Event().wait()

    assert "no end within 0.1 s" in await problems_of(fn, seconds=0.1, tools=False, cancellations=0)


async def test_a_swallowed_cancellation_is_named():
    async def fn(model: Any, context: Any, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            raise RuntimeError("interrupted") from None
        for event in HELLO:
            yield event

    assert "it raises RuntimeError instead of letting the cancellation through" in await problems_of(
        fn, tools=False
    )


async def test_a_stream_that_goes_on_after_its_cancellation_is_named():
    released = asyncio.Event()

    async def fn(model: Any, context: Any, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            await released.wait()
        for event in HELLO:
            yield event

    said = await problems_of(fn, tools=False, cancellations=1)
    released.set()
    assert "it goes on after it was cancelled" in said


async def test_a_task_left_behind_is_named():
    tasks: set[asyncio.Task[Any]] = set()

    async def fn(model: Any, context: Any, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        tasks.add(asyncio.create_task(asyncio.sleep(60), name="heartbeat"))
        for event in HELLO:
            yield event

    said = await problems_of(fn, tools=False, cancellations=1)
    assert "it leaves a task behind: heartbeat" in said
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_a_changed_context_is_named():
    async def fn(model: Any, context: LlmContext, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        if isinstance(context.messages, list):
            context.messages.append(context.messages[-1])
        for event in HELLO:
            yield event

    assert "it changes the context it was given" in await problems_of(fn, tools=False, cancellations=0)


async def test_replies_that_share_state_are_named():
    count = 0

    async def fn(model: Any, context: Any, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        nonlocal count
        count += 1
        for event in HELLO:
            await asyncio.sleep(0)
            yield event if count == 1 or not isinstance(event, TextStart) else TextStart(count)
        count -= 1

    assert "several at once: event 1" in await problems_of(fn, tools=False, cancellations=0)


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (HELLO, "it does not fail"),
        ([Error("no", "network")], "error before start"),
        ([Start(), Error("no", "broken")], "does not survive JSON"),
        (
            [*HELLO[:-1], Error("no", "network")],
            "it should be a start and an error, but is Start, TextStart, TextDelta, TextEnd, Error",
        ),
        ([OSError("refused")], "it raises OSError, not an error event or an AgentError: refused"),
        ([Start(), Error("the key s3cret is wrong", "auth")], "the error shows the secret"),
        ([AuthError("the key s3cret is wrong")], "the error shows the secret"),
        ([AuthError(" ")], "an error without a message"),
    ],
)
async def test_a_broken_failure_is_named(events: list[Any], says: str):
    assert says in await problems_of(
        replaying(), failing=replaying(events), secret="s3cret", tools=False, cancellations=0
    )


async def test_a_repr_with_the_key_is_named():
    class Fn:
        def __repr__(self) -> str:
            return "Fn(key='s3cret')"

        def __call__(self, *arguments: Any) -> AsyncIterator[AssistantMessageEvent]:
            return replaying()(*arguments)

    assert "its repr shows the secret" in await problems_of(
        Fn(), secret="s3cret", tools=False, cancellations=0
    )


async def test_every_breach_is_listed_once():
    said = await problems_of(replaying(HELLO[:-1], HELLO))
    assert (
        said.count("ends without done or error") == 3
    )  # as text, in a conversation of another provider's, several at once
    assert "calls no tool" in said


async def test_an_iterator_that_is_no_generator_is_accepted():
    class Events:
        def __init__(self, events: list[Any]) -> None:
            self._events = iter(events)

        def __aiter__(self) -> "Events":
            return self

        async def __anext__(self) -> AssistantMessageEvent:
            for event in self._events:
                return event
            raise StopAsyncIteration

    assert (
        await problems_of(
            lambda model, context, options: Events(
                CALL if context.messages[-1].text == TOOL_PROMPT else HELLO
            )
        )
        == ""
    )


def test_the_events_of_one_reply_can_be_checked_alone():
    assert stream_problems(HELLO) == []
    assert stream_problems([Start(), TextStart(0), Done("length")]) == []
    assert stream_problems([Start(), Error("no", "network")]) == []
    assert stream_problems(HELLO[:-1]) == ["the stream ends without done or error"]
    assert TEXT_PROMPT != TOOL_PROMPT
