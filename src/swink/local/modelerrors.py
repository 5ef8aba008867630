"""Why a local model cannot be used.

ModelError
└── LocalModelError      the message says what to do; `again` is True if the same call may be repeated
    ├── ExtraMissing     an optional package is not installed; the message holds the install command
    ├── PullFailed       the weights did not arrive whole
    ├── LoadFailed       llama.cpp cannot load the file
    └── LoadCancelled    somebody cancelled the load that this caller was waiting for
"""

from typing import ClassVar

from swink.errors import ModelError


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
    """The load was cancelled."""

    again = True
