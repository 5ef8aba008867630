"""The body of a chat-completions request, and the dialects in which servers want it.

Tool results carry text only in most dialects, so their images follow in one user message after the whole
batch.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from swink.messages import (
    AssistantMessage,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.providers.convert import (
    NO_OUTPUT,
    CallIds,
    data_url,
    input_schema,
    is_own,
    joined_text,
)
from swink.providers.efforts import Style, chat_thinking, is_reasoning_model
from swink.providers.exchange import encode_body
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.stream import LlmContext, StreamOptions

_EPHEMERAL = {"type": "ephemeral"}


class Dialect(Struct, frozen=True):
    """How a server differs from the other servers that speak chat completions."""

    provider: str
    limit_field: str = "max_tokens"
    sends_limit: bool = True
    """Whether the model's own limit is sent by default: not to servers that count it against the window."""
    thinking: Style = "plain"
    replay: Literal["", "reasoning_content", "reasoning_details", "parts"] = ""
    """How thinking goes back to the model that wrote it."""
    session_field: str = ""
    usage_option: bool = True
    call_ids: tuple[str, int, str] = (r"[a-zA-Z0-9_-]{1,40}", 29, "call_")
    result_images: bool = False
    pads_after_results: bool = False

    @property
    def honours(self) -> frozenset[str]:
        """The options that this server can honour."""
        missing = {"cache"} if self.provider != "openrouter" else set[str]()
        return ALL_OPTIONS - missing - (set() if self.session_field else {"session_id"})


def request_body(
    model: ModelSpec,
    context: LlmContext,
    messages: Sequence[LlmMessage],
    options: StreamOptions,
    dialect: Dialect,
    notices: Notices,
) -> dict[str, Any]:
    """The JSON body for one reply; `messages` are the context's, prepared."""
    body: dict[str, Any] = {
        "model": model.model_id,
        "messages": _messages(model, context, messages, dialect),
        "stream": True,
    }
    if dialect.usage_option:
        body["stream_options"] = {"include_usage": True}
    if limit := options.max_tokens or (model.max_output if dialect.sends_limit else None):
        body[dialect.limit_field] = limit
    if options.temperature is not None:
        if dialect.thinking in ("openai", "azure") and is_reasoning_model(model.model_id):
            notices.report("temperature", f"{model.model_id} takes none")
        else:
            body["temperature"] = options.temperature
    body |= chat_thinking(model, dialect.thinking, notices)
    if "chat_template_kwargs" in body and "chat_template_kwargs" in options.extra:
        body["chat_template_kwargs"] = {
            **options.extra["chat_template_kwargs"],
            **body["chat_template_kwargs"],
        }
    if context.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": input_schema(tool),
                },
            }
            for tool in context.tools
        ]
        if options.tool_choice is not None:
            body["tool_choice"] = tool_choice(options.tool_choice)
    if dialect.session_field and options.session_id:
        body[dialect.session_field] = options.session_id
    if dialect.provider == "openrouter" and not model.model_id.startswith("anthropic/"):
        if not options.cache:
            notices.report("cache", f"{model.model_id} is cached by its provider, or not at all")
    elif dialect.provider == "openrouter" and options.cache:
        _mark_for_cache(body["messages"])
    return body


def tool_choice(choice: str) -> Any:
    """`tool_choice` of chat completions."""
    return (
        choice
        if choice in ("auto", "none", "required")
        else {"type": "function", "function": {"name": choice}}
    )


def _messages(
    model: ModelSpec, context: LlmContext, messages: Sequence[LlmMessage], dialect: Dialect
) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    ids = CallIds(*dialect.call_ids)
    if context.system_prompt.strip():
        sent.append({"role": "system", "content": context.system_prompt})
    last_question = (
        max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
        if dialect.replay
        else -1
    )
    for at, message in enumerate(messages):
        if images and not isinstance(message, ToolResultMessage):
            sent.append(_images_message(images))
            images = []
        match message:
            case AssistantMessage():
                if (turn := _assistant(message, model, ids, dialect, in_loop=at > last_question)) is not None:
                    sent.append(turn)
            case ToolResultMessage():
                sent.append(_result(message, ids, dialect, images))
            case UserMessage():
                if dialect.pads_after_results and sent and sent[-1]["role"] == "tool":
                    sent.append({"role": "assistant", "content": "OK."})
                if content := _parts(message.content, dialect):
                    sent.append({"role": "user", "content": _plain_if_possible(content)})
    if images:
        sent.append(_images_message(images))
    return sent


