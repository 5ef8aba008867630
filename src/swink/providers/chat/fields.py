"""The fields of a chat-completions body beside its history, in the words of a dialect."""

import re
from typing import Any

from swink.messages import ModelSpec
from swink.providers.adapter import Ask
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.hostedfields import hosted_fields
from swink.providers.convert import cache_key, function_tool
from swink.providers.strict import strict_schema
from swink.providers.thinking import chat_thinking, is_reasoning_model

_FIXED_KIMI = re.compile(r"kimi-(?:k2\.[5-9]|k[3-9]|latest)")
_STOPPABLE_GROK = re.compile(r"grok-(?:2|3(?!-mini))|non-reasoning")


def body_fields(ask: Ask, dialect: ChatDialect) -> dict[str, Any]:
    """Everything that is asked for, but what to answer."""
    model, context, options = ask.model, ask.context, ask.options
    fields: dict[str, Any] = {"stream": True}
    if dialect.usage_option:
        fields["stream_options"] = {"include_usage": True}
    if limit := options.max_tokens or (model.max_output if dialect.sends_limit else None):
        fields[dialect.limit_field] = limit
    thinking = chat_thinking(model, dialect.thinking, ask.notices)
    thinks = thinking.get("thinking") == {"type": "enabled"} or "reasoner" in model.model_id
    fields |= thinking
    fields |= _options(ask, dialect, thinks=thinks)
    if (output := context.output) is not None:
        strict = strict_schema(output.schema)
        schema = {"name": output.name, "schema": strict or output.schema, "strict": strict is not None}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if context.tools:
        fields["tools"] = [function_tool(tool) for tool in context.tools]
        fields |= _choice(ask, dialect, thinks=thinks)
    if context.hosted:
        hosted = hosted_fields(ask, dialect)
        if tools := [*fields.get("tools", ()), *hosted.pop("tools", ())]:
            fields["tools"] = tools
        fields |= hosted
    if dialect.session_field and options.session_id:
        fields[dialect.session_field] = cache_key(options.session_id)
    return fields


def takes_schema(model: ModelSpec, dialect: ChatDialect, *, has_tools: bool) -> bool:
    """Whether the server itself holds this model's replies to a schema."""
    can = model.capabilities
    allowed = dialect.schemas == "beside tools" or (dialect.schemas == "alone" and not has_tools)
    return allowed and can is not None and can.json_schema is True


def _options(ask: Ask, dialect: ChatDialect, *, thinks: bool) -> dict[str, Any]:
    model, options = ask.model, ask.options
    wanted: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop": list(options.stop) or None,
        "seed": options.seed,
        "service_tier": options.service_tier,
        "verbosity": options.verbosity,
        "parallel_tool_calls": options.parallel_tool_calls if ask.context.tools else None,
    }
    refused = _refused(model, dialect, thinks=thinks)
    fields: dict[str, Any] = {}
    for name, value in wanted.items():
        if value is None or name in dialect.lacks:
            continue  # what a server lacks is reported beside all other options
        if name in refused:
            ask.notices.report(name, f"{model.model_id} takes none")
        else:
            fields["random_seed" if name == "seed" and dialect.provider == "mistral" else name] = value
    return fields


def _choice(ask: Ask, dialect: ChatDialect, *, thinks: bool) -> dict[str, Any]:
    choice = ask.options.tool_choice
    if choice is None:
        return {}
    if not thinks or dialect.forces_thinkers or choice == "none":
        if choice in ("auto", "none", "required"):
            return {"tool_choice": choice}
        if dialect.names_choice:
            return {"tool_choice": {"type": "function", "function": {"name": choice}}}
        ask.notices.report("tool_choice", f"{dialect.provider} can require a call, but not of one tool")
        return {"tool_choice": "required"}
    if choice != "auto":
        ask.notices.report("tool_choice", f"{ask.model.model_id} cannot be forced to call while it thinks")
    return {}


def _refused(model: ModelSpec, dialect: ChatDialect, *, thinks: bool) -> frozenset[str]:
    """The options that this model of a server does not take."""
    name = model.model_id
    match dialect.thinking:
        case "openai" | "azure" if is_reasoning_model(name):
            return frozenset(("temperature", "top_p", "stop"))
        case "xai" if not _STOPPABLE_GROK.search(name):
            return frozenset(("stop",))
        case "deepseek" if thinks:
            return frozenset(("temperature", "top_p"))
        case "moonshot" if _FIXED_KIMI.search(name):
            return frozenset(("temperature", "top_p"))
        case _:
            return frozenset()
