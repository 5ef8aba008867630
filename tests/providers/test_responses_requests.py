"""What a request to the Responses API says besides its history, to OpenAI, to Azure and to xAI."""

import logging
from contextlib import aclosing
from typing import Any

import pytest
from loopback import WEATHER, MemoryClient, check_types, sse
from msgspec import Struct
from tests.pins import compares_with

from swink import Agent
from swink.messages import Capabilities, ModelSpec, UserMessage
from swink.messages.providertools import (
    CodeExecution,
    FileSearch,
    ImageGeneration,
    Location,
    McpConnector,
    ProviderTool,
    WebFetch,
    WebSearch,
)
from swink.providers.azure import AzureResponsesStreamFn
from swink.providers.responses import ResponsesStreamFn, XAIResponsesStreamFn
from swink.providers.strict import strict_schema
from swink.stream import Done, Error, LlmContext, OutputSchema, StreamOptions

REPLY = sse({"type": "response.completed", "response": {"status": "completed"}}, names=True)
GPT = ModelSpec("openai-responses", "gpt-5.4", "high")
GROK = ModelSpec("xai-responses", "grok-4.3", "high")
AZURE = "https://mine.openai.azure.com"


async def asked(
    model: ModelSpec = GPT, *, fn: Any = None, system: str = "", tools: Any = (), hosted: Any = (), output: Any = None, **options: Any
) -> MemoryClient:  # fmt: skip
    client = MemoryClient(REPLY)
    context = LlmContext(system, [UserMessage("x")], tools, hosted, output)
    fn = fn or (ResponsesStreamFn if model.provider == GPT.provider else XAIResponsesStreamFn)(api_key="k")
    async with aclosing(fn(model, context, StreamOptions(http=client, **options))) as stream:
        events = [event async for event in stream]
    if isinstance(events[-1], Error):
        raise AssertionError(events[-1].message)
    assert isinstance(events[-1], Done)
    if model.provider != GROK.provider:
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

        check_types(ResponseCreateParamsStreaming, client.sent)
    return client


@pytest.mark.parametrize("level", ["off", "minimal"])
async def test_gpt_5_thinks_a_little_more_where_it_has_hosted_tools(level: Any):
    model = ModelSpec(GPT.provider, "gpt-5", level)
    assert (await asked(model)).sent["reasoning"]["effort"] == "minimal"
    assert (await asked(model, tools=[WEATHER])).sent["reasoning"]["effort"] == "minimal"
    assert (await asked(model, hosted=[WebSearch()])).sent["reasoning"]["effort"] == "low"
    newer = ModelSpec(GPT.provider, "gpt-5.4")
    assert (await asked(newer, hosted=[WebSearch()])).sent["reasoning"]["effort"] == "none"


# --- hosted tools ----------------------------------------------------------------------------------------------------

CONNECTOR = McpConnector("maps", "https://maps.example/mcp", "t0ken-of-maps", ("locate",))
MCP = {
    "type": "mcp",
    "server_label": "maps",
    "server_url": "https://maps.example/mcp",
    "authorization": "t0ken-of-maps",
    "allowed_tools": ["locate"],
}


