"""What a reply has used, and what it cost where the server says so."""

from typing import Any

from swink.messages import Cost, Usage
from swink.models.catalog import SERVICE_TIER

TICKS_PER_DOLLAR = 10**10
_CACHED = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")
_SEARCHES = ("num_search_queries", "num_sources_used")
_USUAL_TIERS = ("", "auto", "default", "standard", "on_demand")


def usage_of(usage: dict[str, Any], tier: Any = None) -> Usage:
    """The usage of chat completions, where cached tokens are part of the prompt."""
    prompt = count(usage, "prompt_tokens")
    completion = count(usage, "completion_tokens")
    total = count(usage, "total_tokens")
    cached, written, extra = 0, 0, dict[str, int]()
    if made := usage.get("completion_tokens_details"):
        if reasoning := count(made, "reasoning_tokens"):
            extra["reasoning"] = reasoning
            if total == prompt + completion + reasoning:  # some servers count it in the total alone
                completion += reasoning
        if sound := count(made, "audio_tokens"):
            extra["output_audio"] = sound
    if details := usage.get("prompt_tokens_details"):
        cached, written = count(details, "cached_tokens"), count(details, "cache_write_tokens")
        if sound := count(details, "audio_tokens"):
            extra["input_audio"] = sound
    cached = min(cached or _first(usage, _CACHED), prompt)
    written = min(written, prompt - cached)
    used = usage.get("server_tool_use")
    if searches := (count(used, "web_search_requests") if used else 0) or _first(usage, _SEARCHES):
        extra["web_search"] = searches
    if type(tier) is str and tier not in _USUAL_TIERS:
        extra[f"{SERVICE_TIER}{tier}"] = 1
    return Usage(prompt - cached - written, completion, cached, written, total, extra)


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
    for name in names:
        if name in usage and (number := count(usage, name)):
            return number
    return 0


def count(counts: Any, name: str) -> int:
    """A count in an object of a provider's, also where it is written as 5.0; 0 where there is none."""
    given: object = counts
    value: Any = counts[name] if type(given) is dict and name in counts else 0
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else 0