def _assistant(
    message: AssistantMessage, model: ModelSpec, ids: CallIds, dialect: Dialect, *, in_loop: bool
) -> dict[str, Any] | None:
    text = "".join([block.text for block in message.content if type(block) is Text])
    calls = [_call(block, ids) for block in message.content if type(block) is ToolCall]
    if not text and not calls:
        return None
    turn: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        turn["tool_calls"] = calls
    if not dialect.replay:
        return turn
    thoughts = (
        [block for block in message.content if type(block) is Thinking] if is_own(message, model) else []
    )
    match dialect.replay:
        case "reasoning_content" if in_loop and thoughts:
            turn["reasoning_content"] = "".join(block.text for block in thoughts)
        case "reasoning_details" if signed := [block.signature for block in thoughts if block.signature]:
            turn["reasoning_details"] = _details(signed[-1])  # each holds those before it
        case "parts" if thoughts:
            turn["content"] = [_thinking_part(block) for block in thoughts if block.text] + _parts(
                message.content, dialect
            )
        case _:
            pass
    return turn


def _call(call: ToolCall, ids: CallIds) -> dict[str, Any]:
    try:
        arguments = _encode(call.arguments).decode()
    except (UnicodeEncodeError, TypeError, NotImplementedError):
        arguments = encode_body(call.arguments, {}).decode()
    return {
        "id": ids.call(call.id),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


_encode = msgspec.json.Encoder().encode


def _thinking_part(block: Thinking) -> dict[str, Any]:
    part = {"type": "thinking", "thinking": [{"type": "text", "text": block.text}]}
    return {**part, "signature": block.signature} if block.signature else part


def _details(signature: str) -> list[Any]:
    try:
        return msgspec.json.decode(signature, type=list[Any])
    except (msgspec.DecodeError, UnicodeError):
        return []


def _result(
    message: ToolResultMessage, ids: CallIds, dialect: Dialect, images: list[dict[str, Any]]
) -> dict[str, Any]:
    if len(message.content) == 1 and isinstance(only := message.content[0], Text):
        return {"role": "tool", "tool_call_id": ids.result(message.tool_call_id), "content": only.text}
    parts = _parts(message.content, dialect)
    pictures = [part for part in parts if part["type"] == "image_url"]
    sent: dict[str, Any] = {"role": "tool", "tool_call_id": ids.result(message.tool_call_id)}
    if dialect.result_images and pictures:
        return {**sent, "content": parts}
    if pictures:
        images += [{"type": "text", "text": f"Image from the result of {message.tool_name}:"}, *pictures]
    return {
        **sent,
        "content": joined_text(message.content) or ("(an image follows)" if pictures else NO_OUTPUT),
    }


def _images_message(images: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": images}


def _parts(content: Sequence[Any], dialect: Dialect) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                parts.append({"type": "text", "text": text})
            case Image(source):
                parts.append({"type": "image_url", "image_url": {"url": data_url(source)}})
            case Extension(name, data) if name == dialect.provider:
                parts.append(data)
            case _:
                pass  # content of another provider's
    return parts


def _plain_if_possible(parts: list[dict[str, Any]]) -> Any:
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _mark_for_cache(messages: list[dict[str, Any]]) -> None:
    """Cache breakpoints for Claude behind OpenRouter: on the system prompt and the last two user messages."""
    users = [message for message in messages if message["role"] == "user"]
    for message in [message for message in messages[:1] if message["role"] == "system"] + users[-2:]:
        content: Any = message["content"]
        parts: list[dict[str, Any]] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        )
        message["content"] = [*parts[:-1], {**parts[-1], "cache_control": _EPHEMERAL}]
