"""The body of a chat-completions request: everything but its history."""

from collections.abc import Sequence
from typing import Any

from swink.messages import LlmMessage, ModelSpec
from swink.providers.chat.conversation import ChatConversation
from swink.providers.chat.dialect import Dialect
from swink.providers.chat.fields import body_fields
from swink.providers.notices import Notices
from swink.stream import LlmContext, StreamOptions

_EPHEMERAL = {"type": "ephemeral"}


def request_body(
    model: ModelSpec,
    context: LlmContext,
    messages: Sequence[LlmMessage],
    options: StreamOptions,
    dialect: Dialect,
    notices: Notices,
) -> dict[str, Any]:
    """The JSON body for one reply; `messages` are the context's, prepared."""
    body: dict[str, Any] = {
        "model": model.model_id,
        "messages": _messages(model, context, messages, dialect),
        **body_fields(model, context, options, dialect, notices),
    }
    if "chat_template_kwargs" in body and "chat_template_kwargs" in options.extra:
        body["chat_template_kwargs"] = {
            **options.extra["chat_template_kwargs"],
            **body["chat_template_kwargs"],
        }
    if dialect.provider == "openrouter" and not model.model_id.startswith("anthropic/"):
        if not options.cache:
            notices.report("cache", f"{model.model_id} is cached by its provider, or not at all")
    elif dialect.provider == "openrouter" and options.cache:
        _mark_for_cache(body["messages"])
    return body


def _messages(
    model: ModelSpec, context: LlmContext, messages: Sequence[LlmMessage], dialect: Dialect
) -> list[dict[str, Any]]:
    conversation = ChatConversation(model, dialect)
    for message in messages:
        conversation.add(message)
    if context.system_prompt.strip():
        return [{"role": "system", "content": context.system_prompt}, *conversation.items]
    return conversation.items


def _mark_for_cache(messages: list[dict[str, Any]]) -> None:
    """Cache breakpoints for Claude behind OpenRouter: on the system prompt and the last two user messages."""
    users = [message for message in messages if message["role"] == "user"]
    for message in [message for message in messages[:1] if message["role"] == "system"] + users[-2:]:
        content: Any = message["content"]
        parts: list[dict[str, Any]] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        )
        message["content"] = [*parts[:-1], {**parts[-1], "cache_control": _EPHEMERAL}]
