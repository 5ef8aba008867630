"""The states of a local model on its way into memory, and the errors that say why it cannot be used.

Unloaded ─▶ Downloading ─▶ Loading ─▶ Ready | Failed          listeners are called with each

ModelError
└── LocalModelError      the message says what to do; `again` is True if the same call may be repeated
    ├── ExtraMissing     an optional package is not installed; the message holds the install command
    ├── PullFailed       the weights did not arrive whole
    ├── LoadFailed       llama.cpp cannot load the file
    └── LoadCancelled    the load that this caller was waiting for was cancelled
"""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import Struct

from swink.errors import AgentError, ModelError


class Unloaded(Struct, frozen=True):
    """Nothing is in memory yet, or not any more."""


class Downloading(Struct, frozen=True):
    """The weights are being downloaded; `total` is 0 while it is unknown, `rate` is in bytes per second.

    Args:
        model: its name
        done: bytes so far
        step: whether it waits for another process, downloads, or checks what came
    """

    model: str
    done: int = 0
    total: int = 0
    rate: float = 0.0
    step: Literal["waiting", "downloading", "checking"] = "downloading"


class Loading(Struct, frozen=True):
    """The weights are being read.

    Args:
        model: its name
        done: bytes so far
        total: bytes in all
    """

    model: str
    done: int = 0
    total: int = 0


class Ready(Struct, frozen=True):
    """The model is in memory and answers requests.

    Args:
        model: its name
        path: its file
    """

    model: str
    path: Path


class Failed(Struct, frozen=True):
    """The last load failed; `retryable` if it may succeed the next time.

    Args:
        error: what went wrong
    """

    error: AgentError
    retryable: bool


State = Unloaded | Downloading | Loading | Ready | Failed
Listener = Callable[[State], None]


class LocalModelError(ModelError):
    """The local model cannot be used."""

    again: ClassVar[bool] = False


class ExtraMissing(LocalModelError):
    """An optional package is not installed."""


class PullFailed(LocalModelError):
    """The weights did not arrive whole."""

    # Not `retryable`: pip and the hub client have already tried several times.
    again = True


class LoadFailed(LocalModelError):
    """llama.cpp cannot load the file."""


class LoadCancelled(LocalModelError):
    """The load that was waited for was cancelled; the next request starts it again."""

    again = True
