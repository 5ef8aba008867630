"""What a turn changed in the session state."""

from collections.abc import Callable, Mapping
from typing import Any

from swink.events import StateChanged
from swink.messages.codec import encode_state
from swink.messages.jsondata import decode


def state_changes(
    state: Mapping[str, Any], told: Mapping[str, bytes], tell: Callable[[StateChanged], None]
) -> Mapping[str, bytes]:
    """Tell what has changed in the state since it was told last, if anything; the state as it is told now."""
    now = encode_state(state)
    delta = {key: decode(value) for key, value in now.items() if told.get(key) != value}
    removed = tuple([key for key in told if key not in now])
    if delta or removed:
        tell(StateChanged(delta, removed))
    return now
