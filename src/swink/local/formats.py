"""Grammars of the string formats that have one: dates that exist, times, UUIDs."""

from collections.abc import Mapping

from swink.local.gbnf import DIGIT, Node, alt, chars, lit, repeat, seq

_HEX = chars("09", "af")


def _first_to(last: int) -> Node:
    """The days of a month with this many."""
    return alt(
        seq(lit("0"), chars("19")),
        seq(chars("12"), chars("08" if last == 28 else "09")),
        *(lit(str(day)) for day in range(30, last + 1)),
    )


def _months(*numbers: str) -> Node:
    return alt(*map(lit, numbers))


_DAY = alt(
    seq(_months("01", "03", "05", "07", "08", "10", "12"), lit("-"), _first_to(31)),
    seq(_months("04", "06", "09", "11"), lit("-"), _first_to(30)),
    seq(_months("02"), lit("-"), _first_to(28)),
)
_DATE = seq(chars("12"), repeat(DIGIT, 3, 3), lit("-"), _DAY)
_TIME = seq(
    alt(seq(chars("01"), DIGIT), seq(lit("2"), chars("03"))),
    lit(":"),
    chars("05"),
    DIGIT,
    lit(":"),
    chars("05"),
    DIGIT,
    lit("Z"),
)

FORMATS: Mapping[str, Node] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": seq(_DATE, lit("T"), _TIME),
    "uuid": seq(
        *(repeat(_HEX, count, count) if count else lit("-") for count in (8, 0, 4, 0, 4, 0, 4, 0, 12))
    ),
}
