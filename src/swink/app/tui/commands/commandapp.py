"""An app that obeys commands, by a line, by a key or from the palette."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from textual.app import ScreenStackError, SystemCommand
from textual.screen import Screen

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.skillplaces import PREFIX
from swink.app.tui.commands import COMMANDS, find_command, listed
from swink.app.tui.commands.servercommands import server_words, use_prompt
from swink.app.tui.commands.skillcommands import enter_skill
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.editor import CommandWord
from swink.app.tui.terminal import TerminalApp, describe_failure
from swink.errors import AgentError
from swink.system.aio import resolve
from swink.system.shorten import clip_end


class CommandApp(TerminalApp):
    """What it obeys is in the table of commands, or a file of the user's own."""

    driver: ConversationDriver
    environment: AgentEnvironment | None

    def command_words(self) -> Iterator[CommandWord]:
        """Every command, the user's own and agents included, as the editor completes them."""
        for each in COMMANDS.values():
            choices = None if each.choices is None else partial(each.choices, self)
            yield CommandWord(each.name, each.usage, each.help, choices, each.other_names)
        for own in () if self.environment is None else self.environment.commands.values():
            if own.name not in COMMANDS:
                yield CommandWord(own.name, "", own.help)
        for agent in () if self.environment is None else self.environment.sub_agents.files.values():
            yield CommandWord(f"@{agent.name}", "", clip_end(agent.description, 100))
        skills = None if self.environment is None else self.environment.skills
        for skill in () if skills is None else skills.skills.values():
            yield CommandWord(f"{PREFIX}{skill.name}", "[what to do]", skill.description.splitlines()[0])
        if self.environment is not None:
            yield from server_words(self.environment.servers)

    def obey(self, line: str) -> None:
        self.run_worker(self._obey(line), exclusive=False)

    def action_obey(self, line: str) -> None:
        self.obey(line)

    async def ask(self, screen: Screen[Any]) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def left(result: Any) -> None:
            if not answer.done():
                answer.set_result(result)

        await self.push_screen(screen, left)
        try:
            return await answer
        except asyncio.CancelledError:  # who asked does not want to know any more
            with suppress(ScreenStackError):  # the app ends
                if self.screen is screen:
                    screen.dismiss(None)
            raise

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The command palette: every command of ours."""
        for each in listed():
            yield SystemCommand(f"{each.name} {each.usage}".strip(), each.help, partial(self.obey, each.name))

    async def _obey(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if "\n" in name:
            first = name.partition("\n")[0]
            self.driver.say(f"there is no {first} with a line break after it; put a blank there", "error")
            return
        if name not in COMMANDS and self.environment and (own := self.environment.commands.get(name)):
            self.driver.send(own.expand(rest.strip()))
            return
        try:
            if name.startswith(PREFIX):
                await enter_skill(self.driver, self.environment, name.removeprefix(PREFIX), rest.strip())
                return
            if await use_prompt(self.driver, self.environment, name, rest.strip()):
                return
            await resolve(find_command(name).action(self, rest.strip()))
        except (AgentError, OSError) as error:
            self.driver.say(str(error), "error")
        except Exception as error:  # a mistake in a command costs that command, not the conversation
            self.driver.say(f"{name} failed unexpectedly: {describe_failure(error)}", "error")

    def take_failure(self, error: Exception, *, closed_screen: bool) -> None:
        before = "the screen was closed by an unexpected error" if closed_screen else "an unexpected error"
        self.driver.say(f"{before}: {describe_failure(error)}", "error")
