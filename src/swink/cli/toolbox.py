"""Tools named on the command line: "module:function" → what the module holds under that name."""

import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, cast

from swink.errors import InvalidTool, MisuseError
from swink.tool import Tool, as_tools


def load_tools(names: Sequence[str]) -> tuple[Tool, ...]:
    """The tools, in order; modules of the current directory are found.

    Raises `MisuseError` with what to write instead.
    """
    found: list[Tool] = []
    for name in names:
        module, colon, attribute = name.partition(":")
        if not colon or not module or not attribute:
            raise MisuseError(f"--tool {name}: write MODULE:FUNCTION, e.g. --tool tools:weather")
        if module.endswith(".py") or os.sep in module:
            dotted = module.removesuffix(".py").removeprefix("./").replace(os.sep, ".")
            raise MisuseError(f"--tool {name}: name the module, not its file: --tool {dotted}:{attribute}")
        value = _attribute(_module(module, name), attribute, name)
        try:
            several = isinstance(value, list | tuple)
            found.extend(as_tools(cast("Sequence[Any]", value) if several else [value]))
        except InvalidTool as error:
            raise MisuseError(f"--tool {name}: {error}") from error
    return tuple(found)


def _module(module: str, name: str) -> ModuleType:
    if "" not in sys.path and os.getcwd() not in sys.path:
        # Last, so that no file of this directory hides a module of Python or of an installed package.
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module.partition(".")[0]:
            where = f"here ({os.getcwd()}) or among the installed packages"
            raise MisuseError(f"--tool {name}: no module {error.name!r} {where}") from error
        raise MisuseError(
            f"--tool {name}: {module} needs a module that is not installed: {error.name}"
        ) from error
    except (Exception, SystemExit) as error:
        # Importing runs somebody else's code, which may fail in any way.
        failure = f"{type(error).__name__}: {error}"
        raise MisuseError(
            f"--tool {name}: importing {module} failed: {failure} (--debug shows where)"
        ) from error


def _attribute(module: ModuleType, attribute: str, name: str) -> Any:
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = get_close_matches(part, [item for item in dir(value) if not item.startswith("_")], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else _shadowed(module)
            raise MisuseError(f"--tool {name}: {module.__name__} has no {attribute!r}{hint}")
        value = getattr(value, part)
    return value


def _shadowed(module: ModuleType) -> str:
    """A hint, if a module of the same name in the current directory may have been meant."""
    path = module.__name__.replace(".", os.sep)
    here = next(
        (file for file in (f"{path}.py", os.path.join(path, "__init__.py")) if os.path.exists(file)), None
    )
    if here is None or os.path.realpath(here) == os.path.realpath(module.__file__ or ""):
        return ""
    first = module.__file__ or module.__name__
    return f"; {first} comes before {here} in this directory, so give yours another name"
