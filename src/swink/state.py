"""Session state: a JSON dict shared with tools and policies, whose changes are told once a turn."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from swink.codec import plain
from swink.events import StateChanged

_NOTHING: Mapping[str, bytes] = {}

log = logging.getLogger("swink.state")


def encoded(state: Mapping[str, Any]) -> Mapping[str, bytes]:
    """The state as JSON, key by key; what is not JSON-able is left out."""
    if not state:
        return _NOTHING
    result: dict[str, bytes] = {}
    for key, value in list(state.items()):
        try:
            result[key] = msgspec.json.encode(value, enc_hook=plain)
        except Exception:
            # What is no JSON, and whatever a foreign `model_dump` raises.
            log.warning("session state %r is not JSON-able and is not saved", key)
    return result


def copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the state as JSON data."""
    return {key: msgspec.json.decode(value) for key, value in encoded(state).items()}


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> StateChanged | None:
    """What changed from one encoded state to another, or None."""
    delta = {key: msgspec.json.decode(value) for key, value in after.items() if before.get(key) != value}
    removed = tuple([key for key in before if key not in after])
    return StateChanged(delta, removed) if delta or removed else None
