"""The server's part of the official SDK, imported when a server is made: that takes about a second."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from swink.errors import MisuseError
from swink.system.extras import install_command
from swink.system.threads import in_thread


class ServerSdk:
    """The few names of the SDK that servers use."""

    def __init__(self) -> None:
        mcp = import_module("mcp")
        self.types: Any = import_module("mcp_types")
        self.failure: type[Exception] = mcp.MCPError
        self.Server: Any = import_module("mcp.server.lowlevel").Server
        self.CacheHint: Any = import_module("mcp.server.caching").CacheHint
        manager = import_module("mcp.server.streamable_http_manager")
        self.SessionManager: Any = manager.StreamableHTTPSessionManager
        self.stdio_server: Any = import_module("mcp.server.stdio").stdio_server

    def invalid(self, text: str) -> Exception:
        """The refusal of a request that makes no sense."""
        return self.failure(self.types.INVALID_PARAMS, text)

    def text_result(self, text: str, structured: Any = None, *, is_error: bool = False) -> Any:
        """The result of a call that is a text, with structured content if there is any."""
        content = [self.types.TextContent(type="text", text=text)]
        return self.types.CallToolResult(content=content, structured_content=structured, is_error=is_error)

    def input_required(self, asked: Mapping[str, tuple[str, dict[str, Any]]], token: str) -> Any:
        """The end of a call that has questions: messages and schemas of forms, and how to go on with it."""
        types = self.types
        requests = {
            key: types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
            )
            for key, (message, schema) in asked.items()
        }
        return types.InputRequiredResult(input_requests=requests, request_state=token)


_sdk = cache(ServerSdk)


async def load_server_sdk() -> ServerSdk:
    """The SDK, imported in a thread so that the event loop is not blocked."""
    try:
        return await in_thread(_sdk)
    except ImportError as error:
        how = f"install it with: {install_command('mcp')}"
        raise MisuseError(f"an MCP server needs the SDK ({error}); {how}") from error
