"""A coding agent of one's own: sandboxed tools, an MCP server, a reviewer, a question before changes.

python own_coding_agent.py "Add a test for the parser"     needs ANTHROPIC_API_KEY, works in this directory
"""

import asyncio
import sys

from swink import Agent, ApprovalRequest
from swink.events import MessageUpdate, ToolExecutionStart
from swink.mcp import McpServers, StdioServer
from swink.policies import Budget
from swink.stream import TextDelta
from swink.teams import agent_tool
from swink.tools import coding_tools

MODEL = "anthropic:claude-sonnet-4-6"
TIME = StdioServer("time", sys.executable, ["-m", "mcp_server_time"])


def ask(request: ApprovalRequest) -> bool:
    return sys.stdin.isatty() and input(f"{request.name} {request.shown}? [y/N] ") == "y"


async def main(task: str) -> None:
    tools = coding_tools(".")
    reading = [tool for tool in tools if tool.read_only]
    reviewer = Agent(MODEL, system_prompt="Review the change you are told of. List bugs only.", tools=reading)
    async with McpServers([TIME]) as servers:
        agent = Agent(
            MODEL,
            system_prompt="You are a careful programmer. Have every change reviewed.",
            tools=[*tools, *servers.tools, agent_tool(reviewer, "review", "Reviews a change.")],
            approve=ask,
            policies=[Budget(max_cost=1.0)],
        )
        async with agent.stream(task) as run:
            async for event in run:
                match event:
                    case MessageUpdate(delta=TextDelta(text=text)):
                        print(text, end="", flush=True)
                    case ToolExecutionStart(name=name, arguments=arguments):
                        print(f"\n> {name} {arguments}")
                    case _:
                        pass


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is in this directory?"))
