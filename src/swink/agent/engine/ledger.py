"""The ledger of a run: what is committed, what is still open, and what it costs.

It is what makes a history interruption-proof. Every change is synchronous: a message enters the history and
is announced in one step, and `close` completes whatever is open (reply, calls, turn) without a single await.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from msgspec.structs import replace

from swink.agent.config import AgentLoopConfig
from swink.agent.engine.account import Account, Spent
from swink.agent.policy import Policy, Turn, slots_of, vet_commit
from swink.agent.session.known import Standing, call_ids
from swink.errors import AgentError, said
from swink.events import (
    AgentEnd,
    AgentEvent,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    StateChanged,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from swink.messages import (
    AssistantMessage,
    Cost,
    Input,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    TurnEndReason,
    Usage,
    as_messages,
)
from swink.messages.codec import encode_state
from swink.messages.history import History, paired
from swink.messages.jsondata import decode
from swink.messages.records import OpenTurn, PendingApproval
from swink.stream import Assembly, observer
from swink.tools import Tool, ToolContext, failure

log = logging.getLogger("swink.run")

KnownResult = Callable[[OpenTurn, str, Tool | None], ToolResult | None]
"""What a call of a turn that is taken up again already came to."""


class Call:
    """One tool call on its way to a result."""

    def __init__(self, call: ToolCall, tool: Tool | None) -> None:
        self.call = call
        self.tool = tool
        self.arguments = call.arguments
        self.prepared: dict[str, Any] | None = None
        self.result: ToolResult | None = None
        self.running = False
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        self.context: CallContext | None = None
        self.settled: Callable[[], None] | None = None
        self.asked: PendingApproval | None = None
        """What somebody was asked when the turn was left open."""
        self.pending: PendingApproval | None = None
        """What somebody has to be asked before it may run."""
        self.note = ""
        """What whoever approved it wants the model to know."""
        self.observed: observer.ObservedCall | None = None
        self.why = ""


class CallContext(ToolContext):
    """What a call of a run reports to its ledger, until it is settled."""

    __slots__ = ("_ledger", "_runs")

    def __init__(self, ledger: "Ledger", call: Call, state: dict[str, Any], deps: Any) -> None:
        ToolContext.__init__(self, call.call.id, call.call.name, state, deps=deps)
        self._ledger: Ledger | None = ledger
        self._runs: tuple[Ledger, ...] = ()

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation as it is now, the reply that made this call included."""
        return () if self._ledger is None else self._ledger.history.snapshot()

    def pays_for(self, run: "Ledger") -> None:
        """A run was started inside the call, which charges what it spends to it."""
        self._runs = (*self._runs, run)

    def close(self) -> None:
        """The call is settled: whatever still runs of it is ignored, and paid for as if it ended here."""
        if self._runs:
            for usage, cost in self.open_attempts():
                self.charge(usage, cost)
            self._runs = ()
        self._ledger = None

    def open_attempts(self) -> list[Spent]:
        """What the attempts that are under way inside the call have spent."""
        return [spent for run in self._runs for spent in run.open_attempts()]

    def _report(self, update: Any) -> None:
        if self._ledger is not None:
            self._ledger.emit(ToolExecutionUpdate(self.call_id, self.name, update))

    def _bill(self, usage: Usage, cost: Cost | None) -> None:
        if self._ledger is not None:
            self._ledger.account.charge(usage, cost)


