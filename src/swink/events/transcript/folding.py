"""Folding: events or records in, blocks out; a run that was watched and its saved session give the same ones.

A delta only adds to the text of a block that grows; the block itself is made when the blocks are read.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from swink.events import (
    AgentEnd,
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    ContextCompacted,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    ModelFallback,
    RetryScheduled,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
)
from swink.events.transcript.blockkinds import (
    AgentStopped,
    Block,
    Compacted,
    Custom,
    Discarded,
    Fallback,
    Notice,
    NoticeBlock,
    PromptBlock,
    ReplyBlock,
    Retrying,
    ThinkingBlock,
    ToolBlock,
)
from swink.events.transcript.blocklist import BlockList, Changes
from swink.events.transcript.calls import Calls
from swink.events.transcript.replies import Totals, block_of, blocks_of
from swink.messages import (
    AssistantMessage,
    Cost,
    CustomMessage,
    Message,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.messages.pruning import is_pruned
from swink.messages.records import (
    CallEnded,
    CallStarted,
    Compaction,
    Conversation,
    CustomSaved,
    MessageSaved,
    OpenTurn,
    PendingApproval,
    Record,
    TurnDropped,
    TurnOpened,
)
from swink.stream import BlockAdded, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStart, Update
from swink.tools import FINAL_OUTPUT


class _Growing:
    """A block of the reply that is being streamed."""

    __slots__ = ("begun", "id", "is_seen", "parts", "place")

    def __init__(self, id: str, begun: Update, place: int) -> None:
        self.id = id
        self.begun = begun
        self.place = place
        self.parts: list[str] = []
        self.is_seen = True

    @property
    def text(self) -> str:
        text = "".join(self.parts)
        self.parts = [text]
        return text

    @property
    def block(self) -> Block:
        match self.begun:
            case TextDelta():
                return ReplyBlock(self.id, self.text, is_complete=False)
            case ThinkingDelta():
                return ThinkingBlock(self.id, self.text, is_complete=False)
            case ToolCallStart(_, call_id, name):
                return ToolBlock(self.id, call_id, name, partial=self.text)
            case ToolCallDelta():  # of an event stream from before there was a start
                return ToolBlock(self.id, "", "", partial=self.text)
            case BlockAdded(_, added):
                return block_of(added, self.id)


class Transcript:
    """A conversation for people: `take` events as they come, or begin with what a session has.

    `clock` gives the durations; it is never asked for a time of day.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._blocks = BlockList()
        self._calls = Calls(self._blocks, clock, lambda: Transcript(clock=clock))
        self._count = 0
        """Of the messages so far: the number of the next one."""
        self._passing = 0
        self._compactions = 0
        self._in_context = 0
        self._before = self._totals = Totals()
        self._begin_reply()
        self._is_open = False

    @classmethod
    def of(cls, source: Conversation | Iterable[Record]) -> "Transcript":
        """The transcript of a saved session, the `source`; events of a run that continues it may follow."""
        transcript = cls()
        if isinstance(source, Conversation):
            for number, message in source.everything.items():
                transcript._count = number
                transcript._take_message(message)
            if source.open is not None:
                transcript._take_open(source.open)
        else:
            for record in source:
                transcript.take_record(record)
        return transcript

    @property
    def blocks(self) -> Sequence[Block]:
        """All blocks as they are now, in order."""
        self._grow()
        return tuple(self._blocks.items)

    @property
    def totals(self) -> Totals:
        """Prompts, tokens, cost and the size of the context so far."""
        return self._totals

    @property
    def spent(self) -> Totals:
        """The totals with the tokens and the cost of sub-agents, as far as their runs were watched."""
        total = self._totals
        for inner in [inner for agents in self._calls.inside.values() for inner in agents.values()]:
            total = total.with_cost_of(inner.spent)
        return total

    @property
    def version(self) -> int:
        """It grows with every change."""
        self._grow()
        return self._blocks.version

    def since(self, version: int) -> Changes:
        """What changed after a version; since 0 it is everything. The cost is that of what changed."""
        self._grow()
        return self._blocks.since(version)

    def inside(self, block: ToolBlock) -> "Mapping[str, Transcript]":
        """What the call of a `block` runs: agents by name, and "calls"; only of a run one watched."""
        return self._calls.inside.get(block.id, {})

    def take(self, event: AgentEvent) -> None:
        """Add the `event` that came next in a run."""
        if type(event) is MessageUpdate:
            delta = event.delta
            growing = self._growing.get(delta.index) or self._begin_block(delta)
            if isinstance(delta, ToolCallStart | BlockAdded):
                return
            growing.parts.append(delta.json if isinstance(delta, ToolCallDelta) else delta.text)
            if growing.is_seen:
                growing.is_seen = False
                self._unseen.append(growing)
            return
        action = self._actions.get(type(event))
        if action is not None:
            outer = getattr(event, "outer", "")
            if outer:
                self._calls.take_made(outer, event)
            else:
                action(self, event)

    def meet(self, block: ToolBlock) -> None:
        """Show the `block` of a call that no message has: one that another call makes itself."""
        self._calls.meet(block)

    def take_record(self, record: Record) -> None:
        """Add the `record` that comes next in a saved session."""
        match record:
            case MessageSaved(message, number) | CustomSaved(message, number):
                self._count = number if number >= 0 else self._count
                self._take_message(message)
            case TurnOpened(reply):
                if not self._awaits(reply):
                    self._take_reply(reply)
            case TurnDropped():
                self._drop_reply()
            case CallStarted(call_id):
                self._calls.change(call_id, state="running")
            case CallEnded(call_id, result):
                self._calls.settle(call_id, result)
            case PendingApproval(call_id):
                self._calls.change(call_id, state="approval")
            case Compaction():
                self._compact(record)
            case _:
                pass

    def _take_message(self, message: Message) -> None:
        match message:
            case UserMessage(content, timestamp):
                self._blocks.append(PromptBlock(str(self._count), content, timestamp))
                self._totals = replace(self._totals, prompts=self._totals.prompts + 1)
            case CustomMessage(kind, data, timestamp):
                self._blocks.append(NoticeBlock(str(self._count), Custom(kind, data), timestamp))
            case ToolResultMessage():
                self._calls.take_result(message, self._count)
            case AssistantMessage():
                self._take_reply(message)
                self._is_open = False
                self._before, self._totals = self._totals, self._totals.plus(message)
        self._count += 1
        self._in_context += 1

    def _take_open(self, turn: OpenTurn) -> None:
        self._take_reply(turn.reply)
        for call_id in turn.started:
            self._calls.change(call_id, state="running")
        for call_id in turn.pending:
            self._calls.change(call_id, state="approval")
        for call_id, result in turn.results.items():
            self._calls.settle(call_id, result)

    def _compact(self, record: Compaction) -> None:
        kept = [item for item in record.kept if isinstance(item, int)]
        added = [item.text for item in record.kept if isinstance(item, UserMessage)]
        summary = "\n\n".join(added) if record.reason == "compacted" else ""
        pruned = sum(not isinstance(item, int) and is_pruned(item) for item in record.kept)
        dropped = max(0, self._in_context - len(kept) - pruned)
        self._compactions += 1
        self._in_context = len(record.kept)
        about = Compacted(dropped, record.tokens_before, record.tokens_after, summary, pruned, record.cost)
        self.pay(record.usage, record.cost)
        self._blocks.append(NoticeBlock(f"c{self._compactions}", about))

    # The reply that streams, or whose tools run

    def _begin_reply(self) -> None:
        """Forget the reply before: its blocks do not change any more."""
        self._reply: AssistantMessage | None = None
        self._number = self._count
        self._place = len(self._blocks)
        """Where its blocks begin."""
        self._is_open = True
        """True until its message has arrived, whose blocks replace what was streamed."""
        self._growing: dict[int, _Growing] = {}
        self._unseen: list[_Growing] = []
        self._calls.forget()
        self._since: float | None = None

    def _begin_block(self, delta: Update) -> _Growing:
        if not self._growing:
            self._begin_reply()
            self._since = self._clock()
        id = f"{self._number}.{delta.index}"
        growing = self._growing[delta.index] = _Growing(id, delta, len(self._blocks))
        self._blocks.append(growing.block)
        return growing

    def _grow(self) -> None:
        for growing in self._unseen:
            growing.is_seen = True
            self._blocks.put(growing.place, growing.block)
        self._unseen.clear()

    def _take_reply(self, reply: AssistantMessage) -> None:
        """Put a complete reply in the place of what streamed, or of what the journal had of it."""
        if not self._is_open or (self._reply is not None and not self._awaits(reply)):
            self._begin_reply()
        seconds = None if self._since is None else self._clock() - self._since
        self._reply = reply
        self._replace(blocks_of(reply, self._number, seconds))

    def _awaits(self, reply: AssistantMessage) -> bool:
        """Whether it is the reply of the turn that the journal opened last."""
        return self._is_open and self._reply is not None and OpenTurn(self._reply).is_of(reply)

    def _drop_reply(self) -> None:
        if self._is_open:
            self._blocks.cut(self._place)
            self._begin_reply()
            self._is_open = False

    def _replace(self, blocks: Iterable[Block]) -> None:
        """Other blocks for the reply; what is known of its calls stays."""
        own = f"{self._number}."
        shown = self._blocks.items[self._place :]
        known = {block.call_id: block for block in shown if isinstance(block, ToolBlock)}
        others = [block for block in shown if not block.id.startswith(own)]
        self._growing, self._unseen = {}, []
        self._calls.forget()
        self._blocks.cut(self._place)
        for block in blocks:
            if isinstance(block, ToolBlock):
                self._calls.places[block.call_id] = len(self._blocks)
                if (before := known.get(block.call_id)) is not None and before.is_settled:
                    block = replace(before, id=block.id, timestamp=block.timestamp)
            self._blocks.append(block)
        for block in others:
            self._blocks.append(block)

    def _end_turn(self, event: TurnEnd) -> None:
        """A policy may have replaced the reply."""
        if self._reply is not None and event.message is not self._reply and event.message != self._reply:
            self._reply = event.message
            self._totals = self._before.plus(event.message)
            self._replace(blocks_of(event.message, self._number, None))

    def _end_run(self, event: AgentEnd) -> None:
        has_output = any(call.name == FINAL_OUTPUT and call.state == "done" for call in self._calls)
        is_told = self._reply is not None and self._reply.error_message == event.reason
        if event.reason is not None and not has_output and not is_told:
            self.note(AgentStopped(event.reason))

    def _discard(self, event: MessageDiscarded) -> None:
        texts = [growing.text for growing in self._growing.values() if isinstance(growing.begun, TextDelta)]
        self._drop_reply()
        self.note(Discarded(event.attempt, event.reason, "".join(texts)))

    def show(self, block: Block) -> None:
        """Add a block of something that no session has, or put it in the place of the one with its id."""
        items = self._blocks.items
        place = next((place for place in reversed(range(len(items))) if items[place].id == block.id), None)
        if place is None:
            self._blocks.append(block)
        else:
            self._blocks.put(place, block)

    def _take_retry(self, event: RetryScheduled) -> None:
        """One notice for all attempts in a row."""
        notice, items = Retrying(event.attempt, event.delay, event.error), self._blocks.items
        match items[-1] if items else None:
            case NoticeBlock(notice=Retrying()) as last:
                self._blocks.put(len(items) - 1, replace(last, notice=notice))
            case _:
                self.note(notice)

    def _take_report(self, event: ContextCompacted) -> None:
        report = event.report
        tokens = report.tokens_before, report.tokens_after
        self.note(Compacted(report.dropped, *tokens, pruned=report.pruned, cost=report.cost))
        self.pay(report.usage, report.cost)

    def pay(self, usage: Usage, cost: Cost | None) -> None:
        """Add the `usage` and `cost` of a summary, or of a question beside the conversation."""
        self._before = self._before.plus_summary(usage, cost)
        self._totals = self._totals.plus_summary(usage, cost)

    def note(self, notice: Notice) -> None:
        """Add a notice of something that no session has."""
        self._passing += 1
        self._blocks.append(NoticeBlock(f"~{self._passing}", notice))

    _actions: ClassVar[dict[type, Callable[["Transcript", Any], None]]] = {
        MessageEnd: lambda self, event: self._take_message(event.message),
        MessageDiscarded: _discard,
        RetryScheduled: _take_retry,
        ModelFallback: lambda self, event: self.note(Fallback(event.from_model, event.to_model)),
        ContextCompacted: _take_report,
        ApprovalRequested: lambda self, event: self._calls.change(event.call_id, state="approval"),
        ApprovalResolved: lambda self, event: self._calls.change(event.call_id, state="waiting"),
        ToolExecutionStart: lambda self, event: self._calls.start(event),
        ToolExecutionUpdate: lambda self, event: self._calls.report(event),
        ToolExecutionEnd: lambda self, event: self._calls.settle(event.call_id, event.result),
        TurnEnd: _end_turn,
        AgentEnd: _end_run,
    }
    """A table, because it is faster than a `match`."""
