"""Path rules: how every tool gets from a path a model wrote to a file it may touch.

A path is walked component by component with directory file descriptors. Links and `..` are resolved here,
beneath the root, so that a link that a running command swaps in meanwhile does not lead outside. Where a call
was judged before, the walk must end where the judge's did, or the call is refused.
"""

import os
import stat
import threading
import weakref
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from swink.errors import InvalidInput
from swink.system import targets
from swink.system.files import READ
from swink.system.targets import LONGEST, Seen, Target, Version
from swink.system.writable import is_beneath, mark_writable
from swink.tools import ToolContext, ToolError
from swink.tools.coding.credentials import Readable, explain_refusal, holds_credentials, suspect
from swink.tools.coding.secrets import find_homes, list_secret_paths

T = TypeVar("T")

MAX_LINKS = 40
DIRECTORY = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)


class PathRefused(ToolError):
    """The path is outside the workspace, or in a part of it that tools keep out of."""


class PathChanged(ToolError):
    """What a path leads to is no longer what was judged."""

    def __init__(self, path: str, how: str) -> None:
        super().__init__(f"nothing was done: {path} {how} since this call was judged; read it again")


class Spot:
    """A place in the workspace: an open parent directory and a name in it, which need not exist."""

    __slots__ = ("directory", "name", "path", "seen")

    def __init__(self, directory: int, name: str, path: str, seen: Seen | None = None) -> None:
        self.directory = directory
        self.name = name
        self.path = path
        self.seen = seen

    def stat(self) -> os.stat_result | None:
        """What is there, itself and not what a link points to; None if nothing is."""
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self) -> int:
        """The regular file, opened for reading; anything that could block or has no content is refused."""
        try:
            fd = os.open(self.name, READ, dir_fd=self.directory)
        except OSError as error:
            raise self.trouble(error) from error
        found = os.fstat(fd)
        mode = found.st_mode
        if stat.S_ISREG(mode) and self._is_judged(targets.version_of(found)):
            return fd
        os.close(fd)
        if stat.S_ISREG(mode):
            raise PathChanged(self.path, "has changed")
        if stat.S_ISDIR(mode):
            raise ToolError(f"{self.path} is a directory; use list_files to see what is in it")
        raise ToolError(f"{self.path} is not a regular file but {_kind(mode)}")

    def open_directory(self) -> int:
        try:
            return os.open(self.name, DIRECTORY, dir_fd=self.directory)
        except OSError as error:
            raise self.trouble(error) from error

    def _is_judged(self, version: Version) -> bool:
        """Whether a file is the one that was judged, or was written meanwhile by another call."""
        return self.seen is None or version == self.seen.version or targets.was_written(version)

    def trouble(self, error: OSError) -> ToolError:
        """What an error of the system means for this path."""
        match error:
            case FileNotFoundError():
                return ToolError(f"{self.path} does not exist")
            case NotADirectoryError():
                return ToolError(f"{self.path} is not a directory")
            case PermissionError():
                return ToolError(f"{self.path}: permission denied")
            case _:
                return ToolError(f"{self.path}: {error.strerror or error}")


