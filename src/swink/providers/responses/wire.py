"""The Responses API, `POST {base_url}/responses`, as a wire, in one of its dialects.

Reasoning models need it to think and call tools in one turn, and it has the provider's own tools.
"""

import re
from collections.abc import Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.messages.providertools import WebSearch
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.convert import cache_key, is_deferred
from swink.providers.notices import ALL_OPTIONS
from swink.providers.responses.conversation import ResponsesConversation
from swink.providers.responses.dialect import OPENAI, XAI, ResponsesDialect
from swink.providers.responses.stream import ResponsesDecoder
from swink.providers.responses.toolspaces import deferred_functions, function, searches_tools
from swink.providers.strict import strict_schema
from swink.providers.thinking import asked_level, gpt_version, nearest, refuse, refuse_budget
from swink.stream import BlockWriter, LlmContext

_CACHE_OPTIONS_SINCE = (5, 6)


class Responses(Wire):
    """What OpenAI's Responses API is to one server."""

    def __init__(self, dialect: ResponsesDialect) -> None:
        self.dialect = dialect
        self.honours = ALL_OPTIONS - dialect.unhonoured

    def conversation(self, model: ModelSpec) -> ResponsesConversation:
        return ResponsesConversation(model, self.dialect)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        dialect, options = self.dialect, ask.options
        system = ask.context.system_prompt if ask.context.system_prompt.strip() else ""
        first = [{"role": "system", "content": system}] if system and dialect.system_item else []
        items = [*first, *messages]
        body: dict[str, Any] = {"model": ask.name, "input": items, "stream": True, "store": False}
        if system and not dialect.system_item:
            body["instructions"] = system
        if limit := options.max_tokens or ask.model.max_output:
            body["max_output_tokens"] = limit
        reasoning = _reasoning(ask, dialect)
        if reasoning:
            body["reasoning"] = reasoning
        body |= _sampling(ask, dialect, reasoning.get("effort") == "none")
        if include := _include(ask, dialect):
            body["include"] = include
        body |= _tools(ask, dialect)
        if text := _text(ask):
            body["text"] = text
        if options.service_tier and "service_tier" not in dialect.unhonoured:
            body["service_tier"] = options.service_tier
        if options.session_id:
            body["prompt_cache_key"] = cache_key(options.session_id)
        return body | _cache(ask, dialect)

    def decoder(self, reply: BlockWriter, ask: Ask) -> ResponsesDecoder:
        return ResponsesDecoder(reply, ask.options)

    def native_search(self, model: ModelSpec) -> bool:
        """Whether the model searches deferred tools."""
        return self.dialect.tool_search and searches_tools(model)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether the model is known to follow a schema, which it does beside tools too."""
        return model.capabilities is not None and bool(model.capabilities.json_schema)


class ResponsesStreamFn(Adapter):
    """OpenAI's Responses API, or a server that speaks it; `base_url` ends in /v1.

    Args:
        base_url: the server, by default OPENAI_BASE_URL or OpenAI's
        api_key: by default OPENAI_API_KEY or the stored key
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "openai-responses"
    path = "/responses"
    wire = Responses(OPENAI)


class XAIResponsesStreamFn(Adapter):
    """Grok by the Responses API, with the tools that xAI runs itself; `base_url` ends in /v1.

    Args:
        base_url: the server, by default xAI's
        api_key: by default XAI_API_KEY or the stored key
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "xai-responses"
    path = "/responses"
    wire = Responses(XAI)


def _reasoning(ask: Ask, dialect: ResponsesDialect) -> dict[str, Any]:
    model, notices = ask.model, ask.notices
    level = asked_level(model, notices)
    if level is None:
        return {}
    efforts = dialect.efforts(model)
    if not efforts:
        return refuse(model, notices, f"{model.model_id} takes none")
    refuse_budget(model, notices)
    if ask.context.hosted:  # OpenAI refuses its tools beside this effort
        efforts = tuple(effort for effort in efforts if effort != "minimal")
    shown = {"summary": "auto"} if level != "off" and dialect.summaries else {}
    return {"effort": nearest(level, efforts), **shown}


def _sampling(ask: Ask, dialect: ResponsesDialect, thinks_not: bool) -> dict[str, Any]:
    name = ask.model.model_id
    given = {"temperature": ask.options.temperature, "top_p": ask.options.top_p}
    asked = {name: value for name, value in given.items() if value is not None}
    if asked and dialect.fixed_sampling and dialect.reasons(name) and not thinks_not:
        for option in asked:
            ask.notices.report(option, f"{name} takes none")
        return {}
    return asked


def _include(ask: Ask, dialect: ResponsesDialect) -> list[str]:
    """What the reply has to hold so that it can go back, and what the hosted tools found."""
    include = [dialect.includes[type(tool)] for tool in ask.context.hosted if type(tool) in dialect.includes]
    if dialect.reasons(ask.model.model_id) or dialect.efforts(ask.model):
        include.insert(0, "reasoning.encrypted_content")
    return list(dict.fromkeys(include))


def _tools(ask: Ask, dialect: ResponsesDialect) -> dict[str, Any]:
    context, options = ask.context, ask.options
    waiting = [tool for tool in context.tools if is_deferred(tool) and tool.name != options.tool_choice]
    functions = [function(tool) for tool in context.tools if tool not in waiting]
    tools = functions + [dialect.tool(tool) for tool in context.hosted] + deferred_functions(waiting)
    if not tools:
        return {}
    said: dict[str, Any] = {"tools": tools}
    if (choice := options.tool_choice) is not None:
        plain = choice in ("auto", "none", "required")
        said["tool_choice"] = choice if plain else {"type": "function", "name": choice}
    if options.parallel_tool_calls is not None:
        said["parallel_tool_calls"] = options.parallel_tool_calls
    limits = [tool.max_uses for tool in context.hosted if isinstance(tool, WebSearch) and tool.max_uses]
    if limits and len(context.hosted) == 1 and dialect.limits_uses:
        said["max_tool_calls"] = limits[0]
    elif limits:
        why = "this provider limits the uses of all hosted tools together, or of none"
        ask.notices.report("max_uses", why)
    return said


def _text(ask: Ask) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if (output := ask.context.output) is not None:
        strict = strict_schema(output.schema)
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", output.name)[:64] or "output"
        schema = {"schema": strict or dict(output.schema), "strict": strict is not None}
        said["format"] = {"type": "json_schema", "name": name, **schema}
    if ask.options.verbosity is not None:
        said["verbosity"] = ask.options.verbosity
    return said


def _cache(ask: Ask, dialect: ResponsesDialect) -> dict[str, Any]:
    """How long the prompt is cached; "5m" is less than the least that a provider keeps it."""
    cache, name = ask.options.cache, ask.model.model_id
    if cache in (True, "5m") or "cache" in dialect.unhonoured:
        return {}
    version = gpt_version(name)
    if dialect.cache_options and version >= _CACHE_OPTIONS_SINCE:
        # Without the implicit breakpoint and without explicit ones nothing is cached.
        return {"prompt_cache_options": {"mode": "explicit"} if cache is False else {"ttl": "12h"}}
    if dialect.cache_options and version >= (4, 1) and cache == "1h":
        return {"prompt_cache_retention": "24h"}
    ask.notices.report("cache", f"{name} caches prompts by itself")
    return {}