@pytest.mark.parametrize(
    ("tool", "openai", "xai"),
    [
        (
            WebSearch(("a.b",), location=Location("NO", city="Oslo")),
            {"type": "web_search", "filters": {"allowed_domains": ["a.b"]}, "user_location": {"type": "approximate", "country": "NO", "city": "Oslo"}},
            {"type": "web_search", "filters": {"allowed_domains": ["a.b"]}, "user_location": {"type": "approximate", "country": "NO", "city": "Oslo"}},
        ),
        (WebSearch(blocked_domains=("a.b",)), "blocks no domains", {"type": "web_search", "filters": {"excluded_domains": ["a.b"]}}),
        (CodeExecution(), {"type": "code_interpreter", "container": {"type": "auto"}}, {"type": "code_interpreter"}),
        (FileSearch(("vs_1",), 3), *[{"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3}] * 2),
        (ImageGeneration(), {"type": "image_generation"}, "xai-responses has no ImageGeneration; it has CodeExecution,"),
        (CONNECTOR, {**MCP, "require_approval": "never"}, MCP),
        (WebFetch(), "openai-responses has no WebFetch; it has CodeExecution, FileSearch,", "has no WebFetch"),
        (ProviderTool("openai-responses", {"type": "local_shell"}), {"type": "local_shell"}, "no ProviderTool of openai-responses"),
        (ProviderTool("xai-responses", {"type": "x_search"}), "no ProviderTool of xai-responses", {"type": "x_search"}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
async def test_a_hosted_tool_is_said_in_the_providers_words_or_refused_by_name(
    tool: Any, openai: Any, xai: Any
):
    for model, said in ((GPT, openai), (GROK, xai)):
        if isinstance(said, str):
            with pytest.raises(AssertionError, match=said):
                await asked(model, hosted=[tool])
        else:
            assert (await asked(model, hosted=[tool], tools=[WEATHER])).sent["tools"][1:] == [said]


async def test_the_results_of_hosted_tools_are_asked_for():
    hosted = [WebSearch(), FileSearch(("vs_1",)), CodeExecution()]
    assert (await asked(hosted=hosted)).sent["include"] == [
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
        "file_search_call.results",
        "code_interpreter_call.outputs",
    ]
    plain = ModelSpec("openai-responses", "gpt-4.1")
    assert (await asked(plain, hosted=hosted[:1])).sent["include"] == ["web_search_call.action.sources"]
    assert (await asked(GROK, hosted=hosted[:1])).sent["include"] == ["reasoning.encrypted_content"]


async def test_the_limit_of_the_only_hosted_tool_is_said_and_any_other_reported(
    caplog: pytest.LogCaptureFixture,
):
    assert (await asked(hosted=[WebSearch(max_uses=2)])).sent["max_tool_calls"] == 2
    with caplog.at_level(logging.WARNING, "swink.providers"):
        sent = (await asked(hosted=[WebSearch(max_uses=2), CodeExecution()])).sent
    assert "max_tool_calls" not in sent
    assert "max_uses" in caplog.text


async def test_the_token_of_a_connector_is_shown_nowhere():
    refusal = b'{"error": {"message": "maps refused t0ken-of-maps"}}'
    client = MemoryClient(refusal, status=400, headers={"content-type": "application/json"})
    context = LlmContext("", [UserMessage("x")], (), [CONNECTOR])
    stream = ResponsesStreamFn(api_key="k")(GPT, context, StreamOptions(http=client))
    events = [event async for event in stream]
    assert b"t0ken-of-maps" in client.requests[-1].body
    assert isinstance(events[-1], Error)
    assert "maps refused" in events[-1].message
    assert "t0ken" not in repr(CONNECTOR) + repr(context) + events[-1].message


# --- structured output and options -----------------------------------------------------------------------------------

CLOSED = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}  # fmt: skip
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
WIDE = {"type": "object", "additionalProperties": {"type": "integer"}}


def with_a(schema: Any) -> dict[str, Any]:
    return {**CLOSED, "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({**OPEN, "required": ["a"]}, True),
        (OPEN, False),
        ({**CLOSED, "required": []}, False),
        (with_a(OPEN), False),
        (with_a(WIDE), False),
        (with_a({"type": "array", "items": {**OPEN, "required": ["a"]}}), True),
        (with_a({"type": "array", "items": OPEN}), False),
        (with_a({"anyOf": [CLOSED, {"type": "null"}]}), True),
        (with_a({"oneOf": [CLOSED, {"type": "null"}]}), False),
        ({**with_a({"$ref": "#/$defs/b"}), "$defs": {"b": OPEN}}, False),
        ({**with_a({"$ref": "#/$defs/b"}), "$defs": {"b": CLOSED}}, True),
        ({**with_a({"$ref": "#/$defs/b", "description": "B."}), "$defs": {"b": CLOSED}}, False),
        (with_a({"type": "string", "format": "date"}), True),
        (with_a({"type": "string", "format": "uri"}), False),
        (with_a({"type": "string", "minLength": 1}), False),
        (with_a({"type": "integer", "default": 1}), False),
        (with_a({}), False),
        ({"anyOf": [CLOSED]}, False),
        ({"type": "array", "items": CLOSED}, False),
    ],
)
def test_strict_mode_is_asked_for_only_where_it_takes_the_schema(schema: dict[str, Any], strict: bool):
    made = strict_schema(schema)
    assert (made is not None) is strict
    if made is not None:
        assert all("additionalProperties" in found for found in objects_of(made))


def objects_of(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for item in schema for found in objects_of(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + objects_of(list(schema.values()))


async def test_structured_output_is_native_and_keeps_reasoning_on():
    sent = (await asked(output=OutputSchema("a city", CLOSED), verbosity="low")).sent
    form = {"type": "json_schema", "name": "a_city", "schema": CLOSED, "strict": True}
    assert sent["text"] == {"format": form, "verbosity": "low"}
    assert sent["reasoning"]["effort"] == "high"
    assert (await asked(output=OutputSchema("o", OPEN))).sent["text"]["format"]["strict"] is False
    fn, context = ResponsesStreamFn(api_key="k"), LlmContext("", ())
    able = ModelSpec("openai-responses", "gpt-5.4", capabilities=Capabilities(json_schema=True))
    assert fn.native_output(able, context)
    assert not fn.native_output(GPT, context)


class City(Struct):
    name: str
    size: int


async def test_an_agent_searches_and_answers_in_a_schema_in_one_turn():
    text = '{"name": "Oslo", "size": 7}'
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }
    items = [
        {"type": "response.output_item.done", "output_index": at, "item": item}
        for at, item in enumerate((search, message))
    ]
    client = MemoryClient(sse(*items, names=True) + REPLY)
    options, fn = StreamOptions(http=client), ResponsesStreamFn(api_key="k")
    agent = Agent("openai-responses:gpt-5", stream_fn=fn, options=options, hosted=[WebSearch()])
    assert (await agent.run("Which city?", output=City)).output == City("Oslo", 7)
    assert (client.sent["tools"], client.sent["text"]["format"]["strict"]) == ([{"type": "web_search"}], True)
    assert len(client.requests) == 1
    await agent.run("Sure?")
    assert search in client.sent["input"]


async def test_options_are_sent_where_they_exist_and_reported_where_not(caplog: pytest.LogCaptureFixture):
    given = {"service_tier": "flex", "parallel_tool_calls": False, "session_id": "s", "headers": {"x-team": "blue"}}  # fmt: skip
    client = await asked(tools=[WEATHER], **given)
    assert client.sent.items() >= {
        "service_tier": "flex", "parallel_tool_calls": False, "prompt_cache_key": "s"
    }.items()  # fmt: skip
    assert client.requests[-1].headers["x-team"] == "blue"
    assert "parallel_tool_calls" not in (await asked(parallel_tool_calls=True)).sent
    assert len((await asked(session_id="s" * 65)).sent["prompt_cache_key"]) == 64, "more is refused"
    with caplog.at_level(logging.WARNING, "swink.providers"):
        await asked(stop=("END",), seed=7, top_p=0.5)
        await asked(GROK, service_tier="flex", verbosity="low", cache=False)
    for name in ("stop", "seed", "top_p", "service_tier", "verbosity", "cache"):
        assert f"option '{name}' is ignored" in caplog.text


async def test_models_that_do_not_think_now_take_a_temperature():
    silent = ModelSpec("openai-responses", "gpt-5.4", "off")
    sent = (await asked(silent, temperature=0.2, top_p=0.9)).sent
    assert (sent["reasoning"], sent["temperature"], sent["top_p"]) == ({"effort": "none"}, 0.2, 0.9)
    assert (await asked(GROK, temperature=0.2)).sent["temperature"] == 0.2


@compares_with("openai")
@pytest.mark.parametrize(
    ("name", "cache", "said"),
    [
        ("gpt-5.6", True, {}),
        ("gpt-5.6", "5m", {}),
        ("gpt-5.6", "1h", {"prompt_cache_options": {"ttl": "12h"}}),
        ("gpt-5.6", False, {"prompt_cache_options": {"mode": "explicit"}}),
        ("gpt-5.4", "1h", {"prompt_cache_retention": "24h"}),
        ("gpt-5.4", False, None),
        ("gpt-4o", "1h", None),
    ],
)
async def test_the_lifetime_of_the_cache(name: str, cache: Any, said: Any, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "swink.providers"):
        sent = (await asked(ModelSpec("openai-responses", name), cache=cache)).sent
    assert {field: value for field, value in sent.items() if field.startswith("prompt_cache")} == (said or {})
    assert ("'cache' is ignored" in caplog.text) is (said is None)


async def test_extra_adds_to_tools_includes_reasoning_and_text():
    extra = {
        "tools": [{"type": "local_shell"}],
        "include": ["message.output_text.logprobs"],
        "reasoning": {"context": "all_turns", "effort": "low"},
        "text": {"verbosity": "high"},
        "metadata": {"a": "b"},
    }
    sent = (await asked(tools=[WEATHER], output=OutputSchema("o", CLOSED), extra=extra)).sent
    assert [tool["type"] for tool in sent["tools"]] == ["function", "local_shell"]
    assert sent["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert sent["reasoning"] == {"context": "all_turns", "effort": "high", "summary": "auto"}
    assert (sent["text"]["verbosity"], sent["text"]["format"]["name"]) == ("high", "o")
    assert sent["metadata"] == {"a": "b"}


# --- xAI and Azure ---------------------------------------------------------------------------------------------------


async def test_grok_gets_the_system_prompt_as_an_item_and_its_own_efforts():
    client = await asked(GROK, system="Be brief.", session_id="s")
    assert client.requests[-1].url == "https://api.x.ai/v1/responses"
    assert client.requests[-1].headers["authorization"] == "Bearer k"
    assert client.sent == {
        "model": "grok-4.3",
        "input": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        ],
        "stream": True,
        "store": False,
        "reasoning": {"effort": "high"},
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "s",
    }


@pytest.mark.parametrize(
    ("base", "version", "url"),
    [
        (AZURE, None, f"{AZURE}/openai/v1/responses"),
        (f"{AZURE}/openai", None, f"{AZURE}/openai/v1/responses"),
        (f"{AZURE}/openai/v1", None, f"{AZURE}/openai/v1/responses"),
        (f"{AZURE}/openai/v1", "preview", f"{AZURE}/openai/v1/responses?api-version=preview"),
        (AZURE, "2025-04-01-preview", f"{AZURE}/openai/responses?api-version=2025-04-01-preview"),
    ],
)
async def test_azure_is_asked_where_the_resource_has_its_responses(base: str, version: Any, url: str):
    fn = AzureResponsesStreamFn(base_url=base, api_key="k", api_version=version, deployment="my-gpt")
    client = await asked(ModelSpec("azure-responses", "gpt-5.4"), fn=fn)
    assert (client.requests[-1].url, client.sent["model"]) == (url, "my-gpt")
    assert client.requests[-1].headers["api-key"] == "k"


async def test_azure_takes_a_token_of_entra_id_and_any_name_of_a_deployment():
    fn = AzureResponsesStreamFn(base_url=AZURE, token_provider=lambda: "entra-token")
    client = await asked(ModelSpec("azure-responses", "our-model", "high"), fn=fn)
    assert client.requests[-1].headers["authorization"] == "Bearer entra-token"
    assert client.sent["reasoning"] == {"effort": "high", "summary": "auto"}
    assert client.sent["include"] == ["reasoning.encrypted_content"]
    plain = await asked(ModelSpec("azure-responses", "our-model"), fn=fn, temperature=0.1)
    assert not {"reasoning", "include"} & set(plain.sent)
    assert plain.sent["temperature"] == 0.1


def test_a_deployments_own_address_is_no_address_of_responses():
    from swink.errors import MisuseError

    with pytest.raises(MisuseError, match="the resource"):
        AzureResponsesStreamFn(base_url=f"{AZURE}/openai/deployments/d", api_key="k")
