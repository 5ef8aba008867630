"""Git's objects, read from loose files and packs: nothing has to run to learn what a command would print.

objects/ab/cdef…       one object, zlib: "kind size\\0content"
objects/pack/*.idx     names in order and where each is in the pack
objects/pack/*.pack    objects, many of them as a difference (delta) to another one
"""

import io
import os
import re
import stat
import struct
import zlib
from typing import Literal, cast

from msgspec import Struct

from swink.system.files import READ

Kind = Literal["commit", "tree", "blob", "tag"]

MAX_OBJECTS = 400
"""Objects read to judge one command; where it takes more, it asks."""
MAX_SIZE = 8_000_000
_MAX_CHAIN = 200
_CHUNK = 16_384
_KINDS: dict[int, Kind] = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _NAME_DELTA = 6, 7
_HEADER = re.compile(rb"(commit|tree|blob|tag) (\d{1,12})\0")
_NAME = re.compile(r"[0-9a-f]{4,40}")


class Uncertain(Exception):
    """What a git command would print cannot be told, or not at little cost."""


class TreeEntry(Struct, frozen=True):
    """What a tree has under a name."""

    name: str
    is_tree: bool


class Objects:
    """The objects of a repository with names of 40 digits; a block closes its files."""

    def __init__(self, git: str) -> None:
        self._top = os.path.join(git, "objects")
        self._left = MAX_OBJECTS
        self._packs: list[_Pack] | None = None

    def __enter__(self) -> "Objects":
        return self

    def __exit__(self, *_: object) -> None:
        for pack in self._packs or ():
            pack.close()

    def read(self, name: str) -> tuple[Kind, bytes]:
        """An object's kind and content."""
        self._left -= 1
        if self._left < 0:
            raise Uncertain("too many objects")
        loose = self._read_loose(name)
        if loose is not None:
            return loose
        for pack in self._open_packs():
            offset = pack.find(bytes.fromhex(name))
            if offset is not None:
                return self._read_packed(pack, offset)
        raise Uncertain(f"no object {name}")

    def find(self, start: str) -> str:
        """The name that begins so."""
        if not _NAME.fullmatch(start):
            raise Uncertain("no name of an object")
        if len(start) == 40:
            return start
        found = {name for pack in self._open_packs() for name in pack.names(start)}
        folder = os.path.join(self._top, start[:2])
        if os.path.isdir(folder):
            found |= {start[:2] + name for name in os.listdir(folder) if name.startswith(start[2:])}
        if len(found) != 1:
            raise Uncertain(f"{len(found)} objects begin with {start}")
        return found.pop()

    def tree(self, name: str | None) -> dict[str, TreeEntry]:
        """What a tree holds; nothing for none."""
        if name is None:
            return {}
        kind, data = self.read(name)
        if kind != "tree":
            raise Uncertain(f"{name} is no tree")
        found: dict[str, TreeEntry] = {}
        at = 0
        while at < len(data):
            end = data.index(0, at)
            mode, _, entry = data[at:end].partition(b" ")
            found[os.fsdecode(entry)] = TreeEntry(data[end + 1 : end + 21].hex(), mode == b"40000")
            at = end + 21
        return found

    def _read_loose(self, name: str) -> tuple[Kind, bytes] | None:
        try:
            opened = _open(os.path.join(self._top, name[:2], name[2:]))
        except FileNotFoundError:
            return None
        with opened as file:
            data = zlib.decompressobj().decompress(file.read(MAX_SIZE), MAX_SIZE)
        header = _HEADER.match(data)
        if header is None or len(data) - header.end() != int(header[2]):
            raise Uncertain("no object, or a large one")
        return cast(Kind, header[1].decode()), data[header.end() :]

    def _open_packs(self) -> "list[_Pack]":
        if self._packs is None:
            self._packs = []
            folder = os.path.join(self._top, "pack")
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
                if name.endswith(".idx"):
                    self._packs.append(_Pack(os.path.join(folder, name)))
        return self._packs

    def _read_packed(self, pack: "_Pack", offset: int) -> tuple[Kind, bytes]:
        deltas: list[bytes] = []
        for _ in range(_MAX_CHAIN):
            number, base, data = pack.read(offset)
            if number in _KINDS:
                for delta in reversed(deltas):
                    data = _apply(data, delta)
                return _KINDS[number], data
            deltas.append(data)
            if isinstance(base, int):
                offset = base
                continue
            found = pack.find(base)
            if found is None:
                raise Uncertain("a base elsewhere")
            offset = found
        raise Uncertain("a long chain of deltas")


