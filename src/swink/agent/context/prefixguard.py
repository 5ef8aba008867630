"""What was sent last: to learn how far estimates are off, and to see when the prompt cache is lost.

Providers cache a request by its prefix: tools, then system prompt, then messages. As long as each request
begins with the one before it, only what is new is paid in full. Breaks that are announced elsewhere are
expected and not told: a context that was compacted, another model, a history that was replaced between runs.
"""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from msgspec import Struct

from swink.messages import Message, ModelSpec, Usage
from swink.messages.history import History, Snapshot
from swink.messages.jsondata import encode
from swink.messages.redact import redact_text
from swink.messages.tokens import LEAST_RATIO, MOST_RATIO, estimate_tokens, overhead_tokens
from swink.stream import LlmContext

_SMOOTHING = 0.3
_LEAST = 500
"""Estimated tokens below which a report says nothing about longer requests."""
_PLAUSIBLE = 0.4, 2.5
"""A report beyond this ratio counts something else than the request."""
_EXCERPT = 40


class Break(Struct, frozen=True):
    """Where a request no longer begins with the one before it."""

    part: str
    """"tools", "system" or "messages"."""
    at: int | str
    """The index of the message, the name of the tool, or the place in the system prompt."""
    before: str
    after: str

    @property
    def data(self) -> dict[str, Any]:
        """The break as JSON data."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class TokenRatio(Struct, eq=False):
    """How far estimates of tokens are off, learnt from what providers count."""

    _overhead: tuple[str, Sequence[Any], int] | None = None
    _ratios: Mapping[str, float] | None = None

    def ratio(self, model: ModelSpec) -> float:
        """How many tokens the provider counts for one that is estimated."""
        return 1.0 if self._ratios is None else self._ratios.get(str(model), 1.0)

    def overhead(self, system_prompt: str, tools: Sequence[Any]) -> int:
        """Estimated tokens of the system prompt and the tools; measured when they change."""
        known = self._overhead
        if known is None or known[0] is not system_prompt or known[1] is not tools:
            known = self._overhead = system_prompt, tools, overhead_tokens(system_prompt, tools)
        return known[2]

    def learn(self, model: ModelSpec, context: LlmContext, usage: Usage) -> None:
        """Compare the estimate of a request with what its provider counted."""
        counted = usage.input + usage.cache_read + usage.cache_write
        if usage.unknown or counted < _LEAST * _PLAUSIBLE[0]:
            return
        estimated = self.overhead(context.system_prompt, context.tools) + _tokens(context.messages)
        if estimated < _LEAST or not _PLAUSIBLE[0] <= counted / estimated <= _PLAUSIBLE[1]:
            return
        ratios, name = self._ratios or {}, str(model)
        known = ratios.get(name)
        seen = counted / estimated
        smoothed = seen if known is None else known + _SMOOTHING * (seen - known)
        self._ratios = {**ratios, name: min(max(smoothed, LEAST_RATIO), MOST_RATIO)}


class PrefixGuard(Struct, eq=False):
    """The last request of an agent, to tell when the next one does not begin with it."""

    _last: tuple[ModelSpec, LlmContext] | None = None
    _expected: bool = False
    _told: tuple[tuple[str, int | str], ...] = ()
    _windows: Mapping[int, History] | None = None

    def has_told(self, position: int, window: History) -> bool:
        """Whether an earlier run has announced that a transformer cut the history to this."""
        return self._windows is not None and self._windows.get(position) is window

    def tell(self, position: int, window: History) -> None:
        """Note that it was announced."""
        self._windows = {**(self._windows or {}), position: window}

    def expect_break(self) -> None:
        """The next request will not begin with the last one, which is announced elsewhere."""
        self._expected = True

    def begin(self, model: ModelSpec, context: LlmContext, is_first: bool) -> Break | None:
        """Note what is sent now; the first unexpected difference to what was sent before, once per cause.

        The first request of a run may have other messages: between runs a history is changed on purpose.
        """
        last, expected = self._last, self._expected or is_first
        self._last, self._expected = (model, context), False
        if last is None or (last[0] is not model and str(last[0]) != str(model)):
            return None
        before = last[1]
        sent, sending = before.messages, context.messages
        if (
            before.tools is context.tools
            and before.system_prompt is context.system_prompt
            and type(sent) is Snapshot
            and type(sending) is Snapshot
            and sent.history is sending.history
        ):
            return None  # a history only grows
        broken = _difference(before, context, expected)
        if broken is None:
            return None
        cause = broken.part, broken.at if broken.part == "tools" else ""
        if cause in self._told:
            return None
        self._told += (cause,)
        return broken


def _tokens(messages: Sequence[Any]) -> int:
    if isinstance(messages, Snapshot) and len(messages) >= len(messages.history) - 1:
        return messages.history.most_tokens()  # measured message by message, as it grew
    return sum(map(estimate_tokens, messages))


def _difference(last: LlmContext, new: LlmContext, other_messages: bool) -> Break | None:
    if last.tools is not new.tools and (broken := _other_tools(last.tools, new.tools)) is not None:
        return broken
    if last.system_prompt != new.system_prompt:
        return _excerpts("system", None, last.system_prompt, new.system_prompt)
    return None if other_messages else _other_messages(last.messages, new.messages)


def _other_tools(last: Sequence[Any], new: Sequence[Any]) -> Break | None:
    for place in range(max(len(last), len(new))):
        before, after = [tools[place] if place < len(tools) else None for tools in (last, new)]
        if before is not after and (texts := (_told_of(before), _told_of(after)))[0] != texts[1]:
            name = new[place].name if after is not None else last[place].name
            return _excerpts("tools", name, *texts)
    return None


def _told_of(tool: Any) -> str:
    """What a model is told of a tool, as text."""
    if tool is None:
        return ""
    return encode([tool.name, tool.description, tool.parameters_schema]).decode()


def _other_messages(last: Sequence[Any], new: Sequence[Any]) -> Break | None:
    if isinstance(last, Snapshot) and isinstance(new, Snapshot) and last.history is new.history:
        return None  # a history only grows
    if len(new) >= len(last) and all(map(is_, last, new)):
        return None
    for place, before in enumerate(last):
        after = new[place] if place < len(new) else None
        if before is not after and before != after:
            return _excerpts("messages", place, _written(before), "" if after is None else _written(after))
    return None


def _written(message: Message) -> str:
    return f"{message.role}: {message.text}" if message.text else encode(message).decode()


def _excerpts(part: str, at: int | str | None, before: str, after: str) -> Break:
    """The two texts around their first difference, without secrets."""
    before, after = redact_text(before), redact_text(after)
    pairs = zip(before, after, strict=False)
    place = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(before), len(after)))
    start, end = max(place - _EXCERPT, 0), place + _EXCERPT
    return Break(part, place if at is None else at, before[start:end], after[start:end])
