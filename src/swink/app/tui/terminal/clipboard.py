"""The clipboard by way of the terminal (OSC 52), which also works over ssh."""

import base64
import os
from collections.abc import Iterator, Mapping

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
