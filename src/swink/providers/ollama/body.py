"""The body of a request to Ollama's native chat endpoint.

The size of the context is always stated, because with its default a server silently cuts the beginning off,
system prompt and tools included. It is the smallest power of two that holds the prompt and an answer, so that
a growing conversation makes the server load the model anew only a few times.
"""

from collections.abc import Sequence
from typing import Any

from swink.errors import StreamError
from swink.messages import AssistantMessage, Base64Source, Image, LlmMessage, ModelSpec, ToolResultMessage
from swink.providers.convert import NO_OUTPUT, input_schema, is_own, joined_text
from swink.providers.efforts import asked_level, nearest, refuse_budget
from swink.providers.exchange import encode_body
from swink.providers.notices import Notices
from swink.stream import LlmContext, StreamOptions

LEAST_CONTEXT = 8192
ANSWER = 4096


def request_body(
    model: ModelSpec,
    context: LlmContext,
    messages: Sequence[LlmMessage],
    options: StreamOptions,
    notices: Notices,
) -> dict[str, Any]:
    """The JSON body for one reply, without the context size; `messages` are the context's, prepared."""
    settings: dict[str, Any] = {}
    if options.temperature is not None:
        settings["temperature"] = options.temperature
    if options.max_tokens is not None:
        settings["num_predict"] = options.max_tokens
    body: dict[str, Any] = {
        "model": model.model_id,
        "messages": _messages(context.system_prompt, messages, model),
        "stream": True,
        "truncate": False,
        "think": _think(model, notices),
        "options": settings,
    }
    if context.tools and options.tool_choice != "none":
        body["tools"] = [_tool(tool) for tool in context.tools]
        if options.tool_choice not in (None, "auto"):
            notices.report("tool_choice", "this provider lets the model decide")
    return body


def estimated_tokens(body: dict[str, Any]) -> int:
    """How many tokens the prompt takes, at four characters each; images aside."""
    characters = len(encode_body({"tools": body["tools"]}, {})) if body.get("tools") else 0
    for message in body["messages"]:
        characters += len(message["content"]) + len(message.get("thinking", ""))
        if calls := message.get("tool_calls"):
            characters += len(encode_body({"tool_calls": calls}, {}))
    return characters // 4


def context_size(estimate: int, options: StreamOptions, model: ModelSpec) -> int:
    """How large a context to ask for."""
    needed = estimate * 5 // 4 + (options.max_tokens or ANSWER)
    size = LEAST_CONTEXT
    while size < needed:
        size *= 2
    return min(size, model.context_window) if model.context_window else size


def _think(model: ModelSpec, notices: Notices) -> bool | str:
    """Whether to think; gpt-oss takes a level alone, and always thinks."""
    level = asked_level(model, notices)
    refuse_budget(model, notices)
    if level is None or "gpt-oss" not in model.model_id:
        return level not in (None, "off")
    return nearest(level, ("low", "medium", "high"))


def _tool(tool: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": input_schema(tool)},
    }


def _messages(system: str, messages: Sequence[LlmMessage], model: ModelSpec) -> list[dict[str, Any]]:
    """Messages in order; pictures that tools returned follow their results in a message of the user's."""
    sent: list[dict[str, Any]] = [{"role": "system", "content": system}] if system.strip() else []
    pictures: list[str] = []
    for message in messages:
        if pictures and not isinstance(message, ToolResultMessage):
            sent.append(_picture_message(pictures))
            pictures = []
        match message:
            case AssistantMessage():
                if said := _assistant(message, model):
                    sent.append(said)
            case ToolResultMessage():
                sent.append(
                    {"role": "tool", "tool_name": message.tool_name, "content": _result_text(message)}
                )
                pictures += _images(message.content)
            case _:
                asked: dict[str, Any] = {"role": "user", "content": joined_text(message.content)}
                if images := _images(message.content):
                    asked["images"] = images
                if asked["content"] or images:
                    sent.append(asked)
    return [*sent, _picture_message(pictures)] if pictures else sent


def _picture_message(pictures: list[str]) -> dict[str, Any]:
    return {"role": "user", "content": "(images from the tool results above)", "images": pictures}


def _images(content: Sequence[Any]) -> list[str]:
    images: list[str] = []
    for block in content:
        match block:
            case Image(Base64Source(data)):
                images.append(data)
            case Image():
                raise StreamError("ollama takes images as bytes or files; it fetches none from the web")
            case _:
                pass
    return images


def _result_text(message: ToolResultMessage) -> str:
    text = joined_text(message.content) or NO_OUTPUT
    return f"error: {text}" if message.is_error and not text.lower().startswith("error") else text


def _assistant(message: AssistantMessage, model: ModelSpec) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": joined_text(message.content)}
    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in message.tool_calls]
    if message.thinking and is_own(message, model):
        said["thinking"] = message.thinking
    if calls:
        said["tool_calls"] = calls
    return said if said["content"] or calls else {}
