"""The body of a request to the Anthropic Messages API.

Breakpoints for the prompt cache stand on the last tool, on the system prompt and on the last two messages of
the user's side: the four that the API allows, so that each turn reads what the turn before wrote.
"""

from collections.abc import Sequence
from typing import Any

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
from swink.providers.efforts import asked_level, refuse, refuse_budget
from swink.providers.notices import Notices
from swink.stream import LlmContext, StreamOptions

DEFAULT_MAX_TOKENS = 32_000

_EPHEMERAL = {"type": "ephemeral"}


def request_body(
    model: ModelSpec,
    context: LlmContext,
    messages: Sequence[LlmMessage],
    options: StreamOptions,
    notices: Notices,
) -> dict[str, Any]:
    """The JSON body for one reply; `messages` are the context's, prepared."""
    body: dict[str, Any] = {"model": model.model_id, "stream": True}
    body |= _thinking_and_limits(model, options, notices)
    if context.system_prompt.strip():
        body["system"] = [{"type": "text", "text": context.system_prompt}]
    body["messages"] = _turns(messages, model)
    if context.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": input_schema(tool)}
            for tool in context.tools
        ]
        if options.tool_choice is not None:
            body["tool_choice"] = _tool_choice(options.tool_choice)
    if options.session_id:
        body["metadata"] = {"user_id": options.session_id}
    if options.cache:
        _mark_for_cache(body)
    return body


def _thinking_and_limits(model: ModelSpec, options: StreamOptions, notices: Notices) -> dict[str, Any]:
    level = asked_level(model, notices)
    version = claude_version(model.model_id)
    limit = options.max_tokens or model.max_output or DEFAULT_MAX_TOKENS
    if level not in (None, "off") and options.tool_choice not in (None, "auto", "none"):
        refuse(model, notices, "this provider does not think when a tool call is forced")
        level = "off"
    if level is None or level == "off":
        fields: dict[str, Any] = {
            "max_tokens": limit,
            **(without_thinking(model, version, notices) if level else {}),
        }
    elif version >= (4, 6):
        fields = {
            "max_tokens": limit,
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": claude_effort(level, version, model.model_id)},
        }
        if version >= (4, 7):
            fields["thinking"]["display"] = "summarized"
        refuse_budget(model, notices)
    else:
        fields = _budget_fields(model.thinking_budgets.get(level, BUDGETS[level]), limit, model.max_output)
    if options.temperature is not None:
        if level not in (None, "off"):
            notices.report("temperature", "this provider takes none with thinking")
        elif version >= (4, 7):
            notices.report("temperature", f"{model.model_id} takes none")
        else:
            fields["temperature"] = options.temperature
    return fields


def _budget_fields(budget: int, limit: int, most: int | None) -> dict[str, Any]:
    """A thinking budget inside a limit that leaves room for the answer."""
    if limit < budget + LEAST_ANSWER:
        limit = budget + max(limit, LEAST_ANSWER)
    if most is not None:
        limit = min(limit, most)
    budget = max(1024, min(budget, limit - LEAST_ANSWER))
    return {"max_tokens": max(limit, budget + 1), "thinking": {"type": "enabled", "budget_tokens": budget}}


def _tool_choice(choice: str) -> dict[str, Any]:
    match choice:
        case "auto" | "none":
            return {"type": choice}
        case "required":
            return {"type": "any"}
        case name:
            return {"type": "tool", "name": name}


def _turns(messages: Sequence[LlmMessage], model: ModelSpec) -> list[dict[str, Any]]:
    """Messages that alternate, the user's first; tool results join the user's message that follows them."""
    ids = CallIds(r"[a-zA-Z0-9_-]{1,64}", 30, "toolu_")
    turns = Turns({"type": "text", "text": "(continued)"})
    for message in messages:
        if isinstance(message, AssistantMessage):
            turns.add("assistant", _assistant_blocks(message, model, ids))
        elif message.role == "user":
            turns.add("user", _user_blocks(message.content))
        else:
            turns.add("user", [_result_block(message, ids)])
    return turns.items


def _user_blocks(content: Sequence[Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                blocks.append({"type": "text", "text": text})
            case Image(Base64Source(data, media_type)):
                blocks.append(
                    {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
                )
            case Image(UrlSource(url)):
                blocks.append({"type": "image", "source": {"type": "url", "url": url}})
            case Extension("anthropic", data):
                blocks.append(data)
            case _:
                pass  # content of another provider's
    return blocks


def _result_block(message: Any, ids: CallIds) -> dict[str, Any]:
    content = _user_blocks(message.content) or [{"type": "text", "text": NO_OUTPUT}]
    block = {"type": "tool_result", "tool_use_id": ids.result(message.tool_call_id), "content": content}
    return {**block, "is_error": True} if message.is_error else block


def _assistant_blocks(message: AssistantMessage, model: ModelSpec, ids: CallIds) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    mine = is_own(message, model)
    for block in message.content:
        match block:
            case Text(text):
                blocks.append({"type": "text", "text": text})
            case ToolCall(id, name, arguments):
                blocks.append({"type": "tool_use", "id": ids.call(id), "name": name, "input": arguments})
            case Thinking(_, str() as data, True) if mine:
                blocks.append({"type": "redacted_thinking", "data": data})
            case Thinking(text, str() as signature) if mine:
                blocks.append({"type": "thinking", "thinking": text, "signature": signature})
            case Extension("anthropic", data):
                blocks.append(data)
            case _:
                pass  # unsigned thinking, and thinking of another model's
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()  # a message may not end in thinking: that turn was cut off before it said anything
    return blocks


def _mark_for_cache(body: dict[str, Any]) -> None:
    last_blocks = [turn["content"][-1] for turn in body["messages"] if turn["role"] == "user"][-2:]
    for marked in (*body.get("tools", [])[-1:], *body.get("system", [])[-1:], *last_blocks):
        marked["cache_control"] = _EPHEMERAL
