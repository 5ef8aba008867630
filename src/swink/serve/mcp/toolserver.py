"""A server of tools: what it lists, and how a call of a client becomes a call of ours."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct

from swink.errors import AgentError
from swink.messages.redact import describe_traceback, redact_text
from swink.serve.mcp.serversdk import ServerSdk, load_server_sdk
from swink.serve.mcp.toolcall import OpenCalls, ServerCall
from swink.system import VERSION

log = logging.getLogger("swink.serve.mcp")

MOST_AT_ONCE = 32
"""Calls that run at the same time; a further one is refused."""


class McpTool(Struct, frozen=True):
    """A tool for clients; `run` gives a result of the SDK's, such as `call.sdk.text_result("done")`."""

    name: str
    description: str
    parameters_schema: dict[str, Any]
    run: Callable[[ServerCall], Awaitable[Any]]
    output_schema: dict[str, Any] | None = None


class ToolServer:
    """Tools under one name, to be served over any transport; make it with `open`.

    `server` is the SDK's, for prompts and resources; a failing call is an error result that says what failed,
    and the traceback goes to the log.

    Args:
        sdk: the parts of the SDK
        name: of the server
        tools: what it offers
        instructions: what clients are told about all of it
    """

    def __init__(self, sdk: ServerSdk, name: str, tools: Sequence[McpTool], instructions: str | None) -> None:
        self.sdk = sdk
        self.waiting = OpenCalls()
        self._tools = {tool.name: tool for tool in tools}
        self._running = 0
        self.server: Any = sdk.Server(
            name,
            version=VERSION,
            instructions=instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    @classmethod
    async def open(cls, name: str, tools: Sequence[McpTool], instructions: str | None = None) -> "ToolServer":
        """A server of that `name` with `tools` and `instructions`, once the SDK has been imported."""
        return cls(await load_server_sdk(), name, tools, instructions)

    async def aclose(self) -> None:
        """Give up the calls that wait for answers."""
        await self.waiting.aclose()

    async def answer(self, context: Any, params: Any, start: Callable[[ServerCall], Awaitable[Any]]) -> Any:
        """What a client gets for the request `params`; `start` begins the call, `context` is the SDK's."""
        return await ServerCall(self.sdk, context, params, self.waiting).proceed(start)

    async def _list_tools(self, context: Any, params: Any) -> Any:
        types = self.sdk.types
        listed = [
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.parameters_schema,
                output_schema=tool.output_schema,
            )
            for tool in self._tools.values()
        ]
        return types.ListToolsResult(tools=listed)

    async def _call_tool(self, context: Any, params: Any) -> Any:
        tool = self._tools.get(params.name)
        if tool is None:
            raise self.sdk.invalid(f"there is no tool {params.name!r}; tools/list shows which there are")
        if self._running >= MOST_AT_ONCE:
            text = f"{MOST_AT_ONCE} calls are running already; try again later"
            return self.sdk.text_result(text, is_error=True)
        self._running += 1
        try:
            return await self.answer(context, params, tool.run)
        except self.sdk.failure:
            raise
        except AgentError as error:
            return self.sdk.text_result(redact_text(str(error)), is_error=True)
        except Exception as error:
            # A tool is the application's code: its bug is for the log, and clients are told its kind alone.
            log.error("the tool %s failed\n%s", tool.name, describe_traceback(error))
            return self.sdk.text_result(f"{tool.name} failed: {type(error).__name__}", is_error=True)
        finally:
            self._running -= 1
