"""Pastes are taken out of the input whole, however it is cut into pieces."""

from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.app.tui.terminal.pastes import END, START, Pasted, PasteReader


def read(*pieces: str) -> list[str | Pasted]:
    """What a reader makes of pieces, keys that follow each other joined."""
    reader = PasteReader()
    found: list[str | Pasted] = []
    for part in [part for piece in pieces for part in reader.feed(piece)]:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


def test_what_a_paste_contains_is_never_read_as_keys():
    hostile = "a\x1b[31mb\rc\x1b[200~d\x1b\x1b[A\x00"
    assert read(f"x{START}{hostile}{END}y\r") == ["x", Pasted(hostile.replace("\x00", "")), "y\r"]


def test_the_escape_key_is_not_kept_waiting():
    assert read("\x1b") == ["\x1b"]
    assert read("\x1b[") == ["\x1b["]
    assert read("\x1b[20~") == ["\x1b[20~"]  # F9 begins like a paste


@tried(100, 1_000)
@given(st.lists(st.text(st.sampled_from("a\x1b[20~\r"), max_size=8), max_size=4), st.data())
def test_the_pieces_of_the_input_make_no_difference_inside_a_paste(texts: list[str], data: st.DataObject):
    texts = [text for text in texts if not (text + END).find(END) < len(text)]
    source = "".join(f"k{START}{text}{END}" for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=6)))
    # A cut within the first three characters of a mark leaves that paste to Textual, as without a reader.
    cuts = [cut for cut in cuts if not any(source.startswith(START, cut - within) for within in (1, 2))]
    pieces = [source[a:b] for a, b in zip([0, *cuts], [*cuts, len(source)], strict=True)]
    expected = [part for text in texts for part in ("k", Pasted(text))]
    assert read(*pieces) == expected
