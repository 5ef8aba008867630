"""The files that git tracks, from its index: their contents by name, and the directories it has unchanged."""

import os
import struct
from collections.abc import Mapping

from msgspec import Struct

from swink.tools.credentials import suspect
from swink.tools.place import Place
from swink.tools.repository import read_whole

MAX_INDEX = 8_000_000
"""Bytes of the largest index that is read to judge one command."""

_ENTRY = struct.Struct(">40x20sH")
"""Times, numbers and size of an entry, which say nothing here; then its object (SHA-1) and its flags."""
_EXTENDED = 0x4000


class Index(Struct, frozen=True):
    """Each path with the name of its content, and the names of trees that hold what is in a directory."""

    entries: tuple[tuple[str, str], ...]
    trees: Mapping[str, str]


def all_may_be_read(place: Place) -> bool:
    """Whether `git grep` may read every tracked file; always so in a sandbox, which hides the others."""
    if not place.is_open:
        return True
    root = str(place.workspace.root)
    try:
        paths = [path for path, _ in read_index(os.path.join(root, ".git")).entries]
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


def read_index(git: str) -> Index:
    """The index of a repository; an empty one if there is none."""
    config = _read(os.path.join(git, "config"))
    if b"sha256" in config.lower():
        raise ValueError("objects have longer names")
    return _read_entries(_read(os.path.join(git, "index")))


def _read(path: str) -> bytes:
    try:
        return read_whole(path, MAX_INDEX)
    except FileNotFoundError:
        return b""


def _read_entries(data: bytes) -> Index:
    """What an index holds; raises ValueError for what is none."""
    if not data:
        return Index((), {})
    mark, version, count = struct.unpack_from(">4sII", data)
    if mark != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index")
    entries: list[tuple[str, str]] = []
    at, name = 12, b""
    for _ in range(count):
        start = at
        content, flags = _ENTRY.unpack_from(data, at)
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
        entries.append((os.fsdecode(name), content.hex()))
    return Index(tuple(entries), _read_trees(data, at))


def _read_trees(data: bytes, at: int) -> dict[str, str]:
    """The trees that the index knows, from its extension of that name; the data ends with a checksum."""
    while at + 8 <= len(data) - 20:
        mark, size = struct.unpack_from(">4sI", data, at)
        if mark == b"TREE":
            found: dict[str, str] = {}
            _read_tree(data, at + 8, "", found)
            return found
        if mark[:1].islower():
            raise ValueError("an index that is not whole")
        at += 8 + size
    return {}


def _read_tree(data: bytes, at: int, above: str, found: dict[str, str]) -> int:
    """One directory of the extension, and those in it: name, number of entries and directories, object."""
    name, _, rest = data[at : at + 5_000].partition(b"\0")
    count, _, rest = rest.partition(b" ")
    below, _, _ = rest.partition(b"\n")
    at += len(name) + len(count) + len(below) + 3
    path = os.path.join(above, os.fsdecode(name))
    if int(count) >= 0:
        found[path] = data[at : at + 20].hex()
        at += 20
    for _ in range(int(below)):
        at = _read_tree(data, at, path, found)
    return at


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits to a byte, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
