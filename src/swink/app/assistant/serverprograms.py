"""Which files of a project the command line of one of its servers names.

Any word may name a program, and so may a part of one (`--require=./tools/hook.js`, `sh -c "exec …"`), so
every file that a word, or a piece of it, leads to counts, whatever it is called.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from swink.system.writable import is_beneath

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_BETWEEN = re.compile(r"""[\s=:,;&|<>()"'`\0]+""")
_FORMS = ("{0}", "{0}.js", "{1}.py", "{1}/__main__.py")
"""What programs make of a name: {0} is the name, {1} is that of a module (`-m tools.server`) as a path."""
_FORMS_OF_FIRST = (*_FORMS, "{0}/index.js", "{0}/__main__.py")
"""A folder that is the first argument may be a program (`node .`); later ones are rather data."""
MOST_PIECES = 1_000
MOST_FOLDERS = 16
"""Of one command line; with more its server cannot be judged."""


_HEAD = 1_024
_MACH_O = (b"\xfe\xed\xfa", b"\xce\xfa\xed", b"\xcf\xfa\xed", b"\xca\xfe\xba")
_LOADED = (b"\x7fELF", b"MZ", b"PK", b"\0asm", *_MACH_O)
"""How programs, libraries and archives of them begin; compiled Python is told by its line break."""


class TooManyPrograms(ValueError):
    """A command line has more words than can be looked for."""


def expanded(value: Any, missing: list[str]) -> Any:
    """The same with `${VARIABLE}` and `${VARIABLE:-default}` replaced, so that files need hold no secret."""

    def expand(found: re.Match[str]) -> str:
        if found[1] not in os.environ and found[2] is None:
            missing.append(found[1])
        return os.environ.get(found[1], found[2] or "")

    match value:
        case str():
            return _VARIABLE.sub(expand, value)
        case dict():
            return {key: expanded(item, missing) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [expanded(item, missing) for item in cast("list[Any]", value)]
        case _:
            return value


def command_line(fields: Mapping[str, Any]) -> list[Any]:
    """The command and its arguments."""
    words = fields.get("args")
    return [fields["command"], *(cast("list[Any]", words) if isinstance(words, list) else ())]


def named_files(project: Path, fields: Any) -> Iterator[Path]:
    """The files that a server names, each by the path that leads to it; blocking.

    They are looked for from where the server starts, from the project, and from each folder that is named.
    Raises `TooManyPrograms`.
    """
    match fields:
        case {"command": str()}:
            given = cast("dict[str, Any]", expanded(fields, []))
        case _:
            return
    pieces = _pieces(given)
    if len(pieces) > MOST_PIECES:
        raise TooManyPrograms("the command line of a server has too many words")
    bases = _bases(str(project), given, pieces)
    if len(bases) > MOST_FOLDERS:
        raise TooManyPrograms("the command line of a server names too many folders")
    first = command_line(given)[1:2]
    for base in bases:
        for piece in pieces:
            for form in _FORMS_OF_FIRST if [piece] == first else _FORMS:
                for path in _paths(base, form.format(piece, piece.replace(".", "/"))):
                    if os.path.isfile(path) and not _is_data(path):
                        yield Path(path)


def _is_data(path: str) -> bool:
    """Whether no interpreter or loader runs a file, such as a database that the server itself writes."""
    at_once = getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    is_loaded = head.startswith(_LOADED) or head[2:4] == b"\r\n"
    return b"\0" in head and not is_loaded and not os.access(path, os.X_OK)


def _bases(top: str, given: Mapping[str, Any], pieces: list[str]) -> set[str]:
    """The project, where the server starts, and the folders of the project that it names."""
    started = _paths(top, str(given.get("cwd") or "."))
    named = [path for piece in pieces for path in _paths(top, piece) if os.path.isdir(path)]
    within = [path for path in named if is_beneath(os.path.realpath(path), top)]
    return {top, *filter(os.path.isdir, started), *within}


def _pieces(given: Mapping[str, Any]) -> list[str]:
    """Every word and every part of one, once."""
    env = given.get("env")
    values = list(cast("dict[str, Any]", env).values()) if isinstance(env, dict) else []
    words = [word for word in (*command_line(given), *values) if isinstance(word, str)]
    return list(dict.fromkeys(piece for word in words for piece in (word, *_BETWEEN.split(word)) if piece))


def _paths(base: str, name: str) -> set[str]:
    """As the system finds it, and without `..`, as the command and the directory are started."""
    try:
        path = os.path.join(base, os.path.expanduser(name))
        os.fsencode(path)
    except ValueError:  # no file has such a name
        return set()
    return {path, os.path.normpath(path)}
