"""Visible text: nothing acts on the terminal, nothing hides, and lines end at words."""

import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.counts import tried

from swink.app.tui.escaping import breaks, chops, printed, visible, wrap

hostile = st.text(
    st.one_of(
        st.characters(exclude_categories=()),
        st.sampled_from("\x1b\x9b\x07\r\n\t\x08[]52;cm \u202e\u200b\u200d\u200c\ufe0f\u0301\ud800👩💻日本é"),
    ),
    max_size=60,
)
ACTS = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


@tried(80, 1_000)
@given(hostile)
def test_nothing_that_a_terminal_acts_on_is_left(text: str):
    for shown in (visible(text), printed(text)):
        assert not ACTS.search(shown)
        shown.encode()
        assert visible(shown) == shown or "\u200d" in shown or "\ufe0f" in shown
        for line in shown.split("\n"):
            assert cell_len(line) * 9 + 9 >= len(line)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]text[/red]", "plain [red]text[/red]"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x9b2J \x90q\x9c", "\\x9b2J \\x90q\\x9c"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("pass\u200bword", "pass\\u200bword"),
        ("\ud800", "\\ud800"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("👩‍💻 ☑️ 1️⃣ می‌خواهم naïve 日本語\u3000\xa0", "👩‍💻 ☑️ 1️⃣ می‌خواهم naïve 日本語\u3000\xa0"),
        ("a\u200db \ufe0f", "a\\u200db \\ufe0f"),
        ("e" + "\u0301" * 10, "e" + "\u0301" * 8 + "\\u0301\\u0301"),
        ("\U000e0041\U000e0042", "\\U000e0041\\U000e0042"),
    ],
)
def test_what_hides_or_acts_is_shown_and_what_scripts_need_stays(text: str, shown: str):
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("\x1b[1;32mok\x1b[0m\n", "ok\n"),
        ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        ("\x1b]0;title\x07\x1b]52;c;aGk=\x1b\\x\x1bPq#0\x1b\\y", "xy"),
        ("\x1b]unfinished\nnext", "\nnext"),
        ("cut \x1b[", "cut "),
        ("_\x08a", "a"),
    ],
)
def test_output_is_shown_as_a_terminal_leaves_it(output: str, shown: str):
    assert printed(output) == shown


def test_words_stay_whole_and_long_ones_break():
    assert wrap("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert wrap("the  quick", 5) == ["the", "quick"]
    assert wrap("abcdefghij kl", 4) == ["abcd", "efgh", "ij", "kl"]
    assert wrap("one two three", 9, first="- ", rest="  ") == ["- one two", "  three"]
    assert wrap("a\n\nb", 9) == ["a", "", "b"]
    assert wrap("", 9) == [""]


def test_wide_characters_break_anywhere_but_before_closing_marks():
    assert wrap("日本語の文章です。", 8) == ["日本語の", "文章で", "す。"]
    assert wrap("言う「日本」", 6) == ["言う", "「日", "本」"]
    assert wrap("see 日本語", 7) == ["see 日", "本語"]
    assert wrap("👩‍💻👩‍💻👩‍💻", 4) == ["👩‍💻👩‍💻", "👩‍💻"]


@tried(100, 1_000)
@given(hostile.map(visible), st.integers(2, 30), st.integers(2, 30))
def test_no_line_is_wider_than_its_width_and_only_spaces_are_left_out(text: str, width: int, rest: int):
    line = text.replace("\n", " ")
    places = breaks(line, width, rest)
    assert [start for start, _ in places] == sorted({start for start, _ in places})
    for number, (start, end) in enumerate(places):
        assert cell_len(line[start:end]) <= (rest if number else width)
    left_out = [line[end:start] for (_, end), (start, _) in itertools.pairwise(places)]
    assert not "".join(left_out).strip(" ")
    assert not line[places[-1][1] :].strip(" ")
    assert "".join(line[start:end] for start, end in chops(line, width)) == line
    assert all(cell_len(line[start:end]) <= width for start, end in chops(line, width))


def test_a_character_has_a_name():
    """The symbols that stand for controls are printable everywhere."""
    assert all(unicodedata.name(char) for char in visible("\x00\x07\x1b\x7f"))
