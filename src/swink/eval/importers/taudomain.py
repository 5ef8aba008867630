"""A domain of τ-bench: its tools, which are loaded without the packages around them, and its database.

    tools.py, or a package tools/    ALL_TOOLS: classes with get_info() and invoke(data, **arguments)
    data/*.json                      each file is one table

τ-bench itself imports clients of models where its packages begin; the tools need none of them, so these
beginnings are left out as long as the tools can do without.
"""

import importlib
import importlib.util
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from swink.errors import MisuseError
from swink.messages.redact import describe_error
from swink.system.extras import pip_command


@lru_cache(16)
def tools_of(domain: str) -> dict[str, Any]:
    """The classes in ALL_TOOLS of a domain, by the names of their tools."""
    directory = Path(domain)
    try:
        return {str(about_tool(kind)["name"]): kind for kind in _module(directory).ALL_TOOLS}
    except ModuleNotFoundError as error:
        lacking = (error.name or "").partition(".")[0]
        raise MisuseError(
            f"{directory}: the tools need the module {lacking!r}, which is not installed; "
            f"its package often has the same name: {pip_command(lacking)}"
        ) from error
    except (Exception, SystemExit) as error:
        # The domain's own code, which may fail in any way.
        raise MisuseError(
            f"{directory}: the tools cannot be loaded ({describe_error(error)}); they stand in tools.py or "
            "tools/__init__.py as ALL_TOOLS, classes with get_info() and invoke(data, **arguments)"
        ) from error


def about_tool(kind: Any) -> dict[str, Any]:
    """What a tool says of itself: name, description, parameters."""
    about: dict[str, Any] = kind.get_info()
    return about.get("function", about)


def read_database(domain: str) -> dict[str, Any]:
    """A fresh database: the tables are the files in data/."""
    files = sorted(Path(domain, "data").glob("*.json"))
    return {file.stem: msgspec.json.decode(file.read_bytes()) for file in files}


def invoke(kind: Any, database: dict[str, Any], arguments: Mapping[str, Any]) -> Any:
    """Call a tool on a database; a failure is its result, as τ-bench has it."""
    try:
        return kind.invoke(database, **arguments)
    except Exception as error:
        # The domain's own code, called with what a model made up.
        return f"Error: {error}"


def _module(directory: Path) -> Any:
    if (file := directory / "tools.py").exists():
        name = f"swink_tau_{sha256(str(file).encode()).hexdigest()[:16]}"
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    root, names = directory, ["tools"]
    while (root / "__init__.py").exists():
        root, names = root.parent, [root.name, *names]
    if str(root) not in sys.path:
        sys.path.append(str(root))
    importlib.invalidate_caches()
    try:
        with _bare(root, names[:-1]):
            return importlib.import_module(".".join(names))
    except Exception as error:
        # The domain's own code; perhaps it needs what its packages do when they begin.
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] != names[0]:
            raise
        return importlib.import_module(".".join(names))


@contextmanager
def _bare(root: Path, names: Sequence[str]) -> Generator[None]:
    """The packages around the tools as mere directories: their `__init__.py` is not run.

    Only where they are not imported yet; afterwards whoever imports them gets them whole.
    """
    before = set(sys.modules)
    dotted = [".".join(names[:end]) for end in range(1, len(names) + 1)]
    made = [name for name in dotted if name not in before]
    for name in made:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(root.joinpath(*name.split(".")))]
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            if any(name == one or name.startswith(f"{one}.") for one in made):
                del sys.modules[name]
