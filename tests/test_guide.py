"""Every program of the guide runs and says what it should."""

from pathlib import Path

import pytest

from tests.pages import blocks_of, run_program

BLOCKS = blocks_of("docs/library/guide.md")
SAYS = [
    "no API key for anthropic: set ANTHROPIC_API_KEY, or run: swink keys set anthropic, or pass api_key=",
    "Back again.\n3 requests",
    "tool_result only https, please\ntool_result {\"bytes\":1024}\nassistant Got one of two.\n{'downloads': 1}",
    "- $.grams: -5 is less than or equal to the minimum of 0\nassistant \ntool_result 50 g of Assam ordered",
    "Two dots.\nThe same dot.",
    "Assam is a black tea.",
    "Yes, 250 g.\nYou work in the shop of Ada.",
    "Tokyo 14000000\nfailed after 2 attempts",
    "Sun all week. 2 tokens\nCity(name='Tokyo', people=14000000)",
    "tool_result deleted tmp/a\ntool_result tool call rejected: src/b is not temporary",
    "Ada.\nYou are Ada. 4 4",
    "paused\nBoth steps taken.",
    "Hi. from test:second\nauth 2 messages\ntest:first: bad key",
]
WARNS = {7: "the run failed: test:scripted: no valid output after 2 attempts"}


def test_every_program_has_its_expectation():
    assert len(BLOCKS) == len(SAYS)


@pytest.mark.parametrize("number", range(len(SAYS)))
def test_the_program_runs(number: int, tmp_path: Path):
    said, warned = run_program(BLOCKS[number], tmp_path)
    assert SAYS[number] in said
    assert warned.startswith(WARNS[number]) if number in WARNS else not warned


def test_a_failed_run_is_in_the_log_once_and_wrong_input_says_what_to_write(tmp_path: Path):
    said, _ = run_program(BLOCKS[-1], tmp_path)
    assert said.count("WARNING:swink:the run failed: test:") == 1
    assert said.endswith("deadline is a finite number of seconds, not inf\n")