class Ledger:
    """What a run has committed, and what is open in it."""

    def __init__(
        self,
        config: AgentLoopConfig,
        history: History,
        emit: Callable[[AgentEvent], None],
        policies: Sequence[Policy],
        open: OpenTurn | None = None,
    ) -> None:
        self.history = history
        self.emit = emit
        self.slots = slots_of(policies)
        self.account = Account(config.price)
        if isinstance(self.account.payer, CallContext):
            self.account.payer.pays_for(self)
        self.model = config.spec
        self.turn = 0
        self.requests = 0
        self.produced: list[Message] = []
        self.pending: list[Message] = []
        self.fresh: tuple[Message, ...] = ()
        self.injected: list[Message] = []
        self.assembly: Assembly | None = None
        self.reply: AssistantMessage | None = None
        self.calls: list[Call] = []
        self.results: tuple[ToolResultMessage, ...] = ()
        self.last: Turn | None = None
        self.closed = False
        self.open = open
        """The turn that was left open, by this run or one before it."""
        self.ended: Callable[[Call, ToolResult], None] | None = None
        """Hears of every result."""
        self.observed: observer.ObservedRun | None = None
        self.asking: observer.ObservedRequest | None = None
        """The run and the request that an observer knows of."""
        self._observed_turn: observer.ObservedTurn | None = None
        self._turn_open = False
        self._turn_begins = 0
        self._state = config.state
        self._known_state = encode_state(config.state)
        self._next_history: History | None = None
        self._appended: list[Message] | None = None

    def queue(self, messages: Input) -> None:
        """Let messages enter before the next turn."""
        self.pending.extend(paired(as_messages(messages)))

    def inject(self, messages: Sequence[Message]) -> None:
        """Let messages of a policy enter before the next turn."""
        self.injected.extend(messages)
        self.pending.extend(messages)

    def append(self, messages: Sequence[Message], *, by_policy: bool = False) -> None:
        """Let messages enter at the end of the turn, where they part no call from its result."""
        added = paired(messages)
        if by_policy:
            self.injected.extend(added)
        if self.closed:
            for message in added:
                self.history.append(self._vetted(message))
        elif self._appended is None:
            self._appended = added
        else:
            self._appended.extend(added)

    def replace_history(self, history: History) -> None:
        """Use another history from the next turn on."""
        self._next_history = history
        if self.closed:
            self._apply_changes()

    def enter_pending(self) -> None:
        """Move pending messages into the context; each changes from queue to history in one step."""
        entered: list[Message] = []
        while self.pending:
            entered.append(self._commit(self.pending[0], self.pending))
        self.fresh = (*self.fresh, *entered)

    def open_turn(self) -> None:
        """Begin a turn and its reply; the reply begins once, however many attempts it takes."""
        self._refuse_if_closed()
        self.turn += 1
        self._turn_open = True
        self._turn_begins = len(self.history)
        self.reply = None
        self.results = ()
        if observer.current is not None:
            self._observed_turn = observer.current.turn(self.turn)
        self.emit(TurnStart(self.turn))
        self.emit(MessageStart("assistant"))

    def reopen_turn(self, tools: Sequence[Tool], known: KnownResult) -> None:
        """Take up the turn that was left open: announce its reply again, keep what has ended."""
        turn = self.open
        assert turn is not None
        self.open_turn()
        self.open = None
        self._take_reply(turn.reply, tools)
        for call in self.calls:
            call.asked = turn.pending.get(call.call.id)
            call.result = result = known(turn, call.call.id, call.tool)
            if result is not None:
                self.emit(ToolExecutionEnd(call.call.id, call.call.name, result, result.is_error))

    def leave_open(self) -> None:
        """End the turn without its results: the reply leaves the history until its calls have ended."""
        reply = self.reply
        assert reply is not None
        results = {call.call.id: call.result for call in self.calls if call.result is not None}
        pending = {call.call.id: call.pending for call in self.calls if call.pending is not None}
        turn = OpenTurn(reply, set(results), results, pending)
        self.calls = []
        self.history = History.of(self.history.items[: self._turn_begins])
        self.produced = [message for message in self.produced if message is not reply]
        self.open = turn
        self.end_turn("approval")

    def standing(self, final: bool) -> Standing:
        """How the conversation stands; the open turn counts only if it is final."""
        is_open = self._turn_open and not final
        upto = self._turn_begins if is_open else len(self.history)
        reply = self.reply if is_open else None if self.open is None else self.open.reply
        return Standing(
            self.history, upto, self.produced, self.pending, None if reply is None else call_ids(reply)
        )

    def attempt(self, error: AgentError) -> AssistantMessage:
        """What arrived of the attempt that failed, and what it cost."""
        usage, cost = self._spent(error)
        return (self.assembly or Assembly()).message(self.model, "error", usage=usage, cost=cost, error=error)

    def open_attempts(self) -> list[Spent]:
        """What the attempts under way, here and in the runs inside, have spent if they end here."""
        if self.assembly is not None:
            return [self._spent()]
        contexts = [call.context for call in self.calls if call.context is not None]
        return [spent for context in contexts for spent in context.open_attempts()]

    def end_request(self, error: AgentError | None = None) -> None:
        """Tell the observer that the request under way has ended."""
        if self.asking is not None:
            self.asking.end(self.assembly or Assembly(), error, *self._spent(error))
            self.asking = None

    def discard_reply(self, attempt: int, error: AgentError) -> None:
        """Forget what a failed attempt showed, but not what it cost."""
        if self.assembly is not None and self.assembly.has_content:
            self.emit(MessageDiscarded(attempt, said(error)))
        self.account.charge(*self._spent(error))
        self.assembly = None

    def commit_reply(
        self, tools: Sequence[Tool], stop_reason: StopReason, error: AgentError | None = None
    ) -> None:
        """Price the reply, put it into the history and end it."""
        self._refuse_if_closed()
        usage, cost = self._spent(error)
        message = self._vetted(
            (self.assembly or Assembly()).message(
                self.model, stop_reason, usage=usage, cost=cost, error=error
            )
        )
        assert isinstance(message, AssistantMessage)
        self.account.charge(usage, cost)
        if self.asking is not None:
            self.asking.end(self.assembly or Assembly(), error, usage, cost)
            self.asking = None
        self.assembly = None
        calls = message.tool_calls
        if len(calls) > 1 and len({call.id for call in calls}) < len(calls):
            message = _with_unique_ids(message)
        self._take_reply(message, tools)

    def commit_partial(self, ending: Literal["error", "aborted"], error: AgentError | None) -> None:
        """Keep what arrived of a reply that did not come to its end, and what it cost."""
        self.commit_reply((), ending, error)

    def settle(self, call: Call, result: ToolResult) -> None:
        """Give a call its result, once."""
        if call.result is not None:
            return
        if call.note:
            told = Text(f"\n\nnote from the user on this call: {call.note}")
            result = replace(result, content=(*result.content, told))
        call.result = result
        if call.context is not None:
            call.context.close()
        if call.timer is not None:
            call.timer.cancel()
        if call.settled is not None:
            # The run is woken before the reader of its events, so one wake-up of the reader serves both.
            call.settled()
        if self.ended is not None:
            self.ended(call, result)
        if call.observed is not None:
            call.observed.end(result, call.why)
        self.emit(ToolExecutionEnd(call.call.id, call.call.name, result, result.is_error))

    def result_message(self, call: ToolCall, result: ToolResult) -> ToolResultMessage:
        """A result as it will be kept."""
        message = ToolResultMessage(call.id, call.name, result.content, result.is_error, result.details)
        return cast(ToolResultMessage, self._vetted(message))

    def commit_results(self) -> None:
        """Put the results of all calls into the history, in call order."""
        committed: list[ToolResultMessage] = []
        while self.calls:
            call, result = self.calls[0].call, self.calls[0].result
            assert result is not None
            message = ToolResultMessage(call.id, call.name, result.content, result.is_error, result.details)
            message = self._commit(message, self.calls)
            assert isinstance(message, ToolResultMessage)
            committed.append(message)
        self.results = tuple(committed)

    def replace_reply(self, message: Message) -> bool:
        """Keep another reply for this turn; False if its tool calls differ from those that were run."""
        message = self._vetted(message)
        last = self.reply
        if last is None or not isinstance(message, AssistantMessage) or message.tool_calls != last.tool_calls:
            log.warning("a policy's replacement was refused: the tool calls must stay as they are")
            return False
        self.history = self.history.replaced(last, message)
        self.produced[next(index for index, item in enumerate(self.produced) if item is last)] = message
        self.reply = message
        return True

    def end_turn(self, reason: TurnEndReason) -> None:
        """End the turn; what was changed from outside meanwhile takes effect."""
        assert self.reply is not None
        changed = self._changed_state()
        self._turn_open = False
        self.fresh = ()
        self.last = Turn(self.reply, self.results, reason) if self.slots.post_run else None
        if changed is not None:
            self.emit(changed)
        if self._observed_turn is not None:
            self._observed_turn.end(reason)
        self.emit(TurnEnd(self.reply, self.results, reason))
        self._apply_changes()

    def close(self, stop_reason: StopReason, reason: str | None, error: AgentError | None) -> None:
        """Complete what is open, and announce the end of the run."""
        ending: Literal["error", "aborted"] = "error" if stop_reason == "error" else "aborted"
        try:
            self.end_request(error)
            if self._turn_open:
                if self.reply is None:
                    self.commit_partial(ending, error)
                self._settle_all(ending)
                self.end_turn(ending)
            self.enter_pending()
            self._apply_changes()
        finally:
            self.closed = True
            emit, self.emit = self.emit, _ignore
            emit(AgentEnd(tuple(self.produced), stop_reason, reason))
            self._apply_changes()

    def _take_reply(self, message: AssistantMessage, tools: Sequence[Tool]) -> None:
        self.reply = message
        self.calls = [Call(call, find_tool(tools, call.name)) for call in message.tool_calls]
        self._keep(message)
        self.emit(MessageEnd(message))

    def _spent(self, error: AgentError | None = None) -> Spent:
        return self.account.attempt(self.model, self.assembly, error)

    def _commit(self, message: Message, queue: list[Any]) -> Message:
        """Announce a message and keep it; it leaves the head of its queue in the same step."""
        message = self._vetted(message)
        self.emit(MessageStart(message.role))
        del queue[0]
        self._keep(message)
        self.emit(MessageEnd(message))
        return message

    def _vetted(self, message: Message) -> Message:
        if not self.slots.pre_commit:
            return message
        kept = vet_commit(self.slots.pre_commit, message)
        if self.injected and kept is not message:
            self.injected = [kept if item is message else item for item in self.injected]
        return kept

    def _keep(self, message: Message) -> None:
        self.history.append(message)
        self.produced.append(message)

    def _apply_changes(self) -> None:
        """Carry out what was asked for during the turn: another history, appended messages."""
        if self._next_history is not None:
            self.history, self._next_history = self._next_history, None
            self.open = None
        while self._appended:
            if self.closed:
                self.history.append(self._vetted(self._appended.pop(0)))
            else:
                self._commit(self._appended[0], self._appended)

    def _changed_state(self) -> StateChanged | None:
        if not self._state and not self._known_state:
            return None
        before, self._known_state = self._known_state, encode_state(self._state)
        delta = {key: decode(value) for key, value in self._known_state.items() if before.get(key) != value}
        removed = tuple([key for key in before if key not in self._known_state])
        return StateChanged(delta, removed) if delta or removed else None

    def _settle_all(self, ending: Literal["error", "aborted"]) -> None:
        """Give a result to every call that has none: the pairing rule holds in every outcome."""
        text = "not run: the reply failed" if ending == "error" else "cancelled: the run was aborted"
        for call in self.calls:
            if call.result is None:
                call.why = call.why or f"tool call {text}"
                if call.task is not None and not call.task.get_loop().is_closed():
                    call.task.cancel()
                self.settle(call, failure(call.why))
        if self.calls:
            self.commit_results()

    def _refuse_if_closed(self) -> None:
        # A task that swallowed its cancellation may still go on; the history is no longer its own.
        if self.closed:
            raise asyncio.CancelledError


def find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    """The tool of that name."""
    for tool in tools:
        if tool.name == name:
            return tool
    return None


def _with_unique_ids(message: AssistantMessage) -> AssistantMessage:
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


def _ignore(event: AgentEvent) -> None:
    """Where a closed run's events go."""
