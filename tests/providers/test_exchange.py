"""One exchange over a real socket: cancelled, abandoned, ended late; and the bookkeeping of blocks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import pytest
from loopback import Read, assemble, sse

from swink.messages import (
    AssistantMessage,
    Image,
    ModelSpec,
    Text,
    ToolCall,
    ToolResultMessage,
    UrlSource,
    UserMessage,
)
from swink.providers.convert import CallIds, paired_messages, prepare
from swink.providers.exchange import merge_objects
from swink.providers.openai import OpenAIStreamFn
from swink.stream import (
    Done,
    Error,
    LlmContext,
    StreamOptions,
    TextDelta,
)

MODEL = ModelSpec("openai", "m")
CONTEXT = LlmContext("", [UserMessage("x")])
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HELLO = sse({"choices": [{"delta": {"content": "Hello"}}]})
END = sse({"choices": [{"delta": {}, "finish_reason": "stop"}]}, "[DONE]")
Talk = Callable[[asyncio.StreamWriter], Awaitable[None]]


def framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Server:
    """Answers every request on a connection with one function; counts connections, and knows when they close."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.connections = 0
        self.closed = asyncio.Event()
        self.asked = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await reader.readexactly(length)
                self.asked.set()
                await self._talk(writer)
                await writer.drain()
        self.closed.set()
        writer.close()


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[tuple[OpenAIStreamFn, Server]]:
    talker = Server(talk)
    server = await asyncio.start_server(talker, "127.0.0.1", 0)
    fn = OpenAIStreamFn(base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    async with server:
        yield fn, talker
        await fn.aclose()
        server.close()
        await asyncio.wait_for(talker.closed.wait(), 20)


async def collect(fn: OpenAIStreamFn) -> Read:
    stream = fn(MODEL, CONTEXT, StreamOptions())
    async with aclosing(stream):
        return assemble([event async for event in stream], MODEL)


async def silent(writer: asyncio.StreamWriter) -> None:
    pass


async def half(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + framed(HELLO))


async def whole(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + framed(HELLO) + framed(END) + b"0\r\n\r\n")


async def late(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + framed(HELLO) + framed(END))
    await writer.drain()
    await asyncio.sleep(0.005)
    writer.write(b"0\r\n\r\n")


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + framed(HELLO) + framed(END))
    for _ in range(100_000):
        writer.write(framed(b": still here\n\n"))
        await writer.drain()
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("talk", [silent, half], ids=["while waiting for the head", "in the body"])
async def test_cancelling_ends_at_once_and_closes_the_connection(talk: Talk):
    async with serving(talk) as (fn, server):
        task = asyncio.create_task(collect(fn))
        await server.asked.wait()
        await asyncio.sleep(0.02)
        task.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.closed.wait()


async def test_leaving_a_stream_early_closes_its_connection():
    async with serving(half) as (fn, server):
        async with aclosing(fn(MODEL, CONTEXT, StreamOptions())) as stream:
            async for event in stream:
                if event == TextDelta(0, "Hello"):
                    break
        await asyncio.wait_for(server.closed.wait(), 60)


