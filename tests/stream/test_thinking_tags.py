"""Thinking tags and split characters: nothing is lost, however a reply is cut into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.stream.thinkingtags import Piece, ReplyParser

TAGS = [
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<|channel>thought",
    "<channel|>",
    "<|channel|>analysis<|message|>",
    "<|end|>",
]
FRAGMENTS = st.sampled_from(
    [*TAGS, "<", "<th", "ink>", "</", "<|chan", "nel", ">", "|>", "\n", "a", "b c", "é", "🙂", "<b>"]
)
REPLIES = st.lists(FRAGMENTS, max_size=14).map("".join)


def parsed(pieces: list[str] | list[bytes], *, only_first: bool = False) -> list[tuple[str, str]]:
    """Everything a parser gives for the pieces, neighbours of one kind joined."""
    parser = ReplyParser(only_first=only_first)
    found = [piece for part in pieces for piece in parser.feed(part)] + parser.finish()
    joined: list[tuple[str, str]] = []
    for piece in found:
        if joined and joined[-1][0] == piece.kind:
            joined[-1] = (piece.kind, joined[-1][1] + piece.text)
        else:
            joined.append((piece.kind, piece.text))
    return joined


@tried(50, 200)
@given(REPLIES, st.data())
def test_where_a_reply_is_cut_makes_no_difference(reply: str, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=6)))
    pieces = [reply[start:end] for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)]
    for only_first in (False, True):
        whole = parsed([reply], only_first=only_first)
        assert parsed(pieces, only_first=only_first) == whole
        assert parsed(list(reply), only_first=only_first) == whole


@tried(50, 200)
@given(REPLIES, st.data())
def test_bytes_cut_inside_a_character_are_joined(reply: str, data: st.DataObject):
    raw = reply.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    assert parsed(
        [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    ) == parsed([reply])


@tried(25, 60)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=40), st.integers(1, 5)
)
def test_text_without_tags_comes_through_unchanged(reply: str, size: int):
    assert (
        "".join(text for _, text in parsed([reply[at : at + size] for at in range(0, len(reply), size)]))
        == reply
    )


@tried(50, 200)
@given(REPLIES)
def test_only_tags_and_line_breaks_are_ever_removed(reply: str):
    given_out = "".join(text for _, text in parsed(list(reply)))
    remaining = iter(reply)
    assert all(char in remaining for char in given_out)  # in order, nothing made up
    lost = len(reply) - len(given_out)
    assert lost <= sum(reply.count(tag) * len(tag) for tag in TAGS) + reply.count("\n")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think>\n", "\n</think>\n\n"),
        ("<|channel>thought\n", "\n<channel|>"),
        ("<|channel|>analysis<|message|>", "<|end|>"),
    ],
)
def test_thinking_is_told_from_text(opening: str, closing: str):
    expected = [("thinking", "2 and 2" + closing.partition("<")[0]), ("text", "Four.")]
    assert parsed([f"{opening}2 and 2{closing}Four."]) == expected
    assert parsed(list(f"{opening}2 and 2{closing}Four.")) == expected


def test_a_tag_is_held_back_only_while_it_may_become_one():
    parser = ReplyParser()
    assert parser.feed("so <thi") == [Piece("text", "so ")]
    assert parser.feed("s is text") == [Piece("text", "<this is text")]


def test_a_tag_that_never_came_whole_is_text():
    parser = ReplyParser()
    assert parser.feed("1 <thin") == [Piece("text", "1 ")]
    assert parser.finish() == [Piece("text", "<thin")]


def test_thinking_without_an_end_is_thinking():
    assert parsed(["<think>still at i", "t"]) == [("thinking", "still at it")]


def test_empty_thinking_gives_no_piece():
    assert parsed(["<think>\n\n</think>\n\nHello"]) == [("text", "Hello")]


def test_halves_of_a_surrogate_pair_are_joined_and_lone_ones_replaced():
    assert parsed(["\ud83d", "\ude42!"]) == [("text", "🙂!")]
    assert parsed(["a\ud83d", "b"]) == [("text", "a\ufffdb")]
    assert parsed(["a\ud83d"]) == [("text", "a\ufffd")]


@tried(25, 100)
@given(REPLIES)
def test_a_reply_that_begins_with_no_tag_is_text_as_it_is(reply: str):
    if not reply.lstrip().startswith(("<t", "<|")):
        assert parsed(list(reply), only_first=True) == ([("text", reply)] if reply else [])
