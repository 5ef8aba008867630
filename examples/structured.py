"""Structured output: ask for a type, get a value of it."""

from dataclasses import dataclass

from swink import Agent, ToolCall
from swink.testing import ScriptedModel


@dataclass
class City:
    name: str
    people: int


script = ["Tokyo, I think.", [ToolCall("1", "final_output", {"name": "Tokyo", "people": 14_000_000})]]
agent = Agent("test:scripted", stream_fn=ScriptedModel(script))
city = agent.run_sync("Largest city of Japan?", output=City).output
print(f"{city.name} has {city.people:,} people")