class Workspace:
    """A directory that tools may not leave.

    `hidden` adds places inside it that they may not read, whether they exist yet or not; `readable` names
    files with credentials, or directories of them, that they may. Relative paths are relative to the root.
    `writable` are further directories, which absolute paths lead to; no link leads from one to another.
    `shown` are such directories that tools may read and not write, even where they lie in a hidden place.
    """

    def __init__(
        self,
        root: str | Path,
        hidden: Sequence[str | Path] = (),
        *,
        readable: Sequence[str | Path] = (),
        writable: Sequence[str | Path] = (),
        shown: Sequence[str | Path] = (),
    ) -> None:
        self._given = os.path.abspath(os.path.expanduser(root))
        self.root = Path(os.path.realpath(self._given))
        if not self.root.is_dir():
            raise InvalidInput(f"the workspace {self.root} is not a directory")
        hidden = as_tuple("hidden", hidden)
        self._given_hidden = [os.path.join(self.root, os.path.expanduser(path)) for path in hidden]
        self._readable = Readable(self.root, as_tuple("readable", readable))
        self._writable = [mark_writable(self.root)]
        self._further: tuple[str, ...] = ()
        self._shown: tuple[str, ...] = ()
        self.add_roots(writable, shown)

    def add_roots(self, places: Sequence[str | Path], shown: Sequence[str | Path] = ()) -> None:
        """Have these further directories, `places`, and no others; `shown` ones are not written."""
        self._further = tuple(map(str, select_roots(self.root, places)))
        self._shown = select_shown(self.root, shown)
        self._writable = [mark_writable(place) for place in (self.root, *map(Path, self._further))]
        secrets = list_secret_paths(root=self.root, missing=True)
        tops = (str(self.root), *self._further)
        self._known_hidden = frozenset(path for path in secrets if any(is_beneath(path, top) for top in tops))
        self._hidden = self._known_hidden

    def base_of(self, path: str) -> str:
        """The root that a path leads into: a further one only if it is absolute and there."""
        full = os.path.normpath(path)
        tops = (*self._shown, *self._further)
        found = (top for top in tops if os.path.isabs(path) and is_beneath(full, top))
        return next(found, str(self.root))

    @contextmanager
    def at(
        self,
        path: str,
        *,
        write: bool = False,
        make_parents: bool = False,
        follow: bool = True,
        judged: Sequence[Target] = (),
    ) -> Generator[Spot, None, None]:
        """The place a path leads to, links resolved; with `write`, read-only places are refused.

        Without `follow` a link at its end is refused; with `make_parents` folders are made. If the call was
        `judged`, it is that place or none.
        """
        if self._given_hidden:  # one that was made since the last look may be a link
            real = map(os.path.realpath, self._given_hidden)
            self._hidden = self._known_hidden.union(self._given_hidden, real)
        base = self.base_of(path)
        trail = _Trail(Path(base))
        try:
            rest = self._walk(trail, path, base, make_parents=make_parents, follow=follow)
            found = "/".join([*trail.names, *rest]) or "."
            found = found if base == str(self.root) else os.path.normpath(os.path.join(base, found))
            self._check(found, write=write)
            if judged:
                self._compare(path, found, judged)
                if rest:
                    _compare_directory(path, None if rest[1:] else trail.fds[-1], judged[-1].seen)
            for part in rest[:-1]:
                trail.make(part, path)
                trail.enter(part, path)
            spot = Spot(trail.fds[-1], rest[-1] if rest else ".", found, judged[-1].seen if judged else None)
            self._check_content(path, spot)
            yield spot
        finally:
            trail.close()

    def look(self, path: str) -> Target | None:
        """What a path leads to now, for the judge of a call; None for one that all tools refuse."""
        if len(path) > LONGEST or "\0" in path:
            return None
        return targets.look(os.path.join(self.root, path))

    def inside(self, target: Target) -> str | None:
        """Where a target is, relative to the root, or in a further root; None outside."""
        root = str(self.root)
        if any(is_beneath(target.path, top) for top in (*self._further, *self._shown)):
            return target.path
        return os.path.relpath(target.path, root) if is_beneath(target.path, root) else None

    def bind(self, run: object | None, call_id: str, path: str, target: Target) -> None:
        """Let the call `call_id` of a `run` touch the `target` its path was judged by, and nothing else."""
        targets.remember(run, call_id, os.path.join(self.root, path), target)

    def judged(self, ctx: ToolContext, path: str) -> list[Target]:
        """What the call of `ctx` was judged by for `path`, if it was."""
        return targets.take_targets(ctx.call_id, os.path.join(self.root, path))

    def directory(self, path: str) -> str:
        """The absolute path of a directory, as a command's working directory."""
        with self.at(path) as spot:
            os.close(spot.open_directory())
            return str(self.root / spot.path)

    def is_hidden(self, path: str) -> bool:
        """Whether a path, relative to the root, is or lies in a secret place."""
        if not self._hidden:
            return False
        full = os.path.join(self.root, path)
        over = max((len(top) for top in self._shown if is_beneath(full, top)), default=-1)
        above = (full[:at] for at, char in enumerate(full) if char == "/" and at > over)
        return full in self._hidden or not self._hidden.isdisjoint(above)

    def may_show(self, spot: Spot) -> bool:
        """Whether the content of `spot` may be read: not if it holds credentials that nobody named."""
        return not holds_credentials(spot.path, spot.directory) or self._readable.allows(spot.path)

    def parts(self, path: str) -> list[str]:
        """The components of a path relative to its root; an absolute one must name the workspace."""
        return self._parts_in(path, self.base_of(path))

    def _parts_in(self, path: str, top: str) -> list[str]:
        if "\0" in path:
            raise PathRefused("a path cannot contain a NUL character")
        if len(path) > LONGEST:
            raise PathRefused(
                f"a path cannot have more than {LONGEST:,} characters, and this has {len(path):,}"
            )
        if os.path.isabs(path):
            for base in (top, self._given) if top == str(self.root) else (top,):
                if is_beneath(os.path.normpath(path), base) and is_beneath(path, base):
                    path = path[len(base) :]
                    break
            else:
                raise PathRefused(
                    f"{path} is outside the workspace {self.root}; "
                    "use a path inside it, relative to it or absolute"
                )
        return [part for part in path.split("/") if part not in ("", ".")]

    def _walk(self, trail: "_Trail", path: str, base: str, *, make_parents: bool, follow: bool) -> list[str]:
        """Open directories along the path, and return the names left: the last one after those to be made."""
        waiting = self._parts_in(path, base)
        rest: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop(0)
            if part == "..":
                if not trail.names and not rest:
                    raise PathRefused(f"{path} leads out of the workspace {self.root}; use a path inside it")
                rest.pop() if rest else trail.leave()
                continue
            found = None if rest else trail.look(part, path)
            if found is not None and stat.S_ISLNK(found):
                links += 1
                if links > MAX_LINKS:
                    raise ToolError(f"{path} goes through too many symbolic links")
                if not waiting and not follow:
                    raise ToolError(
                        f"{path} is a symbolic link, not a file; "
                        "name the file it points to, or use rm in bash"
                    )
                waiting = self._follow(trail, part, path, base) + waiting
            elif found is None and waiting and not make_parents:
                raise ToolError(f"{path} does not exist: there is no {'/'.join([*trail.names, part])}")
            elif found is None or not waiting:
                rest.append(part)
            else:
                trail.enter(part, path)
        return rest

    def _follow(self, trail: "_Trail", part: str, path: str, base: str) -> list[str]:
        try:
            target = os.readlink(part, dir_fd=trail.fds[-1])
        except OSError as error:
            raise ToolError(f"{path} changed while it was looked at; try again") from error
        if not os.path.isabs(target):
            return [piece for piece in target.split("/") if piece not in ("", ".")]
        try:
            pieces = self._parts_in(target, base)
        except PathRefused:
            raise PathRefused(f"{path} is a symbolic link out of the workspace {self.root}") from None
        trail.restart()
        return pieces

    def _compare(self, path: str, found: str, judged: Sequence[Target]) -> None:
        """Refuse a place that is not where every judge was led."""
        real = os.path.normpath(os.path.join(self.root, found))
        if any(target.path != real for target in judged):
            raise PathChanged(path, "has come to lead somewhere else")

    def _check_content(self, asked: str, spot: Spot) -> None:
        """Refuse a file with credentials, also one that only a link names so; a new one may be made."""
        found = spot.stat()
        if found is None or not stat.S_ISREG(found.st_mode):
            return
        name = "/".join(self.parts(asked))
        if not self.may_show(spot) or (suspect(name) == "sure" and not self._readable.allows(name)):
            raise PathRefused(explain_refusal(spot.path))

    def _check(self, path: str, *, write: bool) -> None:
        if self.is_hidden(path):
            raise PathRefused(f"{path} holds secrets; tools do not touch it")
        if write and any(is_beneath(path, top) for top in self._shown):
            raise PathRefused(f"{path} can be read, not written; copy it into the workspace to change it")
        if write and ".git" in (part.casefold() for part in path.split("/")):
            raise PathRefused(f"{path} belongs to git; change it with git commands")


