"""Files with what a model has made of a prompt's beginning, so that a later start need not read it again.

    states/<key>.<sha256 of the content>.state        the newest few, within a limit; private to the user

The key names all that a state depends on; the name of a file answers for its content, so one that is cut
off or changed is never given to llama.cpp, which would end the process. A file is written under another name
and takes its own when it is whole and on the disk.
"""

import hashlib
import os
import re
import stat
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from swink.system.files import open_private, sync_directory, temporary_name
from swink.system.writable import is_writable_by_model

MOST_FILES = 8
MOST_BYTES = 500_000_000
_NAME = re.compile(r"(?P<key>[0-9a-f]{40})\.(?P<digest>[0-9a-f]{64})\.state")
_ABANDONED = 3600.0
"""Seconds after which an unfinished file belongs to a process that has died."""
_HEAD, _PREFACE = 12, 8
"""Bytes before the list of tokens in a file of llama.cpp's, and numbers in that list that are no tokens."""


class StateFiles:
    """The files of one directory, which is made when the first is written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def find(self, key: str) -> Path | None:
        """The whole file of a key; damaged ones are removed. Raises `OSError`."""
        if not self._is_private():
            return None
        for path in self.directory.glob(f"{key}.*.state"):
            named = _NAME.fullmatch(path.name)
            if named and path.is_file() and not path.is_symlink() and _digest(path) == named["digest"]:
                os.utime(path)  # it counts as new, as it is in use
                return path
            path.unlink(missing_ok=True)
        return None

    def nearest(self, start: str, tokens: Sequence[int], fewest: int) -> Path | None:
        """Of the whole files whose key starts so, the one that has most of these tokens in common.

        None if those are fewer than `fewest`. Raises `OSError`.
        """
        if not self._is_private():
            return None
        shared = {path: _in_common(path, tokens) for path in self.directory.glob(f"{start}*.state")}
        best = max(shared, key=lambda path: shared[path], default=None)
        return None if best is None or shared[best] < fewest else self.find(best.name.partition(".")[0])

    def begin(self, key: str) -> Path:
        """An empty file to be written to, readable by its owner alone. Raises `OSError`."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        if not self._is_private():
            who = "the agent's own tools" if is_writable_by_model(self.directory) else "others"
            raise OSError(f"{self.directory} can be written by {who}")
        path = self.directory / temporary_name(key)
        os.close(open_private(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        return path

    def keep(self, written: Path, key: str, tokens: Sequence[int]) -> bool:
        """Give a file its name if it holds just these tokens; else remove it. Raises `OSError`."""
        try:
            if written.stat().st_size > MOST_BYTES // 2 or not _holds_only(written, tokens):
                return False
            with written.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(written, self.directory / f"{key}.{_digest(written)}.state")
            sync_directory(self.directory)
            return True
        finally:
            written.unlink(missing_ok=True)
            self.prune()

    def prune(self) -> None:
        """Remove what is not ours, what was abandoned, and the oldest beyond the limits."""
        kept: list[tuple[float, int, Path]] = []
        for path in self.directory.iterdir():
            with suppress(OSError):  # another process removes too
                found = path.lstat()
                if stat.S_ISDIR(found.st_mode):
                    continue
                if stat.S_ISREG(found.st_mode) and _NAME.fullmatch(path.name):
                    kept.append((found.st_mtime, found.st_size, path))
                elif path.suffix != ".part" or found.st_mtime < time.time() - _ABANDONED:
                    path.unlink()
        room = MOST_BYTES
        for number, (_, size, path) in enumerate(sorted(kept, reverse=True)):
            room -= size
            if number >= MOST_FILES or room < 0:
                path.unlink(missing_ok=True)

    def _is_private(self) -> bool:
        """Whether the directory is there, is the user's own, and can be written by nobody else."""
        try:
            found = self.directory.lstat()
        except FileNotFoundError:
            return False
        own = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
        return stat.S_ISDIR(found.st_mode) and own and not is_writable_by_model(self.directory)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _in_common(path: Path, tokens: Sequence[int]) -> int:
    """How many tokens at their beginning a file and these have in common."""
    with path.open("rb") as file:
        listed = file.read(_HEAD + 4 * (len(tokens) + _PREFACE))[_HEAD:]
    numbers = [number for (number,) in struct.iter_unpack("<i", listed[: len(listed) // 4 * 4])]
    best = 0
    for skipped in range(min(_PREFACE, len(numbers))):
        pairs = zip(numbers[skipped:], tokens, strict=False)
        best = max(best, next((place for place, (a, b) in enumerate(pairs) if a != b), 0))
    return best


def _holds_only(path: Path, tokens: Sequence[int]) -> bool:
    """Whether a file of llama.cpp's has these tokens and no other: a slot may have gone on meanwhile."""
    with path.open("rb") as file:
        head = file.read(_HEAD + 4 * (len(tokens) + _PREFACE))
    if len(head) < _HEAD:
        return False
    count = struct.unpack("<3I", head[:_HEAD])[2]
    return count <= len(tokens) + _PREFACE and struct.pack(f"<{len(tokens)}i", *tokens) in head[_HEAD:]
