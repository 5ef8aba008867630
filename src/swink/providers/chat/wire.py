"""Chat completions as a wire, in one of its dialects."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from swink.messages import ModelSpec
from swink.providers.adapter import Ask, Wire
from swink.providers.chat.conversation import ChatConversation
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.fields import body_fields, takes_schema
from swink.providers.chat.stream import ChatDecoder
from swink.stream import BlockWriter, LlmContext


class Chat(Wire):
    """What OpenAI's chat completions are to one server."""

    def __init__(self, dialect: ChatDialect) -> None:
        self.dialect = dialect
        self.honours = dialect.honours

    def conversation(self, model: ModelSpec) -> ChatConversation:
        return ChatConversation(model, self.dialect)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        sent, cache, is_router = [*messages], ask.options.cache, self.dialect.provider == "openrouter"
        if ask.context.system_prompt.strip():
            sent.insert(0, {"role": "system", "content": ask.context.system_prompt})
        body = {"model": ask.name, "messages": sent, **body_fields(ask, self.dialect)}
        if is_router and not ask.model.model_id.startswith("anthropic/"):
            if cache is not True:
                ask.notices.report("cache", f"{ask.model.model_id} is cached by its provider, or not at all")
        elif is_router and cache:
            _mark_for_cache(sent, {"type": "ephemeral", **({"ttl": "1h"} if cache == "1h" else {})})
        return body

    def headers(self, ask: Ask) -> Mapping[str, str]:
        """The id of the session, where that is a header: its requests meet the same cache."""
        name, session = self.dialect.session_header, ask.options.session_id
        return {name: session} if name and session else {}

    def decoder(self, reply: BlockWriter, ask: Ask) -> ChatDecoder:
        return ChatDecoder(reply, ask.options, self.dialect, [tool.name for tool in ask.context.tools])

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        return takes_schema(model, self.dialect, has_tools=bool(context.tools))


def _mark_for_cache(messages: list[Any], mark: dict[str, str]) -> None:
    """Cache breakpoints for Claude behind OpenRouter: the system prompt and the last two users' texts."""
    places: list[int] = []
    at = len(messages)
    while at and len(places) < 2:
        at -= 1
        message = messages[at]
        if type(message) is Raw:
            # What is JSON already is opened only where there is something to mark: it may be hundreds.
            if b'{"role":"user"' in (data := bytes(message)):
                messages[at : at + 1] = opened = msgspec.json.decode(b"[" + data + b"]")
                places = [place + len(opened) - 1 for place in places]
                at += len(opened)
        elif message["role"] == "user" and _text_at(message["content"]) is not None:
            places.append(at)
    if type(messages[0]) is not Raw and messages[0]["role"] == "system":
        places.append(0)
    for at in places:
        content: Any = messages[at]["content"]
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        last = _text_at(parts) or 0
        parts[last] = {**parts[last], "cache_control": mark}
        messages[at] = {**messages[at], "content": parts}


def _text_at(content: Any) -> int | None:
    """Where the last text of a message stands: nothing else may be marked."""
    if isinstance(content, str):
        return 0
    return next((at for at in reversed(range(len(content))) if content[at]["type"] == "text"), None)
