"""Tools by name: "package.module:function" → what the module holds under that name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from swink.errors import InvalidTool, MisuseError
from swink.system.loading import load_object
from swink.tools.definition import Tool, as_tools


def load_tools(
    names: Sequence[str], what: str = "--tool", directory: str | Path | None = None
) -> tuple[Tool, ...]:
    """The tools, in order; modules of `directory` and of the current one are found.

    A name may stand for a list of tools. Raises `MisuseError`, whose text begins with `what`, with what to
    write instead.
    """
    found: list[Tool] = []
    for name in names:
        value = load_object(name, what, directory)
        several = isinstance(value, list | tuple)
        try:
            found.extend(as_tools(cast("Sequence[Any]", value) if several else [value]))
        except InvalidTool as error:
            raise MisuseError(f"{what} {name}: {error}") from error
    return tuple(found)
