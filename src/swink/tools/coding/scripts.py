"""Script tools: commands described in TOML files become tools, and follow the files as they change.

    name = "count_lines"                     # optional: the file's name by default
    description = "Count the lines of a file."
    command = ["wc", "-l", "{path}"]         # the program and its arguments; or a string, for the shell
    timeout = 30                             # seconds; optional
    requires_approval = true                 # optional; false counts only where no command can write the file

    [parameters_schema]
    type = "object"
    required = ["path"]
    properties.path = { type = "string" }

Arguments never become part of a shell command. Each is in the environment as ARG_<NAME>, so that a shell
command says "$ARG_PATH"; and a list element that is exactly `{name}` becomes the argument, as one word
whatever it contains.
"""

import asyncio
import json
import logging
import os
import re
import shutil
import tomllib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast, overload

from msgspec import Struct

from swink.errors import InvalidTool
from swink.system.threads import in_thread
from swink.system.writable import is_writable_by_model
from swink.tools import Tool, ToolContext, ToolError, ToolResult
from swink.tools.coding.command import run_command
from swink.tools.coding.process import Limits, build_shell_argv
from swink.tools.coding.sandbox import Sandbox

warn_once = cache(logging.getLogger("swink.tools").warning)

_KEYS = {"name", "description", "command", "parameters_schema", "timeout", "requires_approval"}
_SLOT = re.compile(r"\{(\w+)\}")
_EMPTY: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}

NO_SCRIPT = (OSError, InvalidTool, ToolError, UnicodeDecodeError, tomllib.TOMLDecodeError)
"""What loading a script tool may raise."""


class BadScript(Struct, frozen=True):
    """A file that was skipped, and why.

    Args:
        path: the file
        reason: why
    """

    path: str
    reason: str


