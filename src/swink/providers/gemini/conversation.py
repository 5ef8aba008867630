"""A history as Gemini's contents, each message converted once, in order.

A thought signature goes back on the part that it came on: that of a call, a text or a thought stands on its
block, that of media in an extension before it. Parts that are none of these go back as they came.
"""

import mimetypes
import re
from collections.abc import Sequence
from typing import Any, cast

from swink.errors import StreamError
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Document,
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
from swink.providers.convert import NO_OUTPUT, is_own, joined_text

OWN_ID = "swink-"
"""The prefix of ids that this adapter gives to calls without one; they are not sent to Gemini."""
MEDIA_PART = "mediaPart"
"""In an extension: what else stood on the part of the image or audio that follows."""
SKIP_VALIDATION = "skip_thought_signature_validator"
"""What Google documents as the signature of a call that Gemini did not make itself."""

_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_NEWEST = re.compile(r"gemini-[a-z-]*latest")
_NO_PARTS = ({"groundingMetadata"}, {"urlContextMetadata"})
_FALLBACKS = {Image: "image/jpeg", Document: "application/pdf", Audio: "audio/mpeg"}


def gemini_version(model_id: str) -> tuple[int, int]:
    """Major and minor version in a Gemini model's name; (0, 0) for anything else."""
    found = _VERSION.search(model_id.lower())
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def is_third(model_id: str) -> bool:
    """Whether a model is of Gemini 3 or newer; names without a version stand for the newest."""
    return gemini_version(model_id) >= (3, 0) or _NEWEST.search(model_id.lower()) is not None


class Contents:
    """The contents of one conversation, the user's first.

    The results of one turn are one content; media in them follow in one of their own before Gemini 3.
    """

    def __init__(self, model: ModelSpec) -> None:
        self.items: list[dict[str, Any]] = []
        self._model = model
        self._third = is_third(model.model_id)
        self._last = ""

    def add(self, message: LlmMessage) -> None:
        match message:
            case AssistantMessage():
                parts = _model_parts(message, self._model)
                if parts and not self.items:
                    self._put("user", [{"text": "(continued)"}])
                self._put("model", parts)
            case ToolResultMessage():
                self._add_result(message)
            case _:
                self._put("user", user_parts(message.content))

    def _put(self, kind: str, parts: list[dict[str, Any]]) -> None:
        """Parts join the last content if it is of the same kind."""
        if not parts:
            return
        if kind == self._last or (kind == "user" and self._last == "media"):
            self.items[-1]["parts"] += parts
        else:
            self.items.append({"role": "model" if kind == "model" else "user", "parts": parts})
        self._last = kind

    def _add_result(self, message: ToolResultMessage) -> None:
        media = [part for part in user_parts(message.content) if "text" not in part]
        key = "error" if message.is_error else "output"
        text = joined_text(message.content) or ("(see image)" if media else NO_OUTPUT)
        response: dict[str, Any] = {"name": message.tool_name, "response": {key: text}}
        if not message.tool_call_id.startswith(OWN_ID):
            response["id"] = message.tool_call_id
        if self._third and media:
            response["parts"] = media
        waiting: list[dict[str, Any]] = []
        if self._last == "media":
            waiting = self.items.pop()["parts"]
            self._last = "results"
        self._put("results", [{"functionResponse": response}])
        self._put("media", waiting if self._third else waiting + media)


def user_parts(content: Sequence[Any]) -> list[dict[str, Any]]:
    """What a user or a tool said, part by part."""
    parts: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                parts.append({"text": text})
            case Document(source, title) if title:
                parts += [{"text": f"{title}:"}, _media_part(block, source)]
            case Image(source) | Document(source) | Audio(source):
                parts.append(_media_part(block, source))
            case Extension("gemini", data) if _is_part(data):
                parts.append(data)
            case _:
                pass  # content of another provider's
    return parts


def _media_part(block: Image | Document | Audio, source: Any) -> dict[str, Any]:
    match source:
        case UrlSource(url):
            media_type = mimetypes.guess_type(url.partition("?")[0])[0] or _FALLBACKS[type(block)]
            return {"fileData": {"mimeType": media_type, "fileUri": url}}
        case Base64Source(data, media_type):
            return {"inlineData": {"mimeType": media_type, "data": data}}
        case _:
            raise StreamError(f"{type(block).__name__.lower()} {source} was not read")


def _model_parts(message: AssistantMessage, model: ModelSpec) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    mine = is_own(message, model)
    beside: dict[str, Any] = {}  # what stands on the part of the media that come next
    for block in message.content:
        match block:
            case Text(text):
                parts.append(_signed({"text": text}, block.signature if mine else None))
            case Thinking(text, signature, False) if mine and (text or signature):
                parts.append(_signed({"text": text, "thought": True}, signature))
            case ToolCall():
                parts.append(_call_part(block, mine))
            case Image(source) | Audio(source) if mine:
                parts.append({**_media_part(block, source), **beside})
                beside = {}
            case Extension("gemini", data) if mine and isinstance(data, dict) and MEDIA_PART in data:
                beside = cast("dict[str, dict[str, Any]]", data)[MEDIA_PART]
            case Extension("gemini", data) if mine and _is_part(data):
                parts.append(data)
            case _:
                pass  # thinking, media and parts of another model's
    if message.stop_reason in ("error", "aborted", "length"):
        parts = _without_open_uses(parts)
    if is_third(model.model_id):
        _sign_first_call(parts)
    return parts if any("thought" not in part for part in parts) else []


def _without_open_uses(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of a reply that was cut off, without uses of hosted tools whose result never came."""
    answered = {part["toolResponse"].get("id") for part in parts if "toolResponse" in part}
    ran = max((at for at, part in enumerate(parts) if "codeExecutionResult" in part), default=-1)
    return [
        part
        for at, part in enumerate(parts)
        if not ("executableCode" in part and at > ran)
        and not ("toolCall" in part and part["toolCall"].get("id") not in answered)
    ]


def _is_part(data: Any) -> bool:
    """Whether an extension holds a part, and not what stood beside the content."""
    return isinstance(data, dict) and data.keys() not in _NO_PARTS and MEDIA_PART not in data


def _call_part(call: ToolCall, mine: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": call.name, "args": call.arguments}
    if not call.id.startswith(OWN_ID):
        function["id"] = call.id
    return _signed({"functionCall": function}, call.signature if mine else None)


def _signed(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return {**part, "thoughtSignature": signature} if signature else part


def _sign_first_call(parts: list[dict[str, Any]]) -> None:
    """Gemini 3 refuses a step whose first call is unsigned, as are those that another model made."""
    for at, part in enumerate(parts):
        if "functionCall" in part:
            parts[at] = {"thoughtSignature": SKIP_VALIDATION, **part}
            return
