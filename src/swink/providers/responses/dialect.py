"""Where the servers that speak the Responses API differ."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from swink.errors import StreamError
from swink.messages import ModelSpec
from swink.messages.providertools import (
    CodeExecution,
    FileSearch,
    HostedTool,
    ImageGeneration,
    McpConnector,
    ProviderTool,
    WebSearch,
)
from swink.messages.redact import hold
from swink.providers.convert import named, place_of
from swink.providers.thinking import grok_efforts, is_openai_name, is_reasoning_model, openai_efforts

_Say = Callable[[Any], dict[str, Any]]


class ResponsesDialect(Struct, frozen=True):
    """One server's way of the protocol."""

    provider: str
    hosted: Mapping[type, _Say]
    efforts: Callable[[ModelSpec], tuple[str, ...]]
    reasons: Callable[[str], bool]
    includes: Mapping[type, str]
    """What has to be asked for so that a hosted tool's results are part of the reply."""
    system_item: bool = False
    """Whether the system prompt is the first item instead of `instructions`."""
    client_tools: bool = True
    """Whether calls of custom tools, shells and patches wait for a result from here."""
    stores_images: bool = True
    """Whether an image that was drawn is known by its item alone, so that the item cannot go back."""
    summaries: bool = True
    limits_uses: bool = True
    cache_options: bool = False
    tool_search: bool = False
    """Whether the server searches deferred tools itself."""
    fixed_sampling: bool = True
    """Whether models that reason refuse a temperature."""
    unhonoured: frozenset[str] = frozenset(("stop", "seed"))

    def tool(self, tool: HostedTool) -> dict[str, Any]:
        """A hosted tool in the provider's words; raises a `StreamError` that names those it has."""
        if isinstance(tool, ProviderTool) and tool.provider == self.provider:
            return dict(tool.spec)
        say = self.hosted.get(type(tool))
        if say is None:
            had = ", ".join(sorted(kind.__name__ for kind in self.hosted))
            raise StreamError(f"{self.provider} has no {named(tool)}; it has {had}")
        return say(tool)


def _search(tool: WebSearch) -> dict[str, Any]:
    if tool.blocked_domains:
        raise StreamError("OpenAI's web search blocks no domains; give WebSearch(allowed_domains=...)")
    filters = {"filters": {"allowed_domains": list(tool.allowed_domains)}} if tool.allowed_domains else {}
    return {"type": "web_search", **filters, **_location(tool)}


def _grok_search(tool: WebSearch) -> dict[str, Any]:
    domains = {"allowed_domains": list(tool.allowed_domains), "excluded_domains": list(tool.blocked_domains)}
    filters = {name: given for name, given in domains.items() if given}
    return {"type": "web_search", **({"filters": filters} if filters else {}), **_location(tool)}


def _location(tool: WebSearch) -> dict[str, Any]:
    return {} if tool.location is None else {"user_location": {"type": "approximate", **place_of(tool)}}


def _files(tool: FileSearch) -> dict[str, Any]:
    most = {} if tool.max_results is None else {"max_num_results": tool.max_results}
    return {"type": "file_search", "vector_store_ids": list(tool.stores), **most}


def _connector(tool: McpConnector) -> dict[str, Any]:
    said: dict[str, Any] = {"type": "mcp", "server_label": tool.name, "server_url": tool.url}
    if tool.token:
        hold(tool.token)
        said["authorization"] = tool.token
    if tool.allowed_tools:
        said["allowed_tools"] = list(tool.allowed_tools)
    return said


_INCLUDES = {
    WebSearch: "web_search_call.action.sources",
    FileSearch: "file_search_call.results",
    CodeExecution: "code_interpreter_call.outputs",
}
_HOSTED: Mapping[type, _Say] = {
    WebSearch: _search,
    FileSearch: _files,
    CodeExecution: lambda _: {"type": "code_interpreter", "container": {"type": "auto"}},
    ImageGeneration: lambda _: {"type": "image_generation"},
    # Nobody here could answer the provider's question for approval; `allowed_tools` is the limit.
    McpConnector: lambda tool: {**_connector(tool), "require_approval": "never"},
}


def _deployment_efforts(model: ModelSpec) -> tuple[str, ...]:
    """A deployment may have any name: one that says nothing is asked for what its user asks for."""
    if is_openai_name(model.model_id) or model.thinking_level == "off":
        return openai_efforts(model.model_id)
    return ("low", "medium", "high")


OPENAI = ResponsesDialect(
    "openai-responses",
    _HOSTED,
    lambda model: openai_efforts(model.model_id),
    is_reasoning_model,
    _INCLUDES,
    cache_options=True,
    tool_search=True,
)
AZURE = ResponsesDialect(
    "azure-responses", _HOSTED, _deployment_efforts, is_reasoning_model, _INCLUDES, tool_search=True
)
XAI = ResponsesDialect(
    "xai-responses",
    {
        WebSearch: _grok_search,
        FileSearch: _files,
        CodeExecution: lambda _: {"type": "code_interpreter"},
        McpConnector: _connector,
    },
    lambda model: grok_efforts(model.model_id.lower()),
    lambda _: True,
    {kind: _INCLUDES[kind] for kind in (FileSearch, CodeExecution)},
    system_item=True,
    client_tools=False,
    stores_images=False,
    summaries=False,
    limits_uses=False,
    fixed_sampling=False,
    unhonoured=frozenset(("stop", "seed", "service_tier", "verbosity", "cache")),
)
