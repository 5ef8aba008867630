"""The files that git tracks, from its index: whether a search through them stays inside."""

import os
import struct
from collections.abc import Iterator

from swink.tools.credentials import suspect
from swink.tools.place import Place
from swink.tools.repository import read_whole

MAX_INDEX = 8_000_000
"""Bytes of the largest index that is read to judge one command."""

_ENTRY = struct.Struct(">40x20xH")
"""Times, numbers, size and object of an entry (SHA-1), which say nothing here; then its flags."""
_EXTENDED = 0x4000


def all_may_be_read(place: Place) -> bool:
    """Whether `git grep` may read every tracked file; always so in a sandbox, which hides the others."""
    if not place.is_open:
        return True
    root = str(place.workspace.root)
    try:
        paths = list(_read_paths(_read_index(os.path.join(root, ".git"))))
    except (OSError, ValueError, IndexError, struct.error):
        return False
    # A directory that has become a link would be followed.
    directories = {os.path.dirname(path) for path in paths}
    if not all(
        os.path.realpath(full) == full
        for full in (os.path.join(root, directory).rstrip("/") for directory in directories)
    ):
        return False
    return all(
        place.inside(os.path.join(root, path))
        for path in paths
        if suspect(path) is not None or place.workspace.is_hidden(path)
    )


def _read_index(git: str) -> bytes:
    """The content of the index; nothing if there is none."""
    config = _read(os.path.join(git, "config"))
    if b"sha256" in config.lower():
        raise ValueError("objects have longer names")
    return _read(os.path.join(git, "index"))


def _read(path: str) -> bytes:
    try:
        return read_whole(path, MAX_INDEX)
    except FileNotFoundError:
        return b""


def _read_paths(data: bytes) -> Iterator[str]:
    """The paths of the entries; raises ValueError for what is no index."""
    if not data:
        return
    mark, version, count = struct.unpack_from(">4sII", data)
    if mark != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index")
    at, name = 12, b""
    for _ in range(count):
        start = at
        (flags,) = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size + (2 if flags & _EXTENDED else 0)
        kept = 0
        if version == 4:  # what this name has in common with the one before
            dropped, at = _read_number(data, at)
            kept = len(name) - dropped
            if kept < 0:
                raise ValueError("no index")
        end = data.index(0, at)
        name = name[:kept] + data[at:end]
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        yield os.fsdecode(name)


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits to a byte, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
