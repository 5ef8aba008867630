"""The process of a hook: its command, started by the launcher of every command, with the person's rights.

The payload is a file on its standard input, so a command that does not read it delays nothing. Everything
that it starts is ended with it: when it ends, at its time limit, on cancellation, and when this program dies.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swink.messages.jsondata import encode
from swink.messages.redact import redact_text
from swink.policies.hooks.hook import Hook
from swink.policies.hooks.hookanswers import HookAnswer, HookOutcome, read_answer
from swink.system.programs import environment

MOST_OUTPUT = 1 << 20
"""Bytes of output that are kept; a larger answer is none."""
MOST_ERRORS = 1 << 16


async def run_hook(
    hook: Hook, payload: Mapping[str, Any], directory: str | Path, project: str | Path | None = None
) -> HookAnswer:
    """Run a hook in a directory to its end; never raises for what the command does."""
    here = os.path.join(os.getcwd(), directory)
    outcome = await _run(hook, encode(dict(payload)), here, str(project or here))
    answer = read_answer(hook.event, outcome)
    return replace(answer, reason=redact_text(answer.reason), context=redact_text(answer.context))


async def _run(hook: Hook, payload: bytes, directory: str, project: str) -> HookOutcome:
    from swink.tools.coding.outside import OWN_LIMITS  # here: most agents have no hooks
    from swink.tools.coding.process import CannotStart, HeadAndTail, Launch, build_shell_argv, run

    output, errors = HeadAndTail(MOST_OUTPUT), HeadAndTail(MOST_ERRORS)
    env = {**environment(), "CLAUDE_PROJECT_DIR": project, "SWINK_PROJECT_DIR": project}
    try:
        launch = Launch(
            tuple(build_shell_argv(hook.command)),
            directory,
            {"PATH": os.defpath, **env},
            replace(OWN_LIMITS, wall=hook.timeout),
            input=payload,
        )
        status = await run(launch, output.add, on_error=errors.add)
    except (CannotStart, OSError, ValueError) as error:
        return HookOutcome(failure=f"it could not be started: {error}")
    match status.reason:
        case None:
            killed = f"it was killed by signal {status.signal}" if status.signal is not None else ""
        case "timeout":
            killed = f"it did not end within {hook.timeout:g} s"
        case reason:
            killed = f"it was ended: {reason}"
    return HookOutcome(status.code, output.text(), errors.text(), killed, output.cut > 0)
