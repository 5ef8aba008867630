"""bash: one shell command in the sandbox, its output streamed, all its processes ended afterwards."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from swink.messages import Text
from swink.tools import Tool, ToolContext, ToolError, ToolResult, tool
from swink.tools.coding import background as backgrounds
from swink.tools.coding.background import Background, Job
from swink.tools.coding.command import Completed, run_command
from swink.tools.coding.gitcommands import GitCommands
from swink.tools.coding.homes import explain_home
from swink.tools.coding.inspection import only_looks
from swink.tools.coding.outside import AskOutside, OutsideRuns
from swink.tools.coding.process import Limits, build_shell_argv
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.shellcontext import ShellContext
from swink.tools.coding.workspace import Workspace

SECONDS = 120.0
"""The timeout of a command if the model sets none; it may set up to `Limits.wall`."""
_KEEP_DIRECTORY = 'trap "pwd -P >&3" EXIT; eval "$1"'

# Otherwise git refreshes its index whenever it looks at it.
_LOOKING = {"GIT_OPTIONAL_LOCKS": "0"}

_DESCRIPTION = """Run a shell command in the workspace. {sandbox}

There is no terminal and no input. stdout and stderr come back in the order they were written, with the exit
code; of long output the beginning and the end. When the command ends, everything it started is ended
too{rest}"""
_NO_BACKGROUND = ", so nothing can be left in the background."
_BACKGROUND = """.
For a server, a watcher or another long command set background: it returns at once with an id, and
background_output and background_stop take it."""

_SANDBOXES = {
    "none": "It is not sandboxed.",
    "workspace": "It is sandboxed: only the workspace and the temp directory are writable, "
    "and there is no network.",
    "workspace+net": "It is sandboxed: only the workspace and the temp directory are writable. "
    "The network can be used.",
}


def bash_tools(
    workspace: Workspace,
    sandbox: Sandbox,
    *,
    limits: Limits = Limits(),
    keep_directory: bool = False,
    background: Background | None = None,
    outside: AskOutside | None = None,
    is_trusted: Callable[[], bool] | None = None,
) -> list[Tool]:
    """bash for a `workspace`. With `keep_directory` a `cd` holds for later calls; they run one at a time.

    With a `background` commands can begin or go on there, and there are tools to read and to end them.
    `outside` is asked whether a command that the sandbox made fail runs once more outside. While `is_trusted`
    git commands that set a repository up are carried out by us (`gitcommands.py`).

    Args:
        limits: what a command may use
    """
    git = None if is_trusted is None else GitCommands(sandbox, outside, is_trusted)
    shell = _Shell(workspace, sandbox, limits, keep_directory, background, outside, git)
    bound = f"Seconds after which it is ended, at most {limits.wall:g}."

    about = _describe(sandbox, _NO_BACKGROUND if background is None else _BACKGROUND)
    make = tool(name="bash", description=about, requires_approval=shell.asks, sequential=keep_directory)

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

    if background is None:
        return [make(bash)]

    async def bash_or_background(
        command: str,
        ctx: ToolContext,
        timeout: Annotated[float, Meta(gt=0, description=bound)] = min(SECONDS, limits.wall),
        directory: str | None = None,
        background: bool = False,
    ) -> ToolResult:
        """Run a shell command.

        Args:
            command: The command, for bash.
            directory: Where to run it, relative to the workspace.
            background: Whether it goes on while you do something else; the timeout does not hold then.
        """
        return await shell.run(command, ctx, None if background else timeout, directory)

    return [make(bash_or_background), *background.tools()]


def _describe(sandbox: Sandbox, rest: str) -> str:
    about = _SANDBOXES["none" if sandbox.is_missing else sandbox.level]
    if sandbox.gate is not None and not sandbox.is_missing:
        about = _SANDBOXES["workspace"].replace("there is no network", sandbox.gate.describe())
    elif sandbox.net is not None and not sandbox.is_missing:
        domains = ", ".join(sandbox.net) or "those that are approved"
        only = f"of the network only these domains, by HTTP and HTTPS: {domains}"
        about = _SANDBOXES["workspace"].replace("there is no network", only)
    if sandbox.further:
        about += f" These belong to the workspace too, by absolute paths: {', '.join(sandbox.further)}."
    if sandbox.level != "none" and not sandbox.is_missing and (home := explain_home(sandbox.root)):
        about = f"{about} {home[0].upper()}{home[1:]}."
    return _DESCRIPTION.format(sandbox=about, rest=rest)


class _Shell:
    """What the calls of one bash tool share: the directory and the sandbox they run in."""

    def __init__(
        self,
        workspace: Workspace,
        sandbox: Sandbox,
        limits: Limits,
        keep_directory: bool,
        background: Background | None,
        outside: AskOutside | None,
        git: GitCommands | None,
    ) -> None:
        self._workspace = workspace
        self._sandbox = sandbox
        self._limits = limits
        self._keeps = keep_directory
        self._background = background
        self._outside = None if outside is None else OutsideRuns(sandbox, outside)
        self._git = git
        self._directory = "."
        self._unasked: Counter[tuple[str, str | None]] = Counter()

    def asks(self, arguments: dict[str, Any]) -> bool:
        """Whether a call needs approval: its command does more than look, or it is no valid call."""
        command, directory = arguments.get("command"), arguments.get("directory")
        if not isinstance(command, str) or not isinstance(directory, str | None):
            return True
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
        if not sandbox.is_proven:
            return False  # there may be no sandbox here: every command asks
        is_open = sandbox.level == "none"
        context = ShellContext(self._workspace, where, sandbox.environment(), sandbox.private, is_open)
        return os.path.basename(shell) == "bash" and context.trusts(shell) and only_looks(command, context)

    async def run(
        self, command: str, ctx: ToolContext, timeout: float | None, directory: str | None
    ) -> ToolResult:
        """Run a command; without a timeout in the background."""
        if "\0" in command:
            raise ToolError("a command cannot contain a NUL character")
        if self._was_unasked(command, directory) and not self._only_looks(command, directory):
            # It was judged before the other calls of its turn ran, and one of them changed what it would do.
            raise ToolError(
                "the command was not run: what it would do has changed since it was approved; call it again"
            )
        where = self._workspace.directory(self._directory if directory is None else directory)
        argv = build_shell_argv(_KEEP_DIRECTORY if self._keeps else command)
        argv += ["bash", command] if self._keeps else []
        wall = None if timeout is None else min(self._limits.wall, timeout)
        taken = None if timeout is None else await self._take_git(command, where, ctx, wall)
        if taken is not None:
            taken.details["command"] = command
            return taken.result()
        completed = await self._complete(command, argv, where, ctx, wall)
        if isinstance(completed, Job):
            return _moved(completed)
        told: list[str] = []
        if self._outside is not None:

            def again(box: Sandbox, limits: Limits) -> Awaitable[Completed]:
                return run_command(box, argv, where, limits, ctx, keep_directory=self._keeps)

            completed, told = await self._outside.follow_up(completed, ctx.call_id, command, where, again)
        completed.details["command"] = command
        notes = told + (self._move(completed.status.directory) if self._keeps else [])
        if timeout is not None and wall is not None and timeout > wall:
            notes.append(
                f"[the timeout of {timeout:g} s was lowered to {wall:g} s, the most a command may take here]"
            )
        elif completed.status.reason == "timeout" and wall is not None and wall < self._limits.wall:
            notes.append(f"[set a longer timeout, up to {self._limits.wall:g} s, if it needs one]")
        return completed.result(*notes)

    async def _take_git(
        self, command: str, where: str, ctx: ToolContext, wall: float | None
    ) -> Completed | None:
        """What a line of git's came to that does not run as it stands."""
        if self._git is None:
            return None
        limits = self._limits if wall is None else replace(self._limits, wall=wall)

        def run(line: str, directory: str) -> Awaitable[Completed]:
            argv = build_shell_argv(line)
            return run_command(self._sandbox, argv, directory, limits, ctx, environment=_LOOKING)

        return await self._git.take(command, where, ctx, run)

    async def _complete(
        self, command: str, argv: list[str], where: str, ctx: ToolContext, wall: float | None
    ) -> Completed | Job:
        run = partial(run_command, keep_directory=self._keeps, environment=_LOOKING)
        if self._background is None:
            limits = self._limits if wall is None else replace(self._limits, wall=wall)
            return await run(self._sandbox, argv, where, limits, ctx)
        limits = replace(self._limits, wall=backgrounds.SECONDS)  # the call's own timeout is kept by `run`

        def start(job: Job) -> Awaitable[Completed]:
            job.network = self._sandbox.open_network(argv)
            rest = partial(run, tap=job.take, stop=job.stop, network=job.network)
            return rest(self._sandbox, argv, where, limits, ctx)

        return await self._background.run(ctx.call_id, command, where, start, wall)

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


def _moved(job: Job) -> ToolResult:
    """What the model is told of a command that goes on."""
    text = job.unread()
    text += "" if not text or text.endswith("\n") else "\n"
    return ToolResult(
        (Text(f"{text}[goes on in the background as {job.id}; background_output reads what it writes]"),),
        {"background": job.id, "command": job.command, "directory": job.directory},
    )
