"""Shortening text: what is kept of it, and what stands where something was cut.

    clip("The first words", 10)                  The first…         at most ten characters, the mark included
    clip_end("The first words", 10, " [...]")    The first  [...]   the first ten, and then the mark
    clip_middle("The first words", 3, 5)         The … words        the first three and the last five
    clip_list(["a", "b", "c"], 1)                a, and 2 more      the first one, and how many are left out
    short_repr("Point", {"x": 1, "y": 2})        Point(x=1, y=2)    values within 90 characters each

For the columns of a terminal, in which wide characters take two, there is `assistant/oneline.py`.
"""

from collections.abc import Mapping, Sequence


def clip(text: str, most: int) -> str:
    """The text within a number of characters; a longer one ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: max(0, most - 1)]}…"


def clip_end(text: str, most: int, mark: str = "…") -> str:
    """The first characters of a text; after a longer one's stands a mark, which comes on top."""
    return text if len(text) <= most else f"{text[:most]}{mark}"


def clip_middle(text: str, first: int, last: int, mark: str = " … ", *, most: int | None = None) -> str:
    """The first and the last characters of a text that has more than `most`, by default more than these."""
    if len(text) <= (first + last if most is None else most):
        return text
    return f"{text[:first]}{mark}{text[len(text) - last :]}"


def clip_list(items: Sequence[str], most: int, mark: str = "and {} more") -> list[str]:
    """The first of some lines or names; a mark says how many more there are."""
    more = len(items) - most
    return [*items[:most], mark.format(more)] if more > 0 else list(items)


def short_repr(name: str, shown: Mapping[str, object]) -> str:
    """`Name(key=value, …)` with values cut short, in lines of at most 110 characters."""
    lines = [f"{name}("]
    for key, value in shown.items():
        part = clip(f"{key}={value!r}", 90)
        if len(lines[-1]) + len(part) > 107:
            lines.append("    ")
        lines[-1] += f"{part}, "
    return "\n".join(line.rstrip() for line in lines).removesuffix(",") + ")"
