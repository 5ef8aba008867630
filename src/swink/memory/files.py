"""Files that survive: written as a whole, durable, private, and errors that say what to do."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from secrets import token_hex

from swink.errors import SessionError, SessionNotFound
from swink.system.files import sync_directory

CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOEXEC


def write_new(path: str, data: bytes, *, instead: str | None = None) -> bool:
    """A new file that is there as a whole, or not at all; False if there is one of that name.

    With `instead` it takes the place of the one that is there, which keeps that name.
    """
    folder, name = os.path.split(path)
    new = os.path.join(folder, f".{token_hex(4)}.{name}.new")
    descriptor = os.open(new, _CREATE, 0o600)
    try:
        _fill(descriptor, data)
        if instead is None:
            return _given_name(new, path)
        if not _given_name(path, instead, keep=True):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), instead)
        os.replace(new, path)
        return True
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)
        sync_directory(folder)


def beside(path: str, suffix: str) -> str:
    """A name for a file beside another one that is not in use."""
    number, name = 1, f"{path}.{suffix}"
    while os.path.lexists(name):
        number += 1
        name = f"{path}.{suffix}{number}"
    return name


def write(descriptor: int, data: bytes) -> None:
    """Write all of it, in one call if the disk lets us."""
    written = os.write(descriptor, data)
    while written < len(data):  # the disk is full, or there is more than one write takes
        written += os.write(descriptor, data[written:])


if sys.platform == "darwin":
    import fcntl

    def sync(descriptor: int) -> None:
        """Make a file durable; fsync alone leaves it in the drive's own cache here."""
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:  # not every file system knows it
            os.fsync(descriptor)

elif sys.platform == "win32":

    def sync(descriptor: int) -> None:
        """Make a file durable, with its times."""
        os.fsync(descriptor)

else:

    def sync(descriptor: int) -> None:
        """Make a file durable, without waiting for its times."""
        os.fdatasync(descriptor)


@contextmanager
def explained(what: str) -> Generator[None]:
    """Say what to do about an error of the operating system."""
    try:
        yield
    except OSError as error:
        raise explanation(what, error) from error


def explanation(what: str, error: OSError) -> SessionError:
    """An error of the operating system, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return SessionNotFound(f"{what}: there is none")
    advice = _ADVICE.get(error.errno or 0, "what was saved before is still there")
    return SessionError(f"{what}: {error.strerror or error}; {advice}")


def _given_name(path: str, name: str, *, keep: bool = False) -> bool:
    """Let a file have another name, unless that is in use; it may keep the one that it has."""
    try:
        os.link(path, name)  # unlike a rename it replaces nothing
    except FileExistsError:
        return False
    except (OSError, AttributeError):  # a file system or a platform without links
        if os.path.lexists(name):
            return False
        if keep:
            with open(path, "rb") as file:
                _fill(os.open(name, _CREATE, 0o600), file.read())
        else:
            os.rename(path, name)
    return True


def _fill(descriptor: int, data: bytes) -> None:
    try:
        write(descriptor, data)
        sync(descriptor)
    finally:
        os.close(descriptor)


_PERMISSION = (
    "let your user read and write there (chmod u+rwX), or choose another directory: SWINK_SESSIONS_DIR"
)
_FULL = "free some space and repeat; what was saved before is still there"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "choose another directory (SWINK_SESSIONS_DIR); what was saved before is still there",
    errno.EIO: "the disk fails: check it, and copy your sessions to another one",
    errno.EMFILE: "too many files are open: close some, or raise the limit (ulimit -n)",
    errno.ENOTDIR: "a file stands where a directory should be; choose another directory",
    errno.EISDIR: "a directory stands where a session should be; move it somewhere else",
}
