"""The tools that Anthropic runs itself: how they are asked for, and what their blocks say to people."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from swink.errors import StreamError
from swink.messages.jsondata import object_of
from swink.messages.providertools import (
    CodeExecution,
    HostedTool,
    McpConnector,
    ProviderTool,
    WebFetch,
    WebSearch,
)
from swink.messages.redact import hold
from swink.system.shorten import clip

CONTAINER = "container"
"""The type under which a reply keeps the container that its code ran in; it is no content of the API's."""
MCP_BETA = "mcp-client-2025-11-20"
_SHOWN = 200
_ALL = "WebSearch, WebFetch, CodeExecution, McpConnector"


def hosted_tools(hosted: Sequence[HostedTool], version: tuple[int, int], provider: str) -> dict[str, Any]:
    """The fields of a body that ask for hosted tools: `tools`, and `mcp_servers` where one is a connector."""
    tools: list[dict[str, Any]] = []
    servers: list[dict[str, Any]] = []
    # Vertex AI runs the first edition of its web search and nothing else.
    newest = version >= (4, 6) and provider != "vertex"
    for tool in hosted:
        match tool:
            case WebSearch(allowed, blocked, uses, location):
                name = "web_search_20260318" if newest else "web_search_20250305"
                spec = {"type": name, "name": "web_search", **_limits(allowed, blocked, uses)}
                if location is not None:
                    spec["user_location"] = {**msgspec.to_builtins(location), "type": "approximate"}
                tools.append(spec)
            case ProviderTool(for_whom, spec) if for_whom in ("anthropic", provider):
                tools.append(dict(spec))
            case WebFetch(allowed, blocked, uses) if provider != "vertex":
                name = "web_fetch_20260318" if newest else "web_fetch_20250910"
                tools.append({"type": name, "name": "web_fetch", **_limits(allowed, blocked, uses)})
            case CodeExecution() if provider != "vertex":
                name = "code_execution_20260120" if newest else "code_execution_20250825"
                tools.append({"type": name, "name": "code_execution"})
            case McpConnector(name, url, token, allowed) if provider != "vertex":
                if token:
                    hold(token)  # a server that repeats it in an error shall not show it
                server = {"type": "url", "name": name, "url": url}
                servers.append({**server, "authorization_token": token} if token else server)
                toolset: dict[str, Any] = {"type": "mcp_toolset", "mcp_server_name": name}
                if allowed:
                    toolset["default_config"] = {"enabled": False}
                    toolset["configs"] = {name: {"enabled": True} for name in allowed}
                tools.append(toolset)
            case _:
                has = "WebSearch" if provider == "vertex" else _ALL
                whose = f"tool for {tool.provider}" if isinstance(tool, ProviderTool) else type(tool).__name__
                raise StreamError(f"{provider} has no hosted {whose}; it has {has} and ProviderTool")
    return {"tools": tools, **({"mcp_servers": servers} if servers else {})}


def describe(block: Mapping[str, Any]) -> str:
    """One line for people about a block of the provider's own."""
    match block:
        case {"type": "server_tool_use", "name": str(name), "input": dict()}:
            keys = ("query", "url", "command", "code", "pattern", "path")
            subjects = map(block["input"].get, keys)
            said = next((subject for subject in subjects if isinstance(subject, str)), "")
            text = f"{_words(name)}: {said}" if said else _words(name)
        case {"type": "mcp_tool_use", "server_name": server, "name": name}:
            text = f"{server}: {name}"
        case {"type": "web_search_tool_result", "content": list()}:
            text = f"web search: {len(block['content'])} results"
        case {"type": "tool_search_tool_result", "content": {"tool_references": [*found]}}:
            names = [str(reference.get("tool_name")) for reference in map(object_of, found)]
            text = f"tools found: {', '.join(names) or 'none'}"
        case {"type": str(type), "content": {"error_code": code}}:
            text = f"{_words(type.removesuffix('_tool_result'))} failed: {code}"
        case {"type": "mcp_tool_result", "is_error": True}:
            text = "mcp failed"
        case {"type": "web_fetch_tool_result", "content": {"url": url}}:
            text = f"web fetch: {url} read"
        case {"type": str(type), "content": {"return_code": int(code)}}:
            text = f"{_words(type.removesuffix('_tool_result'))}: exit code {code}"
        case {"type": "compaction"}:
            text = "the provider compacted the context"
        case {"type": str(type)}:
            text = _words(type.removesuffix("_tool_result"))
        case _:
            text = "anthropic"
    return clip(" ".join(text.split()), _SHOWN)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _limits(allowed: Sequence[str], blocked: Sequence[str], uses: int | None) -> dict[str, Any]:
    given = {"allowed_domains": list(allowed), "blocked_domains": list(blocked), "max_uses": uses}
    return {name: value for name, value in given.items() if value}
