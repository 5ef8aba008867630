"""The dialects of well-known servers; `swink.models.keys.accounts` has their addresses and keys."""

from msgspec.structs import replace

from swink.providers.chat.dialect import Dialect

_BARE = frozenset(("service_tier", "verbosity", "seed", "parallel_tool_calls"))

OPENAI = Dialect(
    "openai",
    limit_field="max_completion_tokens",
    thinking="openai",
    think_tags=False,
    session_field="prompt_cache_key",
    documents="file",
    audio="object",
    schemas="beside tools",
    lacks=frozenset(),
)
AZURE = replace(OPENAI, provider="azure", thinking="azure")
COMPATIBLE = Dialect(
    "openai", sends_limit=False, routes=True, documents="file", audio="object", schemas="alone"
)
"""A server that nothing more is known of."""
XAI = Dialect(
    "xai",
    limit_field="max_completion_tokens",
    thinking="xai",
    think_tags=False,
    session_header="x-grok-conv-id",
    schemas="beside tools",
)
MISTRAL = Dialect(
    "mistral",
    thinking="mistral",
    replay="parts",
    think_tags=False,
    session_field="prompt_cache_key",
    usage_option=False,
    call_ids=(r"[a-zA-Z0-9]{9}", 9, ""),
    result_media=True,
    pads_after_results=True,
    documents="document_url",
    audio="text",
    schemas="beside tools",
)
PRESETS: dict[str, Dialect] = {
    dialect.provider: dialect
    for dialect in (
        OPENAI,
        Dialect(
            "groq",
            limit_field="max_completion_tokens",
            thinking="groq",
            replay="reasoning",
            lacks=frozenset(("verbosity",)),
        ),
        Dialect("together", thinking="together", schemas="alone"),
        Dialect(
            "openrouter",
            sends_limit=False,
            thinking="openrouter",
            replay="reasoning_details",
            routes=True,
            session_field="session_id",
            documents="file",
            audio="object",
            schemas="beside tools",
            lacks=frozenset(),
        ),
        Dialect(
            "deepseek",
            thinking="deepseek",
            replay="reasoning_content",
            misses_thinking=True,
            forces_thinkers=False,
            lacks=_BARE,
        ),
        Dialect(
            "moonshot",
            thinking="moonshot",
            replay="reasoning_content",
            misses_thinking=True,
            forces_thinkers=False,
            lacks=_BARE,
        ),
        Dialect("zai", thinking="zai", replay="reasoning_content", forces_thinkers=False, lacks=_BARE),
        Dialect(
            "perplexity",
            thinking="perplexity",
            alternates=True,
            documents="file_url",
            schemas="alone",
            lacks=_BARE | {"stop"},
        ),
        Dialect("fireworks", replay="reasoning_content", schemas="alone"),
        Dialect("cerebras", limit_field="max_completion_tokens", thinking="gpt-oss", schemas="beside tools"),
        Dialect("deepinfra", schemas="alone"),
        Dialect("huggingface", schemas="alone", routes=True),
        Dialect("nvidia", schemas="alone"),
        Dialect("minimax", replay="tags", lacks=_BARE),
        Dialect("qwen", thinking="plain", schemas="alone"),
        Dialect("vercel", sends_limit=False, routes=True, documents="file", schemas="alone"),
        Dialect("vllm", sends_limit=False, replay="reasoning_content", audio="object", schemas="alone"),
        Dialect(
            "llamacpp",
            sends_limit=False,
            thinking="template",
            replay="reasoning_content",
            audio="object",
            schemas="alone",
        ),
        Dialect("lmstudio", sends_limit=False, schemas="alone"),
        Dialect(
            "sglang",
            sends_limit=False,
            thinking="template",
            replay="reasoning_content",
            audio="object",
            schemas="alone",
        ),
    )
}
