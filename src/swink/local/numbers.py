"""Numbers within bounds, digit by digit.

integer(3, 120)   3-9 | [1-9][0-9] | 1[0-1][0-9] | 120
"""

from math import ceil, floor

from swink.local.gbnf import DIGIT, DIGIT_1_TO_9, EMPTY, NEVER, Chars, Node, alt, lit, maybe, repeat, seq

_LARGEST = 10**10 - 1
_FRACTION = seq(lit("."), repeat(DIGIT, 1, 6))


def integer(low: int | None, high: int | None) -> Node:
    """Every integer from `low` to `high`; without a bound, those of up to ten digits."""
    if low is None and high is None:
        return alt(lit("0"), seq(maybe(lit("-")), DIGIT_1_TO_9, repeat(DIGIT, 0, 9)))
    low, high = _closed(low, high)
    negative = seq(lit("-"), _natural(max(1, -high), -low))
    return alt(_natural(max(0, low), high), negative)


def number(
    low: float | None, high: float | None, *, above: bool = False, below: bool = False
) -> tuple[Node, bool]:
    """Decimal numbers from `low` to `high`, and whether all that the grammar allows are inside.

    `above` and `below` exclude the bound itself.
    """
    if low is None and high is None:
        whole = integer(None, None)
        return alt(seq(whole, maybe(_FRACTION)), seq(lit("-0"), _FRACTION)), True
    first = None if low is None else floor(low) + 1 if above else ceil(low)
    last = None if high is None else ceil(high) - 1 if below else floor(high)
    if first is not None and last is not None and first > last:
        # Between two neighbouring integers; the digits after the point are checked afterwards.
        return (
            seq(lit(str(last)), _FRACTION)
            if last >= 0
            else seq(lit(str(first) if first else "-0"), _FRACTION)
        ), False
    first, last = _closed(first, last)
    positive = alt(
        seq(_natural(max(0, first), last - 1), maybe(_FRACTION)), _natural(last, last) if last >= 0 else NEVER
    )
    negative = alt(
        seq(lit("-"), _natural(max(1, -last), -first - 1), maybe(_FRACTION)),
        seq(lit("-"), _natural(-first, -first)) if first < 0 else NEVER,
        seq(lit("-0"), _FRACTION) if first < 0 <= last else NEVER,
    )
    return alt(positive, negative), True


def _closed(low: int | None, high: int | None) -> tuple[int, int]:
    """Both bounds; a missing one is set far away."""
    if low is None:
        low = min(-_LARGEST, (high or 0) - _LARGEST)
    return low, max(_LARGEST, low + _LARGEST) if high is None else high


def _natural(low: int, high: int) -> Node:
    """Every integer from `low` to `high`, both at least 0, grouped by the count of digits."""
    groups: list[Node] = []
    while low <= high:
        top = min(high, 10 ** len(str(low)) - 1)
        groups.append(_between(str(low), str(top)))
        low = top + 1
    return alt(*groups)


def _between(low: str, high: str) -> Node:
    """The digit strings from `low` to `high`, which are of one length."""
    count = len(low)
    if not count:
        return EMPTY
    if low == "0" * count and high == "9" * count:
        return repeat(DIGIT, count, count)
    if low[0] == high[0]:
        return seq(lit(low[0]), _between(low[1:], high[1:]))
    bottom = seq(lit(low[0]), _between(low[1:], "9" * (count - 1)))
    top = seq(lit(high[0]), _between("0" * (count - 1), high[1:]))
    middle = NEVER
    if int(high[0]) - int(low[0]) > 1:
        middle = seq(Chars(((ord(low[0]) + 1, ord(high[0]) - 1),)), repeat(DIGIT, count - 1, count - 1))
    return alt(bottom, middle, top)
