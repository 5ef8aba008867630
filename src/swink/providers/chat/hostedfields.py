"""Hosted tools in chat completions: the words of each server that has some.

openai       web_search_options, for its search models
openrouter   a server tool for any model
perplexity   searches anyway; the domains and the place are filters
groq         tools of gpt-oss, settings of compound
"""

from typing import Any

from swink.errors import StreamError
from swink.messages.providertools import CodeExecution, HostedTool, ProviderTool, WebFetch, WebSearch
from swink.providers.adapter import Ask
from swink.providers.chat.dialect import ChatDialect
from swink.providers.convert import named, place_of

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


def hosted_fields(ask: Ask, dialect: ChatDialect) -> dict[str, Any]:
    """The fields of a body that ask for hosted tools; raises `StreamError` for what the server lacks."""
    fields: dict[str, Any] = {}
    for tool in ask.context.hosted:
        _add(fields, tool, ask, dialect.provider)
    return fields


def _add(fields: dict[str, Any], tool: HostedTool, ask: Ask, server: str) -> None:
    name = ask.model.model_id.lower()
    match server, tool:
        case _, ProviderTool(provider, spec) if server == provider:
            fields.setdefault("tools", []).append(dict(spec))
        case "openai", WebSearch() if "search" in name:
            _report(tool, ask, server, "allowed_domains", "blocked_domains", "max_uses")
            place = place_of(tool)
            location = {"user_location": {"type": "approximate", "approximate": place}}
            fields["web_search_options"] = location if place else {}
        case "openrouter", WebSearch():
            _report(tool, ask, server, "max_uses")
            place = place_of(tool)
            settings = {
                "allowed_domains": list(tool.allowed_domains),
                "excluded_domains": list(tool.blocked_domains),
                "user_location": {"type": "approximate", **place} if place else None,
            }
            _server_tool(fields, "openrouter:web_search", settings)
        case "openrouter", WebFetch():
            _report(tool, ask, server, "allowed_domains", "blocked_domains", "max_uses")
            _server_tool(fields, "openrouter:web_fetch", {})
        case "perplexity", WebSearch():
            _report(tool, ask, server, "max_uses")
            if domains := [*tool.allowed_domains, *(f"-{domain}" for domain in tool.blocked_domains)]:
                fields["search_domain_filter"] = domains
            place = place_of(tool)
            if place.pop("timezone", None):
                ask.notices.report("WebSearch.location.timezone", f"{server} has no such setting")
            if place:
                fields["web_search_options"] = {"user_location": place}
        case "groq", WebSearch() | WebFetch() | CodeExecution() if "compound" in name:
            custom = fields.setdefault("compound_custom", {"tools": {"enabled_tools": []}})
            custom["tools"]["enabled_tools"].append(_COMPOUND[type(tool)])
            if isinstance(tool, WebSearch):
                _report(tool, ask, server, "max_uses", "location")
                include, exclude = list(tool.allowed_domains), list(tool.blocked_domains)
                filters = {"include_domains": include, "exclude_domains": exclude}
                if said := {name: domains for name, domains in filters.items() if domains}:
                    fields["search_settings"] = said
        case "groq", WebSearch() | CodeExecution() if "gpt-oss" in name:
            _report(tool, ask, server, "allowed_domains", "blocked_domains", "max_uses", "location")
            fields.setdefault("tools", []).append({"type": _GPT_OSS[type(tool)]})
        case _:
            has = f"it has {_HAS[server]}" if server in _HAS else "use a provider that has it"
            raise StreamError(f"{server} has no hosted {named(tool)} for {ask.model.model_id}; {has}")


def _report(tool: HostedTool, ask: Ask, server: str, *names: str) -> None:
    """Limits of domains are refused, since left out they would protect nobody; others are reported."""
    for name in names:
        if not getattr(tool, name, None):
            continue
        if name.endswith("_domains"):
            raise StreamError(
                f"{server} cannot keep {type(tool).__name__}({name}=…); leave it out, or use another provider"
            )
        ask.notices.report(f"{type(tool).__name__}.{name}", f"{server} has no such setting")


def _server_tool(fields: dict[str, Any], name: str, settings: dict[str, Any]) -> None:
    said = {key: value for key, value in settings.items() if value}
    tool: dict[str, Any] = {"type": name}
    fields.setdefault("tools", []).append({**tool, "parameters": said} if said else tool)
