"""bash: one shell command in the sandbox, its output streamed, all its processes ended afterwards."""

import os
from collections import Counter
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from swink.tool import Tool, ToolContext, ToolError, ToolResult, tool
from swink.tools.command import run_command
from swink.tools.inspection import only_looks
from swink.tools.place import Place
from swink.tools.process import Limits, build_shell_argv
from swink.tools.sandbox import Sandbox
from swink.tools.workspace import Workspace

SECONDS = 120.0
"""The timeout of a command if the model sets none; it may set up to `Limits.wall`."""
_KEEP_DIRECTORY = 'trap "pwd -P >&3" EXIT; eval "$1"'

# Otherwise git refreshes its index whenever it looks at it.
_LOOKING = {"GIT_OPTIONAL_LOCKS": "0"}

_DESCRIPTION = """Run a shell command in the workspace. {sandbox}

There is no terminal and no input. stdout and stderr come back in the order they were written, with the exit
code; of long output the beginning and the end. When the command ends, everything it started is ended too, so
nothing can be left in the background."""

_SANDBOXES = {
    "none": "It is not sandboxed.",
    "workspace": "It is sandboxed: only the workspace and the temp directory are writable, "
    "and there is no network.",
    "workspace+net": "It is sandboxed: only the workspace and the temp directory are writable. "
    "The network can be used.",
}


def _about(sandbox: Sandbox) -> str:
    if sandbox.net is None:
        return _SANDBOXES[sandbox.level]
    domains = ", ".join(sandbox.net) or "those that are approved"
    return _SANDBOXES["workspace"].replace(
        "there is no network", f"of the network only these domains, by HTTP and HTTPS: {domains}"
    )


def bash_tools(
    workspace: Workspace, sandbox: Sandbox, *, limits: Limits = Limits(), keep_directory: bool = False
) -> list[Tool]:
    """bash for a workspace. With `keep_directory` a `cd` holds for later calls; they run one at a time."""
    shell = _Shell(workspace, sandbox, limits, keep_directory)
    bound = f"Seconds after which it is ended, at most {limits.wall:g}."

    def asks(arguments: dict[str, Any]) -> bool:
        match arguments:
            case {"command": str(command), "directory": str() | None as directory}:
                return shell.asks(command, directory)
            case {"command": str(command)} if "directory" not in arguments:
                return shell.asks(command, None)
            case _:
                return True

    @tool(
        description=_DESCRIPTION.format(sandbox=_about(sandbox)),
        requires_approval=asks,
        sequential=keep_directory,
    )
    async def bash(
        command: str,
        ctx: ToolContext,
        timeout: Annotated[float, Meta(gt=0, description=bound)] = min(SECONDS, limits.wall),
        directory: str | None = None,
    ) -> ToolResult:
        """Run a shell command.

        Args:
            command: The command, for bash.
            directory: Where to run it, relative to the workspace.
        """
        return await shell.run(command, ctx, timeout, directory)

    return [bash]


class _Shell:
    """What the calls of one bash tool share: the place they run in."""

    def __init__(self, workspace: Workspace, sandbox: Sandbox, limits: Limits, keep_directory: bool) -> None:
        self._workspace = workspace
        self._sandbox = sandbox
        self._limits = limits
        self._keeps = keep_directory
        self._directory = "."
        self._unasked: Counter[tuple[str, str | None]] = Counter()

    def asks(self, command: str, directory: str | None) -> bool:
        """Whether somebody has to be asked before a command runs."""
        only_looks = self._only_looks(command, directory)
        self._unasked[command, directory] += only_looks
        return not only_looks

    def _only_looks(self, command: str, directory: str | None) -> bool:
        try:
            shell = build_shell_argv("")[0]
            where = self._workspace.directory(self._directory if directory is None else directory)
        except ToolError:
            return False
        sandbox = self._sandbox
        place = Place(
            self._workspace, where, sandbox.environment(), sandbox.private, is_open=sandbox.level == "none"
        )
        return os.path.basename(shell) == "bash" and place.trusts(shell) and only_looks(command, place)

    async def run(self, command: str, ctx: ToolContext, timeout: float, directory: str | None) -> ToolResult:
        if "\0" in command:
            raise ToolError("a command cannot contain a NUL character")
        if self._was_unasked(command, directory) and not self._only_looks(command, directory):
            # It was judged before the other calls of its turn ran, and one of them changed what it would do.
            raise ToolError(
                "the command was not run: what it would do has changed since it was approved; call it again"
            )
        where = self._workspace.directory(self._directory if directory is None else directory)
        argv = (
            [*build_shell_argv(_KEEP_DIRECTORY), "bash", command]
            if self._keeps
            else build_shell_argv(command)
        )
        limits = replace(self._limits, wall=min(self._limits.wall, timeout))
        completed = await run_command(
            self._sandbox, argv, where, limits, ctx, keep_directory=self._keeps, environment=_LOOKING
        )
        completed.details["command"] = command
        notes = self._move(completed.status.directory) if self._keeps else []
        if timeout > limits.wall:
            notes.append(
                f"[the timeout of {timeout:g} s was lowered to {limits.wall:g} s, "
                "the most a command may take here]"
            )
        elif completed.status.reason == "timeout" and timeout < self._limits.wall:
            notes.append(f"[set a longer timeout, up to {self._limits.wall:g} s, if it needs one]")
        return completed.result(*notes)

    def _was_unasked(self, command: str, directory: str | None) -> bool:
        """Whether this call runs unasked because it only looks; equal calls are counted."""
        left = self._unasked.pop((command, directory), 0) - 1
        if left > 0:
            self._unasked[command, directory] = left
        return left >= 0

    def _move(self, directory: str) -> list[str]:
        """Make the shell's last directory ours, if it is in the workspace; returns notes for the model."""
        if not directory or directory == str(self._workspace.root / self._directory):
            return []
        try:
            self._directory = os.path.relpath(self._workspace.directory(directory), self._workspace.root)
        except ToolError:
            self._directory = "."
            return ["[the working directory is outside the workspace; back at its root]"]
        return [f"[working directory: {self._directory}]"]
