"""What an editor tells the app: a prompt or a command was submitted, a queued message is wanted back."""

import re
from typing import Literal

from textual.message import Message

from swink.messages import Input

How = Literal["send", "queue"]
Kind = Literal["prompt", "command", "shell", "private shell"]
"""What a text is to the program; the model does not see what a private shell command writes."""
_COMMAND = re.compile(r"[/#][A-Za-z?][\w:.-]*(?=\s|$)|[/#]$")
"""How a command begins; a path like /usr/bin is none, nor is a heading of Markdown."""


class Submitted(Message):
    """The user said something: `text` as it was typed, pastes included; `input` for the model."""

    def __init__(self, text: str, input: Input, how: How) -> None:
        self.text = text
        self.input = input
        self.how = how
        super().__init__()

    @property
    def kind(self) -> Kind:
        """What is to be done with it."""
        return kind_of(self.text)


class TakeBack(Message):
    """The user wants the last queued message back in the editor."""


def kind_of(text: str) -> Kind:
    """What a text is to the program."""
    if text.startswith("!"):
        return "private shell" if text.startswith("!!") else "shell"
    return "command" if is_command(text) else "prompt"


def is_command(text: str) -> bool:
    """Whether a text is a command rather than something to say."""
    return _COMMAND.match(text) is not None
