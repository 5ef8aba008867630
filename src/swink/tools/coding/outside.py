"""Once outside: a command that the sandbox made fail may run once more with the person's rights.

    sandbox ──▶ fails, and the output shows that the sandbox refused something
            ──▶ the person is asked, and told what it may do outside
                 yes ──▶ it runs from its beginning with the person's environment, without keys in variables
                         and without directories that a model can write on the PATH
                 no  ──▶ what the sandbox gave stands

The model is told which of both happened.
"""

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from swink.system import programs
from swink.system.threads import in_thread
from swink.system.writable import is_writable_by_model
from swink.tools.coding.command import Completed
from swink.tools.coding.process import Limits
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.syntax import read_commands
from swink.tools.coding.wishes import Wish

_DAY, _ANY = 24 * 3600, 1 << 50
OWN_LIMITS = Limits(wall=_DAY, cpu=_DAY, memory=1 << 40, processes=100_000, file_size=_ANY, disk=_ANY)
"""The limits of commands with the person's rights."""

MAY = "read and change all your files, use your keys and the network, and start programs that stay"

_HANDLES = (
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "GPG_TTY", "DOCKER_HOST", "DOCKER_CONTEXT",
    "KUBECONFIG", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
)  # fmt: skip
"""Variables that look like secrets and only say where something is."""
_QUIET_GIT = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("protocol.ext.allow", "never"),
)


_GIT = re.compile(r"(?<![\w.-])git(?:-[a-z0-9-]+)?(?![\w.-])")
_QUOTES = re.compile(r"""['"\\]""")
GIT_ALONE = (
    "git runs outside only as git push, git fetch or git ls-remote by ssh or https, in a line of simple "
    "commands: anything else could run what the repository names"
)


class RefusedRun(Struct, frozen=True):
    """A command that the sandbox made fail, as a person is asked about it."""

    call_id: str
    command: str
    directory: str
    why: str
    """What the sandbox refused, in words."""
    may: str = MAY
    """What it may do outside, after "it may"."""
    was_tried: bool = True
    """Whether it ran in the sandbox, and failed there."""
    host: Wish | None = None
    """The host that it is for, if that is known."""


AskOutside = Callable[[RefusedRun], Awaitable[str | None]]
"""Whether a command runs outside: None for yes, else why not, for the model."""
Again = Callable[[Sandbox, Limits], Awaitable[Completed]]
"""Runs the command of a call once more, in another sandbox."""


class OutsideRuns:
    """Offers commands of one workspace a run outside, one at a time."""

    def __init__(self, sandbox: Sandbox, ask: AskOutside) -> None:
        self._sandbox = sandbox
        self._ask = ask

    async def follow_up(
        self, completed: Completed, call_id: str, command: str, directory: str, again: Again
    ) -> tuple[Completed, list[str]]:
        """What a command came to, outside if the person allows that; and notes for the model."""
        why = await self._find_refusal(completed)
        if not why:
            return completed, []
        shown = await in_thread(os.path.realpath, directory)
        may = f"{await in_thread(_name_programs, command, shown)}{MAY}"
        asked = RefusedRun(call_id, command, shown, why, may)
        no = GIT_ALONE if runs_git(command) else await self._ask(asked)
        if no is None and (now := await in_thread(os.path.realpath, directory)) != shown:
            no = f"its directory is now {now}, and the user was asked about {shown}"
        if no is not None:
            return completed, [f"[the sandbox made it fail ({why}); it was not run outside: {no}]"]
        second = await again(make_open_sandbox(self._sandbox), OWN_LIMITS)
        how = "this ran outside the sandbox, once, because the user allowed it"
        if "PATH" in build_own_environment():
            how += ", without the directories of the workspace on the PATH"
        return mark_outside(second), [f"[{how}; in the sandbox it failed: {why}]"]

    async def _find_refusal(self, completed: Completed) -> str:
        """What the sandbox refused to a command that failed by itself; empty otherwise."""
        status = completed.status
        if status.code == 0 or status.reason is not None or completed.details["backend"] == "none":
            return ""
        return await in_thread(self._sandbox.find_refusal, completed.output, completed.details["backend"])


def runs_git(command: str) -> bool:
    """Whether a line names git, or a program of git's."""
    commands = read_commands(command)
    if commands is None:
        return _GIT.search(command) is not None or _GIT.search(_QUOTES.sub("", command)) is not None
    words = [word for one in commands for word in one.words]
    return any(
        _GIT.search(word.text) or (word.wild and fnmatchcase("git", os.path.basename(word.text)))
        for word in words
    )


def _name_programs(command: str, directory: str) -> str:
    """Which programs a line names that a model can write, for the question."""
    names = [one.words[0].text for one in read_commands(command) or () if one.words]
    paths = [os.path.realpath(os.path.join(directory, name)) for name in names if os.sep in name]
    found = dict.fromkeys(path for path in paths if is_writable_by_model(path))
    return f"run {', '.join(found)}, which the agent can change, and " if found else ""


def make_open_sandbox(sandbox: Sandbox, environment: Mapping[str, str] | None = None) -> Sandbox:
    """The workspace of a sandbox with the person's rights, and with their environment without its secrets."""
    return Sandbox(sandbox.root, "none", environment={**build_own_environment(), **(environment or {})})


def build_own_environment() -> dict[str, str]:
    """What a command outside gets besides the environment of a sandboxed one, or another value of."""
    handles = {name: os.environ[name] for name in _HANDLES if name in os.environ}
    safe = {"PATH": os.defpath, **programs.environment()}
    handles |= {name: safe.get(name, "") for name, value in os.environ.items() if safe.get(name) != value}
    settings = {f"GIT_CONFIG_KEY_{at}": name for at, (name, _) in enumerate(_QUIET_GIT)}
    settings |= {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in enumerate(_QUIET_GIT)}
    return {**handles, **settings, "GIT_CONFIG_COUNT": str(len(_QUIET_GIT))}


def mark_outside(completed: Completed) -> Completed:
    """What a run came to, marked as one outside the sandbox."""
    return replace(completed, details={**completed.details, "outside": True})
