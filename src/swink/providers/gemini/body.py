"""The body of a request to Gemini.

A thought signature goes back on the part it came on. Thinking and calls carry theirs; text has no place for
one, so the signature of a text part stands before the text in a redacted thinking block of its own: `text:…`,
or `empty:…` for a part whose text was empty. The prefix cannot be mistaken, because signatures are base64.
"""

import mimetypes
import re
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
    ToolResultMessage,
    UrlSource,
)
from swink.providers.convert import NO_OUTPUT, input_schema, is_own, joined_text
from swink.providers.efforts import asked_level, refuse
from swink.providers.notices import Notices
from swink.stream import LlmContext, StreamOptions

OWN_ID = "swink-"
"""The prefix of ids that this adapter gives to calls without one; they are not sent to Gemini."""
ON_TEXT = "text:"
ON_EMPTY = "empty:"
SKIP_VALIDATION = "skip_thought_signature_validator"
"""What Google documents as the signature of a call that Gemini did not make itself."""

_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 16_384, "extra_high": 24_576}
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_LATEST = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest")


def request_body(
    model: ModelSpec,
    context: LlmContext,
    messages: Sequence[LlmMessage],
    options: StreamOptions,
    notices: Notices,
) -> dict[str, Any]:
    """The JSON body for one reply; `messages` are the context's, prepared."""
    body: dict[str, Any] = {"contents": _contents(messages, model)}
    if context.system_prompt.strip():
        body["systemInstruction"] = {"parts": [{"text": context.system_prompt}]}
    if context.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in context.tools]}]
        if options.tool_choice is not None:
            body["toolConfig"] = {"functionCallingConfig": _tool_choice(options.tool_choice)}
    if config := _generation_config(model, options, notices):
        body["generationConfig"] = config
    return body


def gemini_version(model_id: str) -> tuple[int, int]:
    """Major and minor version in a Gemini model's name; (0, 0) for anything else."""
    found = _VERSION.search(model_id.lower())
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _generation_config(model: ModelSpec, options: StreamOptions, notices: Notices) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if options.temperature is not None:
        config["temperature"] = options.temperature
    if options.max_tokens is not None:
        config["maxOutputTokens"] = options.max_tokens
    if thinking := _thinking_config(model, options.max_tokens, notices):
        config["thinkingConfig"] = thinking
    return config


