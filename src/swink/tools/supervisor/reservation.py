"""Names kept for nobody: a command finds something read-only where git or an editor would obey what it could put there.

A mount needs something to stand on, so an empty directory (or a small file that says nothing new) is made for as long as
commands run and removed afterwards. Several commands may share one: each holds a lock on it, the last takes it away. It is
known by its time stamp, which anybody's use of it changes; one that a crash has left means nothing to git and is taken over
and removed by the next command.
"""

import fcntl
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = 86_400_000_000_000 + 575_757
"""The modification time, in nanoseconds, of what stands for nothing."""

_held: list[tuple[int, str]] = []


def reserve(places: "Sequence[tuple[str, bytes | None]]") -> list[str]:
    """Have something at each path, a directory or a file with this content; returns those that are there now and no links.

    What cannot be made by us cannot be made by the command either.
    """
    return [path for path, content in places if _reserve(path, content)]


def release() -> None:
    """Remove what was made, unless another command needs it or somebody has begun to use it."""
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
            continue  # the last user of it has just taken it away
        except OSError:
            return False
        found = os.fstat(fd)
        if not _is_ours(fd, found):
            os.close(fd)
            return stat.S_ISDIR(found.st_mode) == (content is None)
        try:  # noqa: SIM105  contextlib would be an import more
            fcntl.flock(fd, fcntl.LOCK_SH)
        except OSError:
            pass  # a file system without locks: nobody else can know either
        if _is_at(found, path):
            _held.append((fd, path))
            return True
        os.close(fd)
    return False


def _make(path: str, content: "bytes | None") -> None:
    """The thing with its mark; a file gets its name when it is ready, a directory its mark a moment after its name."""
    if content is None:
        os.mkdir(path)
        os.utime(path, ns=(MARK, MARK))
        return
    if os.path.lexists(path):
        raise FileExistsError
    fresh = f"{path}.{os.getpid()}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(fd, content)
        os.utime(fd, ns=(MARK, MARK))
        os.link(fresh, path)
    finally:
        os.close(fd)
        os.unlink(fresh)


def _is_ours(fd: int, found: os.stat_result) -> bool:
    """Whether this is marked; what is empty and was made this second is about to be, so it gets the mark from us."""
    if found.st_mtime_ns == MARK:
        return True
    if not stat.S_ISDIR(found.st_mode) or os.listdir(fd) or abs(time.time() - found.st_ctime) > 1:
        return False
    os.utime(fd, ns=(MARK, MARK))
    return True


def _is_at(found: os.stat_result, path: str) -> bool:
    try:
        now = os.lstat(path)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino)
