"""What a reply costs: plain, cached and reasoning tokens of every provider, against sums done by hand."""

import json
from typing import Any

import pytest
from adapters import ADAPTERS, KEY
from frames import event_frame
from loopback import MemoryClient, sse

from swink import Agent, ExponentialBackoff
from swink.catalog import price_of
from swink.config import AgentResult
from swink.messages import Cost, ModelSpec, Price, Usage
from swink.providers.openai import OpenAIStreamFn
from swink.providers.proxy.wire import encode_reply
from swink.stream import Done, Start, StreamOptions, TextDelta, TextEnd, TextStart

# Dollars per million tokens, chosen so that every sum can be done in the head.
PRICE = Price(input=2.0, output=10.0, cache_read=0.2, cache_write=2.5)
WITHOUT_CACHE_PRICE = Price(input=2.0, output=10.0)


def chat(usage: dict[str, Any]) -> bytes:
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
    return sse({"choices": [choice]}, {"choices": [], "usage": usage}, "[DONE]")


def claude(usage: dict[str, Any], end: dict[str, Any]) -> bytes:
    return sse(
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end},
        {"type": "message_stop"},
        names=True,
    )


def responses(usage: dict[str, Any]) -> bytes:
    item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "x"}]}
    return sse(
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "usage": usage}},
        names=True,
    )


def gemini(usage: dict[str, Any]) -> bytes:
    candidate = {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}
    return sse({"candidates": [candidate], "usageMetadata": usage})


def converse(usage: dict[str, Any]) -> bytes:
    return b"".join(
        event_frame(name, data)
        for name, data in (
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}}),
            ("messageStop", {"stopReason": "end_turn"}),
            ("metadata", {"usage": usage}),
        )
    )


def ollama(**counts: int) -> bytes:
    return (
        json.dumps(
            {"message": {"role": "assistant", "content": "x"}, "done": True, "done_reason": "stop", **counts}
        ).encode()
        + b"\n"
    )


def proxied(done: Done) -> bytes:
    return b"".join(
        encode_reply(event) for event in (Start(), TextStart(0), TextDelta(0, "x"), TextEnd(0), done)
    )


async def reply(
    provider: str, body: bytes, price: Price | None = PRICE, *, model_id: str = "some-model", fn: Any = None
) -> AgentResult:
    """A run of an agent whose model gives this body."""
    adapter = ADAPTERS[provider]
    client = MemoryClient(body, headers={"content-type": adapter.media_type})
    agent = Agent(
        ModelSpec(provider, model_id, price=price),
        stream_fn=fn or adapter.make("https://provider.example", KEY),
        options=StreamOptions(http=client),
        retry=ExponentialBackoff(max_attempts=1),
    )
    result = await agent.run("Hello")
    assert result.messages[-1].usage == result.usage
    assert result.messages[-1].cost == result.cost
    return result


