"""Gemini's protocol, as the Gemini API and Vertex AI speak it."""

from collections.abc import Sequence
from typing import Any

from swink.errors import ModelError
from swink.messages import ModelSpec
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.convert import input_schema
from swink.providers.endpoint import segment
from swink.providers.gemini.conversation import Contents, gemini_version, is_third
from swink.providers.gemini.endings import explain
from swink.providers.gemini.googletools import Place, check_combination, hosted_tools
from swink.providers.gemini.stream import GeminiDecoder
from swink.providers.http import Response
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.thinking import asked_level, refuse
from swink.stream import BlockWriter, LlmContext, ToolSpec

_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 16_384, "extra_high": 24_576}
_WITHOUT_THINKING = ("image", "tts", "audio", "live", "embedding")


class GenerateContent(Wire):
    """`streamGenerateContent`, at the Gemini API or on Vertex AI, which has fewer hosted tools."""

    honours = ALL_OPTIONS - {"session_id", "cache", "verbosity", "parallel_tool_calls"}

    def __init__(self, place: Place = "gemini") -> None:
        self._place: Place = place

    def conversation(self, model: ModelSpec) -> Contents:
        return Contents(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        context, options = ask.context, ask.options
        body: dict[str, Any] = {"contents": messages}
        if context.system_prompt.strip():
            body["systemInstruction"] = {"parts": [{"text": context.system_prompt}]}
        tools = hosted_tools(ask, self._place)
        settings: dict[str, Any] = {}
        if context.tools:
            tools.insert(0, {"functionDeclarations": [_declaration(tool) for tool in context.tools]})
            if options.tool_choice is not None:
                settings["functionCallingConfig"] = _tool_choice(options.tool_choice)
            if context.hosted:
                check_combination(ask, self._place)
                settings["includeServerSideToolInvocations"] = True
        fields = {
            "tools": tools or None,
            "toolConfig": settings or None,
            "generationConfig": _generation_config(ask) or None,
            "serviceTier": options.service_tier,
        }
        return body | {name: value for name, value in fields.items() if value is not None}

    def decoder(self, reply: BlockWriter, ask: Ask) -> GeminiDecoder:
        return GeminiDecoder(
            reply,
            ask.options,
            [tool.name for tool in ask.context.tools],
            grounded=bool(ask.context.hosted or ask.options.extra.get("tools")),
            by_query=is_third(ask.model.model_id),
        )

    def explain(self, response: Response, body: bytes) -> ModelError:
        return explain(response, body)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Before Gemini 3 a schema and tools exclude each other."""
        can = model.capabilities is not None and model.capabilities.json_schema is True
        return can and (is_third(model.model_id) or not (context.tools or context.hosted))


class GeminiStreamFn(Adapter):
    """Gemini; `base_url` is without the API version, as in Google's own SDK.

    Args:
        base_url: the server, by default GOOGLE_GEMINI_BASE_URL or Google's
        api_key: by default GOOGLE_API_KEY, GEMINI_API_KEY or the stored key
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "gemini"
    wire = GenerateContent()
    key_header = "x-goog-api-key"

    def url(self, ask: Ask) -> str:
        """The address of a model, or of one that was tuned."""
        kind, slash, name = ask.name.partition("/")
        is_path = slash and kind in ("models", "tunedModels")
        path = f"{kind}/{segment(name)}" if is_path else f"models/{segment(ask.name)}"
        return f"{self.base_url}/v1beta/{path}:streamGenerateContent?alt=sse"


def _generation_config(ask: Ask) -> dict[str, Any]:
    options, output = ask.options, ask.context.output
    config: dict[str, Any] = {
        "temperature": options.temperature,
        "topP": options.top_p,
        "seed": options.seed,
        "maxOutputTokens": options.max_tokens,
        "stopSequences": list(options.stop) or None,
        "responseMimeType": None if output is None else "application/json",
        "responseJsonSchema": None if output is None else output.schema,
        "thinkingConfig": _thinking_config(ask.model, options.max_tokens, ask.notices) or None,
    }
    return {name: value for name, value in config.items() if value is not None}


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


def _declaration(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": input_schema(tool)}


def _tool_choice(choice: str) -> dict[str, Any]:
    modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    return {"mode": modes[choice]} if choice in modes else {"mode": "ANY", "allowedFunctionNames": [choice]}
