"""The script tools of a trusted project, as they were when they were allowed.

They are made of the bytes that were judged, and do not follow the folder: what is changed there is said once,
and used once the user has allowed it. Programs that lie beside the scripts are looked at before each run.
"""

import os
from collections.abc import Callable
from pathlib import Path

from swink.app.assistant.brought import SCRIPTS, Brought, read_place
from swink.errors import InvalidTool
from swink.tools import Tool, ToolError
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.scripts import NO_SCRIPT, make_script_tool

_HOW = "/reload, or a new start of swink, asks about it"


class ProjectScripts:
    """A source of tools; `tell` is told of files that are no tools, and once that the folder has changed."""

    def __init__(self, brought: Brought, sandbox: Sandbox, tell: Callable[[str], None]) -> None:
        self._brought = brought
        self._tell = tell
        self._stamp: object = None
        self._tools: dict[str, Tool] = {}
        for path, data in brought.texts(SCRIPTS, ".toml").items():
            try:
                made = make_script_tool(path, data.decode("utf-8"), sandbox, before=self._check_programs)
                if made.name in self._tools:
                    raise InvalidTool(f"another file is named {made.name!r} too")
            except NO_SCRIPT as error:
                tell(f"{path} is no tool: {error}")
            else:
                self._tools[made.name] = made

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they were allowed; blocking."""
        place = self._brought.project / SCRIPTS
        if (stamp := _stamp(place)) != self._stamp:
            self._stamp = stamp
            if self._changed(lambda name: True):
                self._tell(f"{place} has changed and is used as it was allowed; {_HOW}")
        return tuple(self._tools.values())

    def _check_programs(self) -> None:
        """Refuse to run anything while a program is not the one that was allowed."""
        if changed := self._changed(lambda name: not name.endswith(".toml")):
            raise ToolError(f"not run: {changed[0]} is not as it was when the user allowed it; {_HOW}")

    def _changed(self, counts: Callable[[str], bool]) -> list[str]:
        now = read_place(self._brought.project, SCRIPTS)
        pieces = self._brought.pieces.items()
        before = {name: piece for name, piece in pieces if f"{name}/".startswith(f"{SCRIPTS}/")}
        differs = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        return list(filter(counts, differs))


def _stamp(folder: Path) -> list[tuple[object, ...]]:
    """Changes with the folder, and costs less than to read it."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
    return sorted((name, at.st_mtime_ns, at.st_ctime_ns, at.st_size, at.st_ino) for name, at in found)
