"""What the consoles of the pages show is what the commands print: `python -m tests.consoles` writes it anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answering import answering_model
from tests.consoles import agrees, consoles_of, is_local, packaged, rewritten, run
from tests.counts import cell_of_more
from tests.local.conftest import weights as weights
from tests.pages import PAGES, ROOT

TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES}
SHOWING = {page: consoles for page, text in TEXTS.items() if (consoles := consoles_of(text))}
SLOW = {"docs/evaluation/cassettes.md"}
"""It shows the same commands as the other pages about evaluation."""
PAGE = 'Words\n```console\n$ echo "$((6 * 7)) in 3 ms"\n42 in 5.1 ms\n$ cd /\n$ pwd\n/tmp\n```\n'


@pytest.fixture(scope="module")
def model() -> Iterator[dict[str, str]]:
    with answering_model() as variables:
        yield variables


@pytest.mark.parametrize(
    "page",
    [cell_of_more(page) if is_local(SHOWING[page]) or page in SLOW else page for page in SHOWING],
)
def test_the_commands_print_what_the_page_shows(
    page: str, model: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
):
    variables = model
    if is_local(SHOWING[page]):
        variables = packaged(request.getfixturevalue("weights"), tmp_path / "packages")
    for shown, printed in zip(SHOWING[page], run(TEXTS[page], tmp_path, variables), strict=True):
        for step, now in zip(shown.steps, printed.steps, strict=True):
            assert agrees(step.shown, now.shown), f"$ {step.command}\n{now.shown}"


def test_a_page_that_shows_something_else_is_written_anew(tmp_path: Path):
    assert rewritten(PAGE, {}, tmp_path) == PAGE.replace("/tmp", "/")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("took  9 ms\n", "took 1.04 s\n"),
        ("2026-11-19 01:12:48 UTC\n", "2027-01-02 23:00:00 UTC\n"),
        ("first\n…\nlast …\n", "first\n1\n2\nlast of all\n"),
    ],
)
def test_times_and_what_a_page_leaves_out_may_differ(shown: str, printed: str):
    assert agrees(shown, printed)


@pytest.mark.parametrize("printed", ["3 of 5\n", "2 of 4 passed\n", "2 of 5 passed\nand more\n"])
def test_any_other_difference_is_found(printed: str):
    assert not agrees("2 of 5 passed\n", printed)
