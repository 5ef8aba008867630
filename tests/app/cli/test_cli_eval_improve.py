"""`swink eval improve`: what is shown and written, its exit codes, and how it goes on after signals."""

import json
import signal
from pathlib import Path

import pytest
from tests.app.cli.command_line import Place
from tests.counts import left_to_more
from tests.patience import wait_until

CITIES = ("oslo", "bergen", "lima", "cairo", "rome", "perth", "tokyo", "quebec", "bern", "turin")
AGENTS = """
import asyncio, os
from swink import Agent, ToolCall
from swink.testing.scripted import script

ALL = "Name: oslo bergen lima cairo rome perth tokyo quebec bern turin"

async def answer(model, context, options):
    if context.system_prompt.startswith("You improve"):
        with open("asked.txt", "a") as file:
            file.write("once\\n")
        while os.path.exists("wait"):
            await asyncio.sleep(0.01)
        reply = ToolCall("1", context.tools[-1].name, {"why": "It named too few.", "text": os.environ.get("TEXT", ALL)})
    else:
        city = context.messages[0].text.rpartition(" ")[2]
        reply = city if city in context.system_prompt else "I do not know."
    for event in script(reply):
        yield event

def factory(case):
    return Agent("test:m", system_prompt="Name: oslo", stream_fn=answer)
"""


@pytest.fixture
def cities(place: Place) -> Place:
    place.write("agents.py", AGENTS)
    cases = [
        {"id": city, "user_messages": [f"Where? {city}"], "expected_response": {"contains": city}}
        for city in CITIES
    ]
    place.write("cases.json", json.dumps({"name": "cities", "cases": cases}))
    return place


OPTIONS = ("cases.json", "--agent", "agents:factory", "--target", "system_prompt", "--output", "out")


def improve(place: Place, *arguments: str, **env: str):
    return place.swink("eval", "improve", *OPTIONS, *arguments, env=env)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "prompt"), "write system_prompt, tool:NAME or skill:NAME"),
        (("--target", "tool:look"), "the agent has no tool 'look'; it has none"),
        (("--holdout", "1"), "pass a share between 0 and 1"),
        (("--replay", "no.jsonl"), "there is no no.jsonl"),
        (("--resume", "--output", "cases.json"), "--output cases.json is a file; name a directory"),
    ],
)
def test_what_cannot_be_searched_for_ends_with_2(cities: Place, arguments: tuple[str, ...], said: str):
    ended = improve(cities, *arguments)
    assert ended.code == 2, ended
    assert said in ended.err


def test_a_better_text_is_shown_as_a_diff_and_ends_with_0(cities: Place):
    ended = improve(cities)
    assert ended.code == 0, ended
    assert ended.out.splitlines()[3:] == ["-Name: oslo", f"+Name: {' '.join(CITIES)}"]
    assert "the text as it is: " in ended.err
    assert "round 1 of 10: 6 of 6 training cases pass" in ended.err
    assert "swink: accepted; training: " in ended.err
    assert "p = " in ended.err
    assert (cities.here / "out" / "improvement.diff").read_text() == ended.out
    assert improve(cities, "--resume").out == ended.out
    assert (cities.here / "asked.txt").read_text() == "once\n"


def test_a_text_that_a_model_wrote_moves_no_cursor(cities: Place):
    ended = improve(cities, TEXT=f"Name: {' '.join(CITIES)}\x1b[2J\x1b]0;x\x07")
    assert ended.code == 0, ended
    assert f"+Name: {' '.join(CITIES)}[2J]0;x" in ended.out
    assert "\x1b" in (cities.here / "out" / "improved.txt").read_text()


def test_a_text_that_is_not_accepted_ends_with_1(cities: Place):
    ended = improve(cities, "--rounds", "1", TEXT="Name: nobody")
    assert ended.code == 1, ended
    assert "no text is better than the one there is, after 1 rounds" in ended.err


def wait_for(path: Path) -> None:
    wait_until(path.exists)


@left_to_more
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_search_that_a_signal_ended_goes_on_where_it_was(cities: Place, number: signal.Signals):
    (cities.here / "wait").touch()
    process = cities.start("eval", "improve", *OPTIONS)
    wait_for(cities.here / "asked.txt")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -9)
    if number == signal.SIGINT:
        assert b"interrupted; go on with the same arguments and: --resume --output out" in err
    before = (cities.here / "out" / "runs" / "original" / "results.jsonl").read_bytes()
    (cities.here / "wait").unlink()
    ended = improve(cities, "--resume")
    assert ended.code == 0, ended
    assert (cities.here / "out" / "runs" / "original" / "results.jsonl").read_bytes() == before
    assert "Traceback" not in err.decode()
