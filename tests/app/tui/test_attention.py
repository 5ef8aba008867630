"""A user who looks elsewhere is told what waits; nobody else is."""

import base64

import pytest

from swink.app.tui.app import LAST_LINES, UNSAVED, farewell
from swink.app.tui.terminal.attention import LONG, Attention
from swink.app.tui.terminal.sequences import LONGEST, copy_sequences
from swink.events.transcript import Block, PromptBlock, ReplyBlock


class Listener:
    """An `Attention` with a clock of its own, and what it wrote."""

    def __init__(self, *, is_wanted: bool = True, **environ: str) -> None:
        self.now = 0.0
        self.written: list[str] = []
        self.attention = Attention(
            self.written.append, is_wanted=is_wanted, environ=environ, clock=lambda: self.now
        )

    def show(self, *, is_running: bool = False, waiting: int = 0, after: float = 0.0) -> list[str]:
        """What is written beside titles."""
        self.now += after
        self.written.clear()
        self.attention.show_state(is_running=is_running, waiting=waiting, subject="swink · here")
        return [each for each in self.written if not each.startswith("\x1b]2;")]


def test_a_long_run_that_ends_and_a_question_ring_once_while_unfocused():
    listener = Listener()
    listener.attention.is_focused = False
    assert listener.show(is_running=True) == []
    assert listener.show(is_running=True, waiting=1) == ["\x07"]
    assert listener.show(is_running=True, waiting=1, after=1) == []
    assert listener.show(is_running=True, waiting=2) == ["\x07"]
    assert listener.show(after=LONG) == ["\x07"]
    assert listener.show(after=LONG) == []


def test_a_short_run_a_focused_terminal_and_a_user_who_wants_none_are_left_in_peace():
    quiet = Listener()
    quiet.show(is_running=True)
    assert quiet.show(is_running=True, waiting=1) == []
    assert quiet.show(after=LONG) == []
    unwanted = Listener(is_wanted=False)
    unwanted.attention.is_focused = False
    unwanted.show(is_running=True)
    assert unwanted.show(waiting=1, after=LONG) == []
    short = Listener()
    short.attention.is_focused = False
    short.show(is_running=True)
    assert short.show(after=LONG / 2) == []


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;swink: an approval is waiting\x07"),
        ({"KITTY_WINDOW_ID": "1"}, "\x1b]9;swink: an approval is waiting\x07"),
        ({"TMUX": "/tmp/x"}, "\x1bPtmux;\x1b\x1b]9;swink: an approval is waiting\x07\x1b\\\x07"),
        ({"TERM_PROGRAM": "Apple_Terminal"}, "\x07"),
    ],
)
def test_the_way_to_call_fits_the_terminal(environ: dict[str, str], expected: str):
    listener = Listener(**environ)
    listener.attention.is_focused = False
    assert listener.show(is_running=True, waiting=1) == [expected]


def test_the_title_says_what_goes_on_and_nothing_in_it_controls_the_terminal():
    titles: list[str] = []
    attention = Attention(titles.append, environ={})
    attention.show_state(is_running=True, waiting=0, subject="swink · a\x1b]52;c;eA==\x07b")
    attention.show_state(is_running=True, waiting=0, subject="swink · a\x1b]52;c;eA==\x07b")
    attention.show_state(is_running=True, waiting=1, subject="swink")
    attention.show_state(is_running=False, waiting=0, subject="swink")
    assert titles == ["\x1b]2;● swink · a]52;c;eA==b\x07", "\x1b]2;⏸ swink\x07", "\x1b]2;swink\x07"]


def test_a_copy_is_whole_and_bounded_and_passes_through_tmux():
    (sequence,) = copy_sequences("héllo", {})
    assert base64.b64decode(sequence.removeprefix("\x1b]52;c;").removesuffix("\x07")).decode() == "héllo"
    plain, passed = copy_sequences("x", {"TMUX": "1"})
    assert passed == f"\x1bPtmux;\x1b{plain}\x1b\\"
    (long,) = copy_sequences("€" * LONGEST, {})
    data = base64.b64decode(long.removeprefix("\x1b]52;c;").removesuffix("\x07"))
    assert data.decode() == "€" * (LONGEST // 3)


def test_the_farewell_is_the_end_of_the_last_reply_and_the_way_back():
    blocks: list[Block] = [
        ReplyBlock("1", text="earlier"),
        ReplyBlock("2", text="\n".join(f"line {number}\x1b[2J" for number in range(100))),
        PromptBlock("3", content="and?"),
        ReplyBlock("4", text=""),
    ]
    lines = farewell(blocks, "swink --resume 1")
    assert lines[:2] == ["…", f"line {100 - LAST_LINES}[2J"]
    assert lines[-3:] == ["line 99[2J", "", "To go on: swink --resume 1"]
    assert farewell([], None) == []
    assert farewell([], "swink --resume 1") == ["To go on: swink --resume 1"]
    assert farewell([], "swink --resume 1", is_saved=False) == [UNSAVED, "To go on: swink --resume 1"]
