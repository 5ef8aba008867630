"""Steer a running agent, queue a follow-up, and bound the whole run with a deadline."""

import asyncio

from swink import Agent, ToolCall, tool
from swink.testing import ScriptedModel


@tool
async def rewrite(file: str) -> str:
    """Rewrite a file, slowly."""
    if file == "app.py":
        agent.steer("Leave the tests alone.")
        return "rewritten"
    await asyncio.sleep(60)
    return "never reached: steering cancels it"


script = [
    [ToolCall("1", "rewrite", {"file": "app.py"}), ToolCall("2", "rewrite", {"file": "test_app.py"})],
    "Understood: the tests stay as they are.",
    "And the changelog says so.",
]
agent = Agent("test:scripted", stream_fn=ScriptedModel(script), tools=[rewrite])
agent.follow_up("Then the changelog.")
result = asyncio.run(agent.run("Tidy up the project", deadline=5)).raise_for_error()
for message in result.messages:
    print(f"{message.role:12} {message.text or '(tool calls)'}")
