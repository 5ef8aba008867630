"""The files of evaluation: written whole or not at all, and readable by their owner alone."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO, None, None]:
    """A file to write to, which takes its place when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, new = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(data)
