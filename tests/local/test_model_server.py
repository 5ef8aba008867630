"""A model behind the OpenAI and Anthropic protocols, asked by the SDKs of both."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from talking import SMOL
from tests.counts import left_to_more
from tests.later import Later

from swink.errors import ContextWindowOverflow, MisuseError
from swink.local import LocalStreamFn
from swink.messages import AssistantMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage
from swink.serve.modelserver import ServedModel, serve_model, serve_stream_fn
from swink.stream import AssistantMessageEvent, LlmContext, OutputSchema, Start, StreamFn
from swink.testing import ScriptedModel

anthropic, openai = Later("anthropic"), Later("openai")

CALL = ToolCall("call_1", "weather", {"city": "Oslo"})
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OPENAI_TOOL: Any = {
    "type": "function",
    "function": {"name": "weather", "description": "Weather.", "parameters": SCHEMA},
}
ANTHROPIC_TOOL: Any = {"name": "weather", "description": "Weather.", "input_schema": SCHEMA}

JSON = {"content-type": "application/json"}


class Clients:
    """A served model, and a client of each SDK."""

    def __init__(self, served: ServedModel, key: str = "none") -> None:
        self.served = served
        self.openai = openai.AsyncOpenAI(base_url=served.openai_base_url, api_key=key, max_retries=0)
        self.anthropic = anthropic.AsyncAnthropic(
            base_url=served.anthropic_base_url, api_key=key, max_retries=0
        )


@asynccontextmanager
async def serving(stream_fn: StreamFn, api_key: str | None = None) -> AsyncGenerator[Clients, None]:
    async with serve_stream_fn(stream_fn, SMOL, api_key=api_key) as served:
        clients = Clients(served, api_key or "none")
        async with clients.openai, clients.anthropic:
            yield clients


@left_to_more
async def test_a_reply_with_thinking_words_and_a_call_reaches_both_sdks_whole_and_streamed():
    reply = [Thinking("hm"), "Let me see.", CALL]
    async with serving(ScriptedModel([reply] * 4)) as clients:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}]}
        whole = await clients.openai.chat.completions.create(**asked, tools=[OPENAI_TOOL])
        async with clients.openai.chat.completions.stream(**asked, tools=[OPENAI_TOOL]) as stream:
            streamed = await stream.get_final_completion()
        for completion in (whole, streamed):
            choice = completion.choices[0]
            assert choice.finish_reason == "tool_calls"
            assert choice.message.content == "Let me see."
            (call,) = choice.message.tool_calls or ()
            assert (call.id, call.function.name, call.function.arguments) == (  # pyright: ignore
                "call_1",
                "weather",
                '{"city":"Oslo"}',
            )
        message = await clients.anthropic.messages.create(**asked, max_tokens=9, tools=[ANTHROPIC_TOOL])
        async with clients.anthropic.messages.stream(**asked, max_tokens=9, tools=[ANTHROPIC_TOOL]) as stream:
            final = await stream.get_final_message()
        for each in (message, final):
            assert [block.type for block in each.content] == ["thinking", "text", "tool_use"]
            assert each.content[2].input == {"city": "Oslo"}  # pyright: ignore
            assert each.stop_reason == "tool_use"
            assert (each.usage.input_tokens, each.usage.output_tokens) == (1, 1)


async def test_what_the_sdks_send_is_what_the_model_is_asked():
    model = ScriptedModel(["ok", "ok"])
    async with serving(model) as clients:
        await clients.openai.chat.completions.create(
            model="m",
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "14"},
            ],
            tools=[OPENAI_TOOL],
            tool_choice={"type": "function", "function": {"name": "weather"}},
            max_tokens=9,
            temperature=0.5,
            top_p=0.9,
            seed=3,
            stop=["END"],
        )
        await clients.anthropic.messages.create(
            model="m",
            system=[{"type": "text", "text": "Be brief."}],
            messages=[
                {"role": "user", "content": "Weather?"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}}
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "14"}],
                },
            ],
            tools=[ANTHROPIC_TOOL],
            tool_choice={"type": "tool", "name": "weather"},
            max_tokens=9,
            stop_sequences=["END"],
            extra_body={"temperature": 0.5, "top_p": 0.9},
        )
    for context, options in zip(model.calls, model.options, strict=True):
        assert context.system_prompt == "Be brief."
        said, called, result = context.messages
        assert isinstance(said, UserMessage)
        assert said.text == "Weather?"
        assert isinstance(called, AssistantMessage)
        assert called.tool_calls == (CALL,)
        assert isinstance(result, ToolResultMessage)
        assert (result.tool_name, result.tool_call_id, result.content) == ("weather", "call_1", (Text("14"),))
        assert [tool.parameters_schema for tool in context.tools] == [SCHEMA]
        assert (options.tool_choice, options.max_tokens, options.stop) == ("weather", 9, ("END",))
        assert (options.temperature, options.top_p) == (0.5, 0.9)
    assert model.options[0].seed == 3


async def test_an_output_schema_reaches_the_model():
    model = ScriptedModel(["{}"])
    async with serving(model) as clients:
        format: Any = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
        await clients.openai.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "?"}], response_format=format
        )
    assert model.calls[0].output == OutputSchema("place", SCHEMA)


async def test_failures_have_a_status_that_the_sdks_know():
    model = ScriptedModel([ContextWindowOverflow("too long"), ContextWindowOverflow("too long")])
    async with serving(model, "a-key-for-this-test") as clients:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}], "max_tokens": 3}
        with pytest.raises(openai.BadRequestError, match="too long") as overflow:
            await clients.openai.chat.completions.create(**asked, stream=True)
        assert overflow.value.code == "context_length_exceeded"
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            await clients.anthropic.messages.create(**asked)
        with pytest.raises(openai.BadRequestError, match="no images"):
            image: Any = [{"type": "image_url", "image_url": {"url": "https://x/x.png"}}]
            await clients.openai.chat.completions.create(
                model="m", messages=[{"role": "user", "content": image}]
            )
        with pytest.raises(anthropic.NotFoundError, match="not POST /v1/messages/count_tokens"):
            await clients.anthropic.messages.count_tokens(model="m", messages=asked["messages"])
        stranger = Clients(clients.served, "wrong")
        async with stranger.openai, stranger.anthropic:
            with pytest.raises(openai.AuthenticationError):
                await stranger.openai.models.list()
            with pytest.raises(anthropic.AuthenticationError):
                await stranger.anthropic.messages.create(**asked)
        assert [entry.id async for entry in clients.openai.models.list()] == ["smollm2-135m"]
        url, key = clients.served.openai_base_url, {"authorization": "Bearer a-key-for-this-test", **JSON}
        async with aiohttp.ClientSession(headers=key) as session:
            for body in (b"{", b"[]", b'{"messages": [{"role": "king", "content": ""}]}', b'{"messages": 3}'):
                async with session.post(f"{url}/chat/completions", data=body) as answer:
                    assert answer.status == 400
                    assert (await answer.json())["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"messages":[{"role":"user","content":"\xff"}]}',
        b'{"max_tokens":1,"messages":[{"role":"user","content":5}]}',
    ],
)
async def test_a_request_that_nobody_can_read_is_refused_as_such(path: str, body: bytes):
    async with (
        serve_stream_fn(ScriptedModel([]), SMOL) as served,
        aiohttp.ClientSession(headers=JSON) as client,
        client.post(f"{served.address}{path}", data=body) as answer,
    ):
        assert answer.status == 400
        assert "error" in await answer.json()


async def test_more_than_one_reply_is_refused_and_not_forgotten():
    async with serving(ScriptedModel([])) as clients:
        with pytest.raises(openai.BadRequestError, match="one reply"):
            await clients.openai.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hi"}], n=2
            )


async def test_a_client_that_leaves_stops_its_reply():
    began, ended = asyncio.Event(), asyncio.Event()

    async def endless(model: Any, context: LlmContext, options: Any) -> AsyncIterator[AssistantMessageEvent]:
        try:
            yield Start()
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(endless) as clients:
        task = asyncio.create_task(
            clients.openai.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
        )
        await began.wait()
        task.cancel()
        await asyncio.wait_for(ended.wait(), 20)


@left_to_more
async def test_the_real_model_is_served_with_tools_and_schemas(model: LocalStreamFn):
    async with serving(model) as clients:
        completion = await clients.openai.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "What is the weather in Paris?"}],
            tools=[OPENAI_TOOL],
            tool_choice="required",
            max_tokens=40,
        )
        (call,) = completion.choices[0].message.tool_calls or ()
        assert call.function.name == "weather"  # pyright: ignore
        format: Any = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
        place = await clients.openai.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "Which city is the capital of France?"}],
            response_format=format,
            max_tokens=30,
        )
        assert (place.choices[0].message.content or "").startswith('{"city":"Paris')


async def raw(served: ServedModel, head: str, body: bytes = b"") -> bytes:
    """What comes back for these very bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.address.rpartition(":")[2]))
    try:
        writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


