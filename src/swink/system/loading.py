"""Objects by name: "package.module:attribute" → what the module holds under that name."""

import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from swink.errors import MisuseError, message_of


def load_object(name: str, what: str, directory: str | Path | None = None) -> Any:
    """What `package.module:attribute` names; modules of `directory` and of the current one are found.

    Raises `MisuseError`, whose text begins with `what`, with what to write instead.
    """
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        stem = (module or "tools").removesuffix(".py").removeprefix("./").replace(os.sep, ".")
        raise MisuseError(f"{what} {name}: write MODULE:FUNCTION, e.g. {what} {stem}:make")
    if module.endswith(".py") or os.sep in module:
        dotted = module.removesuffix(".py").removeprefix("./").replace(os.sep, ".")
        raise MisuseError(f"{what} {name}: name the module, not its file: {what} {dotted}:{attribute}")
    places = list(dict.fromkeys(os.path.abspath(place) for place in (directory, os.getcwd()) if place))
    return _attribute(_module(module, f"{what} {name}", places), attribute, f"{what} {name}", places)


def look_in(directory: str | Path) -> None:
    """Let modules of a directory be found, after those of Python and of installed packages."""
    place = os.path.abspath(directory)
    if place not in map(os.path.abspath, sys.path):
        sys.path.append(place)


def _module(module: str, name: str, places: Sequence[str]) -> ModuleType:
    for place in places:
        look_in(place)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module.partition(".")[0]:
            where = f"here ({', '.join(places)}) or among the installed packages"
            raise MisuseError(f"{name}: no module {error.name!r} {where}") from error
        raise MisuseError(f"{name}: {module} needs a module that is not installed: {error.name}") from error
    except (Exception, SystemExit) as error:
        # Importing runs somebody else's code, which may fail in any way.
        failure = f"{type(error).__name__}: {message_of(error)}"
        raise MisuseError(f"{name}: importing {module} failed: {failure} (--debug shows where)") from error


def _attribute(module: ModuleType, attribute: str, name: str, places: Sequence[str]) -> Any:
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = get_close_matches(part, [item for item in dir(value) if not item.startswith("_")], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else _shadowed(module, places)
            raise MisuseError(f"{name}: {module.__name__} has no {attribute!r}{hint}")
        value = getattr(value, part)
    return value


def _shadowed(module: ModuleType, places: Sequence[str]) -> str:
    """A hint, if a module of the same name in one of the directories may have been meant."""
    path = module.__name__.replace(".", os.sep)
    files = [os.path.join(place, path + end) for place in places for end in (".py", f"{os.sep}__init__.py")]
    here = next((file for file in files if os.path.exists(file)), None)
    if here is None or os.path.realpath(here) == os.path.realpath(module.__file__ or ""):
        return ""
    return f"; {module.__file__ or module.__name__} comes before {here}, so give yours another name"
