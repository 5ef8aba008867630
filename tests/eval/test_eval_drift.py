"""A replay that is asked for something else says where it first differs."""

from pathlib import Path
from typing import Any

import pytest

from swink import Agent, CacheMiss, StreamOptions, tool
from swink.messages import ToolCall
from swink.stream.wrappers import recorded, replayed
from swink.stream.wrappers.difference import first_difference
from swink.testing import ScriptedModel


@tool
def weather(city: str) -> str:
    """The weather."""
    return "4 degrees"


@tool(name="weather")
def other_weather(city: str) -> str:
    """The weather today."""
    return "4 degrees"


@tool(name="weather")
def colder_weather(city: str) -> str:
    """The weather."""
    return "3 degrees"


ASKED: dict[str, Any] = {"system_prompt": "Be brief.", "tools": [weather]}


@pytest.mark.parametrize(
    ("changed", "prompt", "said"),
    [
        ({"system_prompt": "Be long."}, "Oslo?", ["in the system prompt:", "-Be brief.", "+Be long."]),
        (
            {"tools": [other_weather]},
            "Oslo?",
            ["in the tool 'weather':", '+ "description": "The weather today."'],
        ),
        ({"tools": []}, "Oslo?", ["in the tools: weather:", "-weather"]),
        ({"options": StreamOptions(temperature=0.5)}, "Oslo?", ["in options.temperature:", "+0.5"]),
        ({"model": "test:n"}, "Oslo?", ["in model.model_id:", "-m", "+n"]),
        ({}, "Bergen?", ["recording 1 of 2 in message 1 of 1 (the user's):", "Oslo?", "Bergen?"]),
        (
            {"tools": [colder_weather]},
            "Oslo?",
            ["recording 2 of 2 in message 3 of 3 (the result of weather):", "4 degrees", "3 degrees"],
        ),
    ],
)
async def test_the_first_difference_is_named_and_shown_alone(
    changed: dict[str, Any], prompt: str, said: list[str], tmp_path: Path
):
    path = tmp_path / "c.jsonl"
    script = ScriptedModel([ToolCall("1", "weather", {"city": "Oslo"}), "A jacket."])
    await Agent("test:m", stream_fn=recorded(script, path), **ASKED).run("Oslo?")
    keywords = {"model": "test:m", "stream_fn": replayed(path), **ASKED, **changed}
    with pytest.raises(CacheMiss) as raised:
        (await Agent(**keywords).run(prompt)).raise_for_error()
    text = str(raised.value)
    for words in said:
        assert words in text, text
    assert len(text.splitlines()) < 14, text


def test_a_long_difference_is_cut_and_a_large_cassette_is_compared_quickly():
    recordings = [
        {"messages": [{"role": "user", "content": f"{number} " + "x" * 5000}]} for number in range(2000)
    ]
    asked = {"messages": [{"role": "user", "content": [f"line {number}" for number in range(500)]}]}
    text = first_difference(asked, recordings)
    assert "more lines differ" in text
    assert len(text) < 20_000