BODY = b'{"messages":[{"role":"user","content":"Hi"}]}'


@pytest.mark.parametrize(
    ("host", "is_served"),
    [
        ("Host: 127.0.0.1:PORT", True),
        ("Host: 127.0.0.1", True),
        ("Host: localhost:PORT", True),
        ("Host: LOCALHOST", True),
        ("Host: [::1]:PORT", True),
        ("Host: 127.8.9.1:PORT", True),
        ("Host: evil.example:PORT", False),
        ("Host: evil.example", False),
        ("Host: 127.0.0.1.evil.example:PORT", False),
        ("Host: localhost.evil.example", False),
        ("Host: evil.localhost", False),
        ("Host: 127.0.0.1 evil.example", False),
        ("Host: evil.example:80@127.0.0.1", False),
        ("Host: 0.0.0.0:PORT", False),
        ("Host: 192.168.1.2:PORT", False),
        ("Host: ", False),
        ("X-Host: 127.0.0.1", False),
        ("Host: evil.example\nX-Forwarded-Host: 127.0.0.1", False),
        ("Host: 127.0.0.1:PORT\nOrigin: https://evil.example", False),
        ("Host: 127.0.0.1:PORT\nOrigin: null", False),
        ("Host: 127.0.0.1:PORT\nOrigin: http://127.0.0.1.evil.example:PORT", False),
        ("Host: 127.0.0.1:PORT\nOrigin: http://127.0.0.1:1", False),
        ("Host: 127.0.0.1:PORT\nOrigin: https://127.0.0.1:PORT", False),
        ("Host: 127.0.0.1:PORT\nOrigin: http://127.0.0.1:PORT", True),
        ("Host: 127.0.0.1:PORT\nOrigin: http://127.0.0.1:PORT\nOrigin: https://evil.example", False),
    ],
)
async def test_without_a_key_only_programs_on_this_machine_are_answered(host: str, is_served: bool):
    model = ScriptedModel(["hello"])
    async with serve_stream_fn(model, SMOL) as served:
        here = host.replace("PORT", served.address.rpartition(":")[2]) + "\nConnection: close"
        listed = await raw(served, f"GET /v1/models HTTP/1.1\n{here}")
        length = f"Content-Type: application/json\nContent-Length: {len(BODY)}"
        asked = await raw(served, f"POST /v1/chat/completions HTTP/1.1\n{here}\n{length}", BODY)
    assert [status(listed), status(asked)] == [200, 200] if is_served else [403, 403]
    assert len(model.calls) == is_served
    assert b"access-control" not in (listed + asked).lower()


