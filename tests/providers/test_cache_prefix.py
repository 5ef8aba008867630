"""What each adapter puts on the wire: a request begins with the one before it, cache marks aside."""

from itertools import pairwise
from typing import Any

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from loopback import LoopbackServer

from swink import Agent, tool
from swink.events import CustomEvent
from swink.testing import EventCollector

MESSAGES = ("messages", "input", "contents")
"""Where the protocols keep the conversation; all else of a body comes before it."""
MARKS = ("cache_control", "cachePoint")


@tool
async def weather(city: str) -> str:
    """Current weather.

    Args:
        city: Name of the city.
    """
    return f"18 °C in {city}"


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=repr)
async def test_each_request_of_a_long_run_begins_with_the_one_before(adapter: AdapterCase):
    async with LoopbackServer() as server:
        headers = {"content-type": adapter.media_type}
        for events in [adapter.calls] * 5 + [adapter.text, adapter.calls, adapter.text]:
            server.reply(b"".join(events), headers=headers)
        stream_fn = adapter.make(server.url, KEY)
        agent = Agent(adapter.model, stream_fn=stream_fn, tools=[weather], system_prompt="Be brief. " * 300)
        seen = EventCollector()
        agent.subscribe(seen)
        first = await agent.run("What is the weather in Oslo and Bergen?")
        second = await agent.run("And now?")
    assert (first.error, second.error) == (None, None)
    bodies = [without_marks(request.json) for request in server.requests]
    assert len(bodies) == 8
    for before, after in pairwise(bodies):
        head, messages = parted(before)
        later_head, later_messages = parted(after)
        assert later_head == head, "tools and system prompt, and everything else, are as they were"
        assert len(later_messages) > len(messages) > 0
        assert later_messages[: len(messages)] == messages
    assert seen.of(CustomEvent) == []


def without_marks(value: Any) -> Any:
    """A body without what marks a place for the cache."""
    match value:
        case dict():
            return {key: without_marks(item) for key, item in value.items() if key not in MARKS}
        case list():
            return [
                without_marks(item)
                for item in value
                if not (isinstance(item, dict) and set(item) <= {*MARKS})
            ]
        case _:
            return value


def parted(body: Any) -> tuple[Any, list[Any]]:
    """A body without its messages, and they."""
    if "context" in body:
        head, messages = parted(body["context"])
        return {**body, "context": head}, messages
    (key,) = [key for key in MESSAGES if key in body]
    return {name: value for name, value in body.items() if name != key}, body[key]
