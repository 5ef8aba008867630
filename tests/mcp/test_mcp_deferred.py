"""Tools of MCP servers that a model finds when it needs them."""

from typing import Any

import pytest
from mcp_servers import agent_of, bare, sdk
from tests.counts import in_cells, left_to_more

from swink import Agent, ModelSpec
from swink.errors import InvalidInput
from swink.mcp import McpServers
from swink.messages import ToolCall
from swink.testing import ScriptedModel
from swink.tools import prefixed


@pytest.mark.parametrize("wrong", ["always", None, 1])
def test_what_is_no_choice_is_refused(wrong: Any):
    with pytest.raises(InvalidInput, match="deferred"):
        McpServers([sdk()], deferred=wrong)


async def test_deferred_tools_of_a_server_are_not_sent_and_can_be_called():
    async with McpServers([bare()], deferred=True) as servers:
        agent = agent_of(
            servers, [ToolCall("c1", "call_tool", {"name": "bare_count", "arguments": {}})], "done"
        )
        await agent.run("Go.")
    (result,) = [message for message in agent.messages if message.role == "tool_result"]
    assert (result.tool_name, result.text.split()[:2]) == ("bare_count", ["call", "1"])


@in_cells(("window", "is_sent"), [(200_000, True), (1_500, False)], every=2)
async def test_auto_looks_at_the_window_of_the_model(window: int, is_sent: bool):
    model = ScriptedModel(["done"])
    async with McpServers([bare()]) as servers:
        agent = Agent(ModelSpec("test", "m", context_window=window), stream_fn=model, tools=servers.tools)
        await agent.run("Go.")
    sent = [tool.name for tool in model.calls[0].tools]
    assert ("bare_fine" in sent) is is_sent
    assert ("find_tools" in sent) is not is_sent


@left_to_more
async def test_a_tool_set_takes_the_servers_themselves():
    async with McpServers([sdk()], deferred=False) as servers:
        assert next(tool.name for tool in prefixed(servers, "x_").tools()) == "x_sdk_add"
