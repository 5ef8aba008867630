"""Context: what turns a history into what is sent, and the window that keeps it within the model's."""

from collections.abc import Awaitable, Callable, Sequence
from types import NoneType
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

from swink.errors import InvalidInput
from swink.messages import AssistantMessage, CustomMessage, Message, ModelSpec, UserMessage
from swink.messages.checks import check_type
from swink.messages.history import History, Snapshot
from swink.messages.pruning import READ_RESULT, prune
from swink.messages.tokens import MOST_RATIO, estimate_tokens
from swink.stream import LlmContext
from swink.system.aio import is_async

TransformFn = Callable[[Sequence[Message], bool], Sequence[Message] | Awaitable[Sequence[Message]]]

DEFAULT_WINDOW = 128_000
_MOST_BESIDE = 0.75
"""How much of a budget the system prompt and the tools may take."""


class ContextRequest(Protocol):
    """What is about to be asked, for a transformer with a `fit(messages, overflow, request)`."""

    @property
    def model(self) -> ModelSpec:
        """The model that is asked."""
        ...

    @property
    def ratio(self) -> float:
        """How many tokens the provider counts for one that is estimated, as learnt so far."""
        ...

    @property
    def overhead(self) -> int:
        """Estimated tokens of the system prompt and the tools."""
        ...

    def offers(self, tool: str) -> bool:
        """Whether the model is offered a tool of this name."""
        ...

    async def ask(self, context: LlmContext, model: Any = None, max_tokens: int | None = None) -> str:
        """The text of a model's answer, on the account of the run; by default of the model itself."""
        ...

    def note(self, message: CustomMessage) -> None:
        """Add a message to the history at the end of the turn."""
        ...

    def warn(self, text: str) -> None: ...


Fit = Callable[[Sequence[Message], bool, ContextRequest], Sequence[Message] | Awaitable[Sequence[Message]]]
"""A transformer that is told what is about to be asked."""


def in_order(transform: Any) -> Sequence[TransformFn]:
    """The transformers, async ones first."""
    function: Any = transform
    if callable(function):
        return (transform,)
    if not isinstance(transform, Sequence) or isinstance(transform, str):
        raise InvalidInput(f"transform_context is a function or a list of functions, not {transform!r:.80}")
    functions = cast("Sequence[TransformFn]", transform)
    return functions if len(functions) < 2 else sorted(functions, key=lambda function: not is_async(function))


def fitters(transform: Any) -> Sequence[tuple[TransformFn, Fit]]:
    """The transformers in order, and how each is asked."""
    return (
        _DEFAULT
        if transform is DEFAULT
        else [(function, fitter(function)) for function in in_order(transform)]
    )


def fitter(function: Any) -> Fit:
    """How to ask a transformer: by its `fit` if it has one, else by what it is sized for, if it can be."""
    fit: Fit | None = getattr(function, "fit", None)
    if fit is not None:
        return fit
    sized_for: Callable[[ModelSpec], TransformFn] | None = getattr(function, "sized_for", None)
    if sized_for is None:
        return lambda messages, overflow, request: function(messages, overflow)
    return lambda messages, overflow, request: sized_for(request.model)(messages, overflow)


