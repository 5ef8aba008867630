"""The files of a workspace in path order, without what git ignores."""

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache

from msgspec import Struct

from swink.system.files import READ
from swink.system.targets import Target
from swink.tools import ToolContext, ToolError
from swink.tools.coding.ignore import MAX_COMPLEX, IgnoreFile, is_ignored
from swink.tools.coding.workspace import DIRECTORY, Workspace

warn_once = cache(logging.getLogger("swink.tools").warning)

MAX_DEPTH = 100
MAX_RULES = 1 << 20
"""Bytes of an ignore file that are read."""
SECONDS = 60.0
"""How long a walk may take, with whatever is done to the files on the way."""

_OFTEN = 50  # entries between two calls of `check_stop`, each of which costs as much as an entry

StopCheck = Callable[[], None]
"""Called often during a walk; raises when the walk should end."""
_Rules = tuple[tuple[int, IgnoreFile], ...]
"""The ignore files in force, outermost first, each with the length of its directory's path."""


class TooLong(ToolError):
    """A walk took longer than it may."""


class WalkEntry(Struct, frozen=True):
    """An entry: its path from the workspace, and its parent directory, open until the walk goes on."""

    path: str
    name: str
    parent: int
    is_directory: bool
    is_link: bool = False
    is_file: bool = True


def make_stop_check(ctx: ToolContext | None) -> StopCheck:
    """A `StopCheck` for one tool call: it raises on cancellation and after the time limit."""
    seconds = SECONDS
    deadline = time.monotonic() + seconds

    def check_stop() -> None:
        if ctx is not None and ctx.cancelled:
            raise ToolError("cancelled")
        if time.monotonic() > deadline:
            raise TooLong(f"stopped after {seconds:g} s; narrow the path or the pattern")

    return check_stop


def walk(
    workspace: Workspace,
    path: str = ".",
    *,
    depth: int = MAX_DEPTH,
    ignored: bool = False,
    check_stop: StopCheck = lambda: None,
    judged: Sequence[Target] = (),
) -> Iterator[WalkEntry]:
    """Every entry below a path, depth first, in the order of names. Links are not followed."""
    with workspace.at(path, judged=judged) as spot:
        top = spot.open_directory()
        prefix = "" if spot.path == "." else spot.path + "/"
    try:
        rules = () if ignored else _read_inherited(workspace, prefix, check_stop)
        yield from _walk_below(workspace, top, prefix, depth, rules, ignored, check_stop)
    finally:
        os.close(top)


def _walk_below(
    workspace: Workspace,
    directory: int,
    prefix: str,
    depth: int,
    rules: _Rules,
    ignored: bool,
    check_stop: StopCheck,
) -> Iterator[WalkEntry]:
    try:
        found = _list_entries(directory, check_stop)
    except OSError as error:
        _warn(workspace, prefix, error)
        return
    if not ignored and any(name == ".gitignore" and is_file for name, _, _, is_file in found):
        rules = (*rules, *_read_rules(workspace, directory, prefix + ".gitignore", len(prefix), check_stop))
    for number, (name, is_directory, is_link, is_file) in enumerate(found):
        if not number % _OFTEN:
            check_stop()
        path = prefix + name
        if name == ".git" or workspace.is_hidden(path):
            continue
        if rules and is_ignored(rules, path, name, is_directory):
            continue
        yield WalkEntry(path, name, directory, is_directory, is_link, is_file)
        if is_directory and depth > 1:
            try:
                inside = os.open(name, DIRECTORY, dir_fd=directory)
            except OSError as error:
                _warn(workspace, path, error)
                continue
            try:
                yield from _walk_below(workspace, inside, path + "/", depth - 1, rules, ignored, check_stop)
            finally:
                os.close(inside)


def _list_entries(directory: int, check_stop: StopCheck) -> list[tuple[str, bool, bool, bool]]:
    """Name, and whether it is a directory, a link, a regular file; in the order of names."""
    found: list[tuple[str, bool, bool, bool]] = []
    with os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if not number % _OFTEN:
                check_stop()
            is_directory = entry.is_dir(follow_symlinks=False)
            is_file = entry.is_file(follow_symlinks=False)
            found.append((entry.name, is_directory, entry.is_symlink(), is_file))
    return sorted(found)


def _read_inherited(workspace: Workspace, prefix: str, check_stop: StopCheck) -> _Rules:
    """The rules that hold above the place a walk starts from."""
    above = [part for part in prefix.split("/") if part]
    starts = ["".join(part + "/" for part in above[:count]) for count in range(len(above))]
    rules: _Rules = ()
    for name, start in ((".git/info/exclude", 0), *((start + ".gitignore", len(start)) for start in starts)):
        try:
            with workspace.at(name) as spot:
                rules += _read_rules(workspace, spot.directory, spot.path, start, check_stop)
        except TooLong:
            raise
        except ToolError:
            check_stop()  # there is no such file, or the call was cancelled
    return rules


def _read_rules(workspace: Workspace, directory: int, path: str, start: int, check_stop: StopCheck) -> _Rules:
    try:
        fd = os.open(path.rpartition("/")[2], READ, dir_fd=directory)
    except OSError as error:
        _warn(workspace, path, error)
        return ()
    data = b""
    with os.fdopen(fd, "rb") as file, suppress(OSError):
        if stat.S_ISREG(os.fstat(fd).st_mode):
            data = file.read(MAX_RULES + 1)
    is_cut = len(data) > MAX_RULES
    if is_cut:
        data = data[: data.rfind(b"\n") + 1]  # half a rule would mean something else
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    rules = IgnoreFile(lines, check_stop)
    if is_cut or rules.unused:
        used = f"only its first {MAX_RULES:,} bytes and {MAX_COMPLEX} wildcards are used"
        warn_once(f"{workspace.root / path} is too long: {used}")
    return ((start, rules),)


def _warn(workspace: Workspace, path: str, error: OSError) -> None:
    """Report what we may not read; a file that is gone meanwhile is not worth a report."""
    if isinstance(error, PermissionError):
        warn_once(f"{workspace.root / path} is left out when tools list and search: {error.strerror}")
