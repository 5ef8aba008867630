"""Farewell: what stays on the screen when the interface is gone."""

from collections.abc import Sequence

from swink.events.transcript import Block, ReplyBlock
from swink.system.oneline import strip_controls

LINES = 20
CHARACTERS = 4_000


UNSAVED = "Not saved: the end of this conversation could not be written."


def farewell(blocks: Sequence[Block], resume: str | None, *, is_saved: bool = True) -> list[str]:
    """The end of the last reply, whether something of the conversation is lost, and how to go on."""
    text = next(
        (block.text for block in reversed(blocks) if isinstance(block, ReplyBlock) and block.text), ""
    )
    lines = strip_controls(text[-CHARACTERS:]).strip().splitlines()
    is_cut = len(lines) > LINES or len(text) > CHARACTERS
    said = [*(["…"] if is_cut else []), *lines[-LINES:]]
    told = [*([] if is_saved else [UNSAVED]), *([f"To go on: {resume}"] if resume else [])]
    return [*said, *([""] if said and told else []), *told]
