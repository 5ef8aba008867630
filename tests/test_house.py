"""The house stays as it was built: few names at the top, each name once, nothing too long to read."""

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
    "attributes of Run": 16,
    "attributes of Ledger": 16,
    "methods of Run": 20,
    "methods of Ledger": 20,
    "lines of Agent": 399,
}


def test_every_figure_is_within_its_limit():
    """All in one test: to count them takes seconds, whichever process does it."""
    figures = dict(house.figures())
    too_many: list[str] = []
    for figure, most in MOST.items():
        found = figures[figure]
        count = found if isinstance(found, int) else len(found)
        if count > most:
            shown = [] if isinstance(found, int) else found
            too_many += [f"{count} {figure}, at most {most}", *shown]
    assert not too_many, "\n".join(too_many)
