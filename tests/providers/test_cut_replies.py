"""What a reply that was cut off has used and cost: every adapter, cut by an abort, by the watchdog, by the network."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from faults import Connection, FaultServer, Talk, answering, silent
from frames import event_frame
from loopback import sse
from tests.counts import crossed

from swink import Agent, ExponentialBackoff
from swink.agent.agentresult import AgentResult
from swink.events import MessageUpdate
from swink.messages import AssistantMessage, Cost, ModelSpec, Price, Usage
from swink.providers.proxy.wire import encode_reply
from swink.stream import Start, StreamOptions, TextDelta, TextStart, Timeout, UsageUpdate

PRICE = Price(input=2.0, output=10.0)


def chat(usage: dict[str, Any] | None) -> bytes:
    content = {"choices": [{"index": 0, "delta": {"content": "x"}}]}
    return sse(*([{"choices": [], "usage": usage}] if usage else []), content)


CHAT = chat({"prompt_tokens": 1000, "completion_tokens": 7, "total_tokens": 1007})
REPORTED: dict[str, bytes] = {
    "anthropic": sse(
        {"type": "message_start", "message": {"usage": {"input_tokens": 1000, "output_tokens": 7}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
        names=True,
    ),
    **dict.fromkeys(("openai", "azure", "xai", "mistral"), CHAT),
    "openai-responses": sse(
        {
            "type": "response.in_progress",
            "response": {"status": "in_progress", "usage": {"input_tokens": 1000, "output_tokens": 7}},
        },
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "x"},
        names=True,
    ),
    "gemini": sse(
        {
            "candidates": [{"content": {"parts": [{"text": "x"}]}}],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 7},
        }
    ),
    "bedrock": event_frame("metadata", {"usage": {"inputTokens": 1000, "outputTokens": 7}})
    + event_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}}),
    "ollama": json.dumps(
        {"message": {"content": "x"}, "done": False, "prompt_eval_count": 1000, "eval_count": 7}
    ).encode()
    + b"\n",
    "proxy": b"".join(
        map(encode_reply, (Start(), UsageUpdate(Usage(1000, 7)), TextStart(0), TextDelta(0, "x")))
    ),
}
"""The beginning of a reply, in which 1000 tokens of input and 7 of output are reported, and then some content."""

UNREPORTED: dict[str, bytes] = {"openai": chat(None), "xai": chat(None)}

CUTS = ("abort", "watchdog", "dropped", "ended")


def cutting(adapter: AdapterCase, body: bytes, cut: str) -> Talk:
    """A provider that says this much, and then drops the connection, ends the body, or says nothing more."""

    async def talk(connection: Connection) -> None:
        await connection.head(200, adapter.media_type)
        await connection.chunk(body)
        if cut == "dropped":
            connection.close()
        elif cut == "ended":
            await connection.end()
        else:
            await silent(connection)

    return talk


@asynccontextmanager
async def asking(
    adapter: AdapterCase, talk: Talk, *, idle: float = 60.0, attempts: int = 1
) -> AsyncIterator[tuple[Agent, FaultServer]]:
    async with FaultServer(talk) as server:
        fn = adapter.make(server.url, KEY)
        yield (
            Agent(
                ModelSpec(adapter.model.provider, adapter.model.model_id, price=PRICE),
                stream_fn=fn,
                options=StreamOptions(timeout=Timeout(idle=idle, first=60.0)),
                retry=ExponentialBackoff(max_attempts=attempts, base_delay=0),
            ),
            server,
        )
        await fn.aclose()


async def cut_off(adapter: AdapterCase, body: bytes, cut: str) -> AgentResult:
    """The run of an agent whose model's reply is cut off after this much."""
    async with asking(adapter, cutting(adapter, body, cut), idle=0.3 if cut == "watchdog" else 60.0) as (
        agent,
        _,
    ):
        if cut == "abort":
            agent.subscribe(lambda event: agent.abort() if isinstance(event, MessageUpdate) else None)
        return await agent.run("Hello")


