"""The body of a request to Bedrock's Converse API.

Cache points stand after the tools, after the system prompt and in the last two messages of the user's side,
for the models that know them.
"""

import re
from collections.abc import Sequence
from typing import Any

from swink.errors import StreamError
from swink.messages import (
    AssistantMessage,
    Base64Source,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UrlSource,
)
from swink.providers.claude import (
    BUDGETS,
    LEAST_ANSWER,
    claude_effort,
    claude_version,
    without_thinking,
)
from swink.providers.convert import NO_OUTPUT, CallIds, Turns, input_schema, is_own
from swink.providers.efforts import asked_level, nearest, refuse, refuse_budget
from swink.providers.notices import Notices
from swink.stream import LlmContext, StreamOptions

_CACHE_POINT = {"cachePoint": {"type": "default"}}
_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_CACHING_CLAUDE = re.compile(r"claude-3-5-(haiku|sonnet-20241022)")
_CACHING_NOVA = re.compile(r"nova-(2-)?(micro|lite|pro|premier)")


def request_body(
    model: ModelSpec,
    context: LlmContext,
    messages: Sequence[LlmMessage],
    options: StreamOptions,
    notices: Notices,
) -> dict[str, Any]:
    """The JSON body for one reply; `messages` are the context's, prepared."""
    body: dict[str, Any] = {"messages": _turns(messages, model)}
    if context.system_prompt.strip():
        body["system"] = [{"text": context.system_prompt}]
    if tools := _tool_config(context, body["messages"], options.tool_choice):
        body["toolConfig"] = tools
    limits, additional = _limits_and_thinking(model, options, notices)
    if limits:
        body["inferenceConfig"] = limits
    if additional:
        body["additionalModelRequestFields"] = additional
    if options.cache:
        _mark_for_cache(body, model.model_id.lower())
    return body


def _limits_and_thinking(
    model: ModelSpec, options: StreamOptions, notices: Notices
) -> tuple[dict[str, Any], dict[str, Any]]:
    limits: dict[str, Any] = {}
    limit = options.max_tokens or model.max_output
    if limit:
        limits["maxTokens"] = limit
    additional = _thinking(model, options, limits, notices)
    if options.temperature is not None:
        if additional and claude_version(model.model_id) > (0, 0):
            notices.report("temperature", "this model takes none with thinking")
        else:
            limits["temperature"] = options.temperature
    return limits, additional


def _thinking(
    model: ModelSpec, options: StreamOptions, limits: dict[str, Any], notices: Notices
) -> dict[str, Any]:
    """The fields with which each family of models is asked to think."""
    level, name, version = asked_level(model, notices), model.model_id.lower(), claude_version(model.model_id)
    if level is None:
        return {}
    if version > (0, 0):
        if level == "off":
            return without_thinking(model, version, notices)
        if options.tool_choice not in (None, "auto", "none"):
            return refuse(model, notices, "this model does not think when a tool call is forced")
        if version >= (4, 6):
            refuse_budget(model, notices)
            effort = claude_effort(level, version, model.model_id)
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
        budget = model.thinking_budgets.get(level, BUDGETS[level])
        if "maxTokens" in limits and limits["maxTokens"] < budget + LEAST_ANSWER:
            limits["maxTokens"] = min(
                budget + max(limits["maxTokens"], LEAST_ANSWER), model.max_output or 2**31
            )
            budget = max(1024, min(budget, limits["maxTokens"] - LEAST_ANSWER))
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    refuse_budget(model, notices)
    effort = nearest(level, ("low", "medium", "high"))
    if "nova-2" in name:
        enabled = {"type": "enabled", "maxReasoningEffort": effort}
        return {"reasoningConfig": enabled if level != "off" else {"type": "disabled"}}
    if "gpt-oss" in name:
        return {"reasoning_effort": effort}
    return refuse(model, notices, f"no way is known to ask {model.model_id} for it")


