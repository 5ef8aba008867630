"""Files of a workspace that programs outside the sandbox act on later: what they obey, and swink itself.

Commands may not change them (`obeyed.py` lists them, at every depth):

    read_only   exists: mounted read-only
    steady      a directory above such a file: mounted on itself, because a mount point cannot be renamed
    reserved    does not exist, and must not: an empty read-only placeholder is there while a command runs
    kept        what no mount protects (links, names that should stay free, what lies in dependencies or is
                one too many): put back after the command

What commands cannot write anyhow (`homes.py`) needs none of it. Landlock has no mounts: under it everything
is kept. What a command makes elsewhere in the workspace is looked at when it has ended
(`supervisor/cleanup.py`).
"""

import os
from collections.abc import Iterable, Iterator

from msgspec import Struct

from swink.system.writable import is_beneath
from swink.tools.coding.mounts import Mounts
from swink.tools.coding.runtime import list_runtime, list_trusted
from swink.tools.coding.supervisor import gitconfig
from swink.tools.coding.survey import Findings

Reservation = tuple[str, bytes | None]
"""A path and its placeholder: the content of a file, or None for a directory."""

MAX_REPOSITORIES = 16
"""Repositories whose objects and branches commands may change; any beyond these are read-only as a whole."""

MAX_NESTED = 60
"""Mounts for what lies deeper than the root; the time that bubblewrap takes grows with their square."""

RESERVED = (".git", ".swink", ".mcp.json", ".vscode", ".idea", ".claude")
"""Names at the root that are taken while a command runs, because a background command may run for long."""
_DEPENDENCIES = frozenset({
    "node_modules", "site-packages", "vendor", "third_party", "venv", ".venv", ".tox", ".nox", "target",
    "build", "dist",
})  # fmt: skip
"""Directories that package managers and builds replace as a whole, which a mount inside would prevent."""
_OBEYED_BY_GIT: tuple[Reservation, ...] = (("config", b""), ("hooks", None), ("commondir", b".\n"))
"""What git reads in every repository; the placeholder for `commondir` names git's default."""