@crossed(name=[*REPORTED], cut=CUTS)
async def test_what_was_reported_before_a_cut_is_kept_and_priced_and_the_rest_is_unknown(name: str, cut: str):
    result = await cut_off(ADAPTERS[name], REPORTED[name], cut)
    message = result.messages[-1]
    assert isinstance(message, AssistantMessage)
    assert message.stop_reason == ("aborted" if cut == "abort" else "error")
    assert message.text == "x"
    assert message.usage == result.usage == Usage(1000, 7, unknown=True)
    assert message.cost == result.cost == PRICE.cost(Usage(1000, 7))


def test_every_adapter_is_cut_off():
    assert set(REPORTED) == set(ADAPTERS)


@crossed(name=[*UNREPORTED], cut=CUTS)
async def test_a_reply_that_is_cut_off_before_anything_is_reported_is_unknown_and_not_free(
    name: str, cut: str
):
    result = await cut_off(ADAPTERS[name], UNREPORTED[name], cut)
    assert result.usage == result.messages[-1].usage == Usage(unknown=True)
    assert result.cost is None
    assert result.messages[-1].cost is None


@pytest.mark.parametrize("name", REPORTED)
async def test_attempts_that_were_cut_off_and_retried_add_up(name: str):
    adapter = ADAPTERS[name]
    async with asking(adapter, cutting(adapter, REPORTED[name], "dropped"), attempts=3) as (agent, server):
        result = await agent.run("Hello")
        assert len(server.requests) == 3
    assert result.usage == Usage(3000, 21, unknown=True)
    assert result.cost is not None
    assert result.cost.total == pytest.approx(3 * PRICE.cost(Usage(1000, 7)).total)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429, 500, 503, 529])
async def test_a_refused_request_has_used_nothing(status: int):
    for adapter in (ADAPTERS["openai"], ADAPTERS["bedrock"]):
        async with asking(adapter, answering(status, b'{"error": {"message": "no"}}')) as (agent, _):
            result = await agent.run("Hello")
        assert result.stop_reason == "error"
        assert (result.usage, result.cost) == (Usage(), Cost())


@pytest.mark.parametrize("status", [408, 502, 504, 524])
async def test_an_answer_that_a_gateway_lost_is_unknown(status: int):
    async with asking(ADAPTERS["openai"], answering(status, b"{}")) as (agent, _):
        result = await agent.run("Hello")
    assert (result.usage, result.cost) == (Usage(unknown=True), None)


async def test_a_connection_that_never_came_about_has_used_nothing():
    async with FaultServer(silent) as server:
        url = server.url
    fn = ADAPTERS["openai"].make(url, KEY)
    agent = Agent(ModelSpec("openai", "m"), stream_fn=fn, retry=ExponentialBackoff(max_attempts=1))
    result = await agent.run("Hello")
    await fn.aclose()
    assert result.error_kind == "network"
    assert (result.usage, result.cost) == (Usage(), Cost())


async def test_a_connection_that_drops_before_the_answer_is_unknown():
    async def talk(connection: Connection) -> None:
        connection.close()

    async with asking(ADAPTERS["openai"], talk) as (agent, _):
        result = await agent.run("Hello")
    assert result.error_kind == "network"
    assert (result.usage, result.cost) == (Usage(unknown=True), None)


async def test_a_reply_without_figures_is_unknown_although_it_is_complete():
    body = sse({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}, "[DONE]")
    async with asking(ADAPTERS["openai"], answering(200, body, "text/event-stream")) as (agent, _):
        result = await agent.run("Hello")
    assert result.text == "x"
    assert (result.usage, result.cost) == (Usage(unknown=True), None)


async def test_a_reply_that_the_provider_ended_with_its_figures_is_known_although_it_failed():
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "content_filter"}
    body = sse(
        {"choices": [choice]},
        {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
        "[DONE]",
    )
    async with asking(ADAPTERS["openai"], answering(200, body, "text/event-stream")) as (agent, _):
        result = await agent.run("Hello")
    assert result.error_kind == "content_filtered"
    assert (result.usage, result.cost) == (Usage(10, 2), PRICE.cost(Usage(10, 2)))
