"""Commands by name; each is a function that is given the context and the rest of the line."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from swink.errors import MisuseError

if TYPE_CHECKING:
    from textual.screen import Screen

    from swink.app.assistant.agentenvironment import AgentEnvironment
    from swink.app.assistant.permissions import Permissions
    from swink.app.assistant.sessionswitcher import SessionSwitcher
    from swink.app.assistant.settings import UserSettings
    from swink.app.tui.conversationdriver import ConversationDriver
    from swink.app.tui.editor import Editor
    from swink.app.tui.look import Look
    from swink.app.tui.statusline import StatusLine
    from swink.app.tui.view import TranscriptView


class CommandContext(Protocol):
    """What a command may use."""

    driver: "ConversationDriver"
    permissions: "Permissions"
    environment: "AgentEnvironment | None"
    sessions: "SessionSwitcher | None"
    settings: "UserSettings | None"
    look: "Look"
    status_line: "StatusLine"

    @property
    def editor(self) -> "Editor": ...

    @property
    def view(self) -> "TranscriptView": ...

    @property
    def stray(self) -> Sequence[str]:
        """The last lines that were printed past the screen."""
        ...

    def say(self, text: str, kind: str = "notice") -> None:
        """Show something among the blocks."""

    async def ask(self, screen: "Screen[Any]") -> Any:
        """Show a screen until it is left; what it was left with."""
        ...

    def use_look(self, name: str) -> None:
        """Show everything in another look."""

    def copy_to_clipboard(self, text: str) -> None:
        """Put a text into the clipboard."""

    def set_keymap(self, keymap: Mapping[str, str]) -> None:
        """Take other keys for some actions."""

    def leave(self, code: int = 0) -> None: ...


Action = Callable[[Any, str], Awaitable[None] | None]
Choices = Callable[[Any], Iterable[str]]


class SlashCommand(Struct, frozen=True):
    """One command: `/name usage    help`."""

    name: str
    usage: str
    help: str
    action: Action
    choices: Choices | None = None
    """What may follow it, for completion."""
    other_names: tuple[str, ...] = ()


COMMANDS: dict[str, SlashCommand] = {}


def listed() -> list[SlashCommand]:
    """The commands as people are shown them."""
    return sorted(COMMANDS.values(), key=lambda each: each.name.lstrip("/#"))


def command(
    name: str, usage: str = "", *, choices: Choices | None = None, other_names: tuple[str, ...] = ()
) -> Callable[[Action], Action]:
    """Register a function as a command; its docstring is the help."""

    def register(action: Action) -> Action:
        help = inspect.cleandoc(action.__doc__ or "").partition("\n")[0]
        COMMANDS[name] = SlashCommand(name, usage, help, action, choices, other_names)
        return action

    return register


def find_command(name: str) -> SlashCommand:
    """The command of that name; raises `MisuseError` with the nearest one."""
    known = {other: each for each in COMMANDS.values() for other in (each.name, *each.other_names)}
    if (found := known.get(name)) is not None:
        return found
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "/help shows what there is"
    raise MisuseError(f"there is no {name}; {hint}")
