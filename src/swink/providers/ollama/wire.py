"""Ollama's native chat protocol.

The size of the context is always stated, because with its default a server silently cuts the beginning off,
system prompt and tools included. It is the smallest power of two that holds the prompt and an answer, so that
a growing conversation makes the server load the model anew only a few times.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from swink.errors import StreamError
from swink.messages import ModelSpec
from swink.providers.adapter import Ask, Wire
from swink.providers.convert import function_tool
from swink.providers.exchange import encode_body
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.ollama.conversation import OllamaConversation
from swink.providers.ollama.stream import OllamaDecoder
from swink.providers.ollama.toolschemas import known_words
from swink.providers.thinking import asked_level, nearest, refuse_budget
from swink.stream import BlockWriter, LlmContext, StreamOptions

LEAST_CONTEXT = 8192
ANSWER = 4096


class OllamaChat(Wire):
    """`num_ctx` fixes the size of the context; without it the size follows the conversation."""

    honours = ALL_OPTIONS - {"session_id", "cache", "service_tier", "verbosity", "parallel_tool_calls"}
    accept: ClassVar[str] = "application/x-ndjson"
    refused_types: ClassVar[tuple[str, ...]] = ("text/html",)

    def __init__(self, num_ctx: int | None = None, keep_alive: str | int | None = None) -> None:
        self.num_ctx = num_ctx
        self._keep_alive = keep_alive

    def conversation(self, model: ModelSpec) -> OllamaConversation:
        return OllamaConversation(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        context, options = ask.context, ask.options
        if context.hosted:
            names = ", ".join(dict.fromkeys(type(tool).__name__ for tool in context.hosted))
            raise StreamError(f"ollama has no hosted tools, such as {names}; use tools that run here")
        prompt = context.system_prompt
        system = [{"role": "system", "content": prompt}] if prompt.strip() else []
        body: dict[str, Any] = {
            "model": ask.name,
            "messages": [*system, *messages],
            "stream": True,
            "truncate": False,
            "think": _think(ask.model, ask.notices),
            "options": _settings(options),
        }
        if context.tools and options.tool_choice != "none":
            body["tools"] = _tools(ask)
            if options.tool_choice not in (None, "auto"):
                ask.notices.report("tool_choice", "this provider lets the model decide")
        if context.output is not None:
            body["format"] = context.output.schema
        if self._keep_alive is not None:
            body["keep_alive"] = self._keep_alive
        if not _names_size(options.extra):
            size = self.num_ctx or context_size(_estimate(ask), options, ask.model)
            body["options"]["num_ctx"] = size
        return body

    def decoder(self, reply: BlockWriter, ask: Ask) -> OllamaDecoder:
        """What reads the answer; it knows about how long the prompt was."""
        return OllamaDecoder(reply, ask.options, _estimate(ask))

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Servers hold any model to a schema, but then it can call no tool; those of ollama.com do not."""
        is_known_not_to = model.capabilities is not None and model.capabilities.json_schema is False
        return not context.tools and not is_known_not_to and not model.model_id.endswith("-cloud")


def context_size(estimate: int, options: StreamOptions, model: ModelSpec) -> int:
    """How large a context to ask for."""
    needed = estimate * 5 // 4 + (options.max_tokens or ANSWER)
    size = LEAST_CONTEXT
    while size < needed:
        size *= 2
    return min(size, model.context_window) if model.context_window else size


def _tools(ask: Ask) -> list[dict[str, Any]]:
    tools = [function_tool(tool) for tool in ask.context.tools]
    for tool in tools:
        tool["function"]["parameters"] = known_words(tool["function"]["parameters"])
    return tools


def _estimate(ask: Ask) -> int:
    """How many tokens the prompt takes, at four characters each; images aside."""
    characters = len(ask.context.system_prompt)
    if ask.context.tools and ask.options.tool_choice != "none":
        characters += len(encode_body({"tools": _tools(ask)}))
    if isinstance(ask.conversation, OllamaConversation):
        characters += ask.conversation.characters
    return characters // 4


def _names_size(extra: Mapping[str, Any]) -> bool:
    named: Any = extra.get("options")
    return isinstance(named, Mapping) and "num_ctx" in cast("Mapping[str, Any]", named)


def _settings(options: StreamOptions) -> dict[str, Any]:
    settings = {
        "temperature": options.temperature,
        "num_predict": options.max_tokens,
        "top_p": options.top_p,
        "seed": options.seed,
        "stop": list(options.stop) or None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _think(model: ModelSpec, notices: Notices) -> bool | str:
    """Whether to think; gpt-oss takes a level alone, and always thinks."""
    level = asked_level(model, notices)
    refuse_budget(model, notices)
    if level is None or "gpt-oss" not in model.model_id:
        return level not in (None, "off")
    return nearest(level, ("low", "medium", "high"))