class _Pack:
    """A pack and its index."""

    def __init__(self, index: str) -> None:
        self._index = _open(index)
        self._pack = _open(f"{index.removesuffix('.idx')}.pack")
        if _read(self._index, 0, 8) != b"\xfftOc\x00\x00\x00\x02":
            raise Uncertain("an index of another version")
        self._count = self._number(8 + 255 * 4)

    def close(self) -> None:
        self._index.close()
        self._pack.close()

    def find(self, name: bytes) -> int | None:
        """Where an object is in the pack."""
        at = self._first(name)
        if at >= self._count or self._name(at) != name:
            return None
        offset = self._number(8 + 1024 + 24 * self._count + 4 * at)
        if not offset & 0x80000000:
            return offset
        far = 8 + 1024 + 28 * self._count + 8 * (offset & 0x7FFFFFFF)
        return struct.unpack(">Q", _read(self._index, far, 8))[0]

    def names(self, start: str) -> list[str]:
        """The names that begin so; two are as good as all."""
        at = self._first(bytes.fromhex(start.ljust(40, "0")))
        near = [self._name(number).hex() for number in range(at, min(at + 2, self._count))]
        return [name for name in near if name.startswith(start)]

    def read(self, offset: int) -> tuple[int, int | bytes, bytes]:
        """An object as it is kept: the number of its kind, the base of a delta, and its data."""
        head = _read(self._pack, offset, 64)
        number, size, at = head[0] >> 4 & 7, head[0] & 15, 1
        shift = 4
        while head[at - 1] & 0x80:
            size |= (head[at] & 0x7F) << shift
            shift += 7
            at += 1
        base: int | bytes = 0
        if number == _OFFSET_DELTA:
            back, at = read_number(head, at)
            base = offset - back
        elif number == _NAME_DELTA:
            base, at = head[at : at + 20], at + 20
        if size > MAX_SIZE:
            raise Uncertain("a large object")
        return number, base, self._inflate(offset + at, size)

    def _inflate(self, at: int, size: int) -> bytes:
        reader, data = zlib.decompressobj(), b""
        while len(data) < size:
            chunk = _read(self._pack, at, _CHUNK)
            if not chunk:
                raise Uncertain("a pack that ends early")
            at += len(chunk)
            data += reader.decompress(chunk, size - len(data))
            while reader.unconsumed_tail and len(data) < size:
                data += reader.decompress(reader.unconsumed_tail, size - len(data))
        return data

    def _first(self, name: bytes) -> int:
        """The place of the first name that is not less."""
        low = self._number(8 + 4 * (name[0] - 1)) if name[0] else 0
        high = self._number(8 + 4 * name[0])
        while low < high:
            middle = (low + high) // 2
            if self._name(middle) < name:
                low = middle + 1
            else:
                high = middle
        return low

    def _name(self, at: int) -> bytes:
        return _read(self._index, 8 + 1024 + 20 * at, 20)

    def _number(self, at: int) -> int:
        return struct.unpack(">I", _read(self._index, at, 4))[0]


def _apply(base: bytes, delta: bytes) -> bytes:
    """The object that a delta makes of its base."""
    expected, at = _varint(delta, 0)
    size, at = _varint(delta, at)
    if expected != len(base) or size > MAX_SIZE:
        raise Uncertain("a delta that does not fit")
    pieces: list[bytes] = []
    while at < len(delta):
        code = delta[at]
        at += 1
        if not code & 0x80:
            pieces.append(delta[at : at + code])
            at += code
            continue
        numbers = [0] * 7
        for bit in range(7):
            if code >> bit & 1:
                numbers[bit] = delta[at]
                at += 1
        start = int.from_bytes(bytes(numbers[:4]), "little")
        length = int.from_bytes(bytes(numbers[4:]), "little") or 0x10000
        pieces.append(base[start : start + length])
    data = b"".join(pieces)
    if len(data) != size:
        raise Uncertain("a delta that does not fit")
    return data


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits to a byte, as offsets are written, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def _read(file: io.FileIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _open(path: str) -> io.FileIO:
    file = io.FileIO(os.open(path, READ))
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise Uncertain("no regular file")