async def test_a_refused_visitor_is_told_what_to_do():
    async with serve_stream_fn(ScriptedModel([]), SMOL) as served:
        answer = await raw(served, "GET /v1/models HTTP/1.1\nHost: evil.example\nConnection: close")
    assert b"serve with a key" in answer


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "application/jsonp",
        "",
        None,
    ],
)
@pytest.mark.parametrize("key", [None, "a-key-for-this-test"])
async def test_what_is_not_said_to_be_json_is_not_read(kind: str | None, key: str | None):
    model = ScriptedModel(["hello"])
    said = "" if kind is None else f"\nContent-Type: {kind}"
    async with serve_stream_fn(model, SMOL, api_key=key) as served:
        head = f"POST /v1/messages HTTP/1.1\nHost: localhost\nConnection: close\nX-Api-Key: {key}{said}"
        answer = await raw(served, f"{head}\nContent-Length: {len(BODY)}", BODY)
    assert status(answer) == 415
    assert not model.calls


async def test_a_page_is_given_no_leave_to_ask():
    async with serve_stream_fn(ScriptedModel([]), SMOL) as served:
        asked = "Host: localhost\nOrigin: https://evil.example\nAccess-Control-Request-Method: POST"
        answer = await raw(served, f"OPTIONS /v1/messages HTTP/1.1\n{asked}\nConnection: close")
    assert status(answer) == 403
    assert b"access-control" not in answer.lower()


async def test_who_has_the_key_may_come_by_any_name():
    async with serve_stream_fn(ScriptedModel([]), SMOL, api_key="a-key-for-this-test") as served:
        asked = "GET /v1/models HTTP/1.1\nHost: models.example\nConnection: close\nX-Api-Key: {}"
        assert status(await raw(served, asked.format("a-key-for-this-test"))) == 200
        assert status(await raw(served, asked.format("another"))) == 401


async def test_the_network_needs_a_key_and_a_port_that_is_free():
    with pytest.raises(MisuseError, match="api_key"):
        async with serve_model(host="0.0.0.0"):
            pass
    with pytest.raises(MisuseError, match="api_key"):
        async with serve_stream_fn(ScriptedModel([]), SMOL, "0.0.0.0"):
            pass
    async with serve_stream_fn(ScriptedModel([]), SMOL) as served:
        port = int(served.address.rpartition(":")[2])
        with pytest.raises(MisuseError, match=f"{port} cannot be served"):
            async with serve_stream_fn(ScriptedModel([]), SMOL, port=port):
                pass
