"""The house stays as it was built: few names at the top, each name once, nothing too long to read."""

from functools import cache

import pytest

from benchmarks import house

MOST = {
    "names at the top": 20,
    "lines of the engine": 2400,
    "public class names used twice or more": 8,
    "module names used twice or more": 25,
    "files over 450 lines": 0,
    "functions over 60 lines": 0,
    "files under 45 lines": 20,
    "docstrings of at most four words": 20,
}


@cache
def figures() -> dict[str, int | list[str]]:
    """Counted by the first test, not by every process that collects them."""
    return dict(house.figures())


@pytest.mark.parametrize("figure", MOST)
def test_the_figure_is_within_its_limit(figure: str):
    found = figures()[figure]
    count = found if isinstance(found, int) else len(found)
    shown = "" if isinstance(found, int) else "\n" + "\n".join(found)
    assert count <= MOST[figure], f"{count} {figure}, at most {MOST[figure]}{shown}"
