"""Messages and session state as JSON, and back."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from swink.messages import Message, ToolResultMessage

log = logging.getLogger("swink.state")


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Messages as JSON."""
    return msgspec.json.encode(savable(messages), enc_hook=plain)


def savable(messages: Iterable[Message]) -> list[Message]:
    """The messages as JSON can hold them: details that it cannot hold become the name of their type."""
    return [
        _savable(item) if isinstance(item, ToolResultMessage) and item.details is not None else item
        for item in messages
    ]


def _savable(message: ToolResultMessage) -> ToolResultMessage:
    try:
        msgspec.json.encode(message.details, enc_hook=plain)
    except Exception:
        # What is no JSON, and whatever a foreign `model_dump` raises.
        return replace(message, details=f"<{type(message.details).__name__}>")
    return message


def decode_messages(data: bytes | str) -> list[Message]:
    """Messages from JSON; unknown fields are ignored, an unknown role is an error that names it."""
    return _messages_decoder.decode(data)


def to_builtins(value: Any) -> Any:
    """Any value of ours as plain JSON data, lists and not tuples."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain))


def messages_from_builtins(data: Any) -> list[Message]:
    """The inverse of `to_builtins` for a list of messages."""
    return msgspec.convert(data, list[Message])


def encode_state(state: Mapping[str, Any]) -> Mapping[str, bytes]:
    """The session state as JSON, key by key; what is not JSON-able is left out."""
    if not state:
        return _NO_STATE
    result: dict[str, bytes] = {}
    for key, value in list(state.items()):
        try:
            result[key] = msgspec.json.encode(value, enc_hook=plain)
        except Exception:
            # What is no JSON, and whatever a foreign `model_dump` raises.
            log.warning("session state %r is not JSON-able and is not saved", key)
    return result


def copy_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the session state as JSON data."""
    return {key: msgspec.json.decode(value) for key, value in encode_state(state).items()}


def plain(value: Any) -> Any:
    """msgspec's hook for foreign types: pydantic models as dicts, paths as text."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is not JSON-able")


_messages_decoder: msgspec.json.Decoder[list[Message]] = msgspec.json.Decoder(list[Message])
_NO_STATE: Mapping[str, bytes] = {}
