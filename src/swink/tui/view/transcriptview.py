"""The view of a transcript: one scroll view over the lines of all blocks."""

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from swink.transcript import Block, Changes
from swink.transcript.blocks import NoticeBlock, PromptBlock, ReplyBlock, ThinkingBlock, ToolBlock


class TranscriptView(ScrollView):
    """Shows what it is given by `take`, and follows the bottom."""

    DEFAULT_CSS = "TranscriptView { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._lines: list[str] = []

    def take(self, changes: Changes) -> None:
        """Show what changed."""
        del self.blocks[changes.length :]
        for place, block in changes.blocks.items():
            self.blocks[place : place + 1] = [block]
        self._lines = [line for block in self.blocks for line in _text_of(block).splitlines()]
        self.virtual_size = Size(self.size.width, len(self._lines))
        self.scroll_end(animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        y += self.scroll_offset.y
        text = self._lines[y] if y < len(self._lines) else ""
        return Strip([Segment(text)]).adjust_cell_length(self.size.width)


def _text_of(block: Block) -> str:
    match block:
        case PromptBlock():
            return f"> {block.text}"
        case ReplyBlock() | ThinkingBlock():
            return block.text
        case ToolBlock():
            mark = {"done": "✓", "failed": "✗", "rejected": "✗", "cancelled": "✗"}.get(block.state, "…")
            return f"{mark} {block.name} {block.text}"
        case NoticeBlock():
            return str(block.notice)
