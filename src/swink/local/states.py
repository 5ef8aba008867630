"""The states of a local model on its way into memory; listeners are called with each.

Unloaded ─▶ Downloading ─▶ Loading ─▶ Ready | Failed
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swink.errors import AgentError


class Unloaded(Struct, frozen=True):
    """Nothing is in memory."""


class Downloading(Struct, frozen=True):
    """The weights are being downloaded; `total` is 0 while it is unknown, `rate` is in bytes per second."""

    model: str
    done: int = 0
    total: int = 0
    rate: float = 0.0
    step: Literal["waiting", "downloading", "checking"] = "downloading"


class Loading(Struct, frozen=True):
    """The weights are being read."""

    model: str
    done: int = 0
    total: int = 0


class Ready(Struct, frozen=True):
    """The model answers."""

    model: str
    path: Path


class Failed(Struct, frozen=True):
    """The last load failed; `retryable` if it may succeed the next time."""

    error: AgentError
    retryable: bool


State = Unloaded | Downloading | Loading | Ready | Failed
Listener = Callable[[State], None]
