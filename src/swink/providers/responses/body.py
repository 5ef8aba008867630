"""The body of a request to the Responses API, all but its history."""

import re
from collections.abc import Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.messages.providertools import HostedTool, WebSearch
from swink.providers.adapter import Ask
from swink.providers.convert import cache_key, input_schema
from swink.providers.notices import Notices
from swink.providers.responses.dialect import ResponsesDialect
from swink.providers.strict import strict_schema
from swink.providers.thinking import asked_level, gpt_version, nearest, refuse, refuse_budget
from swink.stream import LlmContext, OutputSchema, StreamOptions, ToolSpec

_CACHE_OPTIONS_SINCE = (5, 6)


def request_body(ask: Ask, items: Sequence[Any], dialect: ResponsesDialect) -> dict[str, Any]:
    """The JSON body for one reply; `items` are the history."""
    model, context, options, notices = ask.model, ask.context, ask.options, ask.notices
    system = context.system_prompt if context.system_prompt.strip() else ""
    first = [{"role": "system", "content": system}] if system and dialect.system_item else []
    body: dict[str, Any] = {
        "model": ask.name,
        "input": [*first, *items],
        "stream": True,
        "store": False,
    }
    if system and not dialect.system_item:
        body["instructions"] = system
    if limit := options.max_tokens or model.max_output:
        body["max_output_tokens"] = limit
    reasoning = _reasoning(model, dialect, notices, hosted=bool(context.hosted))
    if reasoning:
        body["reasoning"] = reasoning
    body |= _sampling(model, options, dialect, notices, reasoning.get("effort") == "none")
    if include := _include(model, context.hosted, dialect):
        body["include"] = include
    body |= _tools(context, options, dialect, notices)
    if text := _text(context.output, options):
        body["text"] = text
    if options.service_tier and "service_tier" not in dialect.unhonoured:
        body["service_tier"] = options.service_tier
    if options.session_id:
        body["prompt_cache_key"] = cache_key(options.session_id)
    return body | _cache(model, options, dialect, notices)


def _reasoning(
    model: ModelSpec, dialect: ResponsesDialect, notices: Notices, *, hosted: bool
) -> dict[str, Any]:
    level = asked_level(model, notices)
    if level is None:
        return {}
    efforts = dialect.efforts(model)
    if not efforts:
        return refuse(model, notices, f"{model.model_id} takes none")
    refuse_budget(model, notices)
    if hosted:  # OpenAI refuses its tools beside this effort
        efforts = tuple(effort for effort in efforts if effort != "minimal")
    shown = {"summary": "auto"} if level != "off" and dialect.summaries else {}
    return {"effort": nearest(level, efforts), **shown}


def _sampling(
    model: ModelSpec, options: StreamOptions, dialect: ResponsesDialect, notices: Notices, thinks_not: bool
) -> dict[str, Any]:
    given = {"temperature": options.temperature, "top_p": options.top_p}
    asked = {name: value for name, value in given.items() if value is not None}
    if asked and dialect.fixed_sampling and dialect.reasons(model.model_id) and not thinks_not:
        for name in asked:
            notices.report(name, f"{model.model_id} takes none")
        return {}
    return asked


def _include(model: ModelSpec, hosted: Sequence[HostedTool], dialect: ResponsesDialect) -> list[str]:
    """What the reply has to hold so that it can go back, and what the hosted tools found."""
    include = [dialect.includes[type(tool)] for tool in hosted if type(tool) in dialect.includes]
    if dialect.reasons(model.model_id) or dialect.efforts(model):
        include.insert(0, "reasoning.encrypted_content")
    return list(dict.fromkeys(include))


def _tools(
    context: LlmContext, options: StreamOptions, dialect: ResponsesDialect, notices: Notices
) -> dict[str, Any]:
    tools = [_function(tool) for tool in context.tools] + [dialect.tool(tool) for tool in context.hosted]
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
        notices.report("max_uses", "this provider limits the uses of all hosted tools together, or of none")
    return said


def _function(tool: ToolSpec) -> dict[str, Any]:
    # Strict schemas are the default here, and refuse optional parameters.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": input_schema(tool),
        "strict": False,
    }


def _text(output: OutputSchema | None, options: StreamOptions) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if output is not None:
        strict = strict_schema(output.schema)
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", output.name)[:64] or "output"
        said["format"] = {
            "type": "json_schema",
            "name": name,
            "schema": strict or dict(output.schema),
            "strict": strict is not None,
        }
    if options.verbosity is not None:
        said["verbosity"] = options.verbosity
    return said


def _cache(
    model: ModelSpec, options: StreamOptions, dialect: ResponsesDialect, notices: Notices
) -> dict[str, Any]:
    """How long the prompt is cached; "5m" is less than the least that a provider keeps it."""
    if options.cache in (True, "5m") or "cache" in dialect.unhonoured:
        return {}
    version = gpt_version(model.model_id)
    if dialect.cache_options and version >= _CACHE_OPTIONS_SINCE:
        # Without the implicit breakpoint and without explicit ones nothing is cached.
        return {"prompt_cache_options": {"mode": "explicit"} if options.cache is False else {"ttl": "12h"}}
    if dialect.cache_options and version >= (4, 1) and options.cache == "1h":
        return {"prompt_cache_retention": "24h"}
    notices.report("cache", f"{model.model_id} caches prompts by itself")
    return {}
