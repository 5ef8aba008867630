"""Hosted tools in chat completions: the words of each server that has some.

openai       web_search_options, for its search models
openrouter   a server tool for any model
perplexity   searches anyway; the domains and the place are filters
groq         tools of gpt-oss, settings of compound
"""

from collections.abc import Sequence
from typing import Any

from swink.errors import StreamError
from swink.messages import ModelSpec
from swink.messages.providertools import (
    CodeExecution,
    HostedTool,
    Location,
    ProviderTool,
    WebFetch,
    WebSearch,
)
from swink.providers.chat.dialect import ChatDialect
from swink.providers.notices import Notices

_HAS = {
    "openai": "WebSearch, for its search models, and ProviderTool; openai-responses has more",
    "azure": "ProviderTool; azure-responses has more",
    "openrouter": "WebSearch, WebFetch and ProviderTool",
    "perplexity": "WebSearch",
    "groq": "WebSearch, WebFetch and CodeExecution for groq/compound, WebSearch and CodeExecution for "
    "gpt-oss, and ProviderTool",
    "xai": "ProviderTool; xai-responses has more",
}
_COMPOUND = {WebSearch: "web_search", WebFetch: "visit_website", CodeExecution: "code_interpreter"}
_GPT_OSS = {WebSearch: "browser_search", CodeExecution: "code_interpreter"}


def hosted_fields(
    tools: Sequence[HostedTool], model: ModelSpec, dialect: ChatDialect, notices: Notices
) -> dict[str, Any]:
    """The fields of a body that ask for hosted tools; raises `StreamError` for what the server lacks."""
    fields: dict[str, Any] = {}
    for tool in tools:
        _add(fields, tool, model, dialect, notices)
    return fields


def _add(
    fields: dict[str, Any], tool: HostedTool, model: ModelSpec, dialect: ChatDialect, notices: Notices
) -> None:
    name = model.model_id.lower()
    match dialect.provider, tool:
        case place, ProviderTool(provider, spec) if place == provider:
            fields.setdefault("tools", []).append(dict(spec))
        case "openai", WebSearch() if "search" in name:
            _report(tool, dialect, notices, "allowed_domains", "blocked_domains", "max_uses")
            place = _place(tool.location)
            fields["web_search_options"] = (
                {"user_location": {"type": "approximate", "approximate": place}} if place else {}
            )
        case "openrouter", WebSearch():
            _report(tool, dialect, notices, "max_uses")
            place = _place(tool.location)
            settings = {
                "allowed_domains": list(tool.allowed_domains),
                "excluded_domains": list(tool.blocked_domains),
                "user_location": {"type": "approximate", **place} if place else None,
            }
            _server_tool(fields, "openrouter:web_search", settings)
        case "openrouter", WebFetch():
            _report(tool, dialect, notices, "allowed_domains", "blocked_domains", "max_uses")
            _server_tool(fields, "openrouter:web_fetch", {})
        case "perplexity", WebSearch():
            _report(tool, dialect, notices, "max_uses")
            if domains := [*tool.allowed_domains, *(f"-{domain}" for domain in tool.blocked_domains)]:
                fields["search_domain_filter"] = domains
            if place := _place(tool.location):
                fields["web_search_options"] = {"user_location": place}
        case "groq", WebSearch() | WebFetch() | CodeExecution() if "compound" in name:
            custom = fields.setdefault("compound_custom", {"tools": {"enabled_tools": []}})
            custom["tools"]["enabled_tools"].append(_COMPOUND[type(tool)])
            if isinstance(tool, WebSearch):
                _report(tool, dialect, notices, "max_uses", "location")
                _filter(fields, tool)
        case "groq", WebSearch() | CodeExecution() if "gpt-oss" in name:
            _report(tool, dialect, notices, "allowed_domains", "blocked_domains", "max_uses", "location")
            fields.setdefault("tools", []).append({"type": _GPT_OSS[type(tool)]})
        case place, _:
            whose = f" of {tool.provider}" if isinstance(tool, ProviderTool) else ""
            has = f"it has {_HAS[place]}" if place in _HAS else "use a provider that has it"
            raise StreamError(
                f"{place} has no hosted {type(tool).__name__}{whose} for {model.model_id}; {has}"
            )


def _report(tool: HostedTool, dialect: ChatDialect, notices: Notices, *names: str) -> None:
    """Limits of domains are refused, since left out they would protect nobody; others are reported."""
    for name in names:
        if not getattr(tool, name, None):
            continue
        if name.endswith("_domains"):
            raise StreamError(
                f"{dialect.provider} cannot keep {type(tool).__name__}({name}=…); leave it out, or use "
                "another provider"
            )
        notices.report(f"{type(tool).__name__}.{name}", f"{dialect.provider} has no such setting")


def _place(location: Location | None) -> dict[str, str]:
    names = ("country", "region", "city", "timezone")
    found = {name: getattr(location, name, None) for name in names}
    return {name: value for name, value in found.items() if value}


def _server_tool(fields: dict[str, Any], name: str, settings: dict[str, Any]) -> None:
    said = {key: value for key, value in settings.items() if value}
    tool: dict[str, Any] = {"type": name}
    fields.setdefault("tools", []).append({**tool, "parameters": said} if said else tool)


def _filter(fields: dict[str, Any], tool: WebSearch) -> None:
    filters = {"include_domains": list(tool.allowed_domains), "exclude_domains": list(tool.blocked_domains)}
    if said := {name: domains for name, domains in filters.items() if domains}:
        fields["search_settings"] = said
