"""A repository's `.git` in a workspace, reached name by name: nothing behind a link is read or written.

    root ──▶ sub ──▶ .git ──▶ refs ──▶ heads ──▶ main

Each name is opened in the open directory before it and may not be a link: whatever a running command puts in
the place of a directory meanwhile, nothing outside the workspace is touched.
"""

import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex

from msgspec import Struct

from swink.system.files import READ
from swink.tools import ToolError
from swink.tools.coding.workspace import DIRECTORY

MOST = 1 << 20
"""Bytes of the largest file that is read."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class SetupRefused(ToolError):
    """What a git command would write is not written; the text says why."""


class GitFolder(Struct, frozen=True):
    """A `.git` beneath the root of a workspace, which need not be there yet. Everything here blocks.

    Raises `SetupRefused` where a link, or anything else that is not plain, is on the way.
    """

    root: str
    path: str

    @property
    def directory(self) -> str:
        """The directory that it is the repository of."""
        return os.path.dirname(self.path)

    def read(self, name: str, most: int = MOST) -> bytes | None:
        """What a file in it holds; None if there is none."""
        above, _, last = name.rpartition("/")
        try:
            with self._open(above) as folder:
                return _read(folder, last, most)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def list_files(self, under: str) -> list[str]:
        """The files below a directory in it, all of them plain."""
        try:
            with self._open(under) as folder:
                return list(_list(folder, under))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def rewrite(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Replace a file whole, under the lock that git takes; a file that is not there is empty."""
        with self._open() as folder:
            try:
                lock = os.open(f"{name}.lock", _NEW, 0o644, dir_fd=folder)
            except FileExistsError:
                raise SetupRefused(f"another git process holds {self.path}/{name}.lock; try again") from None
            try:
                with os.fdopen(lock, "wb") as file:
                    file.write(change(_read(folder, name, MOST) or b""))
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(f"{name}.lock", name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(f"{name}.lock", dir_fd=folder)
                raise

    def make(self, folders: Sequence[str], files: Mapping[str, str]) -> None:
        """Make it with these directories and files, whole or not at all."""
        *above, last = self._names()
        with _open_names(os.open(self.root, DIRECTORY), above, make=True) as parent:
            new = f".git-{token_hex(4)}"
            os.mkdir(new, 0o755, dir_fd=parent)
            try:
                with _open_names(os.dup(parent), [new]) as inside:
                    for name in folders:
                        with _open_names(os.dup(inside), name.split("/"), make=True):
                            pass
                    for name, text in files.items():
                        with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=inside), "wb") as file:
                            file.write(text.encode())
                os.rename(new, last, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                shutil.rmtree(new, ignore_errors=True, dir_fd=parent)
                raise

    @contextmanager
    def _open(self, under: str = "") -> Generator[int]:
        names = [*self._names(), *filter(None, under.split("/"))]
        with _open_names(os.open(self.root, DIRECTORY), names) as folder:
            yield folder

    def _names(self) -> list[str]:
        names = os.path.relpath(self.path, self.root).split(os.sep)
        if ".." in names or os.open not in os.supports_dir_fd:
            raise SetupRefused(f"{self.path} cannot be reached safely on this system, so it is not changed")
        return names


@contextmanager
def _open_names(directory: int, names: Sequence[str], *, make: bool = False) -> Generator[int]:
    """The directory that names lead to from one that is open, which is closed here."""
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=directory)
            inside = _open_directory(directory, name)
            os.close(directory)
            directory = inside
        yield directory
    finally:
        os.close(directory)


def _open_directory(directory: int, name: str) -> int:
    try:
        return os.open(name, DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        _refuse_link(directory, name)
        raise NotADirectoryError(error.errno, error.strerror, name) from error


def _refuse_link(directory: int, name: str) -> None:
    if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        raise SetupRefused(f"{name} is a link, so what it leads to is neither read nor changed")


def _read(directory: int, name: str, most: int) -> bytes | None:
    """A plain file whole; None if there is none, or a directory."""
    try:
        fd = os.open(name, READ, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupRefused(f"{name} is not a plain file: {error.strerror}") from error
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        os.close(fd)
        if stat.S_ISDIR(found.st_mode):
            return None
        raise SetupRefused(f"{name} is not a plain file of at most {most:,} bytes")
    with os.fdopen(fd, "rb") as file:
        return file.read(most)


def _list(directory: int, path: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        found = sorted(
            (one.name, one.is_dir(follow_symlinks=False), one.is_file(follow_symlinks=False))
            for one in entries
        )
    for name, is_folder, is_file in found:
        inside = os.path.join(path, name)
        if is_folder:
            with _open_names(os.dup(directory), [name]) as folder:
                yield from _list(folder, inside)
        elif is_file:
            yield inside
        else:
            raise SetupRefused(f"{inside} is a link or no plain file, so this repository is not used")
