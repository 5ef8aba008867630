"""The body of a request to Gemini, all but its contents."""

from collections.abc import Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.providers.convert import input_schema
from swink.providers.gemini.conversation import gemini_version, is_third
from swink.providers.gemini.googletools import Place, check_combination, hosted_tools
from swink.providers.notices import Notices
from swink.providers.thinking import asked_level, refuse
from swink.stream import LlmContext, StreamOptions

_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 16_384, "extra_high": 24_576}
_WITHOUT_THINKING = ("image", "tts", "audio", "live", "embedding")


def request_body(
    model: ModelSpec,
    context: LlmContext,
    contents: Sequence[Any],
    options: StreamOptions,
    notices: Notices,
    place: Place = "gemini",
) -> dict[str, Any]:
    """The JSON body for one reply."""
    body: dict[str, Any] = {"contents": contents}
    if context.system_prompt.strip():
        body["systemInstruction"] = {"parts": [{"text": context.system_prompt}]}
    tools = hosted_tools(context.hosted, place, model, notices)
    settings: dict[str, Any] = {}
    if context.tools:
        tools.insert(0, {"functionDeclarations": [_declaration(tool) for tool in context.tools]})
        if options.tool_choice is not None:
            settings["functionCallingConfig"] = _tool_choice(options.tool_choice)
        if context.hosted:
            check_combination(context.hosted, place, model)
            settings["includeServerSideToolInvocations"] = True
    if tools:
        body["tools"] = tools
    if settings:
        body["toolConfig"] = settings
    if config := _generation_config(model, context, options, notices):
        body["generationConfig"] = config
    if options.service_tier is not None:
        body["serviceTier"] = options.service_tier
    return body


def _generation_config(
    model: ModelSpec, context: LlmContext, options: StreamOptions, notices: Notices
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for name, value in (
        ("temperature", options.temperature),
        ("topP", options.top_p),
        ("seed", options.seed),
        ("maxOutputTokens", options.max_tokens),
    ):
        if value is not None:
            config[name] = value
    if options.stop:
        config["stopSequences"] = list(options.stop)
    if context.output is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = context.output.schema
    if thinking := _thinking_config(model, options.max_tokens, notices):
        config["thinkingConfig"] = thinking
    return config


def _thinking_config(model: ModelSpec, max_tokens: int | None, notices: Notices) -> dict[str, Any]:
    """A level for Gemini 3, a budget for 2.5, none for older ones; `off` is the least a model can do."""
    name, level = model.model_id.lower(), asked_level(model, notices)
    if level is None:
        return {}
    # Whatever the newest is, it takes a budget, as all do that think.
    version = max(gemini_version(name), (2, 5)) if is_third(name) else gemini_version(name)
    if version < (2, 5) or any(word in name for word in _WITHOUT_THINKING):
        return refuse(model, notices, f"{model.model_id} takes none")
    shown = {"includeThoughts": True} if level != "off" else {}
    if level in model.thinking_budgets:
        return {**shown, "thinkingBudget": model.thinking_budgets[level]}
    if version >= (3, 0):
        return {**shown, "thinkingLevel": _level_name(level, version, name)}
    least, most = (128, 32_768) if "pro" in name else (0, 24_576)
    budget = min(_BUDGETS[level], most) if level != "off" else least
    if max_tokens is not None and budget >= max_tokens:
        budget = max(least, max_tokens // 2)
    return {**shown, "thinkingBudget": budget}


def _level_name(level: str, version: tuple[int, int], name: str) -> str:
    match level:
        case "off" | "minimal":
            return "MINIMAL" if "flash" in name else "LOW"
        case "low":
            return "LOW"
        case "medium" if "flash" in name or version > (3, 0):
            return "MEDIUM"
        case _:
            return "HIGH"


def _declaration(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": input_schema(tool)}


def _tool_choice(choice: str) -> dict[str, Any]:
    match choice:
        case "auto" | "none":
            return {"mode": choice.upper()}
        case "required":
            return {"mode": "ANY"}
        case name:
            return {"mode": "ANY", "allowedFunctionNames": [name]}