class _Trail:
    """The open directories from the root down to where a walk stands."""

    def __init__(self, root: Path) -> None:
        self.names: list[str] = []
        try:
            self.fds = [os.open(root, DIRECTORY)]
        except OSError as error:
            if os.open not in os.supports_dir_fd:
                raise ToolError(
                    "file tools need handles of directories, which this system lacks; use WSL on Windows"
                ) from error
            raise ToolError(f"the workspace {root} cannot be opened: {error.strerror}") from error

    def look(self, part: str, path: str) -> int | None:
        try:
            return os.stat(part, dir_fd=self.fds[-1], follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error

    def enter(self, part: str, path: str) -> None:
        try:
            self.fds.append(os.open(part, DIRECTORY, dir_fd=self.fds[-1]))
        except OSError as error:
            raise ToolError(
                f"{path}: {'/'.join([*self.names, part])} is not a directory that can be entered "
                f"({error.strerror})"
            ) from error
        self.names.append(part)

    def make(self, part: str, path: str) -> None:
        try:
            os.mkdir(part, dir_fd=self.fds[-1])
        except FileExistsError:
            pass  # made meanwhile by another process; entering it shows what it is
        except OSError as error:
            raise ToolError(
                f"{path}: cannot make {'/'.join([*self.names, part])}: {error.strerror}"
            ) from error

    def leave(self) -> None:
        os.close(self.fds.pop())
        self.names.pop()

    def restart(self) -> None:
        while self.names:
            self.leave()

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)


