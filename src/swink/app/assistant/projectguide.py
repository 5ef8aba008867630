"""The guide of a project, AGENTS.md: what the agent is asked to write it, and with which tools.

It looks with the tools that only look, and can write this one file: a new one as a whole, one that is there
by edits alone, so that what people wrote in it stays.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swink.app.assistant.instructionfiles import NAME
from swink.app.assistant.previews import EDIT, WRITE
from swink.errors import MisuseError
from swink.tools import Tool, ToolSource, as_tools
from swink.tools.schema import Shape

_TASK = """Look around in this project and {what}, so that an agent who has never seen the project can work \
in it: what it is, how to build, run and test it, how it is laid out, and the conventions of its code. At \
most 60 lines, only what you found in files of the project; name commands as they stand there. You have \
tools that look, and can write {name} alone; the user sees the change and may refuse it."""
_NEW = "write {name}"
_BETTER = """improve the {name} that is there: correct what is wrong now, add what is missing, and leave \
what is right as it is, word for word"""


class GuideTools:
    """Of what an agent has, the tools that only look, and those that write the guide, for that file alone."""

    def __init__(self, offers: Sequence[Tool | ToolSource], *, is_new: bool) -> None:
        self._offers = offers
        self._writing = (WRITE, EDIT) if is_new else (EDIT,)

    def tools(self) -> Sequence[Any]:
        """The tools as they are now."""
        found: list[Tool] = []
        for offer in self._offers:
            for tool in (offer,) if isinstance(offer, Tool) else as_tools(offer.tools()):
                if tool.read_only:
                    found.append(tool)
                elif tool.name in self._writing:
                    found.append(_for_guide(tool))
        return found

    def check(self) -> None:
        """Raise `MisuseError` if nothing can be written here."""
        if not any(tool.name in self._writing for tool in self.tools()):
            raise MisuseError(
                f"{NAME} cannot be written here: the agent has no tools for files "
                "(an empty folder, a model with a small window, or plan mode)"
            )


def is_missing(directory: Path) -> bool:
    """Whether there is no guide yet, or an empty one."""
    try:
        return os.path.getsize(directory / NAME) == 0
    except OSError:
        return not os.path.lexists(directory / NAME)


def guide_prompt(*, is_new: bool) -> str:
    """What the agent is asked."""
    return _TASK.format(what=(_NEW if is_new else _BETTER).format(name=NAME), name=NAME)


def _for_guide(tool: Tool) -> Tool:
    """A tool that writes files, for the guide alone; another path is refused before anybody is asked."""
    schema = tool.parameters_schema
    path = {**schema["properties"]["path"], "enum": [NAME]}
    shape = Shape({**schema, "properties": {**schema["properties"], "path": path}})
    return replace(tool, shape=shape)
