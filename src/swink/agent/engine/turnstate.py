"""The turn under way: the request that asks for its reply, and the calls on their way to a result."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from msgspec import UNSET, Struct

from swink.agent.engine.account import Account, Spent
from swink.errors import AgentError
from swink.events import AgentEvent, ToolExecutionEnd, ToolExecutionUpdate
from swink.messages import (
    AssistantMessage,
    Cost,
    Message,
    ModelSpec,
    StopReason,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    TurnEndReason,
    Usage,
)
from swink.messages.history import History
from swink.messages.records import OpenTurn, PendingApproval
from swink.stream import Assembly, observer
from swink.tools import Tool, ToolContext


class TurnState(Struct, eq=False):
    """One turn; when it has ended it stays as it was, until the next begins."""

    number: int
    begins: int
    """How many messages the history had before it."""
    is_open: bool = True
    reply: AssistantMessage | None = None
    calls: "list[Call]" = []
    """The calls whose results are not in the history yet."""
    inner: "tuple[Call, ...]" = ()
    results: tuple[ToolResultMessage, ...] = ()
    reason: TurnEndReason | None = None
    left: OpenTurn | None = None
    """What is known of its calls, if it is taken up again."""
    observed: observer.ObservedTurn | None = None

    @property
    def all_calls(self) -> "list[Call]":
        """The calls of the turn, those that a call has made itself before it."""
        return [call for outer in self.calls for call in (*outer.inside, outer)]


class Attempt(Struct, eq=False):
    """The request under way: whom it asks, what has arrived of the reply, and what that costs."""

    _account: Account
    model: ModelSpec
    requests: int = 0
    """How many were sent in this run."""
    assembly: Assembly | None = None
    observed: observer.ObservedRequest | None = None

    def spent(self, error: AgentError | None = None) -> Spent:
        """What it has spent so far, also if it ends here with this error."""
        return self._account.attempt(self.model, self.assembly, error)

    def message(self, stop_reason: StopReason, error: AgentError | None = None) -> AssistantMessage:
        """What arrived of the reply, and what it cost."""
        assembly = self.assembly
        usage, cost = self._account.attempt(self.model, assembly, error)
        if assembly is None:
            assembly = Assembly()
        return assembly.message(self.model, stop_reason, usage=usage, cost=cost, error=error)

    def end(self, error: AgentError | None = None) -> None:
        """Tell the observer that the request has ended."""
        if self.observed is not None:
            self.observed.end(self.assembly or Assembly(), error, *self.spent(error))
            self.observed = None


class Call:
    """One tool call on its way to a result."""

    __slots__ = (
        "arguments", "asked", "call", "context", "inside", "known", "note", "observed", "outer", "outer_id",
        "pending", "prepared", "result", "running", "settled", "task", "timer", "tool", "waits", "why",
    )  # fmt: skip

    def __init__(self, call: ToolCall, tool: Tool | None, outer: "Call | None" = None) -> None:
        if tool is not None and tool.redirect is not None:
            call, tool = tool.redirect(call)
        self.call = call
        self.tool = tool
        self.outer, self.outer_id = outer, UNSET if outer is None else outer.call.id
        self.known = None if outer is None or outer.tool is None else outer.tool.inside
        self.inside: list[Call] = []
        """The calls that it has made itself."""
        self.arguments = call.arguments
        self.prepared: dict[str, Any] | None = None
        self.result: ToolResult | None = None
        self.running = False
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        self.context: CallContext | None = None
        self.settled: Callable[[int], None] | None = None
        """Tells how many calls more have their results."""
        self.asked: PendingApproval | None = None
        """The question that was open when the turn was left open."""
        self.pending: PendingApproval | None = None
        """The question that has to be answered before it may run."""
        self.note = ""
        """What the person who approved it wants the model to know."""
        self.observed: observer.ObservedCall | None = None
        self.why = ""
        """Why it was ended, if it did not end by itself."""
        self.waits = False
        """Whether it ended for now, because a call inside waits for an approval."""

    def take_up(self, left: OpenTurn, emit: Callable[[AgentEvent], None]) -> None:
        """Keep what is known of it, if it is a call of a turn that was left open."""
        self.asked = left.pending.get(self.call.id)
        may_repeat = self.tool is not None and (self.tool.idempotent or self.tool.read_only)
        self.result = known = left.outcome(self.call.id, may_repeat)
        if known is not None:
            emit(ToolExecutionEnd(self.call.id, self.call.name, known, known.is_error, self.outer_id))

    @property
    def is_open(self) -> bool:
        """Whether it may run now."""
        return self.result is None and self.pending is None

    @property
    def as_it_will_run(self) -> ToolCall:
        """The call for others to see."""
        return ToolCall(self.call.id, self.call.name, self.arguments, None, self.call.signature)


class Books(Protocol):
    """What a call reports to: the ledger of its run."""

    history: History
    account: Account
    emit: Callable[[AgentEvent], None]
    call_inside: Callable[[Call, str, dict[str, Any]], Awaitable[ToolResult]] | None

    def open_attempts(self) -> list[Spent]:
        """What the attempts under way, here and in the runs inside, have spent if they end here."""
        ...


class CallContext(ToolContext):
    """What a call of a run reports to its ledger, until it is settled."""

    __slots__ = ("_books", "_call", "_runs")

    def __init__(
        self, books: Books, call: Call, state: dict[str, Any], deps: Any, loop: asyncio.AbstractEventLoop
    ) -> None:
        ToolContext.__init__(self, call.call.id, call.call.name, state, deps=deps, loop=loop)
        self._call = call
        self._books: Books | None = books
        self._runs: tuple[Books, ...] = ()

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation as it is now, the reply that made this call included."""
        return () if self._books is None else self._books.history.snapshot()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call one of the tools inside."""
        if self._books is None:
            raise asyncio.CancelledError
        if self._books.call_inside is None:  # the run is over
            raise asyncio.CancelledError
        return await self._books.call_inside(self._call, name, arguments)

    def pays_for(self, run: Books) -> None:
        """A run was started inside the call, which charges what it spends to it."""
        self._runs = (*self._runs, run)

    def close(self) -> None:
        """The call is settled: whatever still runs of it is ignored, and paid for as if it ended here."""
        if self._runs:
            for usage, cost in self.open_attempts():
                self.charge(usage, cost)
            self._runs = ()
        self._books = None

    def open_attempts(self) -> list[Spent]:
        """What the attempts that are under way inside the call have spent."""
        return [spent for run in self._runs for spent in run.open_attempts()]

    def _report(self, update: Any) -> None:
        if self._books is not None:
            self._books.emit(ToolExecutionUpdate(self.call_id, self.name, update, self._call.outer_id))

    def _bill(self, usage: Usage, cost: Cost | None) -> None:
        if self._books is not None:
            self._books.account.charge(usage, cost)
