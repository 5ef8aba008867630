"""What a provider accepts as a request: the request types of its SDK, and the rules that it states beside them.

check_request(adapter, body)   the body fits the types, no text in it is blank, and calls and results belong together
calls_and_results(…)           the tool calls and tool results of a body, each as (id, name) in the order they are sent

An SDK takes up to two seconds to import, so each is imported where it is needed.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import botocore.session
from adapters import AdapterCase
from botocore.validate import ParamValidator
from loopback import check_types

from swink.messages import AssistantMessage, ModelSpec, ToolResultMessage
from swink.providers.proxy.wire import decode_request

Pairs = tuple[list[tuple[str, str]], list[tuple[str, str]]]

CONVERSE = (
    botocore.session.Session()
    .get_service_model("bedrock-runtime")
    .operation_model("ConverseStream")
    .input_shape
)
ID_SHAPES = {
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "vertex-claude": r"[a-zA-Z0-9_-]{1,64}",
    "openai": r"[a-zA-Z0-9_-]{1,40}",
    "azure": r"[a-zA-Z0-9_-]{1,40}",
    "xai": r"[a-zA-Z0-9_-]{1,40}",
    "openai-responses": r"[a-zA-Z0-9_-]{1,64}",
    "azure-responses": r"[a-zA-Z0-9_-]{1,64}",
    "xai-responses": r"[a-zA-Z0-9_-]{1,64}",
    "mistral": r"[a-zA-Z0-9]{9}",
    "bedrock": r"[a-zA-Z0-9_-]{1,64}",
}
NAME_SHAPE = r"[a-zA-Z0-9_-]{1,64}"


def check_anthropic(body: dict[str, Any]) -> None:
    """The SDK's types, which know no temperature and no top_p any more; turns that alternate, the user's first; results in their place."""
    from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming

    typed = {key: value for key, value in body.items() if key not in ("temperature", "top_p")}
    if "tools" in body:  # of a schema they know the words that all have
        typed["tools"] = [
            {**tool, "input_schema": {"type": "object"}} if "input_schema" in tool else tool
            for tool in body["tools"]
        ]
    check_types(MessageCreateParamsStreaming, typed)
    roles = [message["role"] for message in body["messages"]]
    assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
    asked: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        assert content
        if message["role"] == "assistant":
            asked = [block["id"] for block in content if block["type"] == "tool_use"]
            assert content[-1]["type"] not in ("thinking", "redacted_thinking")
        else:
            # Results open the message right after the calls.
            given = [
                block["tool_use_id"] for block in content[: len(asked)] if block["type"] == "tool_result"
            ]
            assert given == asked
            assert not any(block["type"] == "tool_result" for block in content[len(asked) :])
            asked = []
    assert not asked
    assert sum(1 for _ in _having(body, "cache_control")) <= 4


def check_chat(body: dict[str, Any]) -> None:
    """OpenAI's types; every assistant message says something; results follow their calls."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    check_types(CompletionCreateParamsStreaming, body)
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
        if message["role"] == "assistant":
            assert message.get("content") or message.get("tool_calls")
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
        else:
            assert message["content"]
    assert not waiting


def check_responses(body: dict[str, Any]) -> None:
    """OpenAI's types; reasoning is followed by what it led to."""
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    check_types(ResponseCreateParamsStreaming, body)
    items = body["input"]
    for item, following in zip(items, [*items[1:], {}], strict=True):
        if item.get("type") == "reasoning":
            is_output = following.get("type", "message") not in ("message", "function_call_output")
            assert following.get("role") == "assistant" or is_output
        if item.get("type") == "function_call":
            assert isinstance(json.loads(item["arguments"]), dict)


def check_mistral(body: dict[str, Any]) -> None:
    """The SDK takes the body for one of its requests, knows every field of it, and no user message follows a result."""
    from mistralai.client.models import ChatCompletionStreamRequest

    known = ChatCompletionStreamRequest.model_validate(body).model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    assert set(known) == set(body)
    roles = [message["role"] for message in body["messages"]]
    assert [message["role"] for message in known["messages"]] == roles
    for ours, theirs in zip(body["messages"], known["messages"], strict=True):
        assert set(ours) <= set(theirs)
    assert ("tool", "user") not in pairwise(roles)


