"""The fields of a chat-completions body beside its history, in the words of a dialect.

What a model or a server does not take is reported by name.
"""

import re
from typing import Any

from swink.messages import ModelSpec
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.hostedfields import hosted_fields
from swink.providers.convert import cache_key, input_schema
from swink.providers.notices import Notices
from swink.providers.strict import strict_schema
from swink.providers.thinking import chat_thinking, is_reasoning_model
from swink.stream import LlmContext, OutputSchema, StreamOptions

_FIXED_KIMI = re.compile(r"kimi-(?:k2\.[5-9]|k[3-9]|latest)")
_STOPPABLE_GROK = re.compile(r"grok-(?:2|3(?!-mini))|non-reasoning")


def body_fields(
    model: ModelSpec, context: LlmContext, options: StreamOptions, dialect: ChatDialect, notices: Notices
) -> dict[str, Any]:
    """Everything that is asked for, but what to answer."""
    fields: dict[str, Any] = {"stream": True}
    if dialect.usage_option:
        fields["stream_options"] = {"include_usage": True}
    if limit := options.max_tokens or (model.max_output if dialect.sends_limit else None):
        fields[dialect.limit_field] = limit
    thinking = chat_thinking(model, dialect.thinking, notices)
    thinks = thinking.get("thinking") == {"type": "enabled"} or "reasoner" in model.model_id
    fields |= thinking
    fields |= _options(model, context, options, dialect, notices, thinks=thinks)
    if context.output is not None:
        fields["response_format"] = response_format(context.output)
    if context.tools:
        fields["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": input_schema(tool),
                },
            }
            for tool in context.tools
        ]
        fields |= _choice(model, options, dialect, notices, thinks=thinks)
    if context.hosted:
        hosted = hosted_fields(context.hosted, model, dialect, notices)
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


def _options(
    model: ModelSpec,
    context: LlmContext,
    options: StreamOptions,
    dialect: ChatDialect,
    notices: Notices,
    *,
    thinks: bool,
) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop": list(options.stop) or None,
        "seed": options.seed,
        "service_tier": options.service_tier,
        "verbosity": options.verbosity,
        "parallel_tool_calls": options.parallel_tool_calls if context.tools else None,
    }
    refused = _refused(model, dialect, thinks=thinks)
    fields: dict[str, Any] = {}
    for name, value in wanted.items():
        if value is None or name in dialect.lacks:
            continue  # what a server lacks is reported beside all other options
        if name in refused:
            notices.report(name, f"{model.model_id} takes none")
        else:
            fields["random_seed" if name == "seed" and dialect.provider == "mistral" else name] = value
    return fields


def _choice(
    model: ModelSpec, options: StreamOptions, dialect: ChatDialect, notices: Notices, *, thinks: bool
) -> dict[str, Any]:
    choice = options.tool_choice
    if choice is None:
        return {}
    if not thinks or dialect.forces_thinkers or choice == "none":
        return {"tool_choice": tool_choice(choice)}
    if choice != "auto":
        notices.report("tool_choice", f"{model.model_id} cannot be forced to call while it thinks")
    return {}


def response_format(output: OutputSchema) -> dict[str, Any]:
    """The schema that the server itself holds a reply to."""
    strict = strict_schema(output.schema)
    schema = {"name": output.name, "schema": strict or output.schema, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": schema}


def tool_choice(choice: str) -> Any:
    """A choice of tools in the words of chat completions: a mode, or the tool by its name."""
    return (
        choice
        if choice in ("auto", "none", "required")
        else {"type": "function", "function": {"name": choice}}
    )


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
