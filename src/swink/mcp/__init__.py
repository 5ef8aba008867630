"""MCP: tools of Model Context Protocol servers, over stdio and streamable HTTP (extra `mcp`)."""

from swink.mcp.client import McpServers
from swink.mcp.serverconfig import HttpServer, McpError, StdioServer, servers_from

__all__ = ["HttpServer", "McpError", "McpServers", "StdioServer", "servers_from"]
