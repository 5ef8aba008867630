"""The dialects of well-known servers; `swink.models.keys.accounts` has their addresses and keys."""

from msgspec.structs import replace

from swink.providers.chat.dialect import ChatDialect

_BARE = frozenset(("service_tier", "verbosity", "seed", "parallel_tool_calls"))

OPENAI = ChatDialect(
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
COMPATIBLE = ChatDialect(
    "openai", sends_limit=False, routes=True, documents="file", audio="object", schemas="alone"
)
"""A server that nothing more is known of."""
XAI = ChatDialect(
    "xai",
    limit_field="max_completion_tokens",
    thinking="xai",
    think_tags=False,
    session_header="x-grok-conv-id",
    schemas="beside tools",
)
MISTRAL = ChatDialect(
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
DEEPSEEK = ChatDialect(
    "deepseek",
    thinking="deepseek",
    replay="reasoning_content",
    misses_thinking=True,
    forces_thinkers=False,
    lacks=_BARE,
)
VLLM = ChatDialect("vllm", sends_limit=False, replay="reasoning_content", audio="object", schemas="alone")
PRESETS: dict[str, ChatDialect] = {
    dialect.provider: dialect
    for dialect in (
        OPENAI,
        ChatDialect(
            "groq",
            limit_field="max_completion_tokens",
            thinking="groq",
            replay="reasoning",
            lacks=frozenset(("verbosity",)),
        ),
        ChatDialect(
            "together",
            thinking="together",
            schemas="alone",
            lacks=frozenset(("service_tier", "verbosity", "parallel_tool_calls")),
        ),
        ChatDialect(
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
        DEEPSEEK,
        replace(DEEPSEEK, provider="moonshot", thinking="moonshot"),
        replace(DEEPSEEK, provider="zai", thinking="zai", misses_thinking=False),
        ChatDialect(
            "perplexity",
            thinking="perplexity",
            usage_option=False,
            alternates=True,
            names_choice=False,
            documents="file_url",
            schemas="alone",
            lacks=_BARE | {"stop"},
        ),
        ChatDialect("fireworks", replay="reasoning_content", schemas="alone"),
        ChatDialect(
            "cerebras", limit_field="max_completion_tokens", thinking="gpt-oss", schemas="beside tools"
        ),
        ChatDialect("deepinfra", schemas="alone"),
        ChatDialect("huggingface", schemas="alone", routes=True),
        ChatDialect("nvidia", schemas="alone"),
        ChatDialect("minimax", replay="tags", lacks=_BARE),
        ChatDialect("qwen", thinking="plain", schemas="alone"),
        ChatDialect("vercel", sends_limit=False, routes=True, documents="file", schemas="alone"),
        VLLM,
        replace(VLLM, provider="llamacpp", thinking="template"),
        ChatDialect("lmstudio", sends_limit=False, schemas="alone"),
        replace(VLLM, provider="sglang", thinking="template"),
    )
}
