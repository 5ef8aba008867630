"""Control sequences: the modes that the interface switches on, the way back, and the clipboard (OSC 52)."""

import base64
import os
from collections.abc import Iterator, Mapping

MOUSE = (1000, 1002, 1003, 1006, 1015, 1016)
"""Clicks, drags, moves; then ways to tell where."""


def _on(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}h" for mode in modes)


def _off(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}l" for mode in modes)


TAKE_MOUSE, RELEASE_MOUSE = _on(1000, 1003, 1015, 1006), _off(*MOUSE)
ALTERNATE_SCREEN, FOCUS, PASTE, CURSOR, WRAP, SYNCHRONIZED, SIZES = 1049, 1004, 2004, 25, 7, 2026, 2048

KITTY_KEYS = 0b1 | 0b1000 | 0b10000
"""Escape sequences that are told apart from keys, all keys as sequences, with the text that they make."""

SHOW = f"{_on(ALTERNATE_SCREEN)}{_off(CURSOR)}{_on(FOCUS, PASTE)}{_off(WRAP)}\x1b[={KITTY_KEYS}u"
"""The modes themselves, which may be set again at any time."""
BEGIN = f"\x1b[22;2t{_on(ALTERNATE_SCREEN)}\x1b[>{KITTY_KEYS}u{SHOW}"
"""The title and the keys of before are kept; kitty has a stack of keys for each screen."""
RESET = "".join(
    (
        "\x1b\\",  # whatever sequence was cut off ends here
        _off(SYNCHRONIZED, *MOUSE, FOCUS, PASTE, SIZES),
        _on(WRAP),
        "\x1b[?1l\x1b>",  # cursor keys and keypad, which editors change
        "\x1b]22;default\x1b\\",  # the shape of the mouse pointer
        "\x1b[<u",
        _off(ALTERNATE_SCREEN),
        _on(CURSOR),
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
