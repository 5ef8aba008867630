"""Skills that outlast compaction: what was entered is sent again when a context no longer holds it."""

from collections.abc import Awaitable, Sequence
from inspect import isawaitable
from typing import cast

from swink.agent.context.windows import DEFAULT_WINDOW, ContextRequest, Fit, TransformFn
from swink.messages import Message, UserMessage
from swink.messages.tokens import text_size
from swink.models.catalog import with_limits

SHARE = 0.1
"""How much of a window the skills that are sent again may take; the newest come first."""
_HEADER = "[Skills that were entered earlier in this conversation. They still hold.]"


class KeepSkills:
    """A way to compact that leaves what skills say in the context: wrap another one in it."""

    def __init__(self, inner: TransformFn) -> None:
        self.inner = inner
        self._fit = cast(Fit, inner.fit)  # pyright: ignore[reportFunctionMemberAccess]
        self._made: tuple[list[Message], UserMessage] | None = None

    async def __call__(self, messages: Sequence[Message], overflow: bool) -> Sequence[Message]:
        """The messages to send if there is nobody to ask."""
        sent = self.inner(messages, overflow)
        return await sent if isawaitable(sent) else sent

    def fit(
        self, messages: Sequence[Message], overflow: bool, request: ContextRequest
    ) -> Sequence[Message] | Awaitable[Sequence[Message]]:
        """The messages to send in this request."""
        sent = self._fit(messages, overflow, request)
        if sent is messages:
            return sent
        return self._restored(messages, sent, request)

    async def _restored(
        self,
        messages: Sequence[Message],
        sent: Sequence[Message] | Awaitable[Sequence[Message]],
        request: ContextRequest,
    ) -> Sequence[Message]:
        from swink.tools.skills import entered_skills

        kept = await sent if isawaitable(sent) else sent
        entered = entered_skills(messages)
        if not entered or kept is messages:
            return kept
        there = set(map(id, kept))
        lost = [message for message in entered.values() if id(message) not in there]
        if not lost:
            return kept
        if self._made is None or list(map(id, self._made[0])) != list(map(id, lost)):
            window = with_limits(request.model).context_window or DEFAULT_WINDOW
            self._made = lost, _joined(lost, int(window * SHARE))
        return [self._made[1], *kept]


def _joined(lost: Sequence[Message], most_tokens: int) -> UserMessage:
    texts: list[str] = []
    left = 4 * most_tokens
    for message in reversed(lost):
        left -= text_size(message.text)
        if left >= 0:
            texts.append(message.text)
    return UserMessage("\n\n".join([_HEADER, *reversed(texts)]))
