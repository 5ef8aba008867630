"""Shortening: what fits stays as it is, what does not keeps its ends and says so."""

from hypothesis import given
from hypothesis import strategies as st

from swink.system.shorten import clip, clip_end, clip_list, clip_middle

SIZES = st.integers(0, 30)


@given(st.text(max_size=40), SIZES)
def test_what_fits_stays_and_what_does_not_begins_as_before(text: str, most: int):
    for cut, mark in ((clip(text, most), "…"), (clip_end(text, most, " [...]"), " [...]")):
        if len(text) <= most:
            assert cut == text
        else:
            assert cut.endswith(mark)
            assert text.startswith(cut.removesuffix(mark))
    assert len(clip(text, most)) <= max(1, most)
    assert len(clip_end(text, most)) <= most + 1


@given(st.text(max_size=60), SIZES, SIZES)
def test_a_middle_that_goes_leaves_both_ends(text: str, first: int, last: int):
    cut = clip_middle(text, first, last, "|")
    if len(text) <= first + last:
        assert cut == text
    else:
        assert cut == f"{text[:first]}|{text[len(text) - last :]}"
        assert len(cut) == first + last + 1


def test_a_middle_may_go_only_from_longer_texts():
    assert clip_middle("x" * 10, 2, 2, most=10) == "x" * 10
    assert clip_middle("x" * 11, 2, 2, most=10) == "xx … xx"


def test_a_list_says_how_many_are_left_out():
    assert clip_list(["a", "b"], 2) == ["a", "b"]
    assert clip_list(["a", "b", "c"], 1) == ["a", "and 2 more"]
    assert clip_list(["a", "b", "c"], 0, "… {} lines") == ["… 3 lines"]
