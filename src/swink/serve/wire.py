"""What the protocols of the model server share: a request as the model sees it, and a refusal."""

import logging
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from swink.errors import AgentError, InvalidInput, ModelError, NetworkError
from swink.messages import ModelSpec, Text
from swink.messages.redact import describe_error
from swink.stream import Error, LlmContext, StreamOptions

logger = logging.getLogger("swink.serve")


class Refused(Exception):
    """The request gets a status instead of a reply."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ServedRequest(Struct, frozen=True):
    """One request for a reply, as the model is asked."""

    context: LlmContext
    options: StreamOptions
    stream: bool = False
    counts: bool = True
    """Whether the client wants the number of tokens at the end of a stream."""


class ServedTool(Struct, frozen=True):
    """A tool that the client runs."""

    name: str
    description: str
    parameters_schema: dict[str, Any]


def read_request(body: Any) -> Mapping[str, Any]:
    """The fields of a request; raises `Refused` if it has no messages."""
    request = fields(body)
    if not isinstance(request.get("messages"), list):
        raise Refused(400, "a request has a list of messages")
    return request


def served_tool(name: str, about: Mapping[str, Any], schema: Any) -> ServedTool:
    """A tool that a request describes; one without parameters may leave its schema out."""
    if schema is None:
        schema = {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping):
        raise Refused(400, "the parameters of a tool are a JSON Schema")
    return ServedTool(name, str(about.get("description") or ""), dict(cast("Mapping[str, Any]", schema)))


def options_of(**given: Any) -> StreamOptions:
    """The options that the client gave; raises `Refused` for one that cannot be."""
    try:
        return StreamOptions(**{name: value for name, value in given.items() if value is not None})
    except (InvalidInput, TypeError) as error:
        raise Refused(400, str(error)) from None


def text_block(part: Any, where: str) -> Text:
    """A part of a message's content; raises `Refused` for what is no text."""
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image_url" | "image"}:
            raise Refused(400, "the local model takes no images; send text only")
        case {"type": kind}:
            raise Refused(400, f"{where} has a part of type {kind!r}; the local model takes text only")
        case _:
            raise Refused(400, f"{where} has a part that is no object with a type")


def sse(data: Any, event: str | None = None) -> bytes:
    """A server-sent event, with its name if the protocol has names."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + (data if isinstance(data, bytes) else msgspec.json.encode(data)) + b"\n\n"


def error_event(error: Exception, model: ModelSpec) -> Error:
    """The end of a reply that failed. What is no `AgentError` is for the server's log, not for clients."""
    if not isinstance(error, AgentError):
        logger.warning("%s: the stream function failed: %s", model, describe_error(error))
        error = NetworkError("the server failed while it asked the model")
    message = error.message if isinstance(error, ModelError) else str(error)
    return Error(message, error.kind, getattr(error, "retry_after", None))


def fields(value: Any) -> Mapping[str, Any]:
    """An object, or none at all."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def members(value: Any) -> list[Any]:
    """A list, or none at all."""
    return cast("list[Any]", value) if isinstance(value, list) else []
