"""Objects of users' modules, by their names: "package.module:function" → what the module holds there."""

import importlib
import os
import sys
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from swink.errors import MisuseError
from swink.redact import describe_error


def load_object(reference: str) -> Any:
    """What `package.module:name` refers to; modules of the current directory are found.

    Raises `MisuseError` with what to write instead.
    """
    module, colon, attribute = reference.partition(":")
    if not colon or not module or not attribute:
        raise MisuseError(f"{reference!r} names no function; write package.module:function")
    if module.endswith(".py") or "/" in module or os.sep in module:
        dotted = module.removesuffix(".py").removeprefix("./").replace("/", ".").replace(os.sep, ".")
        raise MisuseError(f"{reference!r}: name the module, not its file: {dotted}:{attribute}")
    return _attribute(_module(module, reference), attribute, reference)


def _module(module: str, reference: str) -> ModuleType:
    if (known := sys.modules.get(module)) is not None:
        return known
    if "" not in sys.path and os.getcwd() not in sys.path:
        # Last, so that no file of this directory hides a module of Python or of an installed package.
        sys.path.append(os.getcwd())
    importlib.invalidate_caches()  # the file may be younger than the last look at its directory
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            where = f"here ({os.getcwd()}) or among the installed packages"
            raise MisuseError(f"{reference!r}: no module {error.name!r} {where}") from error
        raise MisuseError(
            f"{reference!r}: {module} needs a module that is not installed: {error.name}"
        ) from error
    except (Exception, SystemExit) as error:
        # Importing runs somebody else's code, which may fail in any way.
        raise MisuseError(f"{reference!r}: importing {module} failed: {describe_error(error)}") from error


def _attribute(module: ModuleType, attribute: str, reference: str) -> Any:
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = get_close_matches(part, [name for name in dir(value) if not name.startswith("_")], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise MisuseError(f"{reference!r}: {module.__name__} has no {attribute!r}{hint}")
        value = getattr(value, part)
    return value
