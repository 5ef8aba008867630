"""Fingerprints: what tells one object from another, so that a result is only taken for the same agent.

    data                  its values
    function              its code, defaults, closure, and the source of its module
    object                its class, and the same of its attributes
    source of a module    its file, and the files that it imports, except Python's and installed packages

What cannot be told apart, such as an open connection, is an error that names it. Globals are what their
modules' source says they are.
"""

import enum
import functools
import hashlib
import inspect
import logging
import os
import re
import sys
import sysconfig
import threading
import types
import weakref
from asyncio import Condition, Event, Lock, Queue, Semaphore
from collections.abc import Iterator, Mapping, Sequence, Set
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, cast

from msgspec import UNSET, Struct

from swink.eval.case import Case
from swink.messages import AssistantMessage, ToolResultMessage, UserMessage
from swink.stream import StreamOptions
from swink.tools import Tool

MOST = 100_000
"""Values in one object; of more it is too dear to tell them apart."""
_PLAIN = int | float | complex | PurePath | range | slice | enum.Enum | type(None) | type(UNSET)
# What they hold changes nothing about what an agent does.
_IDLE = (
    Lock, Semaphore, Condition, Event, Queue, logging.Logger, ContextVar, weakref.ref, weakref.WeakSet,
    weakref.WeakKeyDictionary, weakref.WeakValueDictionary, threading.Event, threading.Condition,
    type(threading.Lock()), type(threading.RLock()), threading.local,
)  # fmt: skip
_OF_TOOLS = (
    "name", "description", "parameters_schema", "requires_approval", "sequential", "priority", "timeout",
    "isolation", "max_result", "deferred", "redirect", "inside",
)  # fmt: skip
_UNSEEN: Mapping[type, tuple[str, ...]] = {
    Case: ("workspace", "place"),
    UserMessage: ("timestamp",),
    AssistantMessage: ("timestamp",),
    ToolResultMessage: ("timestamp",),
    StreamOptions: ("api_key", "session_id", "http", "timeout", "on_raw_payload"),
}
"""Fields that change nothing about what is answered."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n#;]*))|import[ \t]+([^\n#;]*))",
    re.MULTILINE,
)
_OURS = Path(__file__).parents[1]
_KINDS = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = tuple([f"{path}{os.sep}" for path in (_OURS, *map(sysconfig.get_path, _KINDS))])


class NotTold(Exception):
    """An object that cannot be told from another one."""


def fingerprint(value: Any, workspace: Path | None = None) -> str:
    """A digest that equal objects share, in another process too; raises `NotTold`.

    The workspace is another directory in every attempt: whichever it is makes no difference.
    """
    found = hashlib.sha256()
    try:
        for part in _Walk(workspace).parts(value):
            found.update(part.encode("utf-8", "surrogatepass") + b"\0")
    except RecursionError:
        raise NotTold("it is nested too deeply") from None
    return found.hexdigest()


class _Walk:
    """One object, part by part; what comes again is named by its place."""

    def __init__(self, workspace: Path | None) -> None:
        self._workspace = workspace
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []
        self._count = 0

    def parts(self, value: Any) -> Iterator[str]:
        self._count += 1
        if self._count > MOST:
            raise NotTold(f"it holds more than {MOST:,} values")
        if isinstance(value, str | bytes | _PLAIN):
            told = repr(value)
            told = told if self._workspace is None else told.replace(str(self._workspace), "WORKSPACE")
            yield f"{type(value).__qualname__} {told}"
            return
        if (place := self._seen.setdefault(id(value), len(self._seen))) != len(self._seen) - 1:
            yield f"again {place}"
            return
        self._kept.append(value)  # a freed object would give its id to another one
        if isinstance(value, _IDLE):
            yield type(cast(Any, value)).__qualname__
        else:
            yield from self._held(value)

    def _held(self, value: Any) -> Iterator[str]:
        kind = cast("type[Any]", type(value))
        match value:
            case type():
                yield f"class {_named(value)} {_source(value.__module__)}"
            case types.FunctionType():
                yield from self._function(value)
            case types.MethodType():
                yield from self._all("method", [value.__func__, value.__self__])
            case functools.partial():
                yield from self._all("partial", [value.func, value.args, value.keywords])
            case types.BuiltinFunctionType():
                owner = getattr(value, "__self__", None)
                yield from self._all(_named(value), [] if inspect.ismodule(owner) else [owner])
            case types.ModuleType():
                yield f"module {value.__name__} {_source(value.__name__)}"
            case types.CodeType():
                yield from self._code(value)
            case re.Pattern():
                yield f"pattern {cast(Any, value)}"
            case Tool():
                made = cast("Tool[Any]", value)
                told = {name: getattr(made, name) for name in _OF_TOOLS}
                yield from self._pairs(told | {"runs": made.function or made.body})
            case Mapping():
                yield from self._pairs(cast("Mapping[Any, Any]", value))
            case Set():
                digests = sorted(fingerprint(item, self._workspace) for item in cast("Set[Any]", value))
                yield from self._all(_named(kind), digests)
            case Sequence():
                yield from self._all(_named(kind), cast("Sequence[Any]", value))
            case _:
                yield from self._object(value)

    def _all(self, what: str, items: Sequence[Any]) -> Iterator[str]:
        yield f"{what} {len(items)}"
        for item in items:
            yield from self.parts(item)

    def _pairs(self, value: Mapping[Any, Any]) -> Iterator[str]:
        yield f"{_named(type(value))} {len(value)}"
        for key, item in value.items():
            yield from self.parts(key)
            yield from self.parts(item)

    def _function(self, value: types.FunctionType) -> Iterator[str]:
        yield f"function {_named(value)} {_source(value.__module__)}"
        yield from self._code(value.__code__)
        cells = [_contents(cell) for cell in value.__closure__ or ()]
        wrapped = vars(value).get("__wrapped__")
        yield from self._all("holds", [value.__defaults__, value.__kwdefaults__, cells, wrapped])

    def _code(self, code: types.CodeType) -> Iterator[str]:
        yield f"code {code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
        yield from self._all("constants", code.co_consts)

    def _object(self, value: Any) -> Iterator[str]:
        kind = cast("type[Any]", type(value))
        yield f"object {_named(kind)} {_source(kind.__module__)}"
        if kind.__module__.startswith(("swink.providers", "swink.local")):
            yield from self.parts(getattr(value, "base_url", None))  # an adapter: whom it asks
            return
        if isinstance(value, Struct):
            unseen = _UNSEEN.get(kind, ())
            names = [name for name in value.__struct_fields__ if name not in unseen]
            yield from self._pairs({name: getattr(value, name, None) for name in names})
            return
        try:
            reduced: Any = value.__reduce_ex__(2)
        except Exception as error:
            # Foreign code; and what has a state that Python cannot see, such as a socket, says so.
            raise NotTold(f"an object of {_named(kind)} cannot be told from another one") from error
        for part in (reduced,) if isinstance(reduced, str) else reduced:
            yield from self.parts(list(cast("Iterator[Any]", part)) if isinstance(part, Iterator) else part)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _named(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def _source(module: str | None) -> str:
    """A digest of the file of a module, and of what it imports."""
    found = hashlib.sha256()
    seen: set[str] = set()
    waiting = [module or ""]
    while waiting:
        name = waiting.pop()
        path = getattr(sys.modules.get(name), "__file__", None)
        if name in seen or not isinstance(path, str) or path.startswith(_INSTALLED):
            continue
        seen.add(name)
        digest, imported = _read(path)
        found.update(f"{name} {digest}\0".encode())
        package = getattr(sys.modules[name], "__package__", "") or ""
        waiting += sorted({other for one in imported for other in _modules(one, package)}, reverse=True)
    return found.hexdigest() if seen else ""


def _read(path: str) -> tuple[str, tuple[str, ...]]:
    try:
        status = Path(path).stat()
        return _parsed(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return "", ()


@lru_cache(4096)
def _parsed(path: str, changed: int, size: int) -> tuple[str, tuple[str, ...]]:
    """A digest of a file, and its imports, `from .a import b, c` as `.a:b,c`.

    By their looks: two threads that parse at the same time disturb each other in Python 3.11.
    """
    data = Path(path).read_bytes()
    imported: list[str] = []
    for origin, many, names, plain in _IMPORT.findall(data.decode("utf-8", "replace")):
        for name in plain.split(",") if plain else ():
            imported.append(name.split()[0] if name.split() else "")
        if origin:
            words = [word.split()[0] for word in (many or names).split(",") if word.split()]
            imported.append(f"{origin}:{','.join(words)}")
    return hashlib.sha256(data).hexdigest(), tuple(imported)


def _modules(imported: str, package: str) -> list[str]:
    """The modules that an import may have brought."""
    origin, _, names = imported.partition(":")
    name = origin.lstrip(".")
    if level := len(origin) - len(name):
        parts = package.split(".")
        name = ".".join([*parts[: len(parts) - level + 1], *filter(None, [name])])
    parts = name.split(".")
    above = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return [*above, *[f"{name}.{one}" for one in names.split(",") if one]]