class SlidingWindow:
    """Keep the first messages and the newest ones that fit.

    Calls stay with their results; the newest user message and the turn in progress are never dropped. When
    the budget is passed the window is cut down to three quarters of it, so that the prefix a provider has
    cached stays the same for many turns. Without a budget it is sized for the model that is asked. With
    `prune`, old and large tool results are cut short first.

    Args:
        budget: tokens that may be sent; None takes what the model has room for
        overflow_budget: the same after the provider has refused a request as too long
        anchor: how many of the first messages are always kept
        prune: cut old and large tool results short before messages are dropped
    """

    def __init__(
        self,
        budget: int | None = None,
        overflow_budget: int | None = None,
        anchor: int = 1,
        *,
        prune: bool = False,
    ) -> None:
        if budget is not None:
            check_type("budget", budget, (int, NoneType))
        if overflow_budget is not None:
            check_type("overflow_budget", overflow_budget, (int, NoneType))
        if type(anchor) is not int:
            check_type("anchor", anchor, int)
        self.room = Room(budget, overflow_budget)
        self.anchor = anchor
        self.prune = prune
        self._sizes: dict[int, SlidingWindow] | None = {} if budget is None else None
        self._last: tuple[ModelSpec, SlidingWindow] | None = None
        self.kept = Windows()
        self._settings = overflow_budget, anchor

    @property
    def budget(self) -> int:
        """Tokens of messages that are sent at most."""
        return self.room.budget

    def sized_for(self, model: ModelSpec) -> "SlidingWindow":
        """The window for this model: itself if it was made with a budget."""
        if self._sizes is None:
            return self
        if (last := self._last) is not None and last[0] is model:
            return last[1]
        budget = room_in(model)
        window = self._sizes.get(budget)
        if window is None:
            window = self._sizes[budget] = SlidingWindow(budget, *self._settings, prune=self.prune)
            window.room = Room(budget, self._settings[0], spare_in(model))
        self._last = model, window
        return window

    def __call__(self, messages: Sequence[Message], overflow: bool) -> Sequence[Message]:
        return self._windowed(messages, overflow, self.room)

    def fit(self, messages: Sequence[Message], overflow: bool, request: ContextRequest) -> Sequence[Message]:
        """The messages to send in this request.

        Args:
            messages: the history
            overflow: whether the provider has just refused a request as too long
            request: the model, the prompt and the tools of the request
        """
        last, window, model = self._last, self, request.model
        if self._sizes is not None:
            if last is not None and last[0] is model:
                window = last[1]
            else:
                least = (model.context_window or DEFAULT_WINDOW) // 12  # less than the `plenty` of its room
                if (
                    type(messages) is Snapshot
                    and last is None
                    and not overflow
                    and messages.history.most_tokens() <= least
                ):
                    return messages  # most conversations never need a window of their model's size
                window = self.sized_for(model)
        if (
            type(messages) is Snapshot
            and not overflow
            and messages.history.most_tokens() <= window.room.plenty
            and messages.history not in window.kept
        ):
            return messages
        return window._windowed(messages, overflow, window.room.within(request), request)

    def _windowed(
        self, messages: Sequence[Message], overflow: bool, room: "Room", request: ContextRequest | None = None
    ) -> Sequence[Message]:
        if not isinstance(messages, Snapshot):
            target = room.target(sum(map(estimate_tokens, messages)), overflow)
            return messages if target is None else self._shrunk(messages, target, request)
        kept = self.kept.look(messages, room.budget, overflow)
        if kept is None:
            return messages
        sent = messages if kept.window is None else kept.window.snapshot()
        target = room.target(kept.tokens, overflow)
        fitting = sent if target is None else self._shrunk(sent, target, request, kept)
        return sent if fitting is sent else kept.keep(fitting, sent)

    def _shrunk(
        self,
        messages: Sequence[Message],
        target: int,
        request: ContextRequest | None,
        kept: "Kept | None" = None,
    ) -> Sequence[Message]:
        items = messages
        sizes = list(map(estimate_tokens, messages)) if kept is None else kept.sizes
        if self.prune:
            items = pruned(messages, self.anchor, sum(sizes) - target, request)
            if items is not messages:
                sizes = list(map(estimate_tokens, items)) if kept is None else kept.sizes_of(items, messages)
        return cut(items, self.anchor, target, sizes)


class Room:
    """How many tokens of messages there is room for."""

    __slots__ = ("budget", "overflow_budget", "plenty", "spare")

    def __init__(
        self, budget: int | None, overflow_budget: int | None = None, spare: int | None = None
    ) -> None:
        self.budget = DEFAULT_WINDOW if budget is None else budget
        self.overflow_budget = self.budget // 2 if overflow_budget is None else overflow_budget
        self.spare = spare
        """Tokens beside the budget for the system prompt and the tools; None: they do not matter."""
        self.plenty = int((self.budget - self.budget * _MOST_BESIDE) / MOST_RATIO)
        """Estimated tokens of messages that fit into every request."""

    def within(self, request: ContextRequest) -> "Room":
        """The room in this request: as its provider counts tokens, and beside its prompt and tools."""
        ratio = request.ratio
        beyond = 0 if self.spare is None else int(request.overhead * ratio) - self.spare
        if ratio == 1 and beyond <= 0:
            return self
        beyond = min(max(beyond, 0), int(self.budget * _MOST_BESIDE))
        return Room(int((self.budget - beyond) / ratio), int((self.overflow_budget - beyond) / ratio))

    def target(self, tokens: int, overflow: bool) -> int | None:
        """What to cut so many tokens down to, if they have to become less."""
        if overflow:
            # What was sent did not fit, whatever the estimate says: it has to become less.
            return min(self.overflow_budget, tokens) * 3 // 4
        return None if tokens <= self.budget else self.budget * 3 // 4


