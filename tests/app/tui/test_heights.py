"""Heights: prefix sums of what blocks take on the screen."""

from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.app.tui.view.heights import Heights

sizes = st.integers(0, 5)
steps = st.one_of(
    st.tuples(st.just("append"), sizes),
    st.tuples(st.just("set"), st.integers(0, 60), sizes),
    st.tuples(st.just("cut"), st.integers(0, 60)),
)


@tried(60, 1_000)
@given(st.lists(steps, max_size=60))
def test_any_changes_leave_the_sums_of_a_plain_list(changes):
    plain: list[int] = []
    heights = Heights()
    for change in changes:
        match change:
            case ("append", height):
                plain.append(height)
                heights.append(height)
            case ("set", place, height) if plain:
                plain[place % len(plain)] = height
                heights[place % len(plain)] = height
            case ("cut", length):
                del plain[length:]
                heights.cut(length)
    assert len(heights) == len(plain)
    assert [heights.before(place) for place in range(len(plain) + 1)] == [
        sum(plain[:place]) for place in range(len(plain) + 1)
    ]
    lines = [(place, line) for place, height in enumerate(plain) for line in range(height)]
    assert [heights.at(line) for line in range(heights.total)] == lines
    assert heights.at(heights.total + 3) == (len(plain), 3)
