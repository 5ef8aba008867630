"""Diffs on the screen: every changed line in full, its numbers, its words, one column or two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from textual.strip import Strip

from swink.app.tui.diffpainter import paint_diff, paint_hunk
from swink.app.tui.look import LOOKS
from swink.events.transcript import diff

DARK = LOOKS["dark"]
OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = OLD.replace("line 5\n", "line five\n").replace("line 30\n", "").replace("line 40\n", "line 40\nend\n")


def lines(strips: list[Strip]) -> list[str]:
    return [strip.text.rstrip() for strip in strips]


def test_one_column_has_numbers_marks_and_folds_what_did_not_change():
    shown = lines(paint_diff(diff("a/b.txt", OLD, NEW), 60, DARK))
    assert shown == [
        "a/b.txt  +2 −2",
        *[f" {n}  {n}   line {n}" for n in (1, 2, 3, 4)],
        " 5    - line 5",
        "    5 + line five",
        *[f" {n}  {n}   line {n}" for n in (6, 7, 8)],
        "⋯ 18 unchanged lines",
        *[f"{n} {n}   line {n}" for n in (27, 28, 29)],
        "30    - line 30",
        *[f"{n} {n - 1}   line {n}" for n in (31, 32, 33)],
        "⋯ 4 unchanged lines",
        *[f"{n} {n - 1}   line {n}" for n in (38, 39, 40)],
        "   40 + end",
    ]
    narrow = lines(paint_diff(diff("a/b.txt", OLD, NEW), 59, DARK))
    assert narrow[5:7] == [" 5 - line 5", " 5 + line five"]


@pytest.mark.parametrize("hidden", range(6))
def test_unchanged_lines_are_folded_from_three_on(hidden: int):
    before = "".join(f"line {number}\n" for number in range(1, 31))
    first, second = hidden + 4, 2 * hidden + 4 + 7  # so many more than the three around each change
    after = before.replace(f"line {first}\n", "one\n").replace(f"line {second}\n", "two\n")
    made = diff("f", before, after)
    folded = [line for line in lines(paint_diff(made, 60, DARK)) if line.startswith("⋯")]
    assert folded == ([f"⋯ {hidden} unchanged lines"] * 2 if hidden >= 3 else [])
    assert len(made.hunks) == (2 if hidden else 1)  # what is reviewed is as small as ever


def test_side_by_side_from_160_columns_on():
    strips = paint_diff(diff("b.py", "x = 1\ny = 2\n", "x = 1\ny = 3\nz = 4\n"), 160, DARK)
    assert [[half.strip() for half in strip.text.split("│")] for strip in strips[1:]] == [
        ["1   x = 1", "1   x = 1"],
        ["2 - y = 2", "2 + y = 3"],
        ["", "3 + z = 4"],
    ]
    assert "│" not in "".join(lines(paint_diff(diff("b.py", "x\n", "y\n"), 159, DARK)))
    assert "│" not in "".join(lines(paint_diff(diff("b.py", "x\n", "y\n"), 200, DARK, side_by_side=False)))


def test_new_files_are_all_additions_and_deleted_ones_all_deletions():
    assert lines(paint_diff(diff("n", None, "a\nb\n"), 200, DARK)) == ["n  new file  +2", "1 + a", "2 + b"]
    assert lines(paint_diff(diff("n", "a\nb\n", None), 200, DARK)) == [
        "n  deleted file  −2",
        "1 - a",
        "2 - b",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (None, "", "The new file is empty."),
        ("", None, "The file was empty."),
        ("a\r\n", "a\n", "No line changed; the ends of lines may have."),
    ],
)
def test_a_diff_without_lines_says_so(old: str | None, new: str | None, words: str):
    assert lines(paint_diff(diff("n", old, new), 80, DARK))[1:] == [words]


@pytest.mark.parametrize("name", LOOKS)
def test_changed_words_stand_out(name: str):
    look = LOOKS[name]
    strips = paint_diff(diff("f", "return one + 1\n", "return two + 1\n"), 60, look)
    segments = [segment for strip in strips for segment in strip]
    gone, come = [next(segment for segment in segments if segment.text == word) for word in ("one", "two")]
    same = [segment for segment in segments if "return" in segment.text]
    for word, style in ((gone, look.removed_word), (come, look.added_word)):
        assert word.style is not None
        assert (word.style + style) == word.style
        assert all(word.style != segment.style for segment in same)


def test_changed_words_are_looked_for_in_the_nearest_line():
    old, new = "total = load(path)\n", "# once, and kept\ntotal = load(path, encoding)\n"
    segments = [segment for strip in paint_diff(diff("f", old, new), 60, DARK) for segment in strip]
    words = [each for each in segments if each.style and each.style.bgcolor == DARK.added_word.bgcolor]
    assert "".join(each.text for each in words) == ", encoding"


def test_programs_are_coloured_by_the_name_of_their_file():
    (strip,) = paint_hunk(diff("f.py", "", "def main(): pass\n").hunks[0], 60, DARK, path="f.py")
    styles = {segment.text: segment.style for segment in strip}
    assert styles["def"].color == DARK.syntax.keyword.color
    assert styles["def"].bgcolor == DARK.added.bgcolor


def test_long_lines_wrap_and_nothing_in_them_acts_on_the_terminal():
    strips = paint_diff(diff("f\x1b[2J", None, "x" * 50 + "\x1b]52;c;\x07\u202e\n"), 30, DARK)
    assert lines(strips) == [
        "f␛[2J  new file  +1",
        "1 + " + "x" * 26,
        " " * 4 + "x" * 24 + "␛]",
        "    52;c;␇\\u202e",
    ]


def test_what_is_too_long_for_a_screen_is_counted():
    strips = paint_diff(diff("n.py", None, "x\n" * 6_000 + "y" * 9_000 + "\n"), 80, DARK)
    assert lines(strips)[0] == "n.py  new file  +6,001"
    assert lines(strips)[-1] == "⋯ 1,001 more lines not shown"
    (hunk,) = diff("n", "", "y" * 9_000).hunks
    assert "⋯ 5,000 more characters" in lines(paint_hunk(hunk, 80, DARK))[-2]


texts = st.lists(st.text("ab \t日é\x1b\r👩\u200d💻", max_size=12), max_size=12).map("\n".join)


@tried(30, 800)
@given(
    texts, texts, st.integers(20, 200), st.sampled_from([True, False, None]), st.sampled_from(sorted(LOOKS))
)
def test_no_line_of_a_diff_is_wider_than_the_width(
    old: str, new: str, width: int, beside: bool | None, name: str
):
    made = diff("日本語語語語語語.py", old, new)
    for strip in paint_diff(made, width, LOOKS[name], side_by_side=beside):
        assert Strip(list(strip)).cell_length == strip.cell_length <= width
    for hunk in made.hunks:
        assert all(strip.cell_length <= width for strip in paint_hunk(hunk, width, LOOKS[name]))