CASES: dict[str, tuple[str, bytes, Usage, tuple[float, float, float, float]]] = {
    # Anthropic counts the four apart; thinking is part of the output. 1000 × 2 + 500 × 10 + 4000 × 0.2 + 2000 × 2.5 = 12,800
    "anthropic": (
        "anthropic",
        claude(
            {
                "input_tokens": 1000,
                "cache_read_input_tokens": 4000,
                "cache_creation_input_tokens": 2000,
                "output_tokens": 1,
            },
            {"output_tokens": 500, "output_tokens_details": {"thinking_tokens": 300}},
        ),
        Usage(1000, 500, 4000, 2000, 7500, {"reasoning": 300}),
        (0.002, 0.005, 0.0008, 0.005),
    ),
    # OpenAI's prompt holds the cached tokens, its completion the reasoning. 1000 × 2 + 500 × 10 + 4000 × 0.2 = 7,800
    "openai": (
        "openai",
        chat(
            {
                "prompt_tokens": 5000,
                "completion_tokens": 500,
                "total_tokens": 5500,
                "prompt_tokens_details": {"cached_tokens": 4000},
                "completion_tokens_details": {"reasoning_tokens": 300},
            }
        ),
        Usage(1000, 500, 4000, 0, 5500, {"reasoning": 300}),
        (0.002, 0.005, 0.0008, 0.0),
    ),
    "openai-responses": (
        "openai-responses",
        responses(
            {
                "input_tokens": 5000,
                "output_tokens": 500,
                "total_tokens": 5500,
                "input_tokens_details": {"cached_tokens": 4000},
                "output_tokens_details": {"reasoning_tokens": 300},
            }
        ),
        Usage(1000, 500, 4000, 0, 5500, {"reasoning": 300}),
        (0.002, 0.005, 0.0008, 0.0),
    ),
    "azure": (
        "azure",
        chat(
            {
                "prompt_tokens": 5000,
                "completion_tokens": 500,
                "total_tokens": 5500,
                "prompt_tokens_details": {"cached_tokens": 4000},
            }
        ),
        Usage(1000, 500, 4000, 0, 5500),
        (0.002, 0.005, 0.0008, 0.0),
    ),
    # xAI leaves the reasoning out of the completion: 200 + 300 are 500 tokens of output.
    "xai": (
        "xai",
        chat(
            {
                "prompt_tokens": 5000,
                "completion_tokens": 200,
                "total_tokens": 5500,
                "prompt_tokens_details": {"cached_tokens": 4000},
                "completion_tokens_details": {"reasoning_tokens": 300},
            }
        ),
        Usage(1000, 500, 4000, 0, 5500, {"reasoning": 300}),
        (0.002, 0.005, 0.0008, 0.0),
    ),
    "mistral": (
        "mistral",
        chat(
            {"prompt_tokens": 5000, "completion_tokens": 500, "total_tokens": 5500, "num_cached_tokens": 4000}
        ),
        Usage(1000, 500, 4000, 0, 5500),
        (0.002, 0.005, 0.0008, 0.0),
    ),
    # Gemini's thoughts are output beside the candidates; what tools brought is input beside the prompt.
    "gemini": (
        "gemini",
        gemini(
            {
                "promptTokenCount": 4900,
                "toolUsePromptTokenCount": 100,
                "cachedContentTokenCount": 4000,
                "candidatesTokenCount": 200,
                "thoughtsTokenCount": 300,
                "totalTokenCount": 5500,
            }
        ),
        Usage(1000, 500, 4000, 0, 5500, {"reasoning": 300}),
        (0.002, 0.005, 0.0008, 0.0),
    ),
    "bedrock": (
        "bedrock",
        converse(
            {
                "inputTokens": 1000,
                "outputTokens": 500,
                "totalTokens": 7500,
                "cacheReadInputTokens": 4000,
                "cacheWriteInputTokens": 2000,
            }
        ),
        Usage(1000, 500, 4000, 2000, 7500),
        (0.002, 0.005, 0.0008, 0.005),
    ),
    "ollama": (
        "ollama",
        ollama(prompt_eval_count=1000, eval_count=500),
        Usage(1000, 500),
        (0.002, 0.005, 0.0, 0.0),
    ),
    "proxy": (
        "proxy",
        proxied(Done("stop", Usage(1000, 500, 4000, 2000, extra={"reasoning": 300}))),
        Usage(1000, 500, 4000, 2000, 7500, {"reasoning": 300}),
        (0.002, 0.005, 0.0008, 0.005),
    ),
}


def test_every_adapter_has_its_sum():
    assert set(CASES) == set(ADAPTERS)


@pytest.mark.parametrize("name", CASES)
async def test_every_token_is_charged_once_at_its_own_price(name: str):
    provider, body, usage, sums = CASES[name]
    result = await reply(provider, body)
    assert result.usage == usage
    assert result.cost is not None
    assert (
        result.cost.input,
        result.cost.output,
        result.cost.cache_read,
        result.cost.cache_write,
    ) == pytest.approx(sums)
    assert result.cost.total == pytest.approx(sum(sums))


