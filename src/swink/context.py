"""Context: how many tokens messages take, and the window that keeps them within the model's."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate, islice
from weakref import WeakKeyDictionary

from swink.engine.history import History, Snapshot
from swink.engine.waiting import is_async
from swink.errors import InvalidInput
from swink.messages import AssistantMessage, Message, UserMessage
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


class SlidingWindow:
    """Keep the first messages and the newest ones that fit.

    Calls stay with their results; the newest user message and the turn in progress are never dropped. When
    the budget is passed the window is cut down to three quarters of it, so that the prefix a provider has
    cached stays the same for many turns.
    """

    def __init__(
        self, budget: int = DEFAULT_WINDOW, overflow_budget: int | None = None, anchor: int = 1
    ) -> None:
        self.budget = budget
        self.overflow_budget = budget // 2 if overflow_budget is None else overflow_budget
        self.anchor = anchor
        self._measures: WeakKeyDictionary[History, _Measure] | None = None

    def __call__(self, messages: Sequence[Message], overflow: bool) -> Sequence[Message]:
        """The messages to send."""
        if (
            self._measures is None
            and not overflow
            and isinstance(messages, Snapshot)
            and messages.history.most_tokens() <= self.budget
        ):
            return messages
        measure = self._measure(messages)
        measure.extend(messages)
        if not overflow and not measure.cut and measure.total <= self.budget:
            return messages
        start = _boundary(messages, self.anchor)
        kept = measure.kept(start)
        if overflow:
            # What was sent did not fit, whatever the estimate says: it has to become less.
            measure.move_cut(messages, start, min(self.overflow_budget, kept) * 3 // 4)
        elif kept > self.budget:
            measure.move_cut(messages, start, self.budget * 3 // 4)
        if measure.cut <= start:
            return messages
        pinned = [] if measure.pinned is None else [messages[measure.pinned]]
        return [*messages[:start], *pinned, *messages[measure.cut :]]

    def _measure(self, messages: Sequence[Message]) -> "_Measure":
        if not isinstance(messages, Snapshot):
            return _Measure()
        if self._measures is None:
            self._measures = WeakKeyDictionary()
        measure = self._measures.get(messages.history)
        if measure is None:
            measure = self._measures[messages.history] = _Measure()
        # An older snapshot than the one measured last is measured by itself.
        return measure if measure.count <= len(messages) else _Measure()


class _Measure:
    """Running token sums of one history, and where the window is cut; no message is read twice.

    `pinned` is the user message before the cut that was the newest when it was made.
    """

    __slots__ = ("_sizes", "_sums", "cut", "pinned", "total")

    def __init__(self) -> None:
        self.total = 0
        self.cut = 0
        self.pinned: int | None = None
        self._sizes: list[int] = []
        self._sums = [0]

    @property
    def count(self) -> int:
        """How many messages are measured."""
        return len(self._sizes)

    @property
    def sums(self) -> list[int]:
        """The tokens before each message; only a window that must be cut asks for them."""
        known = len(self._sums) - 1
        if known < len(self._sizes):
            self._sums.extend(islice(accumulate(self._sizes[known:], initial=self._sums[-1]), 1, None))
        return self._sums

    def extend(self, messages: Sequence[Message]) -> None:
        known = len(self._sizes)
        if known == len(messages):
            return
        sizes = [estimate_tokens(message) for message in messages[known:]]
        self._sizes += sizes
        self.total += sum(sizes)

    def kept(self, start: int) -> int:
        """Tokens of the window, whose first messages end at `start`."""
        return self._kept(start, max(self.cut, start), self.pinned)

    def move_cut(self, messages: Sequence[Message], start: int, target: int) -> None:
        """Cut at the first boundary at which the rest fits; the turn in progress stays, whatever its size."""
        cut, last = max(self.cut, start), _current_turn(messages)
        asked = _newest_user(messages)
        pinned = asked if start <= asked < cut else None
        while cut < last and self._kept(start, cut, pinned) > target:
            cut = min(_boundary(messages, cut + 1), last)
            pinned = asked if start <= asked < cut else None
        self.cut, self.pinned = cut, pinned

    def _kept(self, start: int, cut: int, pinned: int | None) -> int:
        sums = self.sums
        weight = 0 if pinned is None else sums[pinned + 1] - sums[pinned]
        return sums[start] + weight + sums[-1] - sums[cut]


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
