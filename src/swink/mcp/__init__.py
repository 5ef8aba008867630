"""MCP: tools of Model Context Protocol servers, over stdio and streamable HTTP (extra `mcp`)."""

from swink.mcp.client import McpServers
from swink.mcp.elicitation import ElicitField, ElicitForm, ElicitUrl
from swink.mcp.serverconfig import HttpServer, McpError, StdioServer, servers_from
from swink.mcp.serveroffers import ServerPrompt, ServerPromptArgument, ServerResource

__all__ = [
    "ElicitField",
    "ElicitForm",
    "ElicitUrl",
    "HttpServer",
    "McpError",
    "McpServers",
    "ServerPrompt",
    "ServerPromptArgument",
    "ServerResource",
    "StdioServer",
    "servers_from",
]
