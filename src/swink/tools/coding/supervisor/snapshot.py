"""Files and directories as values: read without following links, to be compared and put back.

swink uses it before a command and the supervisor after it, so it imports nothing of swink.
"""

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Tree = Any
    """None, or (kind, mode, content): a link's target, a file's bytes, a directory's trees by name, or the
    signature of what is too large to hold."""

MAX_BYTES = 16 << 20
"""Bytes of what is held in memory at a time."""
MAX_DEPTH = 64
SIGNED = "signed"

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


class ByteBudget:
    """How many bytes may still be read."""

    def __init__(self, size: int = MAX_BYTES) -> None:
        self.left = size

    def take(self, size: int, name: str) -> None:
        """Use some of it; raises OSError when there is none left."""
        self.left -= size + 256
        if self.left < 0:
            raise OSError(27, f"too much to keep in {name}")


def read_at(root: str, path: str, budget: ByteBudget) -> "Tree":
    """What is at a path beneath the root; of what is too large, or cannot be read, the signature."""
    parent = open_beneath(root, os.path.dirname(path))
    if parent is None:
        return None
    left = budget.left
    try:
        return read(parent, os.path.basename(path), budget)
    except OSError:
        budget.left = left
        return sign(parent, os.path.basename(path))
    finally:
        os.close(parent)


def sign(parent: int, name: str) -> "Tree":
    """A value that differs after every change of what has this name, without its content."""
    import hashlib  # rarely needed, and every import delays every command

    signature = hashlib.sha256()
    _sign(parent, name, signature, 0)
    return SIGNED, 0, signature.digest()


def _sign(parent: int, name: str, signature: "Any", depth: int) -> None:
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    facts = (name, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    signature.update(repr(facts).encode(errors="surrogatepass"))
    if not stat.S_ISDIR(found.st_mode) or depth > MAX_DEPTH:
        return
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError:
        return  # its own change time says if it is made readable
    try:
        for inside in sorted(os.listdir(fd)):
            _sign(fd, inside, signature, depth + 1)
    finally:
        os.close(fd)


def read(parent: int, name: str, budget: ByteBudget, depth: int = 0) -> "Tree":
    """What has this name in an open directory; raises OSError if it is too much, too deep or not readable."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return "link", 0, os.readlink(name, dir_fd=parent)
    if stat.S_ISREG(found.st_mode):
        budget.take(found.st_size, name)
        fd = os.open(name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_NONBLOCK, dir_fd=parent)
        with os.fdopen(fd, "rb") as file:
            return "file", mode, file.read(found.st_size + 1)
    if not stat.S_ISDIR(found.st_mode):
        return "other", mode, found.st_ino
    if depth > MAX_DEPTH:
        raise OSError(40, f"too many directories in {name}")
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        names = sorted(os.listdir(fd))
        return "directory", mode, {inside: read(fd, inside, budget, depth + 1) for inside in names}
    finally:
        os.close(fd)


def write(parent: int, name: str, tree: "Tree") -> None:
    """Make what was read, at a name where nothing is."""
    kind, mode, content = tree
    if kind == "link":
        os.symlink(content, name, dir_fd=parent)
    elif kind == "file":
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=parent)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            os.fchmod(fd, mode)
    elif kind == "directory":
        os.mkdir(name, 0o700, dir_fd=parent)
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            for inside, below in content.items():
                write(fd, inside, below)
            os.fchmod(fd, mode)
        finally:
            os.close(fd)


def open_beneath(root: str, path: str) -> int | None:
    """A directory of the workspace, opened name by name; None if one of them is no directory (any more)."""
    fd = os.open(root, _DIRECTORY)
    for name in os.path.relpath(path, root).split("/"):
        if name == ".":
            continue
        try:
            inside = os.open(name, _DIRECTORY, dir_fd=fd)
        except OSError:
            return None
        finally:
            os.close(fd)
        fd = inside
    return fd
