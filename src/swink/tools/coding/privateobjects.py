"""Private objects: where commands in a worktree write new git objects, so that the old ones stay read-only.

REPO/.git
    objects                     the repository's own; its alternates name the private ones
    swink-objects/NAME/new      what commands write, mounted where they look for `objects`
    swink-main                  where they find the repository's own then, read-only; else empty

The repository reads what is new at once; it owns it when the change is kept or the worktree dropped.
"""

import hashlib
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from swink.system.filelock import alone
from swink.system.files import READ, write_whole

_FOLDER = re.compile(r"[0-9a-f]{2}")
_FILE = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_CHUNK = 1 << 20
_OURS = "../swink-objects/"
"""How lines of alternates begin that are ours: such a one holds also when the repository is moved."""


class PrivateObjects(Struct, frozen=True):
    """The private objects of a worktree. Everything here blocks."""

    common: Path
    name: str

    @property
    def place(self) -> Path:
        return self.common / "swink-objects" / self.name

    @property
    def _main(self) -> Path:
        return self.common / "swink-main"  # beside `objects`, for alternates that are relative

    @property
    def mounts(self) -> list[str]:
        """Words for bubblewrap that put them in the place of the repository's own."""
        own, new = self.common / "objects", self.place / "new"
        found = ["--ro-bind", str(own), str(self._main), "--bind", str(new), str(own)]
        for name in ("pack", "info"):
            found += ("--ro-bind", str(new / name), str(own / name))
        return found

    def prepare(self) -> None:
        """Make them, and have the repository read them; raises `OSError`."""
        for place in (self.place, self._main):
            if os.path.realpath(place) != str(place):
                raise OSError("it is a link")
        for place in (self._main, self.place / "new/pack", self.place / "new/info"):
            place.mkdir(parents=True, exist_ok=True)
        own = self.common / "objects"
        others = [line for line in _read_lines(own / "info/alternates") if not line.startswith(_OURS)]
        leads = [str(self._main), *(os.path.normpath(own / line) for line in others)]
        _write_lines(self.place / "new/info/alternates", leads)
        self._name(is_there=True)

    def take_over(self) -> None:
        """Copy them into the repository, those that are what their names say; raises `OSError`."""
        for path in self._written():
            place = self.common / "objects" / path.parent.name / path.name
            data = b"" if place.exists() else _read_plain(path)
            if data and _is_named(data, path.parent.name + path.name):
                write_whole(place, data, private=False, make_parents=True)
                place.chmod(0o444)

    def remove(self) -> None:
        """Take them over, and leave nothing of them; raises `OSError`."""
        if self.place.is_dir():
            self.take_over()
            self._name(is_there=False)
            shutil.rmtree(self.place, ignore_errors=True)

    def _name(self, *, is_there: bool) -> None:
        """Have the repository's alternates name them, or not."""
        path, line = self.common / "objects/info/alternates", f"{_OURS}{self.name}/new"
        if (line in _read_lines(path)) == is_there:
            return
        with alone(self.place.parent / ".lock"):
            lines = [other for other in _read_lines(path) if other != line]
            if is_there or lines:
                _write_lines(path, [*lines, line] if is_there else lines)
            else:
                path.unlink(missing_ok=True)

    def _written(self) -> Iterator[Path]:
        for folder in _list(self.place / "new"):
            if _FOLDER.fullmatch(folder.name) and not folder.is_symlink():
                yield from (path for path in _list(folder) if _FILE.fullmatch(path.name))


def _read_lines(path: Path) -> list[str]:
    try:
        return [line for line in os.fsdecode(path.read_bytes()).split("\n") if line]
    except FileNotFoundError:
        return []


def _write_lines(path: Path, lines: list[str]) -> None:
    data = os.fsencode("".join(f"{line}\n" for line in lines))
    if not path.exists() or path.read_bytes() != data:
        write_whole(path, data, private=False, make_parents=True)


def _list(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _read_plain(path: Path) -> bytes:
    """The content of a file; nothing if it is none."""
    try:
        with open(os.open(path, READ), "rb") as file:
            return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def _is_named(data: bytes, name: str) -> bool:
    """Whether an object is the one of its name, however long it is when it is unpacked."""
    digest = hashlib.sha1(usedforsecurity=False) if len(name) == 40 else hashlib.sha256()
    unpack = zlib.decompressobj()
    try:
        while not unpack.eof:
            found = unpack.decompress(data, _CHUNK)
            data = unpack.unconsumed_tail
            if not (found or data or unpack.eof):
                return False  # cut off
            digest.update(found)
    except zlib.error:
        return False
    return digest.hexdigest() == name and not unpack.unused_data