@pytest.mark.parametrize("name", CASES)
async def test_cached_tokens_without_a_price_of_their_own_cost_as_much_as_others(name: str):
    provider, body, usage, _ = CASES[name]
    result = await reply(provider, body, WITHOUT_CACHE_PRICE)
    assert result.cost is not None
    everything_read = usage.input + usage.cache_read + usage.cache_write
    assert result.cost.total == pytest.approx((everything_read * 2 + usage.output * 10) / 1_000_000)


@pytest.mark.parametrize("name", CASES)
async def test_an_unknown_price_is_unknown_and_not_nothing(name: str):
    provider, body, usage, _ = CASES[name]
    result = await reply(provider, body, None, model_id="a-model-nobody-knows")
    assert result.usage == usage
    assert result.cost is None


async def test_without_a_price_of_the_callers_the_catalogs_holds():
    _, body, usage, _ = CASES["anthropic"]
    result = await reply("anthropic", body, None, model_id="claude-sonnet-4-5")
    price = price_of(ModelSpec("anthropic", "claude-sonnet-4-5"))
    assert price is not None
    assert result.cost == price.cost(usage)
    assert (await reply("anthropic", body, PRICE, model_id="claude-sonnet-4-5")).cost == PRICE.cost(usage)


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        # 0.0123 dollars in ticks of a ten-billionth.
        (
            "xai",
            chat(
                {
                    "prompt_tokens": 1000,
                    "completion_tokens": 500,
                    "total_tokens": 1500,
                    "cost_in_usd_ticks": 123_000_000,
                }
            ),
        ),
        (
            "openai",
            chat({"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500, "cost": 0.0123}),
        ),
        ("proxy", proxied(Done("stop", Usage(1000, 500), Cost(total=0.0123)))),
    ],
)
async def test_what_the_provider_says_it_cost_wins(provider: str, body: bytes):
    for price in (PRICE, None):
        result = await reply(provider, body, price)
        assert result.cost == Cost(total=0.0123)


async def test_caches_of_other_servers_are_counted_too():
    deepseek = OpenAIStreamFn(preset="deepseek", api_key=KEY)
    hits = {
        "prompt_tokens": 5000,
        "completion_tokens": 500,
        "total_tokens": 5500,
        "prompt_cache_hit_tokens": 4000,
    }
    assert (await reply("openai", chat(hits), fn=deepseek)).cost == PRICE.cost(Usage(1000, 500, 4000))
    openrouter = OpenAIStreamFn(preset="openrouter", api_key=KEY)
    details = {"cached_tokens": 4000, "cache_write_tokens": 600}
    written = {
        "prompt_tokens": 5600,
        "completion_tokens": 500,
        "total_tokens": 6100,
        "prompt_tokens_details": details,
    }
    assert (await reply("openai", chat(written), fn=openrouter)).cost == PRICE.cost(
        Usage(1000, 500, 4000, 600)
    )


async def test_a_reply_that_breaks_off_is_charged_for_what_was_counted():
    whole = CASES["anthropic"][1]
    result = await reply("anthropic", whole[: whole.index(b"event: message_delta")])
    assert result.stop_reason == "error"
    assert result.usage == Usage(1000, 1, 4000, 2000, unknown=True)
    assert result.cost is not None
    assert result.cost.total == pytest.approx((1000 * 2 + 1 * 10 + 4000 * 0.2 + 2000 * 2.5) / 1_000_000)


async def test_costs_of_several_turns_add_up():
    _, body, usage, sums = CASES["openai"]
    adapter = ADAPTERS["openai"]
    options = StreamOptions(http=MemoryClient(body))
    agent = Agent(
        ModelSpec("openai", "m", price=PRICE),
        stream_fn=adapter.make("https://p.example", KEY),
        options=options,
    )
    agent.follow_up("And again?")
    result = await agent.run("Hello")
    assert result.usage == usage + usage
    assert result.cost is not None
    assert result.cost.total == pytest.approx(2 * sum(sums))
