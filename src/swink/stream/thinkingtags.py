"""A reply that arrives in pieces, separated into thinking and text.

Tags may be split anywhere: what may be the start of one is held back until that is certain. A character that
is split across pieces (UTF-8 bytes, or the halves of a surrogate pair) is joined.
"""

import codecs
from typing import Literal

from msgspec import Struct

_TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|channel>thought", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
)
_NOISE = ("<|channel|>final<|message|>", "<|start|>assistant")
"""What models with channels put around their text."""


class Piece(Struct, frozen=True):
    """Some of the thinking, or some of the text."""

    kind: Literal["thinking", "text"]
    text: str


class ReplyParser:
    """Feed it pieces as they arrive, then `finish` it; it returns all thinking and text, in order.

    With `only_first` a tag counts at the start of the reply alone. `settled` says that none can come any
    more, so that the rest is text as it is.
    """

    def __init__(self, *, only_first: bool = False) -> None:
        self._only_first = only_first
        self.settled = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._half = ""
        self._held = ""
        self._closing: str | None = None
        self._at_start = False
        self._has_thought = False

    def feed(self, piece: str | bytes) -> list[Piece]:
        """The pieces that are certain by now."""
        text = self._decoder.decode(piece) if isinstance(piece, bytes) else self._joined(piece)
        self._held += text
        pieces: list[Piece] = []
        while self._step(pieces, final=False):
            pass
        return pieces

    def finish(self) -> list[Piece]:
        """The rest; an incomplete tag is text."""
        self._held += self._decoder.decode(b"", True) + ("\ufffd" if self._half else "")
        self._half = ""
        pieces: list[Piece] = []
        while self._step(pieces, final=True):
            pass
        self._emit(pieces, self._held)
        self._held = ""
        return pieces

    def _step(self, pieces: list[Piece], *, final: bool) -> bool:
        """Emit everything before the next tag and apply the tag; False when no complete tag is left."""
        if self._at_start:
            # The line break after a tag belongs to the tag.
            stripped = self._held.lstrip("\r\n")
            if not stripped and not final:
                self._held = ""
                return False
            self._held, self._at_start = stripped, False
        if self._only_first and self._closing is None and not self._may_begin():
            self.settled = True
            self._emit(pieces, self._held)
            self._held = ""
            return False
        tags = [self._closing] if self._closing else [opening for opening, _ in _TAGS] + list(_NOISE)
        places = [(at, -len(tag), tag) for tag in tags for at in [self._held.find(tag)] if at >= 0]
        if not places:
            keep = 0 if final else max(_overlap(self._held, tag) for tag in tags)
            if self._only_first and self._closing is None and not final:
                return False  # all of it may belong to a tag
            self._emit(pieces, self._held[: len(self._held) - keep])
            self._held = self._held[len(self._held) - keep :]
            return False
        at, _, tag = min(places)
        if not self._only_first or self._closing:  # else it is what may stand before the first tag
            self._emit(pieces, self._held[:at])
        self._held = self._held[at + len(tag) :]
        self._has_thought = self._has_thought or self._closing is not None
        self._closing = None if self._closing else dict(_TAGS).get(tag)
        self._at_start = True
        return True

    def _may_begin(self) -> bool:
        """Whether what is held is, or may become, a tag at the start of the reply."""
        held = self._held.lstrip()
        tags = [opening for opening, _ in _TAGS] + list(_NOISE)
        return not (self.settled or self._has_thought) and any(
            held.startswith(tag) or tag.startswith(held) for tag in tags
        )

    def _emit(self, pieces: list[Piece], text: str) -> None:
        if text:
            pieces.append(Piece("thinking" if self._closing else "text", text))

    def _joined(self, text: str) -> str:
        """The text with the halves of surrogate pairs joined; a half at the end waits for the next piece."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text could be the beginning of the tag."""
    return next(
        (count for count in range(min(len(text), len(tag) - 1), 0, -1) if text.endswith(tag[:count])), 0
    )
