"""The body of a request to the OpenAI Responses API.

Nothing is stored on the provider's side: the whole history goes along, and reasoning travels as the encrypted
items that the model wrote, each right before what it led to.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

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
from swink.providers.efforts import (
    asked_level,
    is_reasoning_model,
    nearest,
    openai_efforts,
    refuse,
    refuse_budget,
)
from swink.providers.exchange import encode_body
from swink.providers.notices import Notices
from swink.stream import LlmContext, StreamOptions


def request_body(
    model: ModelSpec,
    context: LlmContext,
    messages: Sequence[LlmMessage],
    options: StreamOptions,
    notices: Notices,
) -> dict[str, Any]:
    """The JSON body for one reply; `messages` are the context's, prepared."""
    body: dict[str, Any] = {
        "model": model.model_id,
        "input": _items(messages, model),
        "stream": True,
        "store": False,
    }
    if context.system_prompt.strip():
        body["instructions"] = context.system_prompt
    if limit := options.max_tokens or model.max_output:
        body["max_output_tokens"] = limit
    level = asked_level(model, notices)
    if is_reasoning_model(model.model_id):
        body["include"] = ["reasoning.encrypted_content"]
    if level is not None and (efforts := openai_efforts(model.model_id)):
        shown = {"summary": "auto"} if level != "off" else {}
        body["reasoning"] = {"effort": nearest(level, efforts), **shown}
        refuse_budget(model, notices)
    elif level is not None:
        refuse(model, notices, f"{model.model_id} takes none")
    if options.temperature is not None and is_reasoning_model(model.model_id):
        notices.report("temperature", f"{model.model_id} takes none")
    elif options.temperature is not None:
        body["temperature"] = options.temperature
    if context.tools:
        # Strict schemas are the default here, and refuse optional parameters.
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": input_schema(tool),
                "strict": False,
            }
            for tool in context.tools
        ]
        if (choice := options.tool_choice) is not None:
            body["tool_choice"] = (
                choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}
            )
    if options.session_id:
        body["prompt_cache_key"] = options.session_id
    return body


def _items(messages: Sequence[LlmMessage], model: ModelSpec) -> list[dict[str, Any]]:
    ids = CallIds(r"[a-zA-Z0-9_-]{1,64}", 29, "call_")
    items: list[dict[str, Any]] = []
    for message in messages:
        match message:
            case UserMessage():
                if content := _parts(message.content):
                    items.append({"role": "user", "content": content})
            case AssistantMessage():
                items += _assistant_items(message, model, ids, len(items))
            case ToolResultMessage():
                items.append(
                    {
                        "type": "function_call_output",
                        "call_id": ids.result(message.tool_call_id),
                        "output": _output(message),
                    }
                )
    return items


def _assistant_items(
    message: AssistantMessage, model: ModelSpec, ids: CallIds, position: int
) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    mine = is_own(message, model)
    for block in message.content:
        match block:
            case Text(text):
                items.append(_output_message(text, position + len(items)))
            case ToolCall(id, name, arguments):
                encoded = encode_body(arguments, {}).decode()
                items.append(
                    {"type": "function_call", "call_id": ids.call(id), "name": name, "arguments": encoded}
                )
            case Thinking(_, str() as signature) if mine:
                items += _reasoning_item(signature)
            case Extension("openai-responses", data):
                items.append(data)
            case _:
                pass  # thinking of another model's
    while items and items[-1].get("type") == "reasoning":
        items.pop()  # it led to nothing, and the API wants what it led to
    return items


def _output_message(text: str, position: int) -> dict[str, Any]:
    """Text as an output item, which may follow reasoning; not every server knows the short form."""
    content = [{"type": "output_text", "text": text, "annotations": list[Any]()}]
    return {
        "type": "message",
        "id": f"msg_{position}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def _reasoning_item(signature: str) -> list[dict[str, Any]]:
    try:
        item = msgspec.json.decode(signature, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        return []
    return [item] if item.get("type") == "reasoning" and item.get("encrypted_content") else []


def _output(message: ToolResultMessage) -> Any:
    if any(type(block) is Image for block in message.content):
        return _parts(message.content)
    return joined_text(message.content) or NO_OUTPUT


def _parts(content: Sequence[Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                parts.append({"type": "input_text", "text": text})
            case Image(source):
                parts.append({"type": "input_image", "image_url": data_url(source), "detail": "auto"})
            case Extension("openai-responses", data):
                parts.append(data)
            case _:
                pass  # content of another provider's
    return parts
