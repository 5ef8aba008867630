"""Agents as tools of an MCP server, over standard input and output and over streamable HTTP."""

from swink.serve.mcp.agenttool import AgentTool
from swink.serve.mcp.httpserver import serve_http
from swink.serve.mcp.stdioserver import serve_stdio
from swink.serve.mcp.toolcall import ElicitQuestion, ServerCall
from swink.serve.mcp.toolserver import McpTool, ToolServer

__all__ = [
    "AgentTool",
    "ElicitQuestion",
    "McpTool",
    "ServerCall",
    "ToolServer",
    "serve_http",
    "serve_stdio",
]
