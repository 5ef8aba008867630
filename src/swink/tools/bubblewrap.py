"""Bubblewrap arguments: a command in its own namespaces, the rest of the machine read-only or absent."""

import os
from collections.abc import Iterator, Sequence

from swink.tools.guarded import Guard
from swink.tools.view import SYSTEM, View, is_beneath

GUARDS = 2
"""Generations of bubblewrap's own processes above the command."""
SECCOMP_FD = 9
SHARED_MEMORY = 64 << 20
FORWARDER, PROXY = "/run/swink/forward.py", "/run/swink/proxy"


def arguments(
    view: View, guard: Guard, private: str, cwd: str, *, network: bool, disable_userns: bool = True
) -> list[str]:
    """What goes between `bwrap` and the command.

    `private` is a directory of ours with the command's `tmp` and `home`, and with `nothing` and `unreadable`,
    which cover secrets. Capabilities are dropped because root would keep them in a user namespace and could
    remount all.
    """
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if network else ("--unshare-net",)),
        *(("--disable-userns",) if disable_userns else ()),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--seccomp", str(SECCOMP_FD)),
        *_system(view),
        # Root may write kernel settings such as core_pattern without any capability, and bubblewrap lets it.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", "/dev", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm"),
        *("--bind", f"{private}/tmp", "/tmp", "--bind", f"{private}/tmp", "/var/tmp"),
        *_home(view, private),
        *_bound("--ro-bind", [path for path in view.readable if not _in_system(path)]),
        *_bound("--bind", [view.root]),
        *_bound("--bind", guard.steady),
        *_bound("--ro-bind", guard.read_only),
        *_covered(view, private),
        *("--remount-ro", "/", "--chdir", cwd, "--"),
    ]


def with_way_out(options: Sequence[str], forwarder: str, proxy: str) -> list[str]:
    """The options with forwarder and proxy mounted, before the root becomes read-only."""
    at = len(options) - 1 - list(reversed(options)).index("--remount-ro")
    return [*options[:at], "--ro-bind", forwarder, FORWARDER, "--ro-bind", proxy, PROXY, *options[at:]]


def can_have_home(view: View) -> bool:
    """Whether the command may get a home of its own at the usual place."""
    return (
        os.path.isdir(view.home)
        and view.home != "/"
        and not _in_system(view.home)
        and not is_beneath(view.home, view.root)
    )


def _system(view: View) -> Iterator[str]:
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.exists(path):
            yield from ("--ro-bind", path, path)


def _home(view: View, private: str) -> Iterator[str]:
    if can_have_home(view):
        yield from ("--bind", f"{private}/home", view.home)


def cover(path: str, private: str) -> str:
    """What covers a secret: an empty directory, or an unreadable file that no program takes for real."""
    return f"{private}/{'nothing' if os.path.isdir(path) else 'unreadable'}"


def reservations(view: View, guard: Guard, private: str) -> Iterator[tuple[str, bytes | None, str]]:
    """The names that the supervisor reserves: those of the guard, and hidden ones that do not exist yet."""
    for path, content in guard.reserved:
        yield path, content, f"{private}/nothing" if content is None else ""
    for path in view.hidden_in_root:
        if not os.path.lexists(path):
            while not os.path.isdir(os.path.dirname(path)):
                path = os.path.dirname(path)
            is_file = os.path.splitext(path)[1] != ""
            yield path, b"" if is_file else None, f"{private}/{'unreadable' if is_file else 'nothing'}"


def _covered(view: View, private: str) -> Iterator[str]:
    shown = (view.root, *view.readable)
    for path in view.hidden:
        if any(is_beneath(path, top) for top in shown) and os.path.lexists(path):
            yield from ("--ro-bind", cover(path, private), path)


def _bound(option: str, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        yield from (option, path, path)


def _in_system(path: str) -> bool:
    return any(is_beneath(path, top) for top in SYSTEM)
