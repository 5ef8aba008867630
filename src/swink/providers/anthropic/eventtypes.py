"""The events of Anthropic's Messages API, as far as they are read."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from swink.messages import Usage
from swink.providers.claude import service_tier


class Delta(Struct):
    """What a `content_block_delta` or a `message_delta` brings, or a `message_start` of a whole message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    citation: dict[str, Any] | str | None = None
    content: Any = None
    encrypted_content: Any = None
    stop_reason: str | None = None
    stop_details: Any = None
    container: Any = None


class Counts(Struct):
    """Running totals; None where an event does not give one."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: dict[str, Any] | None = None
    output_tokens_details: dict[str, Any] | None = None
    server_tool_use: dict[str, Any] | None = None
    iterations: list[dict[str, Any]] | None = None
    service_tier: str | None = None


class Message(Struct):
    """How a message begins; some servers send all of it there."""

    id: Any = None
    model: Any = None
    usage: Counts | None = None
    content: list[dict[str, Any]] | str | None = None
    stop_reason: str | None = None
    stop_details: Any = None
    container: Any = None


class Content(Struct):
    """The head of a content block; of the provider's own, only the type matters."""

    type: str
    text: str | None = ""
    thinking: str | None = ""
    signature: str | None = ""
    data: str | None = ""
    id: str | None = ""
    name: str | None = ""
    input: Any = None
    citations: list[dict[str, Any]] | None = None


class Event(Struct):
    """Any event of the stream; errors from gateways have no type."""

    type: str = ""
    index: int = -1
    delta: Delta | None = None
    content_block: dict[str, Any] | None = None
    message: Message | None = None
    usage: Counts | None = None
    error: Any = None


events = msgspec.json.Decoder(Event)
KNOWN = frozenset(
    {
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop", "error",
    }
)  # fmt: skip


def sent_citation(given: Mapping[str, Any]) -> dict[str, Any]:
    """A citation as it came, without the one field that the API gives but does not take."""
    return {name: value for name, value in given.items() if name != "file_id"}


def usage_of(counts: Counts) -> Usage:
    """What a reply has used by its running totals."""
    extra: dict[str, Any] = {
        "reasoning": (counts.output_tokens_details or {}).get("thinking_tokens"),
        "cache_write_1h": (counts.cache_creation or {}).get("ephemeral_1h_input_tokens"),
        **service_tier(counts.service_tier),
        **{name.removesuffix("_requests"): uses for name, uses in (counts.server_tool_use or {}).items()},
    }
    usage = Usage(
        counts.input_tokens or 0,
        counts.output_tokens or 0,
        counts.cache_read_input_tokens or 0,
        counts.cache_creation_input_tokens or 0,
        0,
        {name: count for name, count in extra.items() if count and isinstance(count, int)},
    )
    for iteration in counts.iterations or ():
        if iteration.get("type") == "compaction":  # not in the totals
            names = Counts.__struct_fields__[:4]
            numbers = {name: iteration[name] for name in names if isinstance(iteration.get(name), int)}
            usage += usage_of(msgspec.convert(numbers, Counts))
    return usage
