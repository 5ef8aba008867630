"""MCP: tools of Model Context Protocol servers, over stdio and streamable HTTP (extra `mcp`)."""

from swink.mcp.client import McpServers
from swink.mcp.elicitation import ElicitField, ElicitForm, ElicitUrl
from swink.mcp.serverconfig import HttpServer, McpError, StdioServer, servers_from

__all__ = [
    "ElicitField",
    "ElicitForm",
    "ElicitUrl",
    "HttpServer",
    "McpError",
    "McpServers",
    "StdioServer",
    "servers_from",
]
