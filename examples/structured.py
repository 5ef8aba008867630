"""Typed output: ask for a type, check the value, and watch it grow while the model writes it."""

import asyncio
from dataclasses import dataclass

from swink import Agent, ToolCall, ToolError
from swink.stream import Done, Start, ToolCallDelta, ToolCallEnd, ToolCallStart
from swink.testing import ScriptedModel


@dataclass
class City:
    name: str
    people: int


def count_people(city: City) -> None:
    """A value may fit its type and still be wrong: the model gets this reason and tries again."""
    if city.people < 1_000:
        raise ToolError("people is the number of people, not of millions")


# The second reply is written out as a model streams it: the arguments of one call, piece by piece.
pieces = ['{"name": "To', 'kyo", ', '"people": 14', "000000}"]
script = [
    ToolCall("1", "final_output", {"name": "Tokyo", "people": 14}),
    [
        Start(),
        ToolCallStart(0, "2", "final_output"),
        *[ToolCallDelta(0, piece) for piece in pieces],
        ToolCallEnd(0),
        Done("tool_use"),
    ],
]


async def main() -> None:
    agent = Agent("test:scripted", stream_fn=ScriptedModel(script))
    async with agent.stream("Largest city of Japan?", output=City, validate=count_people) as run:
        async for growing in run.output():  # fields that have not arrived are None
            print(growing)
        city = (await run.result()).output  # a City; if there is none, this raises the run's error
    print(f"{city.name} has {city.people:,} people")


asyncio.run(main())