def check_ollama(body: dict[str, Any]) -> None:
    """The body fits the SDK's types, and no message is blank."""
    from ollama._types import ChatRequest, Message, Tool

    ChatRequest.model_validate(body)
    for message in body["messages"]:
        assert set(message) <= {*Message.model_fields, "tool_call_id"}  # newer servers name the call
        Message.model_validate(
            {**message, "images": [{"value": image} for image in message.get("images", [])]}
        )
        assert message["content"].strip() or message.get("tool_calls") or message.get("images")
    for tool in body.get("tools", []):
        Tool.model_validate(tool)


def check_gemini(body: dict[str, Any]) -> None:
    """Every part of a body fits the SDK's types, which refuse unknown fields; the first content is the user's."""
    from google.genai import types

    for content in body["contents"]:
        types.Content.model_validate_json(json.dumps(content))
        assert content["parts"]
        assert all(part.get("text") != "" or "thoughtSignature" in part for part in content["parts"])
    for tool in body.get("tools", []):
        types.Tool.model_validate_json(json.dumps(tool))
    types.GenerationConfig.model_validate_json(json.dumps(body.get("generationConfig", {})))
    types.ToolConfig.model_validate_json(json.dumps(body.get("toolConfig", {})))
    if "systemInstruction" in body:
        types.Content.model_validate_json(json.dumps(body["systemInstruction"]))


def check_bedrock(body: dict[str, Any], model: ModelSpec) -> None:
    """The body fits the service model, in botocore's eyes."""
    report = ParamValidator().validate({**boto_parameters(body), "modelId": model.model_id}, CONVERSE)
    assert not report.has_errors(), report.generate_report()
    for message in body["messages"]:
        assert message["content"]
        assert all(block.get("text", "x").strip() for block in message["content"])


def boto_parameters(value: Any, key: str = "") -> Any:
    """A JSON body as boto3 takes it: bytes where the wire has base64."""
    match value:
        case dict():
            return {name: boto_parameters(item, name) for name, item in value.items()}
        case list():
            return [boto_parameters(item) for item in value]
        case str() if key in ("bytes", "redactedContent"):
            return base64.b64decode(value)
        case _:
            return value


def check_alternation(turns: list[dict[str, Any]], assistant: str) -> None:
    """The user speaks first, then both in turn."""
    roles = [turn["role"] for turn in turns]
    assert roles == (["user", assistant] * len(roles))[: len(roles)]


def check_request(adapter: AdapterCase, body: dict[str, Any]) -> None:
    """Everything that is known of what the target of an adapter accepts."""
    match adapter.name:
        case "anthropic":
            check_anthropic(body)
        case "openai" | "azure" | "xai":
            check_chat(body)
        case "openai-responses" | "azure-responses" | "xai-responses":
            check_responses(body)
        case "mistral":
            check_mistral(body)
        case "ollama":
            check_ollama(body)
        case "vertex-claude":
            assert body.pop("anthropic_version") == "vertex-2023-10-16"
            check_anthropic({"model": adapter.model.model_id, **body})
        case "gemini" | "vertex":
            check_gemini(body)
            assert body["contents"][0]["role"] == "user"
        case "bedrock":
            check_bedrock(body, adapter.model)
            check_alternation(body["messages"], "assistant")
        case "proxy":
            decode_request(json.dumps(body).encode())
    if adapter.name != "proxy":  # which passes a history on as it is
        check_no_blank_text(body)
        check_pairs(adapter.name, *calls_and_results(adapter.name, body))


def check_no_blank_text(body: dict[str, Any]) -> None:
    """No text block is blank, save Gemini's empty parts that carry a signature; thinking is as it was."""
    for block in _having(
        {key: value for key, value in body.items() if key not in ("system", "tools")}, "text"
    ):
        if isinstance(block["text"], str) and not block.keys() & {"thoughtSignature", "thought", "signature"}:
            assert block["text"].strip(), block


