"""Context: what turns a history into what is sent, and the window that keeps it within the model's."""

from collections.abc import Awaitable, Callable, Sequence
from weakref import WeakKeyDictionary

from swink.engine.history import History, Snapshot
from swink.engine.waiting import is_async
from swink.errors import InvalidInput
from swink.messages import AssistantMessage, Message, ModelSpec, UserMessage
from swink.tokens import estimate_tokens

TransformFn = Callable[[Sequence[Message], bool], Sequence[Message] | Awaitable[Sequence[Message]]]

DEFAULT_WINDOW = 128_000


def in_order(transform: TransformFn | Sequence[TransformFn]) -> Sequence[TransformFn]:
    """The transformers, async ones first."""
    if callable(transform):
        return (transform,)
    if not isinstance(transform, Sequence) or isinstance(transform, str):
        raise InvalidInput(f"transform_context is a function or a list of functions, not {transform!r:.80}")
    return transform if len(transform) < 2 else sorted(transform, key=lambda function: not is_async(function))


def sized(function: TransformFn, model: ModelSpec) -> TransformFn:
    """The transformer for this model: what its `sized_for(model)` returns, if it has one."""
    sized_for = getattr(function, "sized_for", None)
    return function if sized_for is None else sized_for(model)


class SlidingWindow:
    """Keep the first messages and the newest ones that fit.

    Calls stay with their results; the newest user message and the turn in progress are never dropped. When
    the budget is passed the window is cut down to three quarters of it, so that the prefix a provider has
    cached stays the same for many turns. Without a budget it is sized for the model that is asked.
    """

    def __init__(
        self, budget: int | None = None, overflow_budget: int | None = None, anchor: int = 1
    ) -> None:
        self.budget = DEFAULT_WINDOW if budget is None else budget
        self.overflow_budget = self.budget // 2 if overflow_budget is None else overflow_budget
        self.anchor = anchor
        self._kept: WeakKeyDictionary[History, _Kept] | None = None
        self._sizes: dict[int, SlidingWindow] | None = {} if budget is None else None
        self._last: tuple[ModelSpec, SlidingWindow] | None = None
        self._settings = overflow_budget, anchor

    def sized_for(self, model: ModelSpec) -> "SlidingWindow":
        """The window for this model: itself if it was made with a budget."""
        if self._sizes is None:
            return self
        if (last := self._last) is not None and last[0] is model:
            return last[1]
        budget = room_in(model)
        sized = self._sizes.get(budget)
        if sized is None:
            sized = self._sizes[budget] = SlidingWindow(budget, *self._settings)
        self._last = model, sized
        return sized

    def __call__(self, messages: Sequence[Message], overflow: bool) -> Sequence[Message]:
        """The messages to send."""
        if not isinstance(messages, Snapshot):
            return self._fit(messages, sum(map(estimate_tokens, messages)), overflow)
        history = messages.history
        kept = self._kept.get(history) if self._kept is not None else None
        if kept is None:
            if not overflow and history.most_tokens() <= self.budget:
                return messages
            if self._kept is None:
                self._kept = WeakKeyDictionary()
            kept = self._kept[history] = _Kept()
        elif kept.seen > len(messages):
            kept = _Kept()  # an older snapshot is looked at by itself
        kept.follow(messages)
        sent = messages if kept.window is None else kept.window.snapshot()
        fitting = self._fit(sent, kept.tokens, overflow)
        if fitting is sent:
            return sent
        kept.window, kept.tokens = History.of(fitting), sum(map(estimate_tokens, fitting))
        return kept.window.snapshot()

    def _fit(self, messages: Sequence[Message], tokens: int, overflow: bool) -> Sequence[Message]:
        if overflow:
            # What was sent did not fit, whatever the estimate says: it has to become less.
            return _cut(messages, self.anchor, min(self.overflow_budget, tokens) * 3 // 4)
        return messages if tokens <= self.budget else _cut(messages, self.anchor, self.budget * 3 // 4)


class _Kept:
    """What is kept of one history: all of it until the first cut, then a history of its own that grows along.

    A turn adds its new messages to it; only a cut reads it as a whole.
    """

    __slots__ = ("seen", "tokens", "window")

    def __init__(self) -> None:
        self.window: History | None = None
        self.seen = 0
        self.tokens = 0

    def follow(self, messages: Snapshot) -> None:
        """Add what is new."""
        if self.seen == len(messages):
            return
        new = messages[self.seen :]
        self.seen = len(messages)
        self.tokens += sum(map(estimate_tokens, new))
        if self.window is not None:
            for message in new:
                self.window.append(message)


def room_in(model: ModelSpec) -> int:
    """Tokens for messages in a model's context window, beside the reply, the system prompt and the tools."""
    window = model.context_window or DEFAULT_WINDOW
    return window - min(model.max_output or window // 8, window // 4) - window // 20


def _cut(messages: Sequence[Message], anchor: int, target: int) -> Sequence[Message]:
    """Cut at the first boundary at which the rest fits; the turn in progress stays, whatever its size."""
    items = list(messages)
    start = cut = _boundary(items, anchor)
    last, asked = _current_turn(items), _newest_user(items)
    sizes = [estimate_tokens(message) for message in items]
    left = sum(sizes)
    while cut < last and left > target:
        following = min(_boundary(items, cut + 1), last)
        left -= sum(sizes[cut:following])
        if cut <= asked < following:
            left += sizes[asked]
        cut = following
    pinned = [items[asked]] if start <= asked < cut else []
    return messages if cut - start == len(pinned) else [*items[:start], *pinned, *items[cut:]]


def _boundary(messages: Sequence[Message], index: int) -> int:
    """The next place at or after `index` where no call is parted from its result."""
    while index < len(messages) and not isinstance(messages[index], UserMessage | AssistantMessage):
        index += 1
    return min(index, len(messages))


def _current_turn(messages: Sequence[Message]) -> int:
    """Where the newest user message or the newest reply with its results begins, whichever is later."""
    index = len(messages) - 1
    while index > 0 and not isinstance(messages[index], UserMessage | AssistantMessage):
        index -= 1
    return max(index, 0)


def _newest_user(messages: Sequence[Message]) -> int:
    index = len(messages) - 1
    while index >= 0 and not isinstance(messages[index], UserMessage):
        index -= 1
    return index
