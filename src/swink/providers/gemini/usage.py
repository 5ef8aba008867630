"""What a reply of Gemini has used: tokens by category and medium, the tier that served it, hosted tools."""

from collections.abc import Mapping
from typing import Any

from swink.messages import Usage
from swink.messages.jsondata import list_of

_MEDIA = ("audio", "image", "video")
_USUAL = ("standard", "unspecified", "on_demand", "traffic_type_unspecified")


def usage_of(metadata: Mapping[str, Any], uses: Mapping[str, int]) -> Usage:
    """The usage that the metadata of a reply report; cached tokens are counted as such alone."""
    cached, thoughts = _count(metadata, "cachedContentTokenCount"), _count(metadata, "thoughtsTokenCount")
    asked = _count(metadata, "promptTokenCount") + _count(metadata, "toolUsePromptTokenCount")
    answered = _count(metadata, "candidatesTokenCount") + thoughts
    extra = {"reasoning": thoughts, **_media(metadata), **_tier(metadata), **uses}
    found = {name: count for name, count in extra.items() if count > 0}
    return Usage(max(0, asked - cached), answered, cached, 0, 0, found)


def _media(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Tokens that are not text, which may have a price of their own."""
    asked, tools = _details(metadata, "promptTokensDetails"), _details(metadata, "toolUsePromptTokensDetails")
    cached = _details(metadata, "cacheTokensDetails")
    made = _details(metadata, "candidatesTokensDetails")
    counts: dict[str, int] = {}
    for medium in _MEDIA:
        counts[f"input_{medium}"] = asked.get(medium, 0) + tools.get(medium, 0) - cached.get(medium, 0)
        counts[f"cache_read_{medium}"] = cached.get(medium, 0)
        counts[f"output_{medium}"] = made.get(medium, 0)
    return counts


def _details(metadata: Mapping[str, Any], name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in list_of(metadata.get(name)):
        match item:
            case {"modality": str() as medium, "tokenCount": int() as count}:
                found[medium.lower()] = found.get(medium.lower(), 0) + count
            case _:
                pass
    return found


def _tier(metadata: Mapping[str, Any]) -> dict[str, int]:
    """The tier that served the reply, unless it is the usual one; Vertex AI calls it a type of traffic."""
    named: Any = metadata.get("serviceTier") or metadata.get("trafficType")
    tier = named.lower() if isinstance(named, str) else "standard"
    return {} if tier in _USUAL else {f"service_tier_{tier.removeprefix('on_demand_')}": 1}


def _count(metadata: Mapping[str, Any], name: str) -> int:
    value = metadata.get(name)
    return value if type(value) is int else 0
