"""Control sequences: the modes that the interface switches on, the way back, and the clipboard (OSC 52)."""

import base64
import os
from collections.abc import Iterator, Mapping

MOUSE = (1000, 1002, 1003, 1006, 1015, 1016)
"""Clicks, drags, moves; then ways to tell where."""


def _switch(mode: int, *, on: bool) -> str:
    return f"\x1b[?{mode}{'h' if on else 'l'}"


TAKE_MOUSE = "".join(_switch(mode, on=True) for mode in (1000, 1003, 1015, 1006))
RELEASE_MOUSE = "".join(_switch(mode, on=False) for mode in MOUSE)
ALTERNATE_SCREEN, FOCUS, PASTE, CURSOR, WRAP, SYNCHRONIZED, SIZES = 1049, 1004, 2004, 25, 7, 2026, 2048

KITTY_KEYS = 0b1 | 0b1000 | 0b10000
"""Escape sequences that are told apart from keys, all keys as sequences, with the text that they make."""

SHOW = "".join(
    (
        _switch(ALTERNATE_SCREEN, on=True),
        _switch(CURSOR, on=False),
        _switch(FOCUS, on=True),
        _switch(PASTE, on=True),
        _switch(WRAP, on=False),
        f"\x1b[={KITTY_KEYS}u",
    )
)
"""The modes themselves, which may be set again at any time."""
BEGIN = f"\x1b[22;2t{_switch(ALTERNATE_SCREEN, on=True)}\x1b[>{KITTY_KEYS}u{SHOW}"
"""The title and the keys of before are kept; kitty has a stack of keys for each screen."""
RESET = "".join(
    (
        "\x1b\\",  # whatever sequence was cut off ends here
        _switch(SYNCHRONIZED, on=False),
        RELEASE_MOUSE,
        _switch(FOCUS, on=False),
        _switch(PASTE, on=False),
        _switch(SIZES, on=False),
        _switch(WRAP, on=True),
        "\x1b[?1l\x1b>",  # cursor keys and keypad, which editors change
        "\x1b]22;default\x1b\\",  # the shape of the mouse pointer
        "\x1b[<u",
        _switch(ALTERNATE_SCREEN, on=False),
        _switch(CURSOR, on=True),
        "\x1b[0m",
    )
)
"""Ends every mode, also one that was never on."""
END = f"{RESET}\x1b[23;2t"
"""And the title of before."""


LONGEST = 100_000
"""Bytes; some terminals drop the whole sequence when it is longer, so the rest is left out."""


def copy_sequences(text: str, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """What to write so that the terminal copies a text; in tmux also what passes through it."""
    data = text.encode("utf-8", "replace")[:LONGEST].decode("utf-8", "ignore")
    sequence = f"\x1b]52;c;{base64.b64encode(data.encode()).decode()}\x07"
    yield sequence
    if environ.get("TMUX"):
        yield passed_through(sequence)


def passed_through(sequence: str) -> str:
    """A sequence for the terminal in which tmux runs; tmux drops it unless `allow-passthrough` is on."""
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
