"""Moving aside what a command left, whatever it did to keep that from being done.

A command may have taken away the rights on a directory, or made every name that something could be renamed
to. Our user owns what it made, so rights can be given back, and a random name is always free.
"""

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swink.tools.coding.supervisor import snapshot
    from swink.tools.coding.supervisor.snapshot import Tree
else:
    import snapshot

MAX_COPIES = 9

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def open_beneath(root: str, path: str) -> int | None:
    """A directory of the workspace, made readable if need be; None if it is no directory (any more)."""
    try:
        fd = snapshot.open_beneath(root, path)
    except PermissionError:
        fd = None
    if fd is not None:
        return fd
    above = root
    for name in ("", *os.path.relpath(path, root).split("/")):
        above = os.path.normpath(os.path.join(above, name))
        if not make_readable(above):
            return None
    return snapshot.open_beneath(root, path)


def make_readable(path: str) -> bool:
    """Make a directory listable that the command made unlistable: git could still use a known name in it.

    Returns whether there is a directory.
    """
    try:
        fd = os.open(path, getattr(os, "O_PATH", 0) | _DIRECTORY)
    except OSError:
        return False
    try:
        mode = os.fstat(fd).st_mode
        if mode & 0o500 != 0o500:
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(mode) | 0o700)
    except OSError:
        pass
    finally:
        os.close(fd)
    return True


def move_aside(parent: int, name: str) -> str:
    """Rename what has this name in an open directory; returns the new name, or "" if it had to be removed."""
    return _with_rights(parent, _move_aside, name)


def replace(parent: int, name: str, tree: "Tree", *, is_there: bool) -> str:
    """Move aside what has this name, if it is there, and put a tree in its place, if one is given."""
    return _with_rights(parent, _replace, name, tree, is_there)


def _with_rights(parent: int, act: "Any", *arguments: "Any") -> "Any":
    """Do something in a directory that the command may have made read-only, and leave its mode as it is."""
    mode = stat.S_IMODE(os.fstat(parent).st_mode)
    changed = mode & 0o300 != 0o300
    if changed:
        try:
            os.fchmod(parent, mode | 0o700)
        except OSError:
            changed = False  # another user's: the attempt itself tells
    try:
        return act(parent, *arguments)
    finally:
        if changed:
            os.fchmod(parent, mode)


def _replace(parent: int, name: str, tree: "Tree", is_there: bool) -> str:
    aside = ""
    if is_there:
        try:
            aside = _move_aside(parent, name)
        except OSError:
            if tree is None or tree[0] != "file":
                raise
            _overwrite(parent, name, tree)  # in a directory of another user, the file may still be ours
            return ""
    if tree is not None:
        snapshot.write(parent, name, tree)
    return aside


def _overwrite(parent: int, name: str, tree: "Tree") -> None:
    _, mode, content = tree
    flags = os.O_WRONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(name, flags, dir_fd=parent), "wb") as file:
        file.truncate()
        file.write(content)
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) != mode:
            os.fchmod(file.fileno(), mode)


def _move_aside(parent: int, name: str) -> str:
    copies = [f"{name}.refused-{number}" for number in range(2, MAX_COPIES + 1)]
    for aside in (f"{name}.refused", *copies, f"{os.urandom(8).hex()}.refused"):
        try:
            if not _exists(parent, aside):
                os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
                return aside
        except OSError:
            continue  # too long, or no room for another name
    _remove(parent, name)
    return ""


def _exists(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _remove(parent: int, name: str) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
        return
    import shutil  # rarely needed, and every import delays every command

    shutil.rmtree(name, dir_fd=parent)
