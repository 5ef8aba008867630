"""Once outside: a command that the sandbox made fail may run once more with the person's rights.

    sandbox ──▶ fails, and the output shows that the sandbox refused something
            ──▶ the person is asked, and told what it may do outside
                 yes ──▶ it runs from its beginning with the person's environment, without keys in variables
                 no  ──▶ what the sandbox gave stands

The model is told which of both happened.
"""

import os
import re
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from swink.system.threads import in_thread
from swink.tools.coding.command import Completed
from swink.tools.coding.process import Limits
from swink.tools.coding.sandbox import Sandbox

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


_GIT = re.compile(r"(?<![\w.-])git(?![\w.-])")
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
        no = GIT_ALONE if runs_git(command) else await self._ask(RefusedRun(call_id, command, directory, why))
        if no is not None:
            return completed, [f"[the sandbox made it fail ({why}); it was not run outside: {no}]"]
        second = await again(make_open_sandbox(self._sandbox), OWN_LIMITS)
        how = "this ran outside the sandbox, once, because the user allowed it"
        return mark_outside(second), [f"[{how}; in the sandbox it failed: {why}]"]

    async def _find_refusal(self, completed: Completed) -> str:
        """What the sandbox refused to a command that failed by itself; empty otherwise."""
        status = completed.status
        if status.code == 0 or status.reason is not None or completed.details["backend"] == "none":
            return ""
        return await in_thread(self._sandbox.find_refusal, completed.output, completed.details["backend"])


def runs_git(command: str) -> bool:
    """Whether a line names git."""
    return _GIT.search(command) is not None


def make_open_sandbox(sandbox: Sandbox, environment: Mapping[str, str] | None = None) -> Sandbox:
    """The workspace of a sandbox with the person's rights, and with their environment without its secrets."""
    return Sandbox(sandbox.root, "none", environment={**build_own_environment(), **(environment or {})})


def build_own_environment() -> dict[str, str]:
    """What a command outside gets besides the environment of a sandboxed one."""
    handles = {name: os.environ[name] for name in _HANDLES if name in os.environ}
    settings = {f"GIT_CONFIG_KEY_{at}": name for at, (name, _) in enumerate(_QUIET_GIT)}
    settings |= {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in enumerate(_QUIET_GIT)}
    return {**handles, **settings, "GIT_CONFIG_COUNT": str(len(_QUIET_GIT))}


def mark_outside(completed: Completed) -> Completed:
    """What a run came to, marked as one outside the sandbox."""
    return replace(completed, details={**completed.details, "outside": True})
