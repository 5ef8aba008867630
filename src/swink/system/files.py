"""Files written whole: a reader finds the old content or the new, never a part of it, also after a crash.

    write_whole(path, data)            bytes that are at hand
    with whole_file(path) as file:     what is written piece by piece; an error leaves the old file as it was

Both write a temporary file in the same directory, flush it to the disk and rename it. A link at `path` is
replaced, not followed: a caller that wants to keep one resolves the path first.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

_OPTIONAL = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # not every system has each
READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in _OPTIONAL)
"""Flags to open a file that others may have put there: no link is followed, no pipe is waited for."""

_ENDING = ".part"


def write_whole(
    path: str | Path, data: bytes, *, private: bool = True, durable: bool = True, make_parents: bool = False
) -> None:
    """Replace a file, or create it; the options are those of `whole_file`."""
    with whole_file(path, private=private, durable=durable, make_parents=make_parents) as file:
        file.write(data)


@contextmanager
def whole_file(
    path: str | Path, *, private: bool = True, durable: bool = True, make_parents: bool = False
) -> Generator[BinaryIO]:
    """A file to write to, which takes its place when the block ends without an error.

    A private file is readable by its owner alone from its first byte on; another keeps the mode of the file
    that it replaces. What is not `durable` may be lost, or empty, after a power failure: for caches, and for
    files of which there are very many.
    """
    folder, name = os.path.split(path)
    if make_parents and folder:
        os.makedirs(folder, exist_ok=True)
    new = os.path.join(folder, temporary_name(name))
    file = open(new, "xb", opener=open_private if private else None)  # noqa: SIM115  closed before the rename
    try:
        with file:
            yield file
            file.flush()
            if not private:
                _keep_mode(new, path)
            if durable:
                os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise
    if durable:
        sync_directory(folder)


def temporary_name(name: str) -> str:
    """A name that is not in use, for a file that is going to have the given one; it is hidden."""
    shortened = os.fsencode(name)[:200].decode(errors="ignore")  # file systems take 255 bytes
    return f".{shortened}.{token_hex(4)}{_ENDING}"


def remove_leftovers(path: Path) -> None:
    """Delete what killed processes left of writing a file; only for a caller that nobody writes beside."""
    for left in path.parent.glob(f"*{_ENDING}"):
        if left.name.removeprefix(".").startswith(f"{path.name}."):
            left.unlink(missing_ok=True)


def open_private(path: str, flags: int) -> int:
    """An opener of files that nobody but their owner may read."""
    return os.open(path, flags, 0o600)


def sync_directory(directory: str | Path) -> None:
    """Make the names in a directory durable, where that can be done."""
    with suppress(OSError):  # Windows opens no directories, and some file systems do not sync them
        descriptor = os.open(directory or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _keep_mode(new: str, path: str | Path) -> None:
    with suppress(OSError):  # there was none, or its file system knows no modes
        os.chmod(new, stat.S_IMODE(os.stat(path).st_mode))
