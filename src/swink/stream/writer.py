"""One reply as it is written: callers say what arrives, the writer numbers and closes the blocks.

Adapters, the local model and the scripted model call `say`, `think`, `begin_call`, `add`, `end`, `add_block`,
`cite`, `read`, `report` and `done`; the writer holds the stream events until they are taken. So every reply
ends in the same way: open blocks close in index order, then comes one terminal.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from swink.errors import ModelError
from swink.messages import Citation, Cost, Extension, Media, StopReason, Usage
from swink.stream.protocol import (
    UNREPORTED,
    AssistantMessageEvent,
    BlockAdded,
    Delta,
    Done,
    Error,
    PromptProgress,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)


class BlockWriter:
    """The events of one reply: `take()` what is pending; `terminal` is set once the reply is over.

    `response_id` and `response_model` are what the provider calls the reply, and the model that gave it.
    `usage` is what was reported so far. A reply that fails has used more than that, unless it is `settled`:
    nothing was generated, or the provider ended it with its final figures.
    """

    __slots__ = (
        "_citations",
        "_count",
        "_filled",
        "_open",
        "_pending",
        "_signatures",
        "_text",
        "_thinking",
        "cost",
        "response_id",
        "response_model",
        "settled",
        "terminal",
        "usage",
    )

    def __init__(self, usage: Usage = UNREPORTED) -> None:
        self._pending: list[AssistantMessageEvent] = []
        self._open: dict[int, type[Delta]] = {}
        self._signatures: dict[int, str] = {}
        self._citations: dict[int, list[Citation]] = {}
        self._filled: set[int] = set()
        self._count = 0
        self._text: int | None = None
        self._thinking: int | None = None
        self.terminal: Done | Error | None = None
        self.usage = usage
        self.cost: Cost | None = None
        self.settled = False
        self.response_id: Any = None
        self.response_model: Any = None

    @property
    def current(self) -> int | None:
        """The index of the block that `say`, `think` or `sign` opened and that is still open, or None."""
        return self._thinking if self._text is None else self._text

    @property
    def text(self) -> int | None:
        """The index of the text that `say` writes, or None."""
        return self._text

    def take(self) -> list[AssistantMessageEvent]:
        """The events since the last time; the terminal is not among them."""
        pending, self._pending = self._pending, []
        return pending

    def say(self, text: str) -> None:
        """Text without block boundaries: it joins the text block that is open, or opens one."""
        index = self._text
        if index is None:
            index = self._text = self.begin_text()
        self._pending.append(TextDelta(index, text))

    def think(self, text: str) -> None:
        """Add `text` to the thinking block that is open, or open one: thinking without block boundaries."""
        index = self._thinking
        if index is None:
            index = self._thinking = self.begin_thinking()
        self._pending.append(ThinkingDelta(index, text))

    def sign(self, signature: str, index: int | None = None) -> None:
        """The `signature` of the open block at `index`, or of the thinking that `think` writes; it goes out
        at its end.
        """
        if index is None:
            if self._thinking is None:
                self._thinking = self.begin_thinking()
            index = self._thinking
        self._signatures[index] = signature

    def cite(self, index: int, citation: Citation) -> None:
        """Where the open text block at `index` comes from: a `citation`, which goes out at its end."""
        self._citations.setdefault(index, []).append(citation)

    def add_block(self, block: Media | Extension) -> int:
        """A block that arrives whole; its index."""
        self.end_current()
        index = self._count
        self._count += 1
        self._pending.append(BlockAdded(index, block))
        return index

    def begin_text(self) -> int:
        """Open a text block; its index. Every new block first closes what `say` and `think` have open."""
        self.end_current()
        return self._begin(TextStart(self._count), TextDelta)

    def begin_thinking(self) -> int:
        """Open a thinking block; its index."""
        self.end_current()
        return self._begin(ThinkingStart(self._count), ThinkingDelta)

    def begin_call(self, id: str, name: str) -> int:
        """Open a call, `id`, of the tool `name`; its index."""
        self.end_current()
        return self._begin(ToolCallStart(self._count, id, name), ToolCallDelta)

    def add(self, index: int, delta: str) -> None:
        """Add `delta` to the open block at `index`."""
        self._filled.add(index)
        self._pending.append(self._open[index](index, delta))

    def end(
        self,
        index: int,
        signature: str | None = None,
        *,
        redacted: bool = False,
        citations: Sequence[Citation] = (),
    ) -> None:
        """Close the block at `index`, with its `signature`, its `citations`, and whether it is `redacted`."""
        kind = self._open.pop(index)
        if index == self._text or index == self._thinking:
            self._text = self._thinking = None
        signature = self._signatures.pop(index, None) if signature is None else signature
        if kind is TextDelta:
            self._pending.append(TextEnd(index, signature, (*self._citations.pop(index, ()), *citations)))
        elif kind is ThinkingDelta:
            self._pending.append(ThinkingEnd(index, signature, redacted))
        else:
            self._pending.append(ToolCallEnd(index, signature))

    def end_current(self) -> None:
        """Close what `say` and `think` have open, if anything."""
        index = self._thinking if self._text is None else self._text
        if index is not None:
            self.end(index)

    def is_open(self, index: int) -> bool:
        """Whether the block at `index` is open."""
        return index in self._open

    def is_filled(self, index: int) -> bool:
        """Whether anything was added to the block at `index`."""
        return index in self._filled

    def report(self, usage: Usage, cost: Cost | None = None) -> None:
        """What the reply has used so far, its `usage` and `cost`; it goes out at once: the reply may be cut
        off.
        """
        if usage != self.usage or cost != self.cost:
            self.usage, self.cost = usage, self.cost if cost is None else cost
            self._pending.append(UsageUpdate(usage, self.cost))

    def read(self, done: int, total: int) -> None:
        """How many tokens of the prompt the model has read: `done` of `total`."""
        self._pending.append(PromptProgress(done, total))

    def settle(self) -> None:
        """The provider has ended the reply, one way or another: what it reported, if anything, is final."""
        self.settled = not self.usage.unknown

    def done(self, stop_reason: StopReason, usage: Usage | None = None, cost: Cost | None = None) -> None:
        """The reply is complete, with its `stop_reason`; without `usage` and `cost` those reported last are
        final.
        """
        self.finish(
            Done(stop_reason, self.usage if usage is None else usage, self.cost if cost is None else cost)
        )

    def fail(self, error: ModelError) -> None:
        """The reply has failed with an `error`."""
        usage = self.usage
        if self.settled:
            usage = usage if usage.total else Usage()
        elif not usage.unknown:
            usage = replace(usage, unknown=True)
        self.finish(Error.of(error, usage))

    def finish(self, terminal: Done | Error) -> None:
        """The reply is over with the event `terminal`: close the blocks that are open, in index order.

        At `length` a call that has no arguments yet stays open: it was cut off, not called with none.
        """
        is_cut = isinstance(terminal, Done) and terminal.stop_reason == "length"
        for index in sorted(self._open):
            if not is_cut or self._open[index] is not ToolCallDelta or index in self._filled:
                self.end(index)
        self.terminal = terminal

    def _begin(self, start: TextStart | ThinkingStart | ToolCallStart, takes: type[Delta]) -> int:
        index = self._count
        self._count += 1
        self._open[index] = takes
        self._pending.append(start)
        return index
