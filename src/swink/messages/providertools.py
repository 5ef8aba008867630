"""Hosted tools: what the provider runs itself, beside the tools that run here.

    Agent("anthropic:claude-sonnet-4-6", hosted=[WebSearch(max_uses=3), CodeExecution()])

A tool here is the notion that providers share; each adapter says it in its provider's words, and refuses by
name what its provider does not have. What they did stays in the reply: an `Extension` for every use and
result, citations on the text.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from swink.errors import InvalidInput
from swink.messages.checks import check_type
from swink.messages.modelspec import ModelSpec


class Location(Struct, frozen=True, omit_defaults=True, tag="location", tag_field="type"):
    """About where the user is, for results that depend on it; the country as two letters.

    Args:
        country: two letters
        region: within the country
        city: its name
        timezone: such as "Europe/Oslo"
    """

    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


class WebSearch(Struct, frozen=True, omit_defaults=True, tag="web_search", tag_field="type"):
    """Search the web; Gemini grounds its answer with Google.

    Args:
        allowed_domains: the only ones to search
        blocked_domains: those to leave out; one of the two may be given
        max_uses: searches in one request
        location: where the user is
    """

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    location: Location | None = None

    def __post_init__(self) -> None:
        _tuples(self, "allowed_domains", "blocked_domains")
        if self.allowed_domains and self.blocked_domains:
            raise InvalidInput("WebSearch takes allowed_domains or blocked_domains, not both")


class WebFetch(Struct, frozen=True, omit_defaults=True, tag="web_fetch", tag_field="type"):
    """Read pages that the conversation names.

    Args:
        allowed_domains: the only ones to read
        blocked_domains: those to leave out; one of the two may be given
        max_uses: pages in one request
    """

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None

    def __post_init__(self) -> None:
        _tuples(self, "allowed_domains", "blocked_domains")
        if self.allowed_domains and self.blocked_domains:
            raise InvalidInput("WebFetch takes allowed_domains or blocked_domains, not both")


class CodeExecution(Struct, frozen=True, omit_defaults=True, tag="code_execution", tag_field="type"):
    """Run code in the provider's sandbox."""


class FileSearch(Struct, frozen=True, omit_defaults=True, tag="file_search", tag_field="type"):
    """Search files that were given to the provider before, in stores that it has ids for.

    Args:
        stores: their ids
        max_results: how many pieces are found at most
    """

    stores: tuple[str, ...]
    max_results: int | None = None

    def __post_init__(self) -> None:
        _tuples(self, "stores")
        if not self.stores:
            raise InvalidInput("FileSearch needs the ids of the stores to search, such as ('vs_123',)")


class ImageGeneration(Struct, frozen=True, omit_defaults=True, tag="image_generation", tag_field="type"):
    """Draw; the images arrive as blocks of the reply."""


class McpConnector(Struct, frozen=True, omit_defaults=True, tag="mcp", tag_field="type"):
    """An MCP server that the provider talks to; the token shows in no repr.

    Args:
        name: what the server is called in the reply
        url: its address
        token: what the provider sends it as a bearer token
        allowed_tools: the only tools to offer; none given offers all
    """

    name: str
    url: str
    token: str | None = None
    allowed_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _tuples(self, "allowed_tools")
        check_type("McpConnector(name)", self.name, str)
        if not isinstance(self.url, str) or not self.url.startswith(("https://", "http://")):
            raise InvalidInput(f"McpConnector(url) is an https address, not {self.url!r:.80}")

    def __repr__(self) -> str:
        return f"McpConnector(name={self.name!r}, url={self.url!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("url", self.url)]


class ProviderTool(Struct, frozen=True, omit_defaults=True, tag="provider_tool", tag_field="type"):
    """A hosted tool of one provider as its API wants it: `ProviderTool("gemini", {"googleMaps": {}})`.

    Its repr names the fields of the spec alone: their values may be secret.
    """

    provider: str
    spec: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_type("ProviderTool(provider)", self.provider, str)
        check_type("ProviderTool(spec)", self.spec, Mapping)

    def __repr__(self) -> str:
        return f"ProviderTool({self.provider!r}, {', '.join(map(str, self.spec))})"

    def __rich_repr__(self) -> list[Any]:
        return [self.provider, list(self.spec)]


HostedTool = WebSearch | WebFetch | CodeExecution | FileSearch | ImageGeneration | McpConnector | ProviderTool

Hosted = Sequence[HostedTool] | Callable[[ModelSpec], Sequence[HostedTool]]
"""The hosted tools of an agent, or a function that gives those for the model that is asked."""


def hosted_for(hosted: Hosted, model: ModelSpec) -> Sequence[HostedTool]:
    """The hosted tools for a model."""
    return check_hosted(hosted(model)) if callable(hosted) else hosted


def check_hosted(tools: Any) -> tuple[HostedTool, ...]:
    """The tools as a tuple; refuse what is none, such as a class that was not called."""
    if isinstance(tools, HostedTool | str) or not hasattr(tools, "__iter__"):
        raise InvalidInput(f"hosted is a list of hosted tools, such as [WebSearch()], not {tools!r:.80}")
    found = tuple(tools)
    for tool in found:
        if isinstance(tool, type) and tool in HostedTool.__args__:
            raise InvalidInput(f"hosted takes {tool.__name__}(), not the class")
        if not isinstance(tool, HostedTool):
            raise InvalidInput(
                f"hosted takes tools of swink.messages.providertools, such as WebSearch(), not {tool!r:.80}"
            )
    return found


def _tuples(tool: Any, *names: str) -> None:
    """Lists as tuples, a text refused: it would be taken for its characters."""
    for name in names:
        value: Any = getattr(tool, name)
        if isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise InvalidInput(f"{type(tool).__name__}({name}) is a list of texts, not {value!r:.80}")
        force_setattr(tool, name, tuple(value))
