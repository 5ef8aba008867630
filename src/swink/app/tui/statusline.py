"""A status line of the user's own: a template that is filled, or a command that is given the state as JSON.

The command runs as the user's own commands do, when something has changed, at most once in some seconds; the
first line that it writes is shown. One that fails is told once, and the line is swink's own again.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from swink.app.assistant.settings import UserSettings
from swink.app.assistant.statustemplate import StatusTemplate, parse_template
from swink.app.tui.status import Status, items_of
from swink.errors import AgentError
from swink.messages.redact import redact_text
from swink.system.oneline import strip_controls
from swink.system.programs import NEUTRAL
from swink.tools.coding.environment import QUIET
from swink.tools.coding.process import Launch, Limits, build_shell_argv, run

INTERVAL = 3.0
"""Seconds between two runs of the command."""
SECONDS = 5.0
"""How long it may take."""
_MOST = 10_000
_VARIABLE = "SWINK_STATUS"
_GIVEN = 'printf "%s\\n" "$' + _VARIABLE + '" | {{\n{command}\n}}'


class StatusLine:
    """What the user wants on the status bar; `tell` is for what went wrong.

    The command runs once in `interval` seconds at most, for `seconds` at most.
    """

    def __init__(
        self, tell: Callable[[str], None], *, interval: float = INTERVAL, seconds: float = SECONDS
    ) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.is_trusted: Callable[[], bool] = lambda: False
        """Whether the command may start in the directory: programs that it runs may obey files there."""
        self._tell = tell
        self._interval = interval
        self._limits = Limits(wall=seconds)
        self._template: StatusTemplate | None = None
        self._command: str | None = None
        self._said: str | None = None
        self._state: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None

    def use(self, settings: UserSettings) -> None:
        """Take what the settings say; a template that cannot be read was reported with them."""
        try:
            self._template = None if settings.status_line is None else parse_template(settings.status_line)
        except ValueError:
            self._template = None
        if settings.status_command != self._command:
            self._command, self._said, self._state = settings.status_command, None, {}

    def line(self, status: Status) -> str | None:
        """The line for a status; None for swink's own."""
        if self._command is not None:
            state = _state_of(status)
            if state != self._state:
                self._state = state
                if self._task is None:
                    self._task = asyncio.create_task(self._run(), name="swink-status")
            if self._said is not None:
                return self._said
        if self._template is None:
            return None
        values = {item.name: item.text for item in items_of(status)}
        return self._template.fill({**values, "directory": os.path.basename(os.getcwd())})

    async def close(self) -> None:
        """End the command."""
        self._command = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        """Run the command, and again while what it was given has changed meanwhile."""
        told: Mapping[str, Any] | None = None
        try:
            while (command := self._command) is not None and told != self._state:
                told = self._state
                await self._ask(command, told)
                await asyncio.sleep(self._interval)
        finally:
            self._task = None

    async def _ask(self, command: str, state: Mapping[str, Any]) -> None:
        output = bytearray()

        def keep(data: bytes) -> None:
            output.extend(data[: max(0, _MOST - len(output))])

        argv = build_shell_argv(_GIVEN.format(command=command))
        env = {**os.environ, **QUIET, _VARIABLE: msgspec.json.encode(state).decode()}
        try:
            place = os.getcwd() if self.is_trusted() else NEUTRAL
            ended = await run(Launch(tuple(argv), place, env, self._limits), keep)
        except (AgentError, OSError) as error:
            return self._give_up(command, str(error))
        lines = strip_controls(output.decode("utf-8", "replace")).splitlines()
        first = next((line.strip() for line in lines if line.strip()), "")
        if ended.reason is not None or ended.code:
            how = f"exit code {ended.code}" if ended.reason is None else f"ended: {ended.reason}"
            return self._give_up(command, f"{how} {redact_text(first)[:200]}".strip())
        if command == self._command:
            self._said = redact_text(first)
            self.changed()
        return None

    def _give_up(self, command: str, why: str) -> None:
        if command == self._command:
            self._command = self._said = None
            self._tell(f"status_command is not used any more: {why}; correct it in config.toml, then /reload")
            self.changed()


def _state_of(status: Status) -> dict[str, Any]:
    """What the command is given; nothing that changes by itself as time goes by."""
    totals = status.totals
    return {
        "state": status.activity.state,
        "turn": status.activity.turn,
        "mode": status.mode,
        "approval": status.approval,
        "model": status.model,
        "thinking": status.thinking,
        "cost": totals.cost.total if totals.is_priced else None,
        "input_tokens": totals.usage.input + totals.usage.cache_read + totals.usage.cache_write,
        "output_tokens": totals.usage.output,
        "context_tokens": totals.context if status.estimated is None else status.estimated,
        "context_window": status.window,
        "queued": status.queued,
        "directory": os.getcwd(),
    }
