"""Session state: a JSON dict shared with tools and policies, whose changes are told once a turn."""

import logging
from typing import Any

import msgspec

from swink.events import StateChanged
from swink.messages import plain

log = logging.getLogger("swink.state")


class StateChanges:
    """Tells what changed in a state since it was last asked."""

    __slots__ = ("_known", "_state")

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._known = _encoded(state)

    def snapshot(self) -> dict[str, Any]:
        """A copy of the state as JSON data; what is not JSON-able is left out."""
        return {key: msgspec.json.decode(value) for key, value in _encoded(self._state).items()} if self._state else {}

    def take(self) -> StateChanged | None:
        """The changes since the last call, or None."""
        if not self._state and not self._known:
            return None
        now = _encoded(self._state)
        delta = {key: msgspec.json.decode(value) for key, value in now.items() if self._known.get(key) != value}
        removed = tuple(key for key in self._known if key not in now)
        self._known = now
        return StateChanged(delta, removed) if delta or removed else None


def _encoded(state: dict[str, Any]) -> dict[str, bytes]:
    encoded: dict[str, bytes] = {}
    for key, value in list(state.items()):
        try:
            encoded[key] = msgspec.json.encode(value, enc_hook=plain)
        except (TypeError, ValueError, NotImplementedError, RecursionError, msgspec.EncodeError):
            log.warning("session state %r is not JSON-able and is not saved", key)
    return encoded
