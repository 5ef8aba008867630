"""The house stays as it was built: few names at the top, each name once, nothing too long to read."""

import pytest
from benchmarks.house import figures

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
FOUND = dict(figures())


@pytest.mark.parametrize("figure", MOST)
def test_the_figure_is_within_its_limit(figure: str):
    found = FOUND[figure]
    count = found if isinstance(found, int) else len(found)
    shown = "" if isinstance(found, int) else "\n" + "\n".join(found)
    assert count <= MOST[figure], f"{count} {figure}, at most {MOST[figure]}{shown}"