def _thinking_config(model: ModelSpec, max_tokens: int | None, notices: Notices) -> dict[str, Any]:
    """A level for Gemini 3, a budget for 2.5, none for older ones; `off` is the least a model can do."""
    name, level = model.model_id.lower(), asked_level(model, notices)
    if level is None:
        return {}
    # Whatever the newest is, it takes a budget, as all do that think.
    version = gemini_version(f"gemini-2.5-{name}" if _LATEST.search(name) else name)
    if version < (2, 5) or any(word in name for word in ("image", "tts", "audio", "live", "embedding")):
        return refuse(model, notices, f"{model.model_id} takes none")
    shown = {"includeThoughts": True} if level != "off" else {}
    if level in model.thinking_budgets:
        return {**shown, "thinkingBudget": model.thinking_budgets[level]}
    if version >= (3, 0):
        return {**shown, "thinkingLevel": _level_name(level, version, name)}
    least, most = (128, 32_768) if "pro" in name else (0, 24_576)
    budget = min(_BUDGETS[level], most) if level != "off" else least
    if max_tokens is not None and budget >= max_tokens:
        budget = max(least, max_tokens // 2)
    return {**shown, "thinkingBudget": budget}


def _level_name(level: str, version: tuple[int, int], name: str) -> str:
    match level:
        case "off" | "minimal":
            return "MINIMAL" if "flash" in name else "LOW"
        case "low":
            return "LOW"
        case "medium" if "flash" in name or version > (3, 0):
            return "MEDIUM"
        case _:
            return "HIGH"


def _declaration(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": input_schema(tool)}


def _tool_choice(choice: str) -> dict[str, Any]:
    match choice:
        case "auto" | "none":
            return {"mode": choice.upper()}
        case "required":
            return {"mode": "ANY"}
        case name:
            return {"mode": "ANY", "allowedFunctionNames": [name]}


def _contents(messages: Sequence[LlmMessage], model: ModelSpec) -> list[dict[str, Any]]:
    """Contents, the user's first; the results of one turn are one content, and their pictures follow it."""
    contents: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    last = ""
    for message in messages:
        match message:
            case AssistantMessage():
                kind, parts = "model", _model_parts(message, model)
            case ToolResultMessage():
                kind, parts = "results", [_result_part(message, model, pictures)]
            case _:
                kind, parts = "user", _user_parts(message.content)
        if not parts:
            continue
        if not contents and kind == "model":
            contents.append({"role": "user", "parts": [{"text": "(continued)"}]})
        if pictures and kind != "results":
            contents.append({"role": "user", "parts": pictures})
            pictures, last = [], "user"
        if kind == last:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": "model" if kind == "model" else "user", "parts": parts})
        last = kind
    return [*contents, {"role": "user", "parts": pictures}] if pictures else contents


def _user_parts(content: Sequence[Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                parts.append({"text": text})
            case Image(Base64Source(data, media_type)):
                parts.append({"inlineData": {"mimeType": media_type, "data": data}})
            case Image(UrlSource(url)):
                parts.append(
                    {"fileData": {"mimeType": mimetypes.guess_type(url)[0] or "image/jpeg", "fileUri": url}}
                )
            case Extension("gemini", data):
                parts.append(data)
            case _:
                pass  # content of another provider's
    return parts


def _result_part(
    message: ToolResultMessage, model: ModelSpec, pictures: list[dict[str, Any]]
) -> dict[str, Any]:
    """A function response; from Gemini 3 on its pictures are part of it, before that they join `pictures`."""
    text = joined_text(message.content)
    own_pictures = [part for part in _user_parts(message.content) if "text" not in part]
    key = "error" if message.is_error else "output"
    response: dict[str, Any] = {
        "name": message.tool_name,
        "response": {key: text or ("(see image)" if own_pictures else NO_OUTPUT)},
    }
    if not message.tool_call_id.startswith(OWN_ID):
        response["id"] = message.tool_call_id
    if gemini_version(model.model_id) < (3, 0):
        pictures += own_pictures
    elif own_pictures:
        response["parts"] = own_pictures
    return {"functionResponse": response}


def _model_parts(message: AssistantMessage, model: ModelSpec) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    mine = is_own(message, model)
    signature: str | None = None  # of the text part that comes next
    for block in message.content:
        if signature is not None and type(block) is not Text:
            parts.append({"text": "", "thoughtSignature": signature})
            signature = None
        match block:
            case Text(text):
                parts.append(
                    {"text": text, "thoughtSignature": signature} if signature is not None else {"text": text}
                )
                signature = None
            case Thinking("", str() as signed, True) if mine and signed.startswith(ON_TEXT):
                signature = signed.removeprefix(ON_TEXT)
            case Thinking("", str() as signed, True) if mine:
                parts.append({"text": "", "thoughtSignature": signed.removeprefix(ON_EMPTY)})
            case Thinking(text, signed) if mine and (text or signed):
                thought: dict[str, Any] = {"text": text, "thought": True}
                parts.append({**thought, "thoughtSignature": signed} if signed else thought)
            case ToolCall():
                parts.append(_call_part(block, mine))
            case Extension("gemini", data):
                parts.append(data)
            case _:
                pass  # thinking of another model's, or nothing at all
    if signature is not None:
        parts.append({"text": "", "thoughtSignature": signature})
    if gemini_version(model.model_id) >= (3, 0) or model.model_id.endswith("-latest"):
        _sign_first_call(parts)
    return parts if any("thought" not in part for part in parts) else []


def _call_part(call: ToolCall, mine: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": call.name, "args": call.arguments}
    if not call.id.startswith(OWN_ID):
        function["id"] = call.id
    part: dict[str, Any] = {"functionCall": function}
    return {**part, "thoughtSignature": call.signature} if mine and call.signature else part


def _sign_first_call(parts: list[dict[str, Any]]) -> None:
    """Gemini 3 refuses a step whose first call is unsigned, as are those that another model made."""
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", SKIP_VALIDATION)
