"""Dialects: how servers that speak chat completions differ from each other."""

from typing import Literal

from msgspec import Struct

from swink.providers.notices import ALL_OPTIONS
from swink.providers.thinking import Style


class ChatDialect(Struct, frozen=True):
    """How a server differs from the other servers that speak chat completions."""

    provider: str
    limit_field: str = "max_tokens"
    sends_limit: bool = True
    """Whether the model's own limit is sent by default: not to servers that count it against the window."""
    thinking: Style = "plain"
    replay: Literal["", "reasoning_content", "reasoning", "reasoning_details", "parts", "tags"] = ""
    """How thinking goes back to the model that wrote it."""
    misses_thinking: bool = False
    """Whether turns of a question that was answered with calls are refused without it, be it empty."""
    think_tags: bool = True
    """Whether a reply may begin with thinking in tags, as open models write it."""
    session_field: str = ""
    session_header: str = ""
    usage_option: bool = True
    call_ids: tuple[str, int, str] = (r"[a-zA-Z0-9_-]{1,40}", 29, "call_")
    routes: bool = False
    """Whether the server passes requests on to others, so that each of its models is another provider's."""
    result_media: bool = False
    """Whether a tool result may hold more than text."""
    documents: Literal["", "file", "file_url", "document_url"] = ""
    """How documents are said that are no text."""
    audio: Literal["", "object", "text"] = ""
    """Whether sound is an object with its format, or the text of its bytes or its URL."""
    pads_after_results: bool = False
    alternates: bool = False
    """Whether user and assistant have to speak in turn, the user first."""
    forces_thinkers: bool = True
    """Whether a model that thinks can be forced to call a tool."""
    names_choice: bool = True
    """Whether a call of one tool can be forced, and not only of any."""
    schemas: Literal["", "alone", "beside tools"] = ""
    """Whether the server itself holds replies to a JSON schema, where the model can."""
    lacks: frozenset[str] = frozenset(("service_tier", "verbosity"))
    """Options that the server does not have."""

    @property
    def honours(self) -> frozenset[str]:
        """The options that this server can honour."""
        has_session = bool(self.session_field or self.session_header)
        has = {"cache": self.provider == "openrouter", "session_id": has_session}
        return ALL_OPTIONS - self.lacks - {name for name, is_had in has.items() if not is_had}