def _compare_directory(path: str, directory: int | None, seen: Seen | None) -> None:
    """Refuse a place that is in another directory than the one that was seen; None if that is missing."""
    if seen is not None and seen.directory is not None:
        now = None if directory is None else os.fstat(directory)
        if now is None or seen.directory != (now.st_dev, now.st_ino):
            raise PathChanged(path, "has come to be in another directory")


def as_tuple(name: str, values: Iterable[T]) -> tuple[T, ...]:
    """The values of an option that takes several; a single text would silently be taken letter by letter."""
    if isinstance(values, str | bytes | os.PathLike):
        raise InvalidInput(f"{name} is a list, so write {name}=[{values!r}]")
    return tuple(values)


def select_roots(root: Path, places: Iterable[str | Path]) -> tuple[Path, ...]:
    """Further roots by their real paths, without those inside others; raises `InvalidInput`."""
    found: list[Path] = []
    given = as_tuple("writable", places)
    for place in sorted({Path(os.path.realpath(root / os.path.expanduser(place))) for place in given}):
        if not place.is_dir():
            raise InvalidInput(f"{place} cannot be written: it is no directory")
        if (root != place and root.is_relative_to(place)) or find_homes(place):
            raise InvalidInput(f"{place} cannot be written: it holds the workspace or a home directory")
        if not any(place.is_relative_to(other) for other in (root, *found)):
            found.append(place)
    return tuple(found)


def select_shown(root: Path, places: Iterable[str | Path]) -> tuple[str, ...]:
    """The real paths of directories to read, without those in the root, and what holds it or a home."""
    given = {Path(os.path.realpath(root / os.path.expanduser(place))) for place in as_tuple("shown", places)}
    found = [place for place in sorted(given) if place.is_dir() and not place.is_relative_to(root)]
    return tuple(str(place) for place in found if not (root.is_relative_to(place) or find_homes(place)))


class _PathLock:
    """A lock that can be weakly referenced, so that a path nobody uses costs nothing."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


_locks: "weakref.WeakValueDictionary[Any, _PathLock]" = weakref.WeakValueDictionary()
_guard = threading.Lock()


@contextmanager
def lock_spot(spot: Spot) -> Generator[None, None, None]:
    """Hold the file alone among the tools of this process."""
    directory = os.fstat(spot.directory)
    key = (directory.st_dev, directory.st_ino, spot.name)
    with _guard:
        mine = _locks.get(key)
        if mine is None:
            mine = _locks[key] = _PathLock()
    with mine.lock:
        yield


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    kinds |= dict.fromkeys((stat.S_IFCHR, stat.S_IFBLK), "a device")
    return kinds.get(stat.S_IFMT(mode), "something else")
