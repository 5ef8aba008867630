"""The figures of the local models as the first screen shows them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.app.assistant.localfigures import LocalFigures, figures_source, figures_text, read_figures

SMALL = LocalFigures(
    "small-135m", 3, 40, 9.75, 2.5, 28.4, 604.0, 92_871_040, "2026-01-31", (0.5, 2.25), "2 cores (aarch64)"
)
LARGE = LocalFigures(
    "large-1.5b", 31, 40, None, 29.0, None, 1806.0, 1_092_845_809, "2026-01-31", (1.5, 3.0), "2 cores"
)


def test_there_is_a_table_where_it_fits():
    assert figures_text([SMALL, LARGE], 80).splitlines() == [
        "local model  solved  first  later  tok/s  memory   fetch",
        "small-135m     3/40  9.8 s  2.5 s     28  604 MB   93 MB",
        "large-1.5b    31/40      –   29 s      –  1.8 GB  1.1 GB",
    ]


def test_there_are_sentences_where_it_does_not_and_they_leave_out_what_was_not_measured():
    assert figures_text([SMALL, LARGE], 40).splitlines() == [
        "small-135m: 3/40 solved, first word after 9.8 s, later 2.5 s, 28 tokens/s, 604 MB of memory, "
        "93 MB to fetch",
        "large-1.5b: 31/40 solved, later 29 s, 1.8 GB of memory, 1.1 GB to fetch",
    ]


def test_it_is_told_when_and_on_what_they_were_measured():
    told = figures_source([SMALL, LARGE])
    assert told.startswith(
        "Measured on 2026-01-31 with small tasks on files and commands, 2 cores (aarch64), "
    )
    assert "load average 0.5 to 3." in told
    assert figures_source([]) == ""


@pytest.mark.parametrize("width", [64, 66])
def test_the_table_of_this_version_fits_a_terminal_of_eighty_columns(width: int):
    assert figures_text(read_figures(), width).startswith("local model ")


@tried(50, 500)
@given(st.none() | st.floats(0, 1e5), st.none() | st.floats(0, 1e5), st.integers(0, 10**12))
def test_any_figures_make_rows_of_one_width(wait: float | None, memory: float | None, download: int):
    each = LocalFigures("m", 0, 0, wait, wait, wait, memory, download, "", (0.0, 0.0), "")
    head, *rows = figures_text([each, SMALL], 1_000).splitlines()
    assert {len(row) for row in rows} == {len(head)}
