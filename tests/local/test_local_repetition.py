"""The repetition guard: loops are recognised early and shown once; what people write is never touched."""

import csv
import io
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import in_cells, tried

from swink.local.repetition import Repetition

ROOT = Path(__file__).parents[2]
SENTENCE = "Fix the tests of the parser."
FILES = [*(ROOT / "src" / "swink").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "CHANGELOG.md"]


def shown(text: str, *cuts: int) -> tuple[str, Repetition]:
    """What is shown of a text that arrives in pieces, up to its end or to the loop."""
    watch, parts = Repetition(), list[str]()
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)] if cuts else range(len(text) + 1)
    for start, end in pairwise(places):
        parts.append(watch.feed(text[start:end]))
        if watch.looping:
            break
    return "".join(parts) + watch.finish(), watch


@pytest.mark.parametrize(
    ("before", "unit"),
    [
        ("", f"{SENTENCE}\n"),
        ("Here is a message:\n\n", f"{SENTENCE} "),
        ("", "from typing import Union\n\n"),
        ("", f"- {SENTENCE}\n- Add the missing docs of the parser.\n"),
        ("I think. ", "I have to look at the file again. Let me see what it holds.\n\n"),
        ("", " ".join(f"Part {word} of a paragraph." for word in ["one", "two", "three", "four"]) + "\n\n"),
    ],
)
def test_a_loop_is_shown_once(before: str, unit: str):
    said, watch = shown(before + unit * 100)
    assert watch.looping
    assert said == before + unit


def test_a_numbered_loop_is_shown_once():
    said, watch = shown("".join(f"{number}. {SENTENCE}\n" for number in range(1, 100)))
    assert watch.looping
    assert said == f"1. {SENTENCE}\n"


def test_a_loop_in_the_middle_of_a_sentence_is_cut_short():
    said, watch = shown("It is the dog " + "and the cat and the mouse and the dog " * 100)
    assert watch.looping
    assert len(said) < 120


def test_marks_and_numbers_may_repeat_longer_than_words():
    for unit in ("0, ", "!", "-", "| "):
        assert not shown(unit * (900 // len(unit)))[1].looping
        assert shown(unit * 4000)[1].looping


def test_empty_comments_and_blank_lines_end_after_forty():
    for line in ("# \n", "\n\n\n", "```\n"):
        said, watch = shown("It is:\n" + line * 200)
        assert watch.looping
        assert len(said) < 60


def test_what_comes_after_a_loop_is_not_looked_at():
    watch = Repetition()
    watch.feed(f"{SENTENCE}\n" * 50)
    assert watch.looping
    assert watch.feed("more") == watch.finish() == ""


def legitimate() -> dict[str, str]:
    """Texts with much repetition that people want to read to the end."""
    table = io.StringIO()
    csv.writer(table).writerows((f"row {n % 3}", n, "the same comment in every row") for n in range(300))
    board = "".join("| " + " | ".join("." * 8) + " |\n" for _ in range(8))
    return {
        "table": table.getvalue(),
        "markdown table": "| a | b | c |\n"
        + "|---" * 40
        + "|\n"
        + "".join(f"| {n} | same | same |\n" for n in range(99)),
        "numbers": ", ".join(map(str, range(2000))),
        "zeros": json.dumps([[0.0] * 12 for _ in range(12)]),
        "array of objects": json.dumps(
            [{"id": n, "name": "unnamed", "tags": []} for n in range(200)], indent=2
        ),
        "code": "".join(f"    assert parse(cases[{n}]) == results[{n}]\n" for n in range(200)),
        "chess board": board * 3,
        "rule": "=" * 120 + "\ntitle\n" + "=" * 120,
        "song": "Row, row, row your boat,\nGently down the stream.\n" * 4,
        "lines": "I will not talk in class.\n" * 8,
        "base64": "A" * 1000,
        "closing": "".join(" " * (40 - n) + "</div>\n" for n in range(40)),
        "log": "".join(f"12:00:{n % 60:02} INFO request handled in {n} ms\n" for n in range(400)),
    }


@pytest.mark.parametrize("name", legitimate())
def test_what_people_write_passes_unchanged(name: str):
    text = legitimate()[name]
    said, watch = shown(text, *range(0, len(text), 4))
    assert not watch.looping
    assert said == text


@in_cells("number", range(0, len(FILES), 40), every=3)
def test_source_and_pages_pass_unchanged(number: int):
    for file in FILES[number : number + 2]:
        text = file.read_text("utf-8")[:8000]
        said, watch = shown(text, *range(0, len(text), 5))
        assert (watch.looping, said == text) == (False, True), file


@tried(60, 1_000)
@given(st.text(alphabet="ab \n.", max_size=250), st.lists(st.integers(1, 250), min_size=1, max_size=8))
def test_a_text_that_is_no_loop_is_shown_whole_however_it_is_cut(text: str, cuts: list[int]):
    said, watch = shown(text, *cuts)
    assert not watch.looping
    assert said == text


@tried(20, 500)
@given(
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "of", "the"]), min_size=4, max_size=40),
    st.randoms(use_true_random=False),
)
def test_every_unit_of_words_becomes_a_loop_and_is_found_wherever_it_is_cut(
    words: list[str], chance: random.Random
):
    text = "Once. " + (" ".join(words) + ".\n") * 60
    _, watch = shown(text, *(chance.randrange(1, len(text)) for _ in range(50)))
    assert watch.looping


def test_the_work_is_in_proportion_to_the_text():
    watch = Repetition()
    for number in range(3000):
        watch.feed(f"{number} line {number * number}\n")
    assert not watch.looping
    assert len(watch._distances) <= 8
