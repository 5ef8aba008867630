"""Hello, with a scripted model: it runs without a key. For a real one: "anthropic:…", and no stream_fn."""

from swink import Agent, ToolCall, tool
from swink.testing import ScriptedModel


@tool
async def weather(city: str) -> str:
    """Current weather.

    Args:
        city: Name of the city.
    """
    return f"18 °C and clear in {city}"


model = ScriptedModel(
    [[ToolCall("call_1", "weather", {"city": "Oslo"})], "A light jacket will do: 18 °C and clear."]
)
agent = Agent("test:scripted", stream_fn=model, system_prompt="Be brief.", tools=[weather])
print(agent.run_sync("What should I wear in Oslo?").raise_for_error().text)