@pytest.mark.parametrize("talk", [whole, late], ids=["with its last event", "a little later"])
async def test_the_connection_is_back_in_the_pool_before_the_terminal_comes(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.providers.exchange.DRAIN_SECONDS", 20)  # a little is much on a busy machine
    async with serving(talk) as (fn, server):
        for _ in range(3):
            stream = fn(MODEL, CONTEXT, StreamOptions())
            async for event in stream:
                if isinstance(event, Done):
                    break
        assert server.connections == 1
        await stream.aclose()


async def test_a_body_that_does_not_end_after_its_last_event_holds_nobody_up():
    async with serving(endless) as (fn, server):
        async with asyncio.timeout(60):
            assert (await collect(fn)).message.text == "Hello"
        await asyncio.wait_for(server.closed.wait(), 60)


async def test_a_reset_in_the_body_is_a_network_error_that_keeps_what_arrived():
    async def reset(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + framed(HELLO))
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async with serving(reset) as (fn, _):
        result = await collect(fn)
        assert isinstance(result.terminal, Error)
        assert result.terminal.kind == "network"
        assert result.message.text == "Hello"


async def test_many_streams_at_once_do_not_wait_for_each_other():
    asked = asyncio.Barrier(150)

    async def all_at_once(writer: asyncio.StreamWriter) -> None:
        await asked.wait()  # nobody is answered before all of them have asked
        await whole(writer)

    async with serving(all_at_once) as (fn, _), asyncio.timeout(60):
        results = await asyncio.gather(*(collect(fn) for _ in range(150)))
        assert {result.message.text for result in results} == {"Hello"}


def test_an_adapter_serves_one_event_loop_after_another():
    async def main() -> str:
        async with serving(whole) as (fn, _):
            return (await collect(fn)).message.text

    assert [asyncio.run(main()) for _ in range(3)] == ["Hello"] * 3


# --- histories -------------------------------------------------------------------------------------------------------


def test_results_follow_their_calls_whatever_the_history_lost():
    history: list[Any] = [
        UserMessage("x"),
        AssistantMessage((ToolCall("a", "x"), ToolCall("a", "x"), ToolCall("b", "x"))),
        ToolResultMessage("a", "x", "1"),
        ToolResultMessage("a", "x", "2"),
        ToolResultMessage("a", "x", "3"),
    ]
    results = [message for message in paired_messages(history) if isinstance(message, ToolResultMessage)]
    assert [(result.tool_call_id, result.text, result.is_error) for result in results] == [
        ("a", "1", False),
        ("a", "2", False),
        ("b", "error: no result; the call was interrupted", True),
    ]


def test_two_calls_of_one_id_stay_two():
    ids = CallIds(r"[a-z]{1,8}", 8)
    calls = [ids.call("x"), ids.call("x")]
    assert calls == [ids.result("x"), ids.result("x")]
    assert len(set(calls)) == 2


async def test_a_history_that_needs_nothing_is_sent_as_it_is():
    history = [
        UserMessage("x"),
        AssistantMessage("y"),
        UserMessage((Text("z"), Image(UrlSource("https://x/y.png")))),
    ]
    prepared = prepare(history, ModelSpec("a", "b"))
    assert all(before is after or before == after for before, after in zip(history, prepared, strict=True))
    assert prepared[0] is history[0]


async def test_an_image_in_a_data_url_becomes_its_bytes():
    prepared = prepare([UserMessage((Image(UrlSource("data:image/gif;base64,QUJD")),))], ModelSpec("a", "b"))
    assert prepared[0].content[0].source.data == "QUJD"  # type: ignore[union-attr]
    assert prepared[0].content[0].source.media_type == "image/gif"  # type: ignore[union-attr]


@pytest.mark.parametrize("body", [b"", b"<html><body>Not Found</body></html>"])
async def test_a_404_that_names_no_model_asks_about_the_address(body: bytes):
    async def talk(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

    async with serving(talk) as (fn, _):
        read = await collect(fn)
    assert isinstance(read.terminal, Error)
    assert "are base_url and the model's name right?" in read.terminal.message


def test_extra_fields_join_a_body_and_what_cannot_is_reported_by_name():
    reported: list[str] = []
    body = {
        "model": "m",
        "messages": [1],
        "tools": [{"name": "a"}],
        "include": ["x"],
        "reasoning": {"effort": "low"},
        "stop": ["END"],
    }
    extra = {
        "model": "other",
        "messages": [2],
        "tools": ({"name": "a"}, {"name": "b"}),
        "include": ["y"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "stop": "STOP",
        "user": "u",
    }
    merged = merge_objects(extra, body, lambda name, why: reported.append(name))
    assert merged == {
        **body,
        "tools": [{"name": "a"}, {"name": "b"}],
        "include": ["x", "y"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "user": "u",
    }
    assert sorted(reported) == ["extra.messages", "extra.model", "extra.reasoning.effort", "extra.stop"]
