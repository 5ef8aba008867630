"""Messages and session state as JSON, and back."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from swink.messages.jsondata import UNREADABLE, as_key, decode, encode, from_data, read, refuse, unreadable
from swink.messages.jsondata import plain as plain
from swink.messages.message import Message

log = logging.getLogger("swink.state")


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Messages as JSON; details that have no JSON form become the name of their type."""
    return b"[" + b",".join(map(encode, messages)) + b"]"


def decode_messages(data: bytes | str) -> list[Message]:
    """Messages from JSON; unknown fields are ignored, an unknown role is an `InvalidInput` that names it."""
    return read(_messages_decoder, data, "a list of messages")


def to_builtins(value: Any) -> Any:
    """Any value of ours as plain JSON data, lists and not tuples; whatever is in it."""
    return msgspec.json.decode(encode(value))


def messages_from_builtins(data: Any) -> list[Message]:
    """The inverse of `to_builtins` for a list of messages, with the errors of `decode_messages`."""
    try:
        return msgspec.convert(from_data(data), list[Message])
    except UNREADABLE as error:
        raise unreadable("a list of messages", error) from error


def encode_state(state: Mapping[str, Any]) -> Mapping[str, bytes]:
    """The session state as JSON, key by key; what is not JSON-able is left out."""
    if not state:
        return _NO_STATE
    result: dict[str, bytes] = {}
    for key, value in list(state.items()):
        try:
            result[as_key(key)] = encode(value, refuse)
        except Exception:
            # What is no JSON, and whatever a foreign `model_dump` raises.
            log.warning("session state %r is not JSON-able and is not saved", key)
    return result


def copy_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the session state as JSON data."""
    if not state:
        return {}
    return {key: decode(value) for key, value in encode_state(state).items()}


_messages_decoder: msgspec.json.Decoder[list[Message]] = msgspec.json.Decoder(list[Message])
_NO_STATE: Mapping[str, bytes] = {}
