"""Texts of a grammar, drawn at random: what a model under it might write."""

from hypothesis import strategies as st

from swink.local.gbnf import Alt, Chars, Lit, Node, Repeat, Seq

_ALPHABET = "abcXYZ 019-_.,:;/+*'<>{}[]()éß日🙂"


@st.composite
def texts(draw: st.DrawFn, node: Node) -> str:
    """One text that the grammar allows."""
    parts: list[str] = []
    _write(draw, node, parts)
    return "".join(parts)


def _write(draw: st.DrawFn, node: Node, parts: list[str]) -> None:
    match node:
        case Lit(text):
            parts.append(text)
        case Chars(ranges, negated):
            parts.append(draw(_chars(ranges, negated)))
        case Seq(inner):
            for part in inner:
                _write(draw, part, parts)
        case Alt(options):
            _write(draw, options[draw(st.integers(0, len(options) - 1))], parts)
        case Repeat(inner, low, high):
            # The bounds matter most; in between, a few more than the lower one.
            count = (
                min(high, low + draw(st.integers(0, 3)))
                if draw(st.integers(0, 9)) or high > low + 40
                else high
            )
            for _ in range(count):
                _write(draw, inner, parts)


def _chars(ranges: tuple[tuple[int, int], ...], negated: bool) -> st.SearchStrategy[str]:
    if negated:
        return st.sampled_from(
            [char for char in _ALPHABET if not any(low <= ord(char) <= high for low, high in ranges)]
        )
    return st.one_of(*(st.integers(low, high).map(chr) for low, high in ranges))
