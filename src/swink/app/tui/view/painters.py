"""Painters: a block in, lines out.

▌ what the user said
  what the model said                       two columns at the left hold marks and bars
✓ read_file  src/app.py  0.1 s  first line
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swink.app.assistant.attachedfiles import attached_name
from swink.app.assistant.shell import told_command
from swink.app.tui.escaping import printed, visible
from swink.app.tui.look import Look
from swink.app.tui.markdown import StreamedMarkdown, paint_markdown
from swink.app.tui.view.callpainter import Moment, paint_call, paint_images
from swink.app.tui.view.folds import OWN, Fold
from swink.app.tui.view.noticepainter import paint_notice
from swink.app.tui.view.painted import MARGIN, Canvas, Painted, Words
from swink.events.transcript import Block, NoticeBlock, PromptBlock, ReplyBlock, ThinkingBlock, ToolBlock
from swink.events.transcript.blockkinds import Spent, counted
from swink.events.transcript.folding import Transcript
from swink.messages import Text, text_of
from swink.system.shorten import clip

Thinking = Literal["hidden", "collapsed", "shown"]
Inside = Callable[[ToolBlock], Mapping[str, Transcript]]
CURSOR = "▍"
_LONG_PROMPT = 15  # lines of a prompt; a click opens a longer one
_INNER = 30  # blocks of an agent inside of a call that are shown, the last ones
_SOME_INNER = 6
_BRIEF = 2  # lines of each of them, while the call runs


def nothing_inside(block: ToolBlock) -> Mapping[str, Transcript]:
    """No call runs an agent."""
    return {}


class Setting(Struct, frozen=True):
    """What all blocks are painted by."""

    width: int
    look: Look
    thinking: Thinking = "collapsed"
    is_whole: bool = False
    """Whether nothing is left out."""


class BlockState(Struct, frozen=True):
    """What one block is painted by."""

    fold: Fold = "line"
    is_selected: bool = False
    is_plan: bool = False
    gap: int = 0
    until: float | None = None


def is_hidden(block: Block, before: Block | None, thinking: Thinking) -> bool:
    """Whether a block takes no line: thoughts, if so wished, and the cost of a reply that called tools."""
    match block:
        case ThinkingBlock():
            return thinking == "hidden" or not (block.text.strip() or block.redacted)
        case ReplyBlock():
            return not block.text.strip() and not block.images
        case PromptBlock():  # a command of the user's that stands above with its output
            is_after_own = isinstance(before, ToolBlock) and before.name == OWN
            return is_after_own and told_command(block.text) is not None
        case NoticeBlock(notice=Spent()):
            return isinstance(before, ToolBlock)
        case _:
            return False


def gap_between(before: Block | None, block: Block, fold: Fold = "line") -> int:
    """Blank lines between two blocks: calls of one line stand close together; `fold` is of the one before."""
    is_close = isinstance(block, ToolBlock) and isinstance(before, ToolBlock) and fold == "line"
    return 0 if before is None or is_close else 1


def estimate(block: Block, width: int) -> int:
    """About how many lines a block takes, without painting it."""
    room = max(10, width - MARGIN)
    match block:
        case PromptBlock() | ReplyBlock():
            lines = block.text.count("\n") + 1 + len(block.text) // room
            return 1 + (min(lines, _LONG_PROMPT + 1) if isinstance(block, PromptBlock) else lines)
        case ThinkingBlock() | NoticeBlock():
            return 2
        case ToolBlock():
            return 1


class Painter:
    """Paints blocks by one setting; replies that still arrive are painted anew only where they changed."""

    def __init__(self, setting: Setting, inside: Inside = nothing_inside) -> None:
        self.setting = setting
        self.inside = inside
        self._streams: dict[str, _Stream] = {}
        self._inner: dict[tuple[str, str], Painter] = {}
        """Of the agents inside of calls, by the ids of these and their own names."""
        self._kept: dict[str, tuple[Block, BlockState, Painted]] = {}

    def paint(self, block: Block, case: BlockState, moment: Moment) -> Painted:
        setting = self.setting
        canvas = Canvas(setting.width, setting.look)
        for _ in range(case.gap):
            canvas.gap()
        try:
            self._paint_block(canvas, block, case, moment)
        except Exception as error:  # markup of a model, through libraries of others: only its block suffers
            self.forget(block.id)
            text = f"✗ this block cannot be shown: {type(error).__name__}"
            canvas.line([(text, setting.look.failed)], copied=text)
        return canvas.painted

    def _paint_block(self, canvas: Canvas, block: Block, case: BlockState, moment: Moment) -> None:
        setting = self.setting
        match block:
            case PromptBlock():
                _paint_prompt(canvas, block, case.fold)
            case ReplyBlock():
                self._paint_reply(canvas, block, case)
            case ThinkingBlock():
                _paint_thinking(canvas, block, setting.thinking, case.fold)
            case ToolBlock():
                selected, whole = case.is_selected, setting.is_whole
                paint_call(canvas, block, case.fold, moment, is_selected=selected, is_whole=whole)
                if case.fold != "line":
                    self._paint_inside(canvas, block, case.fold, moment)
            case NoticeBlock():
                until = Moment(moment.now, case.until)
                paint_notice(canvas, block, until, is_open=case.fold == "all")

    def forget(self, id: str) -> None:
        """A reply is complete, or gone."""
        self._streams.pop(id, None)

    def _paint_reply(self, canvas: Canvas, block: ReplyBlock, case: BlockState) -> None:
        look = canvas.look
        gutter = ("▎ ", look.plan) if case.is_plan else (" " * MARGIN, look.text)
        if case.is_plan:
            canvas.line([gutter, ("Plan", look.plan + Style(bold=True))])
        room = max(4, canvas.width - MARGIN - 1)  # the cursor has room after a full line
        if block.is_complete:
            self.forget(block.id)
            strips = paint_markdown(block.text, room, look) if block.text else []
            canvas.place(strips, block.text, gutter=gutter)
        else:
            self._streams.setdefault(block.id, _Stream(look)).paint(canvas, block.text, room, gutter)
        paint_images(canvas, len(block.images), gutter)

    def _paint_inside(self, canvas: Canvas, block: ToolBlock, fold: Fold, moment: Moment) -> None:
        look = canvas.look
        gutter = ("  │ ", look.border)
        for name, transcript in self.inside(block).items():
            canvas.line([gutter, ("◆ ", look.accent), (visible(name), look.strong)], copied=name)
            blocks = transcript.blocks
            most = len(blocks) if self.setting.is_whole else _INNER if fold == "all" else _SOME_INNER
            shown = blocks[-most:] if most else ()
            if len(shown) < len(blocks):
                canvas.line([gutter, (f"… {counted(len(blocks) - len(shown), 'earlier block')}", look.dim)])
            inner = self._inner.get((block.id, name))
            if inner is None:
                setting = replace(self.setting, width=canvas.width - 4)
                inner = self._inner[block.id, name] = Painter(setting, transcript.inside)
            inner.paint_below(canvas, shown, gutter, moment, is_brief=fold == "some")

    def paint_below(
        self, canvas: Canvas, blocks: Sequence[Block], gutter: Words, moment: Moment, *, is_brief: bool
    ) -> None:
        """Some blocks, kept where they did not change; in brief no prompts, and of replies their ends."""
        before: Block | None = None
        kept: dict[str, tuple[Block, BlockState, Painted]] = {}
        fold: Fold = "all" if self.setting.is_whole else "line"
        for block in blocks:
            is_left_out = is_brief and isinstance(block, PromptBlock)
            if is_left_out or is_hidden(block, before, self.setting.thinking):
                continue
            case = BlockState(fold, gap=0 if is_brief else gap_between(before, block))
            known = self._kept.get(block.id)
            is_same = known is not None and known[0] is block and known[1] == case
            painted = known[2] if known is not None and is_same else self.paint(block, case, moment)
            if not (isinstance(block, ToolBlock) and block.state == "running"):
                kept[block.id] = (block, case, painted)
            canvas.inset(painted.last_lines(_BRIEF) if is_brief else painted, gutter)
            before = block
        self._kept = kept


class _Stream:
    """A reply that arrives: lines that did not change stay the same objects."""

    def __init__(self, look: Look) -> None:
        self._markdown = StreamedMarkdown(look)
        self._given: list[Strip] = []
        self._placed: list[Strip] = []

    def paint(self, canvas: Canvas, text: str, room: int, gutter: tuple[str, Style]) -> None:
        given = self._markdown.paint(text, room, is_complete=False)
        self._placed = canvas.place(given, text, gutter=gutter, known=(self._given, self._placed))
        self._given = given
        _paint_cursor(canvas, gutter)


def _paint_cursor(canvas: Canvas, gutter: tuple[str, Style]) -> None:
    """The end of what arrived."""
    if not canvas.strips:
        canvas.line([gutter, (CURSOR, canvas.look.cursor)])
        return
    last = canvas.strips[-1]
    used = min(max(MARGIN, len(last.text.rstrip())), canvas.width - 1)
    cells = min(last.index_to_cell_position(used), canvas.width - 1)
    cursor = Segment(CURSOR, canvas.look.cursor)
    canvas.strips[-1] = Strip([*last.crop(0, cells), cursor]).adjust_cell_length(canvas.width)


def _paint_prompt(canvas: Canvas, block: PromptBlock, fold: Fold) -> None:
    look = canvas.look
    bar = ("▌ ", look.accent)
    if (own := told_command(block.text)) is not None:
        _paint_own_command(canvas, *own)
        return
    files = [(name, part) for part in block.content if (name := attached_name(part)) is not None]
    said = text_of(tuple([part for part in block.content if attached_name(part) is None]))
    text = visible(said).strip("\n")
    if text or not block.images:
        most = None if fold == "all" else _LONG_PROMPT
        canvas.text(text, look.prompt, gutter=bar, fill=look.prompt, most=most)
    for name, part in files:
        lines = part.text.count("\n") - 4 if isinstance(part, Text) else 0
        canvas.line(
            [bar, (f"@ {visible(name)}, {counted(max(1, lines), 'line')}", look.dim)], fill=look.prompt
        )
    paint_images(canvas, len(block.images), bar, fill=look.prompt)


def _paint_own_command(canvas: Canvas, command: str, code: str, output: str) -> None:
    look = canvas.look
    mark = ("✓ ", look.ok) if code == "0" else ("✗ ", look.failed)
    words = [mark, ("! ", look.strong), (" ".join(printed(command).split()), look.text)]
    first = " ".join(printed(output[:1_000]).strip().partition("\n")[0].split())
    canvas.line([*words, (f"  {first}", look.dim)], copied=f"! {command}")


def _paint_thinking(canvas: Canvas, block: ThinkingBlock, thinking: Thinking, fold: Fold) -> None:
    look = canvas.look
    text = visible(block.text.strip())
    if block.redacted:
        canvas.line([("∴ ", look.dim), ("thought, which the provider keeps to itself", look.thinking)])
    elif thinking == "shown" or fold == "all":
        canvas.text(text, look.thinking, gutter=("┊ ", look.border), first=("∴ ", look.dim))
    else:
        lines = text.split("\n")
        line = lines[0] if block.is_complete else lines[-1]
        label = "thought" if block.is_complete else "thinking"
        more = f" (+{counted(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
        room = canvas.width - len(label) - len(more) - 6
        shown = (clip(line, room), look.thinking)
        canvas.line([("∴ ", look.dim), (f"{label}  ", look.dim), shown, (more, look.dim)], copied=text)
