"""A template of the status line: which fields may stand in it, and how it is read.

status_line = "{model} {cost} in {directory}"
"""

from collections.abc import Mapping
from string import Formatter

from msgspec import Struct

STATUS_FIELDS = {
    "state": "idle, running, error, aborted",
    "elapsed": "how long the run takes",
    "retry": "when a failed request is sent again",
    "loading": "what has to be there before a local model can answer",
    "reading": "how much of the prompt a local model has read",
    "queued": "what waits to be said",
    "background": "commands that go on in the background",
    "rate": "tokens a second",
    "mode": "Plan or Execute",
    "approval": "which calls you are asked about",
    "model": "the model, and how hard it thinks",
    "turn": "the turn of the run",
    "tokens": "tokens sent and received",
    "cost": "what the conversation cost",
    "context": "how full the context window is",
    "directory": "the name of the directory",
}
"""What each stands for; where there is nothing to say, it is empty."""


class StatusTemplate(Struct, frozen=True):
    """Texts and the field after each; `wrong` are words in braces that name none."""

    pieces: tuple[tuple[str, str], ...]
    wrong: tuple[str, ...] = ()

    def fill(self, values: Mapping[str, str]) -> str:
        """The line, in which what is empty leaves no gap."""
        filled = "".join(f"{text}{values.get(name, '')}" for text, name in self.pieces)
        return " ".join(filled.split())


def parse_template(text: str) -> StatusTemplate:
    """A template; raises `ValueError` if its braces do not match."""
    pieces: list[tuple[str, str]] = []
    wrong: list[str] = []
    for literal, name, spec, conversion in Formatter().parse(text):
        if name is None or (name in STATUS_FIELDS and not spec and not conversion):
            pieces.append((literal, name or ""))
        else:
            pieces.append((literal, ""))
            wrong.append(f"{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}")
    return StatusTemplate(tuple(pieces), tuple(wrong))
