"""Commands about the editor, and the commands as the editor completes them."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from swink.app.tui.commands.registry import COMMANDS, Command, Desk, command
from swink.app.tui.editor import CommandWord


@command("/editor")
def write_outside(desk: Desk, rest: str) -> None:
    """write a prompt in your own editor ($EDITOR, else $VISUAL, else vi) and send it; empty cancels"""
    desk.editor.action_write_outside(sends=True)


def command_words(desk: Any) -> Iterator[CommandWord]:
    """Every command, for completion."""
    for each in COMMANDS.values():
        choices = None if each.choices is None else partial(_choices, each, desk)
        yield CommandWord(each.name, each.usage, each.help, choices, each.other_names)
    for own in () if desk.workshop is None else desk.workshop.commands.values():
        if own.name not in COMMANDS:
            yield CommandWord(own.name, "", own.help)


def _choices(command: Command, desk: Any) -> Iterable[str]:
    return () if command.choices is None else command.choices(desk)
