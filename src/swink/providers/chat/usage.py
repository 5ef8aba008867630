"""What a reply has used, and what it cost where the server says so."""

from typing import Any, cast

from swink.messages import Cost, Usage
from swink.models.catalog import SERVICE_TIER

TICKS_PER_DOLLAR = 10**10
_CACHED = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")
_SEARCHES = ("num_search_queries", "num_sources_used")
_USUAL_TIERS = ("", "auto", "default", "standard", "on_demand")


def usage_of(usage: dict[str, Any], tier: Any = None) -> Usage:
    """The usage of chat completions, where cached tokens are part of the prompt.

    Some servers leave the reasoning out of the completion and count it in the total alone.
    """
    prompt = count(usage, "prompt_tokens")
    completion = count(usage, "completion_tokens")
    total = count(usage, "total_tokens")
    details, made = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = count(details, "cached_tokens") or _first(usage, _CACHED)
    written = count(details, "cache_write_tokens")
    reasoning = count(made, "reasoning_tokens")
    if reasoning and total == prompt + completion + reasoning:
        completion += reasoning
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    extra = {
        "reasoning": reasoning,
        "input_audio": count(details, "audio_tokens"),
        "output_audio": count(made, "audio_tokens"),
        "web_search": count(usage.get("server_tool_use"), "web_search_requests") or _first(usage, _SEARCHES),
    }
    if isinstance(tier, str) and tier not in _USUAL_TIERS:
        extra[f"{SERVICE_TIER}{tier}"] = 1
    return Usage(
        prompt - cached - written,
        completion,
        cached,
        written,
        total,
        {name: number for name, number in extra.items() if number},
    )


def cost_of(usage: dict[str, Any]) -> Cost | None:
    """The price that the server itself names, with that of the provider behind it where both are paid."""
    match usage:
        case {"cost": int() | float() as cost, "is_byok": True, "cost_details": {**details}}:
            upstream = details.get("upstream_inference_cost")
            return _dollars(cost + (upstream if isinstance(upstream, int | float) else 0))
        case {"cost": int() | float() as cost, "is_byok": _}:
            return _dollars(cost)  # nothing, where the model is free
        case {"cost": int() | float() as cost} if cost:
            return _dollars(cost)
        case {"cost": {"total_cost": int() | float() as cost}}:
            return _dollars(cost)
        case {"cost_in_usd_ticks": int() as ticks} if ticks:
            return _dollars(ticks, TICKS_PER_DOLLAR)
        case _:
            return None


def _dollars(amount: float, unit: int = 1) -> Cost | None:
    """The price; None for an amount that is no price."""
    is_price = not isinstance(amount, bool) and 0 <= amount <= 10**15 * unit
    return Cost(total=amount / unit) if is_price else None


def _first(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    """The count of the first of these names that has one."""
    return next((number for name in names if name in usage and (number := count(usage, name))), 0)


def count(counts: Any, name: str) -> int:
    """A count in an object of a provider's, also where it is written as 5.0; 0 where there is none."""
    if not isinstance(counts, dict):
        return 0
    value = cast("dict[str, Any]", counts).get(name)
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else 0
