"""Git's index: the tracked files with the names of their contents, and the directories it has unchanged."""

import os
import stat
import struct
from collections.abc import Mapping

from msgspec import Struct

from swink.system.files import READ
from swink.tools.coding.credentials import suspect
from swink.tools.coding.gitobjects import read_number
from swink.tools.coding.shellcontext import ShellContext

MAX_INDEX = 8_000_000
"""Bytes of the largest index that is read to judge one command."""

_ENTRY = struct.Struct(">24xI12x20sH")
"""Of an entry its mode, its object (SHA-1) and its flags; times, numbers and size say nothing here."""
_EXTENDED = 0x4000
_SUBMODULE = 0o160000
_SUBMODULE_BYTES = _SUBMODULE.to_bytes(4, "big")


class Index(Struct, frozen=True):
    """Each path with the name of its content, and the names of trees that hold what is in a directory."""

    entries: tuple[tuple[str, str], ...]
    trees: Mapping[str, str]
    has_submodules: bool = False


def read_index(git: str) -> Index:
    """The index of a repository; an empty one if there is none."""
    config = _read(os.path.join(git, "config"))
    if b"sha256" in config.lower():
        raise ValueError("objects have longer names")
    return _read_entries(_read(os.path.join(git, "index")))


def all_may_be_read(shell: ShellContext) -> bool:
    """Whether `git grep` may read every tracked file; always so in a sandbox, which hides the others."""
    if not shell.is_open:
        return True
    root = str(shell.workspace.root)
    try:
        paths = [path for path, _ in read_index(os.path.join(root, ".git")).entries]
    except (OSError, ValueError, IndexError, struct.error):
        return False
    # A directory that has become a link would be followed.
    directories = {os.path.join(root, os.path.dirname(path)).rstrip("/") for path in paths}
    if not all(os.path.realpath(full) == full for full in directories):
        return False
    doubtful = [path for path in paths if suspect(path) is not None or shell.workspace.is_hidden(path)]
    return all(shell.inside(os.path.join(root, path)) for path in doubtful)


def has_submodules(data: bytes) -> bool:
    """Whether an index, given as bytes, has an entry that is a submodule; also if it is not understood."""
    if _SUBMODULE_BYTES not in data:
        return False
    try:
        return _read_entries(data).has_submodules
    except (ValueError, IndexError, struct.error):
        return True


def read_whole(path: str, most: int) -> bytes:
    """A whole regular file; ValueError if it is something else or too large."""
    fd = os.open(path, READ)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise ValueError(path)
        return file.read(most)


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
    at, name, modes = 12, b"", set[int]()
    for _ in range(count):
        start = at
        mode, content, flags = _ENTRY.unpack_from(data, at)
        modes.add(mode)
        at += _ENTRY.size + (2 if flags & _EXTENDED else 0)
        kept = 0
        if version == 4:  # what this name has in common with the one before
            dropped, at = read_number(data, at)
            kept = len(name) - dropped
            if kept < 0:
                raise ValueError("no index")
        end = data.index(0, at)
        name = name[:kept] + data[at:end]
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        entries.append((os.fsdecode(name), content.hex()))
    return Index(tuple(entries), _read_trees(data, at), _SUBMODULE in modes)


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
