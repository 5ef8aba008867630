"""Reserved names: placeholders where a command could otherwise put files that git or an editor acts on later.

A read-only mount needs a mount point, so an empty directory (or a file that changes nothing) is made while
commands run and removed afterwards. Commands share a placeholder: each holds a lock on it, and the last one
removes it. It is recognised by its modification time, which any use changes. One that a crash left behind
means nothing to git; the next command takes it over and removes it.
"""

import fcntl
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = 86_400_000_000_000 + 575_757
"""The modification time of placeholders, in nanoseconds."""

_held: list[tuple[int, str]] = []


def reserve(places: "Sequence[tuple[str, bytes | None]]") -> list[str]:
    """Make a placeholder at each path, a directory or a file with this content. Returns the paths with one.

    Where we cannot make one, the command cannot make anything either.
    """
    return [path for path, content in places if _reserve(path, content)]


def release() -> None:
    """Remove the placeholders, except those that another command holds or that have been used."""
    while _held:
        fd, path = _held.pop()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(fd)
            if found.st_mtime_ns == MARK and _is_at(found, path):
                os.rmdir(path) if stat.S_ISDIR(found.st_mode) else os.unlink(path)
        except OSError:
            pass
        finally:
            os.close(fd)


def _reserve(path: str, content: "bytes | None") -> bool:
    for _ in range(10):
        try:
            _make(path, content)
        except FileExistsError:
            pass
        except OSError:
            return False
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            continue  # its last holder has just removed it
        except OSError:
            return False
        found = os.fstat(fd)
        if not _is_ours(fd, found):
            os.close(fd)
            return stat.S_ISDIR(found.st_mode) == (content is None)
        try:  # noqa: SIM105  contextlib would be an import more
            fcntl.flock(fd, fcntl.LOCK_SH)
        except OSError:
            pass  # a file system without locks
        if _is_at(found, path):
            _held.append((fd, path))
            return True
        os.close(fd)
    return False


def _make(path: str, content: "bytes | None") -> None:
    """Make a placeholder. A file is marked before it gets its name, a directory a moment after."""
    if content is None:
        os.mkdir(path)
        os.utime(path, ns=(MARK, MARK))
        return
    if os.path.lexists(path):
        raise FileExistsError
    temporary = f"{path}.{os.getpid()}.new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(fd, content)
        os.utime(fd, ns=(MARK, MARK))
        os.link(temporary, path)
    finally:
        os.close(fd)
        os.unlink(temporary)


def _is_ours(fd: int, found: os.stat_result) -> bool:
    """Whether this is a placeholder, or may be one: an empty directory of this second, not marked yet.

    Only its maker marks it, so that a directory which somebody else has just made stays.
    """
    if found.st_mtime_ns == MARK:
        return True
    return stat.S_ISDIR(found.st_mode) and not os.listdir(fd) and abs(time.time() - found.st_ctime) <= 1


def _is_at(found: os.stat_result, path: str) -> bool:
    try:
        now = os.lstat(path)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino)
