"""PathGuard: what tools are given leads to nothing outside one directory.

Names decide how much a string must look like a path, never whether it is judged at all:

    kind    argument's name                     judged                                refused if it is outside
    path    path, target_file, sourceDir, …     whole, every word, item and piece     whether it exists or not
    other   everything else                     whole, every item and piece of it     whether it exists or not
    text    content, command, pattern, …        the whole, if it is one line          and exists

Beside an argument of the first kind a text is text (`old="/usr/bin"` of an edit), and only followed through
links.
"""

import os
from collections.abc import Awaitable, Iterable, Iterator
from glob import has_magic, iglob
from itertools import islice, takewhile
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast

import msgspec

from swink.agent.policy import CallVerdict, Policy, PolicyContext, Skip
from swink.errors import InvalidInput
from swink.messages import ToolCall
from swink.messages.checks import check_type
from swink.policies.inputs import texts_of
from swink.policies.spellings import Kind, is_explicit, kind_of, parts_of, spellings_of
from swink.system.shorten import clip_end
from swink.system.targets import LONGEST, Target, remember, resolve
from swink.system.threads import in_thread

_AT_ONCE, _EACH = 20_000, 200
"""A call with more characters than this is judged in a thread; every string counts for `_EACH` more."""
_LONGEST = 8_192
_MATCHES = 10_000
_SHOWN = 200


class _Found(NamedTuple):
    """A string in a call: the name of its argument, and what that says about it."""

    name: str
    kind: Kind
    value: Any


class PathGuard(Policy):
    """A call that names something outside `root`, after `..` and symbolic links are resolved, is not run.

    Every string is judged, at any depth, keys included. Absolute paths, `..`, `~`, `$HOME`, `%TEMP%`, drives,
    UNC names and `file:` URLs are recognised, also encoded, in lists, after `--output=` or `@`; a relative
    name is followed through links. What cannot be resolved is outside. Other URLs are no paths. A text
    (`content`, `command`, `pattern`, …) is refused only if all of it is the path of something that exists,
    and no other argument is called a path. `ignore` names arguments that are never paths, such as `"route"`
    or `"write_file.content"`. Relative paths start at `base` (default: the root). What a shell command does
    cannot be judged here: sandbox the tool itself.

    >>> agent = Agent(model, tools=coding_tools("project"), policies=[PathGuard("project")])
    """

    fail_closed = True

    def __init__(
        self, root: str | Path, *, base: str | Path | None = None, ignore: Iterable[str] = ()
    ) -> None:
        check_type("PathGuard(root=…)", root, (str, Path))
        self.root = Path(os.path.realpath(root))
        if self.root == Path(self.root.anchor):
            why = "refuses nothing, everything is inside: give a directory"
            raise InvalidInput(f"PathGuard({str(root)!r}) {why}")
        if self.root.exists() and not self.root.is_dir():
            why = "that is a file; give the directory to stay inside of"
            raise InvalidInput(f"PathGuard({str(root)!r}): {why}")
        self.base = self.root if base is None else Path(os.path.realpath(base))
        self.ignore = frozenset(texts_of("ignore", [ignore] if isinstance(ignore, str) else ignore))

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict | Awaitable[CallVerdict]:
        """Refuse a call whose paths lead outside."""
        found: list[_Found] = []
        weight = 0
        for item in _strings(call, self.ignore):
            weight += len(item.value) + (_AT_ONCE if _is_wide(item) else _EACH)
            if weight > _AT_ONCE:
                return in_thread(lambda: self._verdict(ctx, call, list(_strings(call, self.ignore))))
            found.append(item)
        return self._verdict(ctx, call, found)

    def contains(self, path: str) -> bool:
        """Whether a path is inside the root, however a tool might read it."""
        return not any(self._leads_outside(spelling) for spelling in spellings_of(path))

    def _verdict(self, ctx: PolicyContext, call: ToolCall, found: list[_Found]) -> CallVerdict:
        found = [item for item in found if item.value]
        has_path = any(kind == "path" for _, kind, _ in found)
        for name, kind, text in found:
            if kind == "text" and has_path and is_explicit(text.strip()):
                continue
            outside = self._outside(text, kind)
            is_whole = kind == "path" and call.arguments.get(name) == text
            if outside is None and is_whole and not self._bind(ctx, call, text):
                outside = text
            if outside is not None:
                where = f"{name} = {clip_end(outside, _SHOWN)!r} is outside {str(self.root)!r}"
                return Skip(f"tool call not run: {where}; use a path inside it")
        return None

    def _bind(self, ctx: PolicyContext, call: ToolCall, text: str) -> bool:
        """Bind file tools to what a path leads to now; False if it has come to lead outside meanwhile."""
        whole = os.path.join(self.base, text)
        if len(whole) > LONGEST:
            return True
        try:
            target = Target(resolve(whole))
        except OSError:
            return False
        remember(ctx.run, call.id, whole, target)
        return self._is_inside(target.path) or "://" in text

    def _outside(self, text: str, kind: Kind) -> str | None:
        """The part of a string that leads outside, if one does."""
        for part in parts_of(text, kind):
            for spelling in spellings_of(part.text, backslashes=kind != "text"):
                if not self._leads_outside(spelling):
                    continue
                if part.certain or self._is_there(spelling, new=kind != "text"):
                    return part.text
        return None

    def _leads_outside(self, path: str) -> bool:
        if not is_explicit(path):
            first = path.lstrip("./").partition("/")[0]
            if not has_magic(first) and not os.path.lexists(os.path.join(self.base, first)):
                # Nothing of that name exists, so that no link can lead outside.
                return "\0" in path or _is_unencodable(path)
        try:
            inside = self._is_inside(_resolve(os.path.join(self.base, path)))
            return not inside or self._matches_a_way_out(path)
        except (ValueError, OSError):
            # A NUL, a lone surrogate, links in a circle, an unreadable directory: it may lead anywhere.
            return True

    def _is_inside(self, resolved: str) -> bool:
        if PurePath(resolved).is_relative_to(self.root):
            return True
        # Another spelling of the root, where the file system ignores case.
        return any(_same(parent, self.root) for parent in (resolved, *map(str, PurePath(resolved).parents)))

    def _is_there(self, path: str, *, new: bool) -> bool:
        """Whether a path exists, or (`new`) could be made where it is, or a pattern finds something."""
        try:
            if has_magic(path) and not new:
                return self._finds(path)
            whole = _resolve(os.path.join(self.base, path))
            parent = os.path.dirname(whole)
            could_be = new and parent != os.path.dirname(parent) and os.path.isdir(parent)
            return os.path.lexists(whole) or could_be
        except (ValueError, OSError):
            return new

    def _finds(self, pattern: str) -> bool:
        """Whether a text is a pattern that finds something outside; only one directory is searched."""
        whole = os.path.join(self.base, pattern)
        *folders, name = whole.split("/")
        fixed = "/".join(takewhile(lambda part: not has_magic(part), (*folders, name)))
        if not fixed.strip("/"):
            return "**" in folders  # `/*` and `//.*` are rather a comment or a regular expression
        if any(map(has_magic, folders)):
            return os.path.isdir(fixed)
        return next(iglob(whole, include_hidden=True), None) is not None

    def _matches_a_way_out(self, path: str) -> bool:
        """Whether a pattern finds something below a link that leads outside."""
        folder, name = os.path.split(path)
        if not name or not has_magic(folder):
            return False
        found = islice(iglob(path, root_dir=self.base, include_hidden=True), _MATCHES)
        folders = {os.path.dirname(match) for match in found}
        return any(not self._is_inside(_resolve(os.path.join(self.base, folder))) for folder in folders)


