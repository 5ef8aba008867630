"""What the tests compare with: other packages, in the version that constraints.txt has."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

PINS = dict(
    line.split("==")
    for line in (Path(__file__).parents[1] / "constraints.txt").read_text("utf-8").splitlines()
    if "==" in line
)
"""The versions that the project is tested with, by package."""


def compares_with(package: str) -> Any:
    """Skip a test where another version than the pinned one is installed, as with the oldest requirements."""
    try:
        installed = version(package)
    except PackageNotFoundError:
        installed = "not installed"
    wanted = PINS[package]
    return pytest.mark.skipif(
        installed != wanted, reason=f"it compares with {package} {wanted}, and here that is {installed}"
    )
