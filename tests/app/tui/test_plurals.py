"""One thing is in the singular, wherever a number of things is shown."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import swink.app.tui
from swink.app.tui.diffpainter import paint_diff
from swink.app.tui.look import LOOKS
from swink.app.tui.view.callpainter import Moment
from swink.app.tui.view.painters import BlockState, Painter, Setting
from swink.events.transcript import ThinkingBlock, ToolBlock
from swink.events.transcript.diffs import diff
from swink.messages import Text

SCREEN = Path(swink.app.tui.__file__).parent
THINGS = re.compile(
    r" (?:more |new |other |older |earlier |unchanged )?"
    r"(?:agents|blocks|bytes|calls|characters|commands|files|lines|messages|models|parts|prompts|questions|"
    r"servers|sessions|tasks|tokens|tools|turns)\b(?!/)"
)
NEVER_ONE = {
    "typed.py": 2,  # a paste folds because it is long
    "attaching.py": 1,  # a file is too large
}


def counted_by_hand(path: Path) -> Iterator[str]:
    """Where a number that is no constant of the program stands before things."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            for value, after in zip(node.values, node.values[1:], strict=False):
                if (
                    isinstance(value, ast.FormattedValue)
                    and isinstance(after, ast.Constant)
                    and THINGS.match(str(after.value))
                    and not ast.unparse(value.value).strip("_").isupper()
                ):
                    yield f"{path.name}, line {node.lineno}: {ast.unparse(node)}"


def test_numbers_of_things_on_the_screen_are_put_into_words_in_one_place():
    for path in sorted(SCREEN.rglob("*.py")):
        found = [*counted_by_hand(path)]
        assert len(found) <= NEVER_ONE.get(path.name, 0), "use counted():\n" + "\n".join(found)


def test_what_is_left_out_is_one_line_or_more_lines():
    def last(block: ToolBlock | ThinkingBlock) -> str:
        painted = Painter(Setting(60, LOOKS["dark"])).paint(block, BlockState("some"), Moment(0.0))
        return painted.strips[-1].text.strip()

    def result(lines: int) -> ToolBlock:
        return ToolBlock("1", "c", "look", {}, None, "done", (Text("\n".join("abcdefgh"[:lines])),))

    assert last(result(6)) == "│ … 1 more line"
    assert last(result(7)) == "│ … 2 more lines"
    assert last(ThinkingBlock("1", "a\nb")) == "∴ thought  a (+1 line)"
    assert last(ThinkingBlock("1", "a\nb\nc")) == "∴ thought  a (+2 lines)"
    for more, words in ((1, "⋯ 1 more line not shown"), (2, "⋯ 2 more lines not shown")):
        made = diff("f", None, "x\n" * (5_000 + more))
        assert paint_diff(made, 60, LOOKS["dark"])[-1].text.strip() == words
