"""swink's MCP client as the published conformance suite starts it: with a scenario in the environment, and a URL.

Tools are called the way a model would call them. Logins take the way of a person: the address is opened, and
whatever answers there sends the browser back to the listener.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from typing import Any

from swink import Agent, Tool, ToolCall
from swink.mcp import HttpServer, McpServers
from swink.testing import ScriptedModel

DOCUMENT = "https://conformance-test.local/client-metadata.json"
EXAMPLES: dict[str, Any] = {"string": "text", "number": 1.5, "integer": 1, "boolean": True}


async def browse(server: str, url: str) -> None:
    """What a person does who is logged in already: the page sends them back at once."""
    asyncio.get_running_loop().run_in_executor(None, urllib.request.urlopen, url)


async def main(scenario: str, url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    server = HttpServer(
        "suite",
        url,
        requires_approval=False,
        client_id=context.get("client_id", DOCUMENT),
        client_secret=context.get("client_secret"),
    )
    async with McpServers([server], on_elicit=lambda asked: True, on_login=browse) as servers:
        wanted = context.get("toolCalls") or [
            {"name": tool.name.removeprefix("suite_"), "arguments": arguments(tool, servers.tools)}
            for tool in servers.tools
        ]
        calls = [
            ToolCall(f"call_{number}", f"suite_{call['name']}", without_nulls(call["arguments"]))
            for number, call in enumerate(wanted)
        ]
        agent = Agent("test:model", stream_fn=ScriptedModel([calls, "done"]), tools=servers.tools)
        await agent.run("Call them all.")
        await use_offers(servers)
        for message in agent.messages:
            if message.role == "tool_result":
                print(message.tool_name, message.text[:200])


async def use_offers(servers: McpServers) -> None:
    """Read and use whatever is offered besides tools."""
    for resource in servers.resources:
        if not resource.is_template:
            await servers.read(resource.server, resource.uri)
    for prompt in servers.prompts:
        await servers.prompt(prompt.server, prompt.name, {one.name: "text" for one in prompt.arguments})


def without_nulls(given: dict[str, Any]) -> dict[str, Any]:
    """swink refuses null for what its schema calls a boolean: what is null is left out."""
    return {name: value for name, value in given.items() if value is not None}


def arguments(tool: Tool, tools: Sequence[Tool]) -> dict[str, Any]:
    """What a tool of the suite is to be called with."""
    match tool.name:
        case "suite_add_numbers":
            return {"a": 5, "b": 3}
        case "suite_json_schema_echo":
            return {"schema": next(other.parameters_schema for other in tools if other is not tool)}
        case _:
            properties = tool.parameters_schema.get("properties", {})
            return {
                name: EXAMPLES[properties[name]["type"]]
                for name in tool.parameters_schema.get("required", ())
            }


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CONFIG_HOME"] = place
        asyncio.run(main(os.environ.get("MCP_CONFORMANCE_SCENARIO", ""), sys.argv[1]))
