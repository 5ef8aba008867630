"""The body of a chat-completions request: everything but its history."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from swink.providers.adapter import Ask
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.fields import body_fields

_EPHEMERAL = {"type": "ephemeral"}


def request_body(ask: Ask, messages: Sequence[Any], dialect: ChatDialect) -> dict[str, Any]:
    """The JSON body for one reply; `messages` are those of the conversation."""
    model, context, options, notices = ask.model, ask.context, ask.options, ask.notices
    sent = list(messages)
    if context.system_prompt.strip():
        sent.insert(0, {"role": "system", "content": context.system_prompt})
    body: dict[str, Any] = {
        "model": ask.name,
        "messages": sent,
        **body_fields(model, context, options, dialect, notices),
    }
    if dialect.provider == "openrouter" and not model.model_id.startswith("anthropic/"):
        if options.cache is not True:
            notices.report("cache", f"{model.model_id} is cached by its provider, or not at all")
    elif dialect.provider == "openrouter" and options.cache:
        _mark_for_cache(sent, {**_EPHEMERAL, "ttl": "1h"} if options.cache == "1h" else _EPHEMERAL)
    return body


def _mark_for_cache(messages: list[Any], mark: dict[str, str]) -> None:
    """Cache breakpoints for Claude behind OpenRouter: on the system prompt and the last two user messages."""
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
        elif message["role"] == "user":
            places.append(at)
    if type(messages[0]) is not Raw and messages[0]["role"] == "system":
        places.append(0)
    for at in places:
        message = messages[at]
        content: Any = message["content"]
        parts: list[dict[str, Any]] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        )
        marked = [*parts[:-1], {**parts[-1], "cache_control": mark}]
        messages[at] = {**message, "content": marked}
