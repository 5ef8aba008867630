"""Excerpts for previews: the end of a conversation, and what changes in files, as text with styles."""

from collections.abc import Iterable, Sequence

from rich.style import Style
from rich.text import Text

from swink.assistant.snapshots.rewinding import FileChange
from swink.transcript import Block, Diff, NoticeBlock, PromptBlock, ReplyBlock, ThinkingBlock, ToolBlock
from swink.tui.look import Look
from swink.tui.visible import visible

_BLOCKS = 12
_LINES = 15
"""Lines of one block."""
_DIFF_LINES = 400
_LONGEST = 2_000
"""Characters of a line."""
_STATES = {"done": "✓", "failed": "✗", "rejected": "✗", "cancelled": "✗"}
_MARKS = {"created": "+", "deleted": "−", "changed": "~", "mode": "~"}
_WORDS = {
    "created": "comes back",
    "deleted": "goes",
    "changed": "changes back",
    "mode": "gets its mode back",
}


def last_blocks(blocks: Sequence[Block], look: Look) -> Text:
    """The end of a conversation."""
    told = [block for block in blocks if not isinstance(block, ThinkingBlock | NoticeBlock)]
    text = Text().append("…\n\n" if len(told) > _BLOCKS else "", look.dim)
    for block in told[-_BLOCKS:]:
        match block:
            case PromptBlock():
                text.append_text(_lines(f"> {block.text}", look.prompt))
            case ReplyBlock():
                text.append_text(_lines(block.text or "(an image)", look.text))
            case ToolBlock():
                mark = _STATES.get(block.state, "…")
                text.append(f"{mark} {visible(block.name)}\n", look.ok if mark == "✓" else look.dim)
        text.append("\n")
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


def diffs_text(diffs: Iterable[tuple[str, Diff | None]], look: Look) -> Text:
    """Diffs one after the other."""
    text = Text()
    left = _DIFF_LINES
    for path, diff in diffs:
        text.append(f"{visible(path)}\n", look.strong)
        if diff is None:
            text.append("no text to show\n\n", look.dim)
            continue
        for hunk in diff.hunks:
            text.append(f"{hunk.header}\n", look.dim)
            for line in hunk.lines:
                if (left := left - 1) < 0:
                    return text.append("…\n", look.dim)
                mark, style = {
                    "same": (" ", look.text),
                    "added": ("+", look.added),
                    "removed": ("-", look.removed),
                }[line.kind]
                text.append(f"{mark}{visible(line.text[:_LONGEST])}\n", style)
        text.append("\n")
    return text


def _lines(source: str, style: Style) -> Text:
    lines = source.strip("\n").split("\n")
    shown = "\n".join(visible(line[:_LONGEST]) for line in lines[:_LINES])
    more = f"\n… {len(lines) - _LINES} more lines" if len(lines) > _LINES else ""
    return Text().append(f"{shown}{more}", style).append("\n")
