"""History: append-only messages with cheap snapshots, and the rule that every tool call has its result."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import is_
from typing import Any, cast, overload

from msgspec.structs import replace

from swink.errors import BrokenHistory, InvalidInput
from swink.messages.blocks import Text, ToolCall
from swink.messages.message import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage
from swink.messages.tokens import FRAME, size_of, size_of_texts

INTERRUPTED = "tool call interrupted: no result was recorded, so its outcome is unknown"
_MESSAGE_TYPES = {UserMessage, AssistantMessage, ToolResultMessage, CustomMessage}


class History:
    """Messages in order; it only grows, so that its snapshots are prefixes of each other."""

    __slots__ = ("__weakref__", "_measured", "_plain", "_size", "has_custom", "items")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.items = list(messages)
        self.has_custom = False
        self._size = self._measured = 0
        self._plain: tuple[History, int] | None = None
        if self.items:
            self._check()

    @classmethod
    def of(cls, messages: Iterable[Message], tokens: int | None = None) -> "History":
        """A history of messages whose calls are known to have their results, and perhaps their tokens too."""
        history = cls()
        history.items = list(messages)
        if tokens is not None:
            history._measured = len(history.items)
            history._size = 4 * tokens
        history.has_custom = any(type(message) is CustomMessage for message in history.items)
        return history

    def __len__(self) -> int:
        return len(self.items)

    def append(self, message: Message) -> None:
        """Add one message."""
        if type(message) is CustomMessage:
            self.has_custom = True
        self.items.append(message)

    def snapshot(self) -> "Snapshot":
        """The messages as they are now."""
        return Snapshot(self)

    def replaced(self, old: Message, new: Message) -> "History":
        """Another history, with `new` where `old` is."""
        history = History.of(self.items)
        position = next(index for index in range(len(self.items) - 1, -1, -1) if self.items[index] is old)
        history.items[position] = new
        return history

    def most_tokens(self) -> int:
        """An upper bound of the tokens it takes; every message is measured once."""
        new = self.items[self._measured :]
        if new:
            count = len(new)
            self._size += size_of(*new) + FRAME * count
            self._measured += count
        return self._size >> 2

    def plain(self, length: int) -> "Sequence[Message]":
        """The first messages without custom ones; each is looked at once."""
        plain, seen = self._plain or (History(), 0)
        if length < seen:  # an older snapshot is looked at by itself
            return [message for message in self.items[:length] if type(message) is not CustomMessage]
        for message in self.items[seen:length]:
            if type(message) is not CustomMessage:
                plain.append(message)
        self._plain = plain, length
        return plain.snapshot()

    def _check(self) -> None:
        """Pair calls with their results; a history of texts alone has none, and is measured at once."""
        size = size_of_texts(self.items)
        if size is not None:
            self._measured = len(self.items)
            self._size = size + FRAME * self._measured
            return
        kinds = set(map(type, self.items))
        if strangers := kinds - _MESSAGE_TYPES:
            text = f"a history holds messages, not {strangers.pop().__name__}; wrap text in UserMessage(...)"
            raise InvalidInput(text)
        self.has_custom = CustomMessage in kinds
        self.items = paired(self.items)


class Snapshot(Sequence[Message]):
    """A history as it was at one moment; it never changes, however the history grows."""

    __slots__ = ("_items", "_length", "has_custom", "history", "last")

    def __init__(self, history: History) -> None:
        self.history = history
        self._items = items = history.items
        self._length = len(items)
        self.last = items[-1] if items else None
        self.has_custom = history.has_custom

    @property
    def plain(self) -> Sequence[Message]:
        """The messages without custom ones."""
        return self.history.plain(self._length) if self.has_custom else self

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if not isinstance(index, slice):
            if not -self._length <= index < self._length:
                raise IndexError("message index out of range")
            return self._items[index if index >= 0 else self._length + index]
        start, stop, step = index.indices(self._length)
        if step > 0:
            return self._items[start:stop:step]
        return [self._items[position] for position in range(start, stop, step)]

    def __add__(self, other: Iterable[Message]) -> list[Message]:
        return [*self, *other]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return list(self) == list(cast("Sequence[object]", other))

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def violations(messages: Iterable[Message]) -> list[str]:
    """Every break of the pairing rule, in words; empty if the history is sound."""
    problems: list[str] = []
    waiting: list[ToolCall] = []
    for position, message in enumerate(messages):
        kind = type(message)
        if isinstance(message, ToolResultMessage):
            id = message.tool_call_id
            if not waiting or waiting[0].id != id:
                expected = waiting[0].id if waiting else "none"
                problems.append(f"message {position}: result for {id!r}, expected {expected!r}")
            else:
                waiting.pop(0)
        elif kind is not CustomMessage:
            if waiting:
                problems += [
                    f"message {position}: call {call.id!r} has no result before it" for call in waiting
                ]
            waiting = list(message.tool_calls) if isinstance(message, AssistantMessage) else []
    return problems + [f"call {call.id!r} has no result" for call in waiting]


def paired(
    messages: Iterable[Message], *, missing: str = INTERRUPTED, lenient: bool = False
) -> list[Message]:
    """The messages with every tool call followed by its result, in call order.

    A call without a result gets one that says so. A result without its call is refused, and so are two calls
    with one id; if `lenient`, the one is left out and the others are told apart by their order, and a result
    has the name of its call.
    """
    result: list[Message] = []
    batch = _Batch(missing, lenient)
    for position, message in enumerate(messages):
        if isinstance(message, CustomMessage):
            batch.since.append(message)
        elif isinstance(message, ToolResultMessage):
            if (problem := batch.take(message)) and not lenient:
                raise BrokenHistory(f"message {position} is {problem}")
        else:
            batch.settle(result)
            result.append(message)
            if isinstance(message, AssistantMessage) and (made := message.tool_calls):
                batch.begin(made)
                if len(batch.waiting) != len(made) and not lenient:
                    raise BrokenHistory(
                        f"message {position} has two tool calls with one id; give each its own"
                    )
    batch.settle(result)
    return result


class _Batch:
    """The calls of one reply, and what came after them."""

    __slots__ = ("answers", "calls", "lenient", "missing", "since", "waiting")

    def __init__(self, missing: str, lenient: bool) -> None:
        self.missing, self.lenient = missing, lenient
        self.since: list[Message] = []
        """Results and custom messages after the calls, as they came."""
        self.begin(())

    def begin(self, calls: Sequence[ToolCall]) -> None:
        """Calls that want their results."""
        self.calls = calls
        self.answers: list[ToolResultMessage | None] = [None] * len(calls)
        self.waiting: dict[str, list[int]] = {}
        for place, call in enumerate(calls):
            self.waiting.setdefault(call.id, []).append(place)

    def take(self, result: ToolResultMessage) -> str | None:
        """Give a result to the first call of its id that has none; what is wrong if there is none."""
        id = result.tool_call_id
        places = self.waiting.get(id)
        if places is None:
            return f"a result for {id!r}, but no call with that id is open there; remove it or add the call"
        if not places:
            return f"a second result for call {id!r}; remove one"
        place = places.pop(0)
        if self.lenient and result.tool_name != self.calls[place].name:
            result = replace(result, tool_name=self.calls[place].name)
        self.answers[place] = result
        self.since.append(result)
        return None

    def settle(self, result: list[Message]) -> None:
        """Write down what came after the calls, and begin anew."""
        given = [message for message in self.since if type(message) is ToolResultMessage]
        if len(given) == len(self.calls) and all(map(is_, given, self.answers)):
            result += self.since
        else:
            result += [
                answer or ToolResultMessage(call.id, call.name, (Text(self.missing),), True)
                for call, answer in zip(self.calls, self.answers, strict=True)
            ]
            result += [message for message in self.since if type(message) is CustomMessage]
        self.since.clear()
        if self.calls:
            self.begin(())


def with_unique_ids(message: AssistantMessage) -> AssistantMessage:
    """The message with no two calls of one id, which could not be answered separately."""
    seen: dict[str, int] = {}
    content: list[Any] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            id = block.id
            while id in seen:
                seen[block.id] += 1
                id = f"{block.id}_{seen[block.id]}"
            seen[id] = 1
            block = replace(block, id=id)
        content.append(block)
    return replace(message, content=tuple(content))
