"""What a response has used: tokens, hosted tools and the tier that served it."""

from collections.abc import Mapping
from typing import Any

from swink.messages import Usage
from swink.messages.jsondata import object_of
from swink.models.catalog import SERVICE_TIER
from swink.providers.chat.usage import count

_USES = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_execution",
    "image_generation_call": "image_generation",
    "mcp_call": "mcp",
}


def use_of(item: Mapping[str, Any]) -> str | None:
    """The hosted tool that an item is a use of; None for any other. Opening a page found is no search."""
    match item:
        case {"type": "web_search_call", "action": {"type": "open_page" | "find_in_page"}}:
            return None
        case {"type": str() as kind}:
            return _USES.get(kind)
        case _:
            return None


def usage_of(spent: Mapping[str, Any], counted: Mapping[str, int], billed: Any, tier: Any) -> Usage:
    """Usage as the provider reports it; of hosted tools, what it bills wins over what was counted here."""
    details = spent.get("input_tokens_details")
    cached, written = count(details, "cached_tokens"), count(details, "cache_write_tokens")
    extra = {"reasoning": count(spent.get("output_tokens_details"), "reasoning_tokens"), **counted}
    searches = object_of(object_of(billed).get("web_search")).get("num_requests")
    if isinstance(searches, int):
        extra["web_search"] = searches
    uses: Any = spent.get("server_side_tool_usage_details")  # xAI's
    for name in object_of(uses):
        tool = name.removesuffix("_calls").replace("code_interpreter", "code_execution")
        extra[tool] = count(uses, name)
    if isinstance(tier, str) and tier not in ("auto", "default"):
        extra[f"{SERVICE_TIER}{tier}"] = 1
    return Usage(
        max(count(spent, "input_tokens") - cached - written, 0),
        count(spent, "output_tokens"),
        cached,
        written,
        count(spent, "total_tokens"),
        {name: number for name, number in extra.items() if number},
    )
