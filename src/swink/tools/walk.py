"""The files of a workspace in path order, without what git ignores."""

import os
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from swink.tool import ToolError
from swink.tools.ignore import IgnoreFile
from swink.tools.workspace import Workspace

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
MAX_DEPTH = 100

_Rules = tuple[tuple[int, IgnoreFile], ...]
"""The ignore files in force, outermost first, each with the length of its directory's path."""


class Found(Struct, frozen=True):
    """An entry: its path from the workspace, and its open parent directory while the walk stands on it."""

    path: str
    name: str
    parent: int
    is_directory: bool
    is_link: bool = False


def walk(workspace: Workspace, path: str = ".", *, depth: int = MAX_DEPTH, ignored: bool = False) -> Iterator[Found]:
    """Every entry below a path, each directory's before the next directory's, names in order. Links are not followed."""
    with workspace.at(path) as spot:
        top = spot.open_directory()
        prefix = "" if spot.path == "." else spot.path + "/"
    try:
        rules = () if ignored else _inherited(workspace, prefix)
        yield from _below(workspace, top, prefix, depth, rules, ignored)
    finally:
        os.close(top)


def _below(workspace: Workspace, directory: int, prefix: str, depth: int, rules: _Rules, ignored: bool) -> Iterator[Found]:
    try:
        with os.scandir(directory) as entries:
            found = sorted([(entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries])
    except OSError:
        return  # unreadable: there is nothing to show
    if not ignored and any(name == ".gitignore" for name, is_directory, _ in found if not is_directory):
        rules = (*rules, *_read_rules(directory, ".gitignore", len(prefix)))
    for name, is_directory, is_link in found:
        path = prefix + name
        if name == ".git" or workspace.is_hidden(path) or (rules and _is_ignored(rules, path, name, is_directory)):
            continue
        yield Found(path, name, directory, is_directory, is_link)
        if is_directory and depth > 1:
            try:
                inside = os.open(name, _DIRECTORY, dir_fd=directory)
            except OSError:
                continue
            try:
                yield from _below(workspace, inside, path + "/", depth - 1, rules, ignored)
            finally:
                os.close(inside)


def _is_ignored(rules: _Rules, path: str, name: str, is_directory: bool) -> bool:
    for start, file in reversed(rules):
        verdict = file.verdict(path[start:], name, is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False


def _inherited(workspace: Workspace, prefix: str) -> _Rules:
    """The rules that hold above the place a walk starts from."""
    above = [part for part in prefix.split("/") if part]
    starts = ["".join(part + "/" for part in above[:count]) for count in range(len(above))]
    rules: _Rules = ()
    for name, start in ((".git/info/exclude", 0), *((start + ".gitignore", len(start)) for start in starts)):
        with suppress(ToolError), workspace.at(name) as spot:
            rules += _read_rules(spot.directory, spot.name, start)
    return rules


def _read_rules(directory: int, name: str, start: int) -> _Rules:
    try:
        fd = os.open(name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), dir_fd=directory)
    except OSError:
        return ()
    with os.fdopen(fd, "rb") as file:
        try:
            lines = file.read(1 << 20).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
        except OSError:
            return ()
    return ((start, IgnoreFile(lines)),)
