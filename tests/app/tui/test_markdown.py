"""Markdown on the screen: every block of it, nothing but it, at any width, and while it arrives."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from tests.counts import MORE, tried
from textual.strip import Strip

from swink.app.tui.look import LOOKS
from swink.app.tui.markdown import StreamedMarkdown, paint_markdown
from swink.app.tui.markdown.blockpainter import Blocks, Carry
from swink.app.tui.strips import text_of

DARK = LOOKS["dark"]


def lines(text: str, width: int = 60) -> list[str]:
    return [strip.text.rstrip() for strip in paint_markdown(text, width, DARK)]


def segment(text: str, part: str) -> Segment:
    strips = paint_markdown(text, 60, DARK)
    return next(segment for strip in strips for segment in strip if part in segment.text)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("# One\nText\n\nMore\n===", ["One", "Text", "", "More"]),
        ("a\n\n\n\nb", ["a", "", "b"]),
        ("short\nlines stay  \nand\\\nhard ones", ["short", "lines stay", "and", "hard ones"]),
        (f"{'long ' * 13}\nprose is joined", [f"{'long ' * 11}long", "long prose is joined"]),
        ("- a\n- b\n  - c\n    - d\n\n  more\n* e", ["• a", "• b", "  ◦ c", "    ▪ d", "", "  more", "• e"]),
        ("3. a\n3. b\n\n3. c", ["3. a", "4. b", "", "5. c"]),
        ("1. a\n```\nx\n```\n2. b", ["1. a", "", "  x", "", "2. b"]),
        ("- [ ] open\n- [x] done", ["☐ open", "☑ done"]),
        ("> a\n> > b\n>\n> c", ["│ a", "│ │ b", "│", "│ c"]),
        ("a\n***\nb", ["a", "", "─" * 60, "", "b"]),
        ("![a *cat*](http://x/y.png)", ["[image: a cat]"]),
        ("<b>x</b> <!-- y -->\n\n<div>\nz\n</div>", ["<b>x</b> <!-- y -->", "", "<div>", "z", "</div>"]),
        ("[red]x[/red] {y} $z", ["[red]x[/red] {y} $z"]),
        ("&lt;b&gt; \\*x\\* &#27;[2J", ["<b> *x* \ufffd[2J"]),
        ("[a](http://x.y/z) [x.y](https://x.y/) <http://a.b>", ["a (http://x.y/z) x.y http://a.b"]),
        ("[a][1] and [B]\n\n[1]: http://x.y\n[b]: <z.md> 'Z'\n", ["a (http://x.y) and B (z.md)", "", "[1]: http://x.y", "[b]: <z.md> 'Z'"]),
        ("```py\nx = 1\n\ty\n", ["  x = 1", "      y"]),
        ("   ~~~ x\n   a\n     b\n   ~~~\nc", ["  a", "    b", "", "c"]),
        ("    code\n\n    more", ["  code", "", "  more"]),
        ("`` a`b `` **`c`**", ["a`b c"]),
        ("", []),
        ("\n \n", []),
        ("\x1b]52;c;x\x07\u202e\x9b", ["␛]52;c;x␇\\u202e\\x9b"]),
    ],
)  # fmt: skip
def test_blocks(source: str, shown: list[str]):
    assert lines(source) == shown


def test_a_table_is_aligned_and_fits():
    source = "| a | bb | c |\n|--|:-:|--:|\n| one | x | 1 |\n| **two** and more | y |"
    assert lines(source) == [
        "a            │ bb │ c",
        "─────────────┼────┼──",
        "one          │ x  │ 1",
        "two and more │ y  │",
    ]
    assert lines(source, 24) == lines(source)
    wide = "| name | text |\n|-|-|\n| a | " + "words " * 8 + "|\n| b | c |"
    assert lines(wide, 30) == [
        "name │ text",
        "─────┼────────────────────────",
        "a    │ words words words words",
        "     │ words words words words",
        "─────┼────────────────────────",
        "b    │ c",
    ]
    assert lines(wide, 10)[:3] == ["name: a", "text:", "words"]


def test_styles_are_those_of_the_look():
    for source, part, style in [
        ("# a", "a", DARK.heading),
        ("### a", "a", DARK.subheading),
        ("**a**", "a", DARK.text + DARK.strong),
        ("*a*", "a", DARK.text + DARK.emphasis),
        ("~~a~~", "a", DARK.text + DARK.strike),
        ("`a`", "a", DARK.text + DARK.code),
        ("> a", "a", DARK.quote),
        ("```python\nimport a\n```", "import", DARK.code_block + DARK.syntax.keyword),
        ("```nonsense\nimport a\n```", "import", DARK.code_block),
        ("```diff\n+ a\n```", "+ a", DARK.added),
    ]:
        assert segment(source, part).style == style, source


def test_links_of_the_terminal_lead_to_the_web_alone():
    for source, part, link in [
        ("[a](https://x.y/é)", "a", "https://x.y/%C3%A9"),
        ("see https://x.y/z.", "https", "https://x.y/z"),
        ("<https://x.y>", "https", "https://x.y"),
        ("[a](file:///etc/passwd)", "a", None),
        ("[a](vscode://x)", "a", None),
        ("[a](https://x.y/\x1b\\)", "a", None),
    ]:
        style = segment(source, part).style
        assert style is not None
        assert style.link == link


def test_a_program_of_many_lines_is_shown_whole():
    source = "".join(f"line_{number} = {number}\n\n" for number in range(500))
    assert lines(f"```python\n{source}```\nend") == [
        *[f"  {line}".rstrip() for line in source.split("\n")[:-1]],
        "",
        "end",
    ]


def test_a_list_and_a_table_of_many_lines_are_shown_whole():
    assert lines("1. x\n" * 500) == [f"{number}. x" for number in range(1, 501)]
    shown = lines("| a | b |\n|---|---|\n" + "".join(f"| {n} | x |\n" for n in range(100, 500)))
    assert shown == ["a   │ b", "────┼──", *[f"{n} │ x" for n in range(100, 500)]]


MANY = 100_000 if MORE else 5_000
FEW = MANY // 5
HOSTILE = {
    "brackets": "[" * 10 * MANY,
    "images": "![" * 5 * MANY,
    "stars": "*a_" * 3 * MANY,
    "backticks": "`a" * 5 * MANY,
    "quotes": ">" * MANY + "deep",
    "lists": "- " * MANY + "deep",
    "stairs": "".join(" " * n + "- a\n" for n in range(200)) + "deep",
    "quoted lists": "> - " * FEW + "deep",
    "table": "|a" * 3000 + "\n" + "|-" * 3000 + "\n" + "|b" * 3000,
    "rows": "|a|b|\n|-|-|\n" + "|x|y|\n" * FEW,
    "blank lines": "a" + "\n" * 10 * MANY + "deep",
    "definitions": "".join(f"[{n}]: http://x.y/{n}\n" for n in range(FEW)),
    "definition": "[a]: " + "x" * MANY + '"(' * FEW,
    "fence": "```\n" + "x" * 10 * MANY,
    "fences": "```\n" * FEW,
    "entities": "&amp" * MANY,
    "wide": "日本" * MANY,
    "joiners": "👩\u200d" * FEW + "\u0301" * FEW,
    "headings": "# a\n" * FEW,
    "breaks": "a\\\n" * FEW,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_shown_and_nothing_of_it_is_lost(name: str):
    """A quadratic way through any of them takes longer than the limit of a test."""
    strips = paint_markdown(HOSTILE[name], 40, DARK)
    assert all(strip.cell_length <= 40 for strip in strips)
    if HOSTILE[name].endswith("deep"):
        assert strips[-1].text.endswith("deep") or "deep" in strips[-2].text + strips[-1].text


PARTS = [
    "a", "word ", "日本", "**", "*", "`", "```", "~~~", "```py\n", "\n", "\n\n", "\n\n\n", "- ", "  - ", "1. ", "2) ",
    "> ", "#", "# h\n", "===\n", "---\n", "| a | b |\n|---|:-:|\n", "| x | y |\n", "|", "[x]", "(http://a.b)", "[x]: http://c.d\n",
    "    ", "  ", "\t", "\r\n", "\r", "<div>", "&amp;", "\\", "![i](j)", "- [ ] ", "x = 1\n", "\x1b[2J", "👩\u200d💻", "e\u0301",
    "12345678901234567890123456789012345678901234567890 ", "def f():\n\n", "* \n", "+ a\n", "7. b\n",
]  # fmt: skip
sources = st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=3)), max_size=40).map("".join)


def described(strips: list[Strip]) -> list[list[tuple[str, object]]]:
    return [
        [(part.text, part.style and (part.style.without_color, part.style.color, part.style.bgcolor, part.style.link)) for part in strip]
        for strip in strips
    ]  # fmt: skip


@tried(40, 800)
@given(sources, st.data(), st.integers(10, 200), st.sampled_from(sorted(LOOKS)))
def test_any_way_to_cut_a_reply_up_ends_in_the_same_strips(
    source: str, data: st.DataObject, width: int, name: str
):
    repeat = data.draw(st.sampled_from([1, 1, 1, 30]))
    source *= repeat
    look = LOOKS[name]
    whole = paint_markdown(source, width, look)
    for strip in whole:
        assert Strip(list(strip)).cell_length <= width
    cuts = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=8)))
    streamed = StreamedMarkdown(look)
    for cut in cuts:
        streamed.paint(source[:cut], width)
    assert described(streamed.paint(source, width)) == described(whole)


MARKS = ["# ", "- ", "  - ", "> ", "1. ", "**", "*", "`", "```\n", "~~~\n", "\n", "\n\n", "    ", "|", "\n|-|-|\n", "[", "](", ")", "---\n", "~~", "<", ">", " ", " "]  # fmt: skip


@tried(50, 1_000)
@given(st.lists(st.sampled_from(MARKS), max_size=60), st.integers(10, 120))
def test_no_word_of_a_reply_is_lost(marks: list[str], width: int):
    """Whatever the Markdown means, but for what stands behind a fence."""
    source = "".join(f"{mark}w{number}" for number, mark in enumerate(marks))
    shown = re.sub(r"[\s│]", "", "".join(strip.text for strip in paint_markdown(source, width, DARK)))
    hidden = set(re.findall(r"w\d+", "".join(re.findall(r"(?m)(?:```|~~~).*", source))))
    wanted = [f"w{number}" for number in range(len(marks)) if f"w{number}" not in hidden]
    if "|-|-|" not in source:  # cells beyond the columns of a table are cut, as everywhere
        assert [word for word in wanted if word not in shown] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/coding-agent/tui.md"])
def test_a_page_in_sections_reads_as_in_one_piece(page: str):
    source = Path(__file__).parents[3].joinpath(page).read_text("utf-8")
    whole = [text_of(row).rstrip() for row in Blocks(source, DARK, {}, Carry()).paint(100)]
    assert [line for line in lines(source, 100) if line] == [line for line in whole if line]


def test_what_is_settled_keeps_its_strips():
    streamed = StreamedMarkdown(DARK)
    text = "# One\n\n- a\n- b\n\n```py\nx\n```\n\nlast\n\nopen"
    first = streamed.paint(text, 60)
    second = streamed.paint(text + " end", 60)
    assert [one is other for one, other in zip(first, second, strict=True)].count(False) == 1
    assert streamed.paint(text, 40) != second
    assert [strip.text for strip in streamed.paint("other", 40)] == ["other"]


def test_a_table_that_arrives_is_shown_by_whole_rows():
    source = "Text\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nend"
    streamed = StreamedMarkdown(DARK)
    seen: list[list[str]] = []
    for end in range(len(source) + 1):
        shown = [strip.text.rstrip() for strip in streamed.paint(source[:end], 50, is_complete=False)]
        if shown not in seen[-1:]:
            seen.append(shown)
    head = ["Text", "", "a │ b", "──┼──"]
    rows = [*head, "1 │ 2", "3 │ 4"]
    assert seen[4:] == [
        ["Text"], head[:3], rows[:5], rows, [*rows, "", "e"], [*rows, "", "en"], [*rows, "", "end"]
    ]  # fmt: skip
    assert streamed.paint("| a", 50, is_complete=False) == []
    assert [strip.text for strip in streamed.paint("| a", 50)] == ["| a"]


ARRIVING = {
    "all": "# Title\n\nText with **bold** and `code`.\n\n1. one\n2. two\n\n   more\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"
    "\n```python\ndef f():\n    return 1\n```\n> quote\n\n[x] [1]\n\n[1]: http://x.y\n\nend\n---\n",
    "a fence that does not close": "```\na\n```x\nb\n``` \nc",
    "a fence that does not open": "a\n```b`c\nd\n\n~~~\ne",
    "an item that is a rule": "- a\n" * 25 + "- - -\nb\n\n- c\n-d",
    "a heading below its text": "a\n\nb\n=\n\nc\n-",
    "a definition that grows": "[a]\n\n[a]: http://x\n[a]: http://y\n\n[b]: z",
}


@pytest.mark.parametrize("name", ARRIVING)
def test_every_character_of_a_reply_may_be_the_last_so_far(name: str):
    source, streamed = ARRIVING[name], StreamedMarkdown(DARK)
    for end in range(len(source) + 1):
        assert described(streamed.paint(source[:end], 50)) == described(
            paint_markdown(source[:end], 50, DARK)
        )