class Windows:
    """What is kept of each history that did not fit."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[History, Kept] | None = None

    def __len__(self) -> int:
        return 0 if self._kept is None else len(self._kept)

    def __contains__(self, history: History) -> bool:
        return self._kept is not None and history in self._kept

    def look(self, messages: Snapshot, budget: int, overflow: bool) -> "Kept | None":
        """What is kept of a history, with what is new; None if all of it is, and fits."""
        history = messages.history
        kept = self._kept.get(history) if self._kept is not None else None
        if kept is None:
            if not overflow and history.most_tokens() <= budget:
                return None
            if self._kept is None:
                self._kept = WeakKeyDictionary()
            kept = self._kept[history] = Kept()
        elif kept.seen > len(messages):
            kept = Kept()  # an older snapshot is looked at by itself
        kept.follow(messages)
        return kept


DEFAULT = SlidingWindow()
"""The window of every agent that names none: what it keeps, it keeps of each history by itself."""
_DEFAULT: Sequence[tuple[TransformFn, Fit]] = ((DEFAULT, DEFAULT.fit),)


class Kept:
    """What is kept of one history: all of it until the first cut, then a history of its own that grows along.

    A turn adds its new messages to it; only a cut reads it as a whole.
    """

    __slots__ = ("seen", "sizes", "summary", "tokens", "window")

    def __init__(self) -> None:
        self.window: History | None = None
        self.seen = 0
        self.tokens = 0
        self.sizes: list[int] = []
        """The tokens of each message that is kept: a message is measured once."""
        self.summary: UserMessage | None = None

    def follow(self, messages: Snapshot) -> None:
        if self.seen == len(messages):
            return
        new = messages[self.seen :]
        self.seen = len(messages)
        sizes = [estimate_tokens(message) for message in new]
        self.sizes += sizes
        self.tokens += sum(sizes)
        if self.window is not None:
            for message in new:
                self.window.append(message)

    def keep(self, messages: Sequence[Message], before: Sequence[Message]) -> Snapshot:
        """Keep these from now on, of those that were kept before."""
        self.sizes = self.sizes_of(messages, before)
        self.tokens = sum(self.sizes)
        self.window = History.of(messages, self.tokens)
        return self.window.snapshot()

    def sizes_of(self, messages: Sequence[Message], before: Sequence[Message]) -> list[int]:
        """The tokens of each of the messages, most of which were kept before."""
        if messages is before:
            return self.sizes
        known = dict(zip(map(id, before), self.sizes, strict=True))
        return [
            size if (size := known.get(id(message))) is not None else estimate_tokens(message)
            for message in messages
        ]


def room_in(model: ModelSpec) -> int:
    """Tokens for messages in a model's context window, beside the reply, the system prompt and the tools."""
    window = model.context_window or DEFAULT_WINDOW
    return window - min(model.max_output or window // 8, window // 4) - spare_in(model)


def spare_in(model: ModelSpec) -> int:
    """Tokens set aside for the system prompt and the tools."""
    return (model.context_window or DEFAULT_WINDOW) // 20


def pruned(
    messages: Sequence[Message], anchor: int, excess: int, request: ContextRequest | None
) -> Sequence[Message]:
    """The messages with old, large results cut short, as many as it takes; they themselves if none is."""
    readable = request is not None and request.offers(READ_RESULT)
    items, saved = prune(messages, boundary(messages, anchor), current_turn(messages), excess, readable)
    return items if saved else messages


def cut(messages: Sequence[Message], anchor: int, target: int, sizes: Sequence[int]) -> Sequence[Message]:
    """Cut at the first boundary at which the rest fits; the turn in progress stays, whatever its size."""
    start, pinned, end = cut_at(messages, anchor, target, sizes)
    if end - start == len(pinned):
        return messages
    return [*messages[:start], *pinned, *messages[end:]]


def cut_at(
    messages: Sequence[Message], anchor: int, target: int, sizes: Sequence[int]
) -> tuple[int, list[Message], int]:
    """Which messages to drop: from where, except the newest user message, to where."""
    items = list(messages)
    start = end = boundary(items, anchor)
    last, asked = current_turn(items), newest_user(items)
    left = sum(sizes)
    while end < last and left > target:
        following = min(boundary(items, end + 1), last)
        left -= sum(sizes[end:following])
        if end <= asked < following:
            left += sizes[asked]
        end = following
    return start, [items[asked]] if start <= asked < end else [], end


def boundary(messages: Sequence[Message], index: int) -> int:
    """The next place at or after `index` where no call is parted from its result."""
    while index < len(messages) and not isinstance(messages[index], UserMessage | AssistantMessage):
        index += 1
    return min(index, len(messages))


def current_turn(messages: Sequence[Message]) -> int:
    """Where the newest user message or the newest reply with its results begins, whichever is later."""
    index = len(messages) - 1
    while index > 0 and not isinstance(messages[index], UserMessage | AssistantMessage):
        index -= 1
    return max(index, 0)


def newest_user(messages: Sequence[Message]) -> int:
    """Where the newest user message is, or -1."""
    index = len(messages) - 1
    while index >= 0 and not isinstance(messages[index], UserMessage):
        index -= 1
    return index
