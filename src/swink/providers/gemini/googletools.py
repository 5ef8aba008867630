"""Hosted tools in the words of the Gemini API, and of Vertex AI where that differs."""

from typing import Any, Literal

from swink.errors import StreamError
from swink.messages import ModelSpec
from swink.messages.providertools import (
    CodeExecution,
    FileSearch,
    HostedTool,
    McpConnector,
    ProviderTool,
    WebFetch,
    WebSearch,
)
from swink.messages.redact import hold
from swink.providers.adapter import Ask
from swink.providers.convert import named
from swink.providers.gemini.conversation import gemini_version, is_third

Place = Literal["gemini", "vertex"]

_HAS = {
    "gemini": "WebSearch, WebFetch, CodeExecution, FileSearch, McpConnector and ProviderTool",
    "vertex": "WebSearch, WebFetch, CodeExecution and ProviderTool",
}


def hosted_tools(ask: Ask, place: Place) -> list[dict[str, Any]]:
    """The hosted tools as the API takes them; raises `StreamError` for what it does not have."""
    for tool in ask.context.hosted:
        for name in ("max_uses", "location"):
            if getattr(tool, name, None) is not None:
                ask.notices.report(f"{type(tool).__name__}.{name}", "Google has no such setting")
    return [_tool(tool, place, ask.model) for tool in ask.context.hosted]


def check_combination(ask: Ask, place: Place) -> None:
    """Refuse hosted tools beside functions where the model takes one or the other."""
    name = ask.model.model_id
    if place == "gemini" and (is_third(name) or gemini_version(name) == (0, 0)):
        return  # it takes both, or its name does not say
    names = ", ".join(dict.fromkeys(type(tool).__name__ for tool in ask.context.hosted))
    raise StreamError(
        f"{name} does not take {names} together with tools that run here or with output=, as "
        "Gemini 3 of the provider gemini does; use an agent for each, the one as a tool of the other"
    )


def _tool(tool: HostedTool, place: Place, model: ModelSpec) -> dict[str, Any]:
    match tool:
        case WebSearch():
            return _search(tool, place, model)
        case WebFetch():
            _refuse(tool, place, "allowed_domains", "blocked_domains")
            return {"urlContext": {}}
        case CodeExecution():
            return {"codeExecution": {}}
        case FileSearch(stores, most) if place == "gemini":
            names = [store if "/" in store else f"fileSearchStores/{store}" for store in stores]
            return {"fileSearch": {"fileSearchStoreNames": names} | ({"topK": most} if most else {})}
        case McpConnector(name, url, token) if place == "gemini":
            _refuse(tool, place, "allowed_tools")
            transport: dict[str, Any] = {"url": url}
            if token:
                hold(token)
                transport["headers"] = {"Authorization": f"Bearer {token}"}
            return {"mcpServers": [{"name": name, "streamableHttpTransport": transport}]}
        case ProviderTool(provider, spec) if provider in (place, "gemini"):
            return dict(spec)
        case _:
            raise StreamError(f"{place} has no hosted {named(tool)}; it has {_HAS[place]}")


def _search(tool: WebSearch, place: Place, model: ModelSpec) -> dict[str, Any]:
    if (0, 0) < gemini_version(model.model_id) < (2, 0):
        _refuse(tool, place, "allowed_domains", "blocked_domains")
        return {"googleSearchRetrieval": {}}
    if place == "vertex" and tool.blocked_domains:
        return {"googleSearch": {"excludeDomains": list(tool.blocked_domains)}}
    _refuse(tool, place, "allowed_domains", "blocked_domains")
    return {"googleSearch": {}}


def _refuse(tool: HostedTool, place: Place, *names: str) -> None:
    """Refuse limits that Google does not keep: left out, they would protect nobody."""
    if given := [name for name in names if getattr(tool, name)]:
        raise StreamError(
            f"{place} takes no {' or '.join(given)} with {type(tool).__name__}; leave that out, "
            "or use another provider"
        )