def check_pairs(provider: str, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    """Each call has one result, in order, and where there are ids they fit the target and are unique."""
    assert [id for id, _ in calls] == [id for id, _ in results]
    assert all(name == other for (_, name), (_, other) in zip(calls, results, strict=True) if name and other)
    for _, name in calls:
        assert re.fullmatch(NAME_SHAPE, name), name
    shape = ID_SHAPES.get(provider)
    if shape is not None:
        assert all(re.fullmatch(shape, id) for id, _ in calls), calls
        assert len(set(calls)) == len({id for id, _ in calls}) == len(calls)


def calls_and_results(provider: str, body: dict[str, Any]) -> Pairs:
    """The calls and the results of a body as (id, name); an id or a name that the protocol does not have is empty."""
    calls: list[tuple[str, str]] = []
    results: list[tuple[str, str]] = []
    _READERS[provider](body, calls, results)
    return calls, results


def _read_anthropic(body: Any, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    for block in (block for message in body["messages"] for block in message["content"]):
        if block["type"] == "tool_use":
            calls.append((block["id"], block["name"]))
        elif block["type"] == "tool_result":
            results.append((block["tool_use_id"], ""))


def _read_chat(body: Any, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    for message in body["messages"]:
        calls += [(call["id"], call["function"]["name"]) for call in message.get("tool_calls") or ()]
        if message["role"] == "tool":
            results.append((message["tool_call_id"], message.get("name") or ""))


def _read_responses(body: Any, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    for item in body["input"]:
        if item.get("type") == "function_call":
            calls.append((item["call_id"], item["name"]))
        elif item.get("type") == "function_call_output":
            results.append((item["call_id"], ""))


def _read_ollama(body: Any, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    for message in body["messages"]:
        calls += [("", call["function"]["name"]) for call in message.get("tool_calls") or ()]
        if message["role"] == "tool":
            results.append(("", message["tool_name"]))


def _read_gemini(body: Any, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    for part in (part for content in body["contents"] for part in content["parts"]):
        if "functionCall" in part:
            calls.append((part["functionCall"].get("id", ""), part["functionCall"]["name"]))
        elif "functionResponse" in part:
            results.append((part["functionResponse"].get("id", ""), part["functionResponse"]["name"]))


def _read_bedrock(body: Any, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    for block in (block for message in body["messages"] for block in message["content"]):
        if "toolUse" in block and block["toolUse"].get("type") != "server_tool_use":
            calls.append((block["toolUse"]["toolUseId"], block["toolUse"]["name"]))
        elif "toolResult" in block and "type" not in block["toolResult"]:
            results.append((block["toolResult"]["toolUseId"], ""))


def _read_proxy(body: Any, calls: list[tuple[str, str]], results: list[tuple[str, str]]) -> None:
    for message in decode_request(json.dumps(body).encode()).messages:
        match message:
            case AssistantMessage():
                calls += [(call.id, call.name) for call in message.tool_calls]
            case ToolResultMessage(id, name):
                results.append((id, name))
            case _:
                pass


_READERS: dict[str, Callable[..., None]] = {
    "anthropic": _read_anthropic,
    "vertex-claude": _read_anthropic,
    "openai": _read_chat,
    "azure": _read_chat,
    "xai": _read_chat,
    "mistral": _read_chat,
    "openai-responses": _read_responses,
    "azure-responses": _read_responses,
    "xai-responses": _read_responses,
    "ollama": _read_ollama,
    "gemini": _read_gemini,
    "vertex": _read_gemini,
    "bedrock": _read_bedrock,
    "proxy": _read_proxy,
}


def _having(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """Every object in some JSON that has a key."""
    match value:
        case dict():
            if key in value:
                yield value
            for name, item in value.items():
                if name != "thinking":
                    yield from _having(item, key)
        case list():
            for item in value:
                yield from _having(item, key)
        case _:
            pass
