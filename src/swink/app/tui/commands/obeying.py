"""An app that obeys commands, by a line, by a key or from the palette."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from textual.app import SystemCommand
from textual.screen import Screen

from swink.app.assistant.workshop import Workshop
from swink.app.tui.commands import COMMANDS, find_command, listed
from swink.app.tui.conductor import Conductor
from swink.app.tui.terminal import TerminalApp
from swink.errors import AgentError
from swink.system.aio import resolve


class CommandApp(TerminalApp):
    """What it obeys is in the table of commands, or a file of the user's own."""

    conductor: Conductor
    workshop: Workshop | None

    def obey(self, line: str) -> None:
        """Carry out a command."""
        self.run_worker(self._obey(line), exclusive=False)

    def action_obey(self, line: str) -> None:
        """A key that stands for a command."""
        self.obey(line)

    async def ask(self, screen: Screen[Any]) -> Any:
        """Show a screen until it is left; what it was left with."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def left(result: Any) -> None:
            if not answer.done():
                answer.set_result(result)

        await self.push_screen(screen, left)
        return await answer

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The command palette: every command of ours."""
        for each in listed():
            yield SystemCommand(f"{each.name} {each.usage}".strip(), each.help, self._in_palette(each.name))

    def _in_palette(self, name: str) -> Callable[[], None]:
        return lambda: self.obey(name)

    async def _obey(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name not in COMMANDS and self.workshop and (own := self.workshop.commands.get(name)):
            self.conductor.send(own.expand(rest.strip()))
            return
        try:
            await resolve(find_command(name).action(self, rest.strip()))
        except (AgentError, OSError) as error:
            self.conductor.say(str(error), "error")
