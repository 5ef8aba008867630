"""Excerpts for previews: the end of a conversation, and what changes in files, painted as everywhere."""

from collections.abc import Iterable, Sequence

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from swink.app.assistant.attachedfiles import said_text
from swink.app.assistant.snapshots.rewinding import FileChange
from swink.app.tui.diffpainter import paint_diff
from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.markdown import paint_markdown
from swink.events.transcript import Block, NoticeBlock, PromptBlock, ReplyBlock, ThinkingBlock, ToolBlock
from swink.events.transcript.diffs import Diff
from swink.system.shorten import clip_end

_BLOCKS = 12
_CHARACTERS = 2_000  # of a prompt or a reply
_LINES = 400  # of all diffs
_STATES = {"done": "✓", "failed": "✗", "rejected": "✗", "cancelled": "✗"}
_MARKS = {"created": "+", "deleted": "−", "changed": "~", "mode": "~"}
_WORDS = {"created": "comes back", "deleted": "goes", "changed": "changes back", "mode": "gets its mode back"}


def last_blocks(blocks: Sequence[Block], width: int, look: Look) -> Text:
    """The end of a conversation."""
    told = [block for block in blocks if not isinstance(block, ThinkingBlock | NoticeBlock)]
    text = Text().append("…\n\n" if len(told) > _BLOCKS else "", look.dim)
    was_call = False
    for block in told[-_BLOCKS:]:
        if not isinstance(block, ToolBlock) and was_call:
            text.append("\n")
        was_call = isinstance(block, ToolBlock)
        match block:
            case PromptBlock():
                text.append(f"> {visible(_cut(said_text(block)))}", look.prompt).append("\n\n")
            case ReplyBlock():
                said = _cut(block.text) or "*an image*"
                text.append_text(painted(paint_markdown(said, width, look))).append("\n")
            case ToolBlock():
                mark = _STATES.get(block.state, "…")
                style: Style = look.ok if mark == "✓" else look.failed if mark == "✗" else look.dim
                text.append(f"{mark} ", style).append(f"{visible(block.name)}\n", look.dim)
            case _:
                pass
    return text if text.plain else Text("nothing was said yet", look.dim)


def changes_text(changes: Sequence[FileChange], look: Look) -> Text:
    """What a rewind does to files, a line each."""
    text = Text()
    for change in changes:
        style = look.warning if change.conflict else look.text
        what = f"left: {change.conflict}" if change.conflict else _WORDS[change.kind]
        text.append(f"{'!' if change.conflict else _MARKS[change.kind]} {visible(change.path)}", style)
        text.append(f"  {what}\n", look.dim)
    return text


def diffs_text(diffs: Iterable[tuple[str, Diff | None]], width: int, look: Look) -> Text:
    """Diffs one after the other."""
    text = Text()
    left = _LINES
    for path, diff in diffs:
        if diff is None:
            text.append(visible(path), look.strong).append("  no text to show\n\n", look.dim)
            continue
        strips = paint_diff(diff, width, look)
        text.append_text(painted(strips[:left])).append("\n")
        if (left := left - len(strips)) <= 0:
            return text.append("…\n", look.dim)
    return text


def painted(strips: Iterable[Strip]) -> Text:
    """Lines that were painted, as one text."""
    text = Text()
    for strip in strips:
        for segment in strip:
            text.append(segment.text, segment.style)
        text.append("\n")
    return text


def _cut(text: str) -> str:
    return clip_end(text.strip(), _CHARACTERS, " …")
