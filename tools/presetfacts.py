"""What a preset can do, as its dialect says it: for the pages of servers that speak like OpenAI.

ChatDialect (src/swink/providers/chat/presets.py) → cells as docs/models/providers.md has them
"""

from collections.abc import Mapping

from swink.models.data import copies
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.presets import PRESETS

TOOLS = "yes, several in one reply"
OPTIONS = ("top_p", "stop", "seed", "service_tier", "verbosity", "parallel_tool_calls")
"""What is said of a provider beside `temperature` and `max_tokens`; `cache` too, where it has that."""
THINKING: Mapping[str, str] = {
    "plain": "effort (`low`, `medium`, `high`), sent as it is asked for",
    "template": "on or off by the chat template, with effort (`low`, `medium`, `high`)",
    "groq": "effort for gpt-oss, on or off for Qwen",
    "together": (
        "on or off for hybrid models (DeepSeek from V3.1 on, GLM from 5 on, and others); effort for gpt-oss"
    ),
    "openrouter": "effort, or a budget",
    "deepseek": "on or off, with the levels `low`, `high` and `max`; `deepseek-reasoner` always thinks",
    "moonshot": "on or off for Kimi K2.5 and K2.6; `low`, `high` and `max` for K3",
    "zai": "on or off from GLM 4.5 on",
    "perplexity": "effort for the deep-research models",
    "gpt-oss": "effort for gpt-oss",
}
REFUSED: Mapping[str, Mapping[str, str]] = {
    "deepseek": {"top_p": "not while it thinks"},
    "moonshot": {"top_p": "not from Kimi K2.5 on"},
}
"""Options that some models of a dialect do not take."""


def preset_facts(name: str) -> dict[str, dict[str, str]]:
    """The cells of a preset by the heading of their table and of their column."""
    dialect = PRESETS[name]
    follow = "those of results follow in a message"
    return {
        "What each adapter can do": {
            "class, in `swink.providers.…`": f'`openai.OpenAIStreamFn(preset="{name}")`',
            "tools": TOOLS,
            "`tool_choice`": tool_choice(dialect),
            "thinking": thinking(dialect),
            "images": f"bytes, URL, file; {follow}",
            "prompt cache": prompt_cache(dialect),
        },
        "Hosted tools, documents, schemas": {
            "hosted tools (`swink.messages.providertools`)": "`ProviderTool`",
            "documents, audio": media(dialect),
            "schema held by the provider": schema(dialect),
            "options beside `temperature` and `max_tokens`": options(dialect),
        },
    }


def tool_choice(dialect: ChatDialect) -> str:
    if not dialect.forces_thinkers:
        return "all; `auto` and `none` alone while thinking is turned on"
    if not dialect.names_choice:
        return "`auto`, `none`, `required`; the name of a tool becomes `required`"
    return "all"


def thinking(dialect: ChatDialect) -> str:
    return f"{THINKING[dialect.thinking]}; {'it is sent back' if dialect.replay else 'it is not sent back'}"


def prompt_cache(dialect: ChatDialect) -> str:
    if not (dialect.session_field or dialect.session_header):
        return "the server's own affair: neither `session_id` nor `cache` is sent"
    marks = "; with `cache`, breakpoints for Claude" if "cache" in dialect.honours else ""
    return f"automatic; `session_id` is sent{marks}"


def media(dialect: ChatDialect) -> str:
    by_url = dialect.documents == "file_url" or dialect.provider == "openrouter"
    has = ["text"]
    if dialect.documents:
        has.append("PDF as bytes, file or URL" if by_url else "PDF as bytes or file")
    return f"{', '.join(has)}; {'audio as bytes or file' if dialect.audio else 'no audio'}"


def schema(dialect: ChatDialect) -> str:
    if not dialect.schemas:
        return "no: a tool takes its place"
    where = "beside tools too" if dialect.schemas == "beside tools" else "without tools"
    if knows_schemas(dialect.provider):
        return f"yes, {where}, by the models of which the catalog says so"
    said = "if the `ModelSpec` has `Capabilities(json_schema=True)`; else a tool takes its place"
    return f"yes, {where}, {said}"


def knows_schemas(provider: str) -> bool:
    """Whether the catalog says of any model of a provider that it can be held to a schema."""
    listing = copies.current()
    entries = [e for table in listing.listing.sources.get(provider, ()) for e in listing.table(table).entries]
    return any(entry.capabilities is not None and entry.capabilities.json_schema for entry in entries)


def options(dialect: ChatDialect) -> str:
    refused = REFUSED.get(dialect.thinking, {})
    had = [name for name in (*OPTIONS, "cache") if name in dialect.honours]
    return ", ".join(f"`{name}`" + (f" ({refused[name]})" if name in refused else "") for name in had)
