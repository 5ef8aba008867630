"""The machine's abilities, as skips that name what is missing, and a look at what tests leave behind."""

import asyncio
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swink.tools.coding.backends import Backend
from swink.tools.coding.sandbox import Sandbox, SandboxUnavailable


def _trouble(backend: Backend) -> str:
    async def look() -> str:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                await Sandbox(scratch, "workspace", backends=(backend,)).backend()
            except SandboxUnavailable as error:
                return str(error)
        return ""

    return asyncio.run(look())


@pytest.fixture(scope="session")
def troubles() -> dict[str, str]:
    """Why a backend cannot be used on this machine; empty for those that can."""
    return {"none": "", "bubblewrap": _trouble("bubblewrap"), "landlock": _trouble("landlock")}


@pytest.fixture
def need(troubles: dict[str, str]):
    """Skip where a backend does not work."""

    def check(backend: str) -> None:
        if backend == "bubblewrap" and shutil.which("bwrap") is None:
            pytest.skip("needs bwrap (package bubblewrap)")
        if troubles[backend]:
            pytest.skip(troubles[backend])

    return check


@pytest.fixture(autouse=True, scope="module")
def nothing_in_temp() -> Iterator[None]:
    """No directory of a sandbox outlives it; those of other tests are not looked at."""

    def directories() -> set[Path]:
        return set(Path(tempfile.gettempdir()).glob(f"swink-{os.getpid()}-*"))

    before = directories()
    yield
    gc.collect()
    left = directories() - before
    assert not left, f"left in the temp directory: {left}"
