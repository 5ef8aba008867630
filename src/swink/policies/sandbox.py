"""Sandbox: path arguments stay inside one directory."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from swink.messages import ToolCall
from swink.policy import Policy, PolicyContext, Skip, Verdict

_PATH_WORD = re.compile(
    r"(?:file)?paths?|pathname|file(?:name)?s?|dirs?|director(?:y|ies)|folders?|globs?|root|cwd|work(?:dir|space)|location|source|src"
    r"|dest(?:ination)?|dst|target|out(?:put)?"
)
_PROSE_WORDS = frozenset({"content", "contents", "text", "body", "message", "description"})
_TEXT_WORDS = _PROSE_WORDS | frozenset(
    {"command", "code", "script", "query", "prompt", "title", "pattern", "regex", "old", "new", "input", "replacement"}
)
_LOOKS_LIKE_A_PATH = re.compile(r"[/~\\]|[A-Za-z]:[/\\]|file:|(?:.*[/\\])?\.\.(?:[/\\]|$)")


class Sandbox(Policy):
    """A call whose path arguments lead outside `root`, after `..` and symbolic links are resolved, is not run.

    A path argument is one whose name says so (`path`, `target_file`, `sourceDir`, …), at any depth, and any one-line
    value that is an absolute path or climbs with `..`, unless its name says it is text (`content`, `command`, …) or
    is in `ignore`. Relative paths are taken from `base` (default: the root), as tools bound to a root do. What a
    shell command does is out of reach here: sandbox the tool itself.

    >>> agent = Agent(model, tools=coding_tools("project"), policies=[Sandbox("project")])
    """

    fail_closed = True

    def __init__(self, root: str | Path, *, base: str | Path | None = None, ignore: Iterable[str] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self.base = self.root if base is None else Path(os.path.realpath(base))
        self.ignore = frozenset(ignore)

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Verdict:
        """Skip a call that leads outside."""
        for name, value in _paths(call.arguments, "", self.ignore, named=False):
            if not self.contains(value):
                return Skip(f"tool call not run: {name} = {value!r} is outside {str(self.root)!r}; use a path inside it")
        return None

    def contains(self, path: str) -> bool:
        """Whether a path is inside the root, taken as it stands and as a tool that trims it would."""
        return self._inside(path) and (path == path.strip() or self._inside(path.strip()))

    def _inside(self, path: str) -> bool:
        if path.lower().startswith("file:"):
            path = unquote(urlsplit(path).path)
        try:
            resolved = os.path.realpath(os.path.join(self.base, os.path.expanduser(path)))
        except (ValueError, OSError):  # a NUL, a lone surrogate: no path at all
            return False
        return Path(resolved).is_relative_to(self.root)


def _paths(value: Any, name: str, ignore: frozenset[str], *, named: bool) -> Iterator[tuple[str, str]]:
    """Every value that is, or may be, a path, with its argument's name; `named` if a name around it speaks of paths."""
    match value:
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                if named:
                    yield name, key
                if key not in ignore:
                    yield from _paths(item, key, ignore, named=_speaks_of_paths(key) or (named and not _words(key) & _TEXT_WORDS))
        case list():
            for item in cast("list[Any]", value):
                yield from _paths(item, name, ignore, named=named)
        case str() if value and (named or _may_be_a_path(name, value)):
            yield name, value
        case _:
            pass


def _speaks_of_paths(name: str) -> bool:
    words = _words(name)
    return any(_PATH_WORD.fullmatch(word) for word in words) and not words & _PROSE_WORDS


def _may_be_a_path(name: str, value: str) -> bool:
    return "\n" not in value and not _words(name) & _TEXT_WORDS and _LOOKS_LIKE_A_PATH.match(value.strip()) is not None


def _words(name: str) -> set[str]:
    """The words of an argument's name: `targetFile`, `target_file` and `target-file` alike."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
