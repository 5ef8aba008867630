"""What a turn changed in the session state."""

from typing import Any

from swink.events import StateChanged
from swink.messages.codec import encode_state
from swink.messages.jsondata import decode


class StateWatch:
    """The session state, and what of it was told last."""

    __slots__ = ("state", "told")

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.told = encode_state(state)

    def changes(self) -> StateChanged | None:
        """What has changed since it was told last; it counts as told then."""
        before, self.told = self.told, encode_state(self.state)
        delta = {key: decode(value) for key, value in self.told.items() if before.get(key) != value}
        removed = tuple([key for key in before if key not in self.told])
        return StateChanged(delta, removed) if delta or removed else None
