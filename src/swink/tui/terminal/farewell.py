"""Farewell: what stays on the screen when the interface is gone."""

from collections.abc import Sequence

from swink.assistant.oneline import strip_controls
from swink.transcript import Block, ReplyBlock

LINES = 20
CHARACTERS = 4_000


def farewell(blocks: Sequence[Block], resume: str | None) -> list[str]:
    """The end of the last reply, and how to go on."""
    text = next(
        (block.text for block in reversed(blocks) if isinstance(block, ReplyBlock) and block.text), ""
    )
    lines = strip_controls(text[-CHARACTERS:]).strip().splitlines()
    is_cut = len(lines) > LINES or len(text) > CHARACTERS
    said = [*(["…"] if is_cut else []), *lines[-LINES:]]
    return [*said, *([""] if said and resume else []), *([f"To go on: {resume}"] if resume else [])]