class Guard(Struct, frozen=True):
    """Absolute paths, those of each kind outermost first."""

    read_only: tuple[str, ...] = ()
    steady: tuple[str, ...] = ()
    reserved: tuple[Reservation, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def everything(self) -> tuple[str, ...]:
        """All of it, for Landlock, which has no mounts."""
        return tuple(sorted({*self.read_only, *self.kept, *(path for path, _ in self.reserved)}, key=len))


def plan_guard(mounts: Mounts, findings: Findings) -> Guard:
    """The paths that commands may not change in this workspace."""
    plan = _Plan(mounts)
    for path in (*list_runtime(mounts.root), *list_trusted(mounts.root)):
        plan.protect(path, False)
    for name in RESERVED:
        plan.protect(os.path.join(mounts.root, name), None)
    for path in findings.pointers:
        plan.protect(path, False)
    repositories = sorted(findings.repositories, key=lambda path: path.count("/"))
    for path in repositories[:MAX_REPOSITORIES]:
        _protect_repository(plan, path)
    for path in repositories[MAX_REPOSITORIES:]:
        plan.protect(path, False)
    plan.protect_obeyed(findings.obeyed)
    return plan.guard()


def _protect_repository(plan: "_Plan", path: str) -> None:
    plan.hold(path)
    is_worktree = os.path.lexists(os.path.join(path, "gitdir"))
    for name, stands_for_nothing in _OBEYED_BY_GIT:
        if not is_worktree or name == "commondir":
            plan.keep(os.path.join(path, name), stands_for_nothing)
    for name in ("config.worktree", "gitdir"):
        plan.keep(os.path.join(path, name), False)
    work = os.path.dirname(path) if os.path.basename(path) == ".git" else path
    # The user's own configuration may name places in every repository: hooks in `.githooks`, say.
    personal = [os.path.join(plan.home, name) for name in (".gitconfig", ".config/git/config")]
    for config in (os.path.join(path, "config"), *personal):
        for place, stands_for_nothing in _list_named(config, work):
            plan.protect(place, stands_for_nothing)


def _list_named(config: str, work: str, depth: int = 5) -> Iterator[tuple[str, bool | None]]:
    """The files and directories that a git configuration has git read or run."""
    if not os.path.isfile(config):  # to read a pipe would wait for a writer
        return
    try:
        with open(config, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(1 << 20)
    except OSError:
        return
    for key, value in gitconfig.read_settings(text):
        match key:
            case "core.hookspath":
                yield os.path.normpath(os.path.join(work, os.path.expanduser(value))), None
            case "include.path" | "includeif.path":
                included = os.path.normpath(os.path.join(os.path.dirname(config), os.path.expanduser(value)))
                yield included, False
                if depth:
                    yield from _list_named(included, work, depth - 1)
            case _ if not gitconfig.is_harmless(key, value):
                named = (os.path.normpath(os.path.join(work, word.strip("'\"!"))) for word in value.split())
                yield from ((path, False) for path in named if os.path.isfile(path))
            case _:
                pass


class _Plan:
    """A guard in the making."""

    def __init__(self, mounts: Mounts) -> None:
        self._mounts = mounts
        self.root = mounts.root
        self.home = mounts.home
        self._read_only: dict[str, None] = {}
        self._steady: dict[str, None] = {}
        self._reserved: dict[str, bytes | None] = {}
        self._kept: dict[str, None] = {}

    def protect(self, path: str, stands_for_nothing: bytes | bool | None) -> None:
        """Keep a path as it is, and where it is."""
        if path != self._mounts.root and is_beneath(path, self._mounts.root):
            self._hold_above(path)
            self.keep(path, stands_for_nothing)

    def protect_obeyed(self, paths: Iterable[str]) -> None:
        """Keep what programs obey, the outermost first: with mounts while there is room for more of them."""
        limit = len(self._read_only) + len(self._steady) + MAX_NESTED
        for path in sorted(paths, key=lambda path: path.count("/")):
            if path in self._reserved or any(self._tops(path)):
                continue  # the placeholder of another command, or read-only with what it is in
            directories = path[len(self.root) + 1 :].split("/")[:-1]
            if not directories or (
                _DEPENDENCIES.isdisjoint(directories)
                and len(self._read_only) + len(self._steady) + len(directories) < limit
            ):
                self.protect(path, False)
            elif not self._is_hidden(path):
                self._kept[path] = None
                if os.path.islink(path):
                    self.protect(os.path.realpath(path), False)

    def keep(self, path: str, stands_for_nothing: bytes | bool | None) -> None:
        """Keep a path as it is. The placeholder is a file's content, None for a directory, False for none."""
        if path == self._mounts.root or not is_beneath(path, self._mounts.root) or self._is_hidden(path):
            return
        parent = os.path.dirname(path)
        if os.path.realpath(parent) != parent:  # behind a link, which a command can change
            self._kept[path] = None
        elif os.path.islink(path):
            self._kept[path] = None
            self.protect(os.path.realpath(path), False)
        elif os.path.basename(path) == ".git" and _is_repository(path):
            pass  # held open for objects and branches
        elif os.path.lexists(path) and not _is_placeholder(path, stands_for_nothing):
            self._read_only[path] = None
        elif isinstance(stands_for_nothing, bool) or not os.path.isdir(parent):
            self._kept[path] = None
        else:
            self._reserved[path] = stands_for_nothing

    def hold(self, path: str) -> None:
        """Keep a repository from being renamed, and the directories up to the repository it is part of."""
        if self._is_hidden(path) or os.path.realpath(path) != path:
            return
        inside = "/.git/" in path[len(self._mounts.root) :]
        while len(path) > len(self._mounts.root):
            self._steady[path] = None
            if not inside or os.path.basename(path) == ".git":
                return
            path = os.path.dirname(path)

    def guard(self) -> Guard:
        for path in self._mounts.hidden_in_root:
            if path not in self._mounts.credentials:
                self._hold_above(path)
        within = [path for path in self._read_only if not any(self._tops(path))]
        return Guard(
            self._select(within),
            self._select(filter(os.path.isdir, self._steady)),
            tuple((path, self._reserved[path]) for path in self._select(self._reserved)),
            self._select(self._kept),
        )

    def _select(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those that commands could write, outermost first; what they cannot needs no guard."""
        return tuple(sorted(filter(self._mounts.may_write, paths), key=len))

    def _tops(self, path: str) -> Iterator[str]:
        above = os.path.dirname(path)
        while len(above) > len(self._mounts.root):
            if above in self._read_only:
                yield above
            above = os.path.dirname(above)

    def _hold_above(self, path: str) -> None:
        above = os.path.dirname(path)
        while len(above) > len(self._mounts.root):
            self._steady[above] = None
            above = os.path.dirname(above)

    def _is_hidden(self, path: str) -> bool:
        return any(is_beneath(path, hidden) for hidden in self._mounts.hidden)


def _is_repository(path: str) -> bool:
    return os.path.isdir(path) and os.path.lexists(os.path.join(path, "HEAD"))


def _is_placeholder(path: str, stands_for_nothing: bytes | bool | None) -> bool:
    """Whether this may be the placeholder of another command that runs now."""
    try:
        if stands_for_nothing is None:
            return os.path.isdir(path) and not os.listdir(path)
        if isinstance(stands_for_nothing, bytes):
            if not os.path.isfile(path):  # to read a pipe would wait for a writer
                return False
            with open(path, "rb") as file:
                return file.read(len(stands_for_nothing) + 1) == stands_for_nothing
    except OSError:
        pass
    return False
