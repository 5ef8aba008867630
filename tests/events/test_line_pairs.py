"""Line pairs: the most alike lines are beside each other, every line once, and much of it takes no longer."""

from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.events.transcript import linepairs
from swink.events.transcript.diffs import diff
from swink.events.transcript.linepairs import MOST_COMPARED, pair_lines

lines = st.lists(st.lists(st.sampled_from(["load", "save", "x", "y", "=", ""]), max_size=4).map(" ".join))


@tried(100, 1_000)
@given(lines, lines)
def test_every_line_is_there_once_and_in_its_order(removed: list[str], added: list[str]):
    pairs = list(pair_lines(removed, added))
    assert [old for old, _ in pairs if old is not None] == list(range(len(removed)))
    assert [new for _, new in pairs if new is not None] == list(range(len(added)))
    assert all(pair != (None, None) for pair in pairs)


def test_the_most_alike_lines_are_paired_whatever_stands_between_them():
    removed = ["total = load(path)", "return total"]
    added = ["# read it once", "log.debug(path)", "total = load(path, encoding)", "return total, path"]
    assert list(pair_lines(removed, added)) == [(None, 0), (None, 1), (0, 2), (1, 3)]
    assert list(pair_lines(added, removed)) == [(0, None), (1, None), (2, 0), (3, 1)]
    # The better of two, and never across each other.
    assert list(pair_lines(["save the file now"], ["save it", "save the file later"])) == [(None, 0), (0, 1)]
    assert list(pair_lines(["first word", "second word"], ["second word", "first word"])) in (
        [(None, 0), (0, 1), (1, None)],
        [(0, None), (1, 0), (None, 1)],
    )


def test_lines_that_have_nothing_in_common_are_paired_as_they_come():
    assert list(pair_lines(["a", "b"], ["c", "d", "e"])) == [(0, 0), (1, 1), (None, 2)]
    assert list(pair_lines([], ["c"])) == [(None, 0)]
    assert list(pair_lines(["a"], [])) == [(0, None)]
    assert list(pair_lines(["", "a b"], ["", "a b c"])) == [(0, 0), (1, 1)]


def test_of_many_lines_each_is_compared_with_its_neighbours_alone(monkeypatch):
    compared = 0
    real = linepairs._likeness

    def counting(one, other):
        nonlocal compared
        compared += 1
        return real(one, other)

    monkeypatch.setattr(linepairs, "_likeness", counting)
    count = 3_000
    removed = [f"value_{number} = old({number})" for number in range(count)]
    added = ["# one more", *[f"value_{number} = new({number})" for number in range(count)]]
    pairs = list(pair_lines(removed, added))
    assert pairs == [(None, 0), *[(number, number + 1) for number in range(count)]]
    assert compared <= MOST_COMPARED + 5 * count


def test_a_diff_puts_lines_beside_those_that_they_became():
    (hunk,) = diff("f", "a = load(x)\nb = save(y)\n", "# new\na = load(x, 1)\nb = save(y, 2)\n").hunks
    assert [(left and left.text, right and right.text) for left, right in hunk.rows] == [
        (None, "# new"),
        ("a = load(x)", "a = load(x, 1)"),
        ("b = save(y)", "b = save(y, 2)"),
    ]
