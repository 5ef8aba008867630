"""Fixtures of the tests of memory."""

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.postgres import postgres as postgres

Patched = Callable[[pytest.MonkeyPatch, Callable[..., Any]], None]


@pytest.fixture
def instead_of_sync() -> Patched:
    """Puts a function in the place of what makes a file durable, which is another one on each system."""

    def put(patch: pytest.MonkeyPatch, function: Callable[..., Any]) -> None:
        for name in ("fdatasync", "fsync"):
            patch.setattr(os, name, function, raising=False)
        if sys.platform == "darwin":
            patch.setattr("fcntl.fcntl", function)

    return put
