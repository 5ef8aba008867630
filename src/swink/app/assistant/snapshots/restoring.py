"""Restoring: files as a snapshot has them, each whole or not at all, and never through a link."""

import os
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex

from swink.app.assistant.snapshots.trees import FileEntry
from swink.app.assistant.snapshots.vault import Damaged, Vault
from swink.tools.coding.supervisor.snapshot import open_beneath

_ENDING = ".swink-restoring"


def strays(paths: Iterable[str]) -> list[str]:
    """Those of the paths that a process left behind which was killed while it restored."""
    return [path for path in paths if path.endswith(_ENDING)]


def restore(vault: Vault, root: str, wanted: Sequence[tuple[str, FileEntry | None]]) -> dict[str, str]:
    """Make these paths what is wanted (None: nothing); returns what could not be done, and why.

    What leaves comes first, the deepest path before the others, then what comes, directories before their
    content. A directory in which something else is stays.
    """
    failed: dict[str, str] = {}
    wanted = sorted(wanted, key=lambda item: item[0])
    for path, entry in reversed(wanted):
        with _noting(failed, path):
            _clear(root, path, entry)
    for path, entry in wanted:
        if entry is not None and path not in failed:
            with _noting(failed, path):
                _ensure(root, path.rpartition("/")[0])
                _make(vault, root, path, entry)
    for path, entry in reversed(wanted):
        if entry is not None and entry.kind == "directory" and path not in failed:
            with _noting(failed, path), _parent(root, path) as (parent, name):
                _set_mode(parent, name, entry.mode)
    return failed


@contextmanager
def _noting(failed: dict[str, str], path: str) -> Generator[None]:
    try:
        yield
    except (OSError, Damaged) as error:
        failed[path] = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


@contextmanager
def _parent(root: str, path: str) -> Generator[tuple[int, str]]:
    """The directory that a path is in, opened without following links, and its name there."""
    folder, _, name = path.rpartition("/")
    directory = open_beneath(root, os.path.join(root, folder))
    if directory is None:
        raise OSError(20, f"{folder} is not a directory")
    try:
        with _writable(directory):
            yield directory, name
    finally:
        os.close(directory)


@contextmanager
def _writable(directory: int) -> Generator[None]:
    """Let a directory of the user's be written for a moment that tools have made read-only."""
    mode = stat.S_IMODE(os.fstat(directory).st_mode)
    if mode & stat.S_IWUSR:
        yield
        return
    with suppress(OSError):  # another user's: the write that follows reports it
        os.fchmod(directory, mode | stat.S_IRWXU)
    try:
        yield
    finally:
        with suppress(OSError):
            os.fchmod(directory, mode)


def _ensure(root: str, folder: str) -> None:
    """Make a directory that was removed meanwhile; a link or a file in its place is left."""
    if not folder or os.path.lexists(os.path.join(root, folder)):
        return
    _ensure(root, folder.rpartition("/")[0])
    with _parent(root, folder) as (parent, name):
        os.mkdir(name, dir_fd=parent)


def _clear(root: str, path: str, entry: FileEntry | None) -> None:
    """Remove what is there, unless it may stay until something takes its place."""
    folder, _, name = path.rpartition("/")
    directory = open_beneath(root, os.path.join(root, folder))
    if directory is None:
        return  # what it was in is gone, or is a link now
    try:
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return
        with _writable(directory):
            _remove(directory, name, found, entry)
    finally:
        os.close(directory)


def _remove(directory: int, name: str, found: os.stat_result, entry: FileEntry | None) -> None:
    if stat.S_ISDIR(found.st_mode):
        if entry is None or entry.kind != "directory":
            try:
                os.rmdir(name, dir_fd=directory)
            except OSError:
                if entry is not None:
                    raise
    elif entry is None or entry.kind == "directory":
        os.unlink(name, dir_fd=directory)


def _make(vault: Vault, root: str, path: str, entry: FileEntry) -> None:
    with _parent(root, path) as (parent, name):
        if entry.kind == "directory":
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
            return
        new = f".{token_hex(4)}{_ENDING}"
        try:
            if entry.kind == "link":
                os.symlink(os.fsdecode(entry.content.encode("latin-1")), new, dir_fd=parent)
            else:
                data = vault.get(entry.content)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
                with open(os.open(new, flags, 0o600, dir_fd=parent), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fchmod(file.fileno(), entry.mode)
            os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=parent)
            raise


def _set_mode(parent: int, name: str, mode: int) -> None:
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
