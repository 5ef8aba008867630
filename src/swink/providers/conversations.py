"""Conversations in a provider's words, kept from request to request: a request costs what is new in it.

A history only grows, so that each message is converted once. What can change no more is kept as JSON, in
pieces: one `Raw` may hold several items with commas between them.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import is_
from typing import Any, Protocol

from msgspec import Raw

from swink.messages import LlmMessage, ModelSpec
from swink.messages.history import Snapshot
from swink.providers.convert import paired_messages, prepare
from swink.providers.exchange import encode_body

OPEN = 4
"""How many items at the end may still change, or be marked."""
MOST = 8
"""How many conversations an adapter keeps."""
TOGETHER = 64
"""How many items become one piece of JSON."""
LARGEST = 64 * 1024
"""Bytes of an item that is kept as JSON; the bytes of images are not kept twice."""

_GONE = Raw(b"")


class WireConversation(Protocol):
    """Turns a history into items, message by message.

    What a message becomes may depend on those before it, never on those after it; adding one may change the
    last items, but no earlier ones than the last `OPEN`.
    """

    items: list[Any]

    def add(self, message: LlmMessage) -> None: ...


class _Kept:
    """A conversation, the messages that are in it, and how many of its items are JSON already."""

    __slots__ = ("conversation", "history", "joined", "model", "seen", "settled", "whole")

    def __init__(self, model: ModelSpec, conversation: WireConversation) -> None:
        self.model = model.provider, model.model_id
        self.conversation = conversation
        self.history: object = None
        self.seen: list[LlmMessage] = []
        self.settled = 0
        self.joined = 0
        self.whole: list[Any] = []

    def begins(self, messages: Sequence[LlmMessage]) -> bool:
        """Whether the messages begin with those that are in the conversation."""
        if len(messages) < len(self.seen):
            return False
        if isinstance(messages, Snapshot) and messages.history is self.history:
            return True
        return all(map(is_, self.seen, messages))

    def settle(self) -> list[Any]:
        """The items as they are now; those that cannot change any more become JSON."""
        items = self.conversation.items
        for place in range(self.settled, len(items) - OPEN):
            data = encode_body(items[place])
            if len(data) <= LARGEST:
                items[place] = Raw(data)
            self.settled = place + 1
        while self.settled - self.joined >= TOGETHER:
            self._join(items)
        return [*self.whole, *items[self.joined :]]

    def _join(self, items: list[Any]) -> None:
        """Make one piece of JSON of the next items: a thousand pieces cost more than their bytes."""
        end = self.joined + TOGETHER
        for is_json, group in groupby(items[self.joined : end], lambda item: type(item) is Raw):
            found = list(group)
            self.whole += [Raw(b",".join(map(bytes, found)))] if is_json else found
        items[self.joined : end] = [_GONE] * TOGETHER
        self.joined = end


class Conversations:
    """The conversations of one adapter, the last used ones."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    def items(
        self, messages: Sequence[LlmMessage], model: ModelSpec, make: Callable[[ModelSpec], WireConversation]
    ) -> tuple[WireConversation, list[Any]]:
        """A conversation that has these messages, and its items."""
        whole = paired_messages(messages)
        kept = self._take(whole, model) or _Kept(model, make(model))
        fresh: list[Any] = list(whole[len(kept.seen) :])
        for message in prepare(fresh, model):
            kept.conversation.add(message)
        kept.seen += fresh
        kept.history = whole.history if isinstance(whole, Snapshot) else None
        items = kept.settle()
        self._kept.append(kept)
        del self._kept[:-MOST]
        return kept.conversation, items

    def clear(self) -> None:
        self._kept.clear()

    def _take(self, messages: Sequence[LlmMessage], model: ModelSpec) -> _Kept | None:
        """The longest conversation that the messages begin with; the request that takes it has it alone."""
        name = model.provider, model.model_id
        found = [kept for kept in self._kept if kept.model == name and kept.begins(messages)]
        if not found:
            return None
        longest = max(found, key=lambda kept: len(kept.seen))
        try:
            self._kept.remove(longest)
        except ValueError:  # another thread was faster
            return None
        return longest