class ScriptTools(Sequence[Tool]):
    """The tools of a directory, as a sequence that follows it; `bad` says which files were skipped.

    `on_bad` is called once for each of those; by default a warning is logged.
    It is a `ToolSource`: `Agent(tools=scripts)` and `Agent(tools=[other, scripts])` offer the tools as the
    files are at the start of every turn.

    Args:
        directory: where the scripts are
        sandbox: what runs them
    """

    def __init__(
        self, directory: str | Path, sandbox: Sandbox, *, on_bad: Callable[[BadScript], None] | None = None
    ) -> None:
        self.directory = Path(directory)
        self.bad: tuple[BadScript, ...] = ()
        self._sandbox = sandbox
        self._on_bad = on_bad or _warn
        self._seen: dict[str, tuple[int, int, int]] | None = None
        self._tools: tuple[Tool, ...] = ()

    def tools(self) -> tuple[Tool, ...]:
        """The tools as the files are now; agents ask for them once a turn."""
        return self.refresh()

    def refresh(self) -> tuple[Tool, ...]:
        """The tools as the files are now; the same objects if no file changed."""
        seen = self._look()
        if seen != self._seen:
            known = self.bad
            self._tools, self.bad = self._load(sorted(seen))
            self._seen = seen
            for bad in self.bad:
                if bad not in known:
                    self._on_bad(bad)
        return self._tools

    async def changes(self, every: float = 1.0) -> AsyncGenerator[tuple[Tool, ...], None]:
        """The tools, now and again whenever a file changes; looks every so many seconds."""
        last = None
        while True:
            tools = await in_thread(self.refresh)
            if tools is not last:
                yield tools
            last = tools
            await asyncio.sleep(every)

    def __len__(self) -> int:
        return len(self.refresh())

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | Sequence[Tool]:
        return self.refresh()[index]

    def _look(self) -> dict[str, tuple[int, int, int]]:
        found: dict[str, tuple[int, int, int]] = {}
        try:
            paths = list(self.directory.glob("*.toml"))
        except OSError:
            return found
        if not paths and not self.directory.is_dir():
            warn_once(f"{self.directory} is no directory, so there are no script tools in it")
        for path in paths:
            try:
                stat = path.stat()
            except OSError:
                continue  # it went away while we looked
            found[str(path)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return found

    def _load(self, paths: list[str]) -> tuple[tuple[Tool, ...], tuple[BadScript, ...]]:
        tools: dict[str, Tool] = {}
        bad: list[BadScript] = []
        for path in paths:
            try:
                made = load_script_tool(Path(path), self._sandbox)
                if made.name in tools:
                    raise InvalidTool(f"another file is named {made.name!r} too")
            except NO_SCRIPT as error:
                bad.append(BadScript(path, str(error)))
            else:
                tools[made.name] = made
        return tuple(tools.values()), tuple(bad)


def script_tools(
    directory: str | Path,
    *,
    sandbox: Sandbox | None = None,
    on_bad: Callable[[BadScript], None] | None = None,
) -> ScriptTools:
    """The script tools of a directory; without a sandbox they run there with the user's rights. See
    `ScriptTools`.

    Args:
        on_bad: called once for each file that is skipped
    """
    return ScriptTools(directory, sandbox or Sandbox(directory, "none"), on_bad=on_bad)


def load_script_tool(path: Path, sandbox: Sandbox) -> Tool:
    """One tool from its file; raises `InvalidTool` with what is wrong in it."""
    if not path.is_file():
        raise InvalidTool("it is no regular file")  # to read a pipe would wait for a writer
    return make_script_tool(path, path.read_text("utf-8"), sandbox)


def make_script_tool(
    path: Path, text: str, sandbox: Sandbox, *, before: Callable[[], None] | None = None
) -> Tool:
    """One tool from the text of its file; `before` is called in a thread before each run, and may raise."""
    try:
        data = tomllib.loads(text)
    except RecursionError as error:
        raise InvalidTool("it is nested too deeply") from error
    if unknown := data.keys() - _KEYS:
        raise InvalidTool(f"unknown keys {', '.join(sorted(unknown))}; there are {', '.join(sorted(_KEYS))}")
    description, command = data.get("description"), data.get("command")
    if not isinstance(description, str) or not description.strip():
        raise InvalidTool("description must be a text")
    schema = data.get("parameters_schema", _EMPTY)
    if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") != "object":
        raise InvalidTool('parameters_schema must be a table with type = "object"')
    schema = cast("dict[str, Any]", schema)
    timeout = data.get("timeout", Limits().wall)
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not timeout > 0:
        raise InvalidTool("timeout must be a number of seconds")
    argv = _build_argv(command, schema)

    async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        if before is not None:
            await in_thread(before)
        given = (word for item in argv[1:] for word in _fill(item, arguments))
        words = [_program(argv[0], path.parent), *given]
        environment = {f"ARG_{_name_variable(name)}": _to_text(value) for name, value in arguments.items()}
        limits = Limits(wall=float(timeout))
        root = str(sandbox.root)
        return (await run_command(sandbox, words, root, limits, ctx, environment=environment)).result()

    asks = data.get("requires_approval", True)
    if not isinstance(asks, bool):
        raise InvalidTool("requires_approval must be true or false")

    def can_be_written(arguments: dict[str, Any]) -> bool:
        # Checked at every call: no file that commands can write, or whose program they can, waives approval.
        programs = _programs(argv[0], isinstance(command, str), path.parent, sandbox.root)
        return not sandbox.is_proven or any(map(is_writable_by_model, [path, *programs]))

    name = data.get("name", path.stem)
    return Tool.raw(name, description, schema, execute, requires_approval=asks or can_be_written)


def _warn(bad: BadScript) -> None:
    warn_once(f"{bad.path} is no script tool: {bad.reason}")


def _build_argv(command: Any, schema: dict[str, Any]) -> list[str]:
    """The command line; a shell command is one fixed argument of the shell."""
    if isinstance(command, str) and command.strip():
        return build_shell_argv(command)
    words = cast("list[Any]", command) if isinstance(command, list) else []
    if not words or not all(isinstance(word, str) and word for word in words):
        raise InvalidTool(
            "command must be a list of texts (a program and its arguments) or a text for the shell"
        )
    for word in words:
        if (slot := _SLOT.fullmatch(word)) and slot[1] not in schema.get("properties", {}):
            raise InvalidTool(f"command uses {word}, which parameters_schema does not have")
    if _SLOT.fullmatch(words[0]):
        raise InvalidTool("the program itself cannot be an argument")
    return words


def _fill(word: str, arguments: Mapping[str, Any]) -> list[str]:
    """The words for one word of the command line: a slot becomes its argument, or those of a list."""
    slot = _SLOT.fullmatch(word)
    if slot is None:
        return [word]
    value = arguments.get(slot[1])
    if value is None:
        return []
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [_to_text(item) for item in items]


def _to_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "\0" in text:
        raise ToolError("an argument cannot contain a NUL character")
    return text


def _name_variable(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def _programs(name: str, is_shell: bool, beside: Path, directory: Path) -> list[Path]:
    """The paths that decide what runs: the program, or for a shell the directories of the PATH."""
    if is_shell:
        return [directory / entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    return [Path(_find(name, beside) or beside)]


def _program(name: str, beside: Path) -> str:
    """The program to run: beside the file if it is a path, else from the PATH."""
    found = _find(name, beside)
    if found is None or not os.access(found, os.X_OK):
        raise ToolError(f"the program {name} of this tool is not there, or not executable")
    return found


def _find(name: str, beside: Path) -> str | None:
    """It runs in the sandbox, so programs of the workspace are found too."""
    found = str(beside / name) if "/" in name else shutil.which(name)
    return None if found is None else os.path.abspath(found)