def _tool_config(context: LlmContext, turns: list[dict[str, Any]], choice: str | None) -> dict[str, Any]:
    """The tools; those of the history are named even when none is offered, because Bedrock insists on it."""
    offered = () if choice == "none" else context.tools
    specs = [_tool_spec(tool.name, tool.description, input_schema(tool)) for tool in offered]
    if not specs:
        called = {
            block["toolUse"]["name"]: None
            for turn in turns
            for block in turn["content"]
            if "toolUse" in block
        }
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        specs = [_tool_spec(name, "No longer available.", schema) for name in called]
        return {"tools": specs} if specs else {}
    match choice:
        case None | "none":
            return {"tools": specs}
        case "auto":
            return {"tools": specs, "toolChoice": {"auto": {}}}
        case "required":
            return {"tools": specs, "toolChoice": {"any": {}}}
        case name:
            return {"tools": specs, "toolChoice": {"tool": {"name": name}}}


def _tool_spec(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": name, "inputSchema": {"json": schema}}
    return {"toolSpec": {**spec, "description": description} if description else spec}


def _turns(messages: Sequence[LlmMessage], model: ModelSpec) -> list[dict[str, Any]]:
    """Messages that alternate, the user's first; tool results join the user's message that follows them."""
    ids = CallIds(r"[a-zA-Z0-9_-]{1,64}", 30, "tooluse_")
    turns = Turns({"text": "(continued)"})
    for message in messages:
        match message:
            case AssistantMessage():
                turns.add("assistant", _assistant_blocks(message, model, ids))
            case ToolResultMessage():
                turns.add("user", [_result_block(message, ids)])
            case _:
                turns.add("user", _user_blocks(message.content))
    return turns.items


def _user_blocks(content: Sequence[Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                blocks.append({"text": text})
            case Image(source):
                blocks.append({"image": _image(source)})
            case Extension("bedrock", data):
                blocks.append(data)
            case _:
                pass  # content of another provider's
    return blocks


def _image(source: Any) -> dict[str, Any]:
    match source:
        case Base64Source(data, media_type) if media_type in _FORMATS:
            return {"format": _FORMATS[media_type], "source": {"bytes": data}}
        case Base64Source(_, media_type):
            raise StreamError(f"bedrock takes PNG, JPEG, GIF and WebP images, not {media_type}")
        case UrlSource(url) if url.startswith("s3://"):
            ending = url.rpartition(".")[2].lower()
            return {"format": "jpeg" if ending == "jpg" else ending, "source": {"s3Location": {"uri": url}}}
        case _:
            raise StreamError(
                "bedrock takes images as bytes, files or s3:// URLs; it fetches none from the web"
            )


def _result_block(message: ToolResultMessage, ids: CallIds) -> dict[str, Any]:
    content = _user_blocks(message.content) or [{"text": NO_OUTPUT}]
    status = "error" if message.is_error else "success"
    return {
        "toolResult": {"toolUseId": ids.result(message.tool_call_id), "content": content, "status": status}
    }


def _assistant_blocks(message: AssistantMessage, model: ModelSpec, ids: CallIds) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    mine = is_own(message, model)
    for block in message.content:
        match block:
            case Text(text):
                blocks.append({"text": text})
            case ToolCall(id, name, arguments):
                blocks.append({"toolUse": {"toolUseId": ids.call(id), "name": name, "input": arguments}})
            case Thinking(_, str() as data, True) if mine:
                blocks.append({"reasoningContent": {"redactedContent": data}})
            case Thinking(text, str() as signature) if mine:
                blocks.append({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}})
            case Extension("bedrock", data):
                blocks.append(data)
            case _:
                pass  # unsigned thinking, and thinking of another model's
    while blocks and "reasoningContent" in blocks[-1]:
        blocks.pop()  # a message may not end in thinking: that turn was cut off before it said anything
    return blocks


def _mark_for_cache(body: dict[str, Any], name: str) -> None:
    nova = bool(_CACHING_NOVA.search(name))
    claude = claude_version(name) >= (3, 7) or bool(_CACHING_CLAUDE.search(name))
    if not (nova or claude):
        return
    if claude and "toolConfig" in body:
        body["toolConfig"]["tools"].append(_CACHE_POINT)
    if "system" in body:
        body["system"].append(_CACHE_POINT)
    for turn in [turn for turn in body["messages"] if turn["role"] == "user"][-2:]:
        turn["content"].append(_CACHE_POINT)
