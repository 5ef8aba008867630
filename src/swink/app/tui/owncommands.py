"""The user's own commands: `!cmd` and `!!cmd`, run beside the conversation and shown in it."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import count
from typing import Any

from msgspec.structs import replace

from swink.app.assistant.shell import run_shell
from swink.app.tui.activity import Clock
from swink.errors import AgentError
from swink.events.transcript.blockkinds import ToolBlock, ToolState
from swink.messages import Text, UserMessage
from swink.tools.coding.sandbox import Sandbox

_OUTPUT = 20_000  # characters that are shown of a command while it runs, the last ones


class OwnCommands:
    """Runs commands; `show` is given the block of each as it changes, `tell` what the model is to learn."""

    def __init__(
        self, show: Callable[[ToolBlock], None], tell: Callable[[UserMessage], None], clock: Clock
    ) -> None:
        self.sandbox: Callable[[], Sandbox | None] = lambda: None
        """What they run in, where the folder is not trusted."""
        self.tasks: set[asyncio.Task[None]] = set()
        self._show = show
        self._tell = tell
        self._clock = clock
        self._numbers = count(1)

    def run(self, command: str, *, shown: bool) -> None:
        """Run one; if `shown`, the model learns what it wrote."""
        task = asyncio.create_task(self._run(command, shown), name="swink-command")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something else of the user's beside the conversation; it ends with the commands."""
        task = asyncio.create_task(work, name="swink-beside")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        with suppress(asyncio.CancelledError):
            await task

    def cancel(self) -> bool:
        """End them all, keeping what they wrote; whether there was any."""
        for task in self.tasks:
            task.cancel()
        return bool(self.tasks)

    async def _run(self, command: str, shown: bool) -> None:
        id, now = f"!{next(self._numbers)}", self._clock()
        block = ToolBlock(id, "", "!", {"command": command}, state="running", started=now)

        def show(changed: ToolBlock) -> None:
            nonlocal block
            block = changed
            self._show(changed)

        def take(text: str) -> None:
            show(replace(block, output=(block.output + text)[-_OUTPUT:]))

        show(block)
        try:
            outcome = await run_shell(command, os.getcwd(), take, sandbox=self.sandbox())
        except AgentError as error:
            show(replace(block, state="failed", content=(Text(str(error)),)))
            return
        except asyncio.CancelledError:
            show(replace(block, state="cancelled", content=(Text(block.output),)))
            return
        state: ToolState = "done" if outcome.is_ok else "failed"
        show(replace(block, state=state, content=(Text(outcome.output),), duration=outcome.seconds))
        if shown:
            self._tell(UserMessage(outcome.for_model()))
