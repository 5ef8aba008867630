"""swink: a harness for LLM agents.

`help(swink.Agent)` lists what an agent takes. This program shows where the parts come from. It runs without a
key; leave `stream_fn` out to ask the model itself.

>>> import asyncio
>>> from swink import Agent, tool
>>> from swink.events import MessageUpdate
>>> from swink.mcp import HttpServer, McpServers
>>> from swink.memory import SqliteStore
>>> from swink.messages.providertools import WebSearch
>>> from swink.policies import Budget
>>> from swink.stream import TextDelta
>>> from swink.testing import ScriptedModel
>>> @tool
... def weather(city: str) -> str:
...     "The weather of a city."
...     return f"18 °C in {city}"
>>> async def main() -> None:
...     session = await SqliteStore("sessions.db").create()  # another day: open(session.id)
...     async with McpServers([]) as servers:  # such as HttpServer("docs", "https://example.com/mcp")
...         agent = Agent(
...             "anthropic:claude-sonnet-4-6",
...             stream_fn=ScriptedModel(["A light jacket will do."]),
...             tools=[weather, servers.tools],
...             hosted=[WebSearch()],
...             policies=[Budget(max_cost=0.50)],
...             session=session,
...         )
...         async with agent.stream("A jacket in Oslo?") as run:
...             async for event in run:
...                 match event:
...                     case MessageUpdate(delta=TextDelta(text=text)):
...                         print(text, end="", flush=True)
...         result = (await run.result()).raise_for_error()
...         print(result.usage.total, result.cost)
>>> asyncio.run(main())
"""

from swink.system import VERSION
from swink.system import (
    startup as startup,  # first: the command may be interrupted while the rest is imported
)

# isort: split
from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.config import AgentContext, AgentLoopConfig, PromptContext
from swink.agent.context.windows import SlidingWindow
from swink.agent.eventstream import EventStream
from swink.agent.functions import agent_loop, agent_loop_continue
from swink.agent.policy import (
    Answer,
    ApprovalRequest,
    Approved,
    Inject,
    Policy,
    PolicyContext,
    Rejected,
    Replace,
    Rewrite,
    Skip,
    Stop,
    Turn,
    defer,
)
from swink.agent.retry import ExponentialBackoff
from swink.errors import (
    Aborted,
    AgentError,
    AlreadyRunning,
    AuthError,
    BrokenHistory,
    CacheMiss,
    ContentFiltered,
    ContextWindowOverflow,
    InvalidContinue,
    InvalidInput,
    InvalidTool,
    MissingKey,
    MisuseError,
    ModelError,
    ModelRetired,
    ModelThrottled,
    NetworkError,
    NoMessages,
    RunStopped,
    StreamError,
    StructuredOutputFailed,
    SyncInAsyncContext,
    UnknownModel,
)
from swink.messages import (
    AssistantMessage,
    Audio,
    Cost,
    CustomMessage,
    Document,
    Extension,
    Image,
    ModelSpec,
    Price,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    register_custom,
)
from swink.messages.records import PendingApproval
from swink.stream import StreamFn, StreamOptions, Timeout
from swink.tools import Tool, ToolContext, ToolError, ToolResult, Transfer, tool

__version__ = VERSION

__all__ = [
    "Aborted",
    "Agent",
    "AgentContext",
    "AgentError",
    "AgentLoopConfig",
    "AgentResult",
    "AlreadyRunning",
    "Answer",
    "ApprovalRequest",
    "Approved",
    "AssistantMessage",
    "Audio",
    "AuthError",
    "BrokenHistory",
    "CacheMiss",
    "ContentFiltered",
    "ContextWindowOverflow",
    "Cost",
    "CustomMessage",
    "Document",
    "EventStream",
    "ExponentialBackoff",
    "Extension",
    "Image",
    "Inject",
    "InvalidContinue",
    "InvalidInput",
    "InvalidTool",
    "MissingKey",
    "MisuseError",
    "ModelError",
    "ModelRetired",
    "ModelSpec",
    "ModelThrottled",
    "NetworkError",
    "NoMessages",
    "PendingApproval",
    "Policy",
    "PolicyContext",
    "Price",
    "PromptContext",
    "Rejected",
    "Replace",
    "Rewrite",
    "RunStopped",
    "Skip",
    "SlidingWindow",
    "Stop",
    "StreamError",
    "StreamFn",
    "StreamOptions",
    "StructuredOutputFailed",
    "SyncInAsyncContext",
    "Text",
    "Thinking",
    "Timeout",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolResultMessage",
    "Transfer",
    "Turn",
    "UnknownModel",
    "Usage",
    "UserMessage",
    "agent_loop",
    "agent_loop_continue",
    "defer",
    "register_custom",
    "tool",
]