def _strings(call: ToolCall, ignore: frozenset[str]) -> Iterator[_Found]:
    """Every string of a call."""
    waiting = [_Found("", "other", call.arguments)]
    while waiting:
        name, kind, value = waiting.pop()
        match value:
            case str() | PurePath():
                text = str(value)
                yield _Found(name, kind, text)
                if kind != "text" and (inner := _decode(text)) is not None:
                    waiting.append(_Found(name, kind, inner))
            case bytes():
                yield _Found(name, kind, os.fsdecode(value))
            case dict():
                for key, item in cast("dict[Any, Any]", value).items():
                    key = str(key)
                    yield _Found(name or key, "other", key)
                    if key not in ignore and (name or f"{call.name}.{key}" not in ignore):
                        waiting.append(_Found(key, kind_of(key, kind), item))
            case list() | tuple() | set() | frozenset():
                waiting += [_Found(name, kind, item) for item in cast("list[Any]", value)]
            case _:
                pass


def _decode(text: str) -> Any:
    """The JSON list or object in a string: models often write one where a list is asked for."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def _resolve(path: str) -> str:
    """The path without links and `..`; its end need not exist."""
    if len(path) > _LONGEST:
        raise OSError("no system takes a path of this length")
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.realpath(path)


def _same(one: str, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _is_wide(found: _Found) -> bool:
    """Whether it is a pattern for which many directories must be searched."""
    is_path = found.kind != "text" and len(found.value) < _LONGEST
    return is_path and sum(map(has_magic, found.value.split("/")[:-1])) > 1


def _is_unencodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except ValueError:
        return True
    return False
