"""The ledger of a run: what is committed, what is still open, and what it costs.

It is what makes a history interruption-proof. Every change is synchronous: a message enters the history and
is announced in one step, and `close` completes whatever is open (reply, calls, turn) without a single await.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.config import AgentLoopConfig
from swink.agent.engine.account import Account, Spent
from swink.agent.engine.turnstate import Attempt, Call, CallContext, TurnState
from swink.agent.policy import NO_SLOTS, Policy, Slots, vet_commit
from swink.agent.statewatch import state_changes
from swink.errors import AgentError, message_of
from swink.events import (
    AgentEnd,
    AgentEvent,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    TurnEnd,
    TurnStart,
)
from swink.messages import (
    AssistantMessage,
    Input,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    TurnEndReason,
    as_messages,
)
from swink.messages.codec import encode_state
from swink.messages.history import History, paired, with_unique_ids
from swink.messages.message import USER_NOTE
from swink.messages.records import OpenTurn, PendingApproval, fingerprint
from swink.stream import observer
from swink.tools import Tool, failure

log = logging.getLogger("swink.run")


class Recorder(Protocol):
    """What records a run while it goes on, as the engine sees it."""

    @property
    def is_up_to_date(self) -> bool:
        """Whether everything is stored, and nothing is on its way."""
        ...

    def note(self, happened: Sequence[Message] | PendingApproval | Call) -> None:
        """Prompts have entered, a person is asked, or a call has its result: to be stored soon."""
        ...

    async def ask(self) -> None:
        """A model is about to be asked. What raises here keeps it from that."""
        ...

    async def begin(self, calls: Sequence[Call]) -> None:
        """Store that these calls begin, or wait for an approval. What raises here keeps them from running."""
        ...

    async def save(self) -> None:
        """Return when the run as it is now is stored, its last turn included."""
        ...

    def close(self, *, is_late: bool = False) -> None:
        """Begin nothing more; if it is late, what is on its way is given up."""
        ...


class Inbox(Struct, eq=False):
    """What is about to enter the history: before the next turn, at the end of this one, or instead of it."""

    pending: list[Message] = []
    fresh: tuple[Message, ...] = ()
    """What entered for this turn."""
    injected: tuple[Message, ...] = ()
    """What policies added in this run."""
    appended: list[Message] | None = None
    history: History | None = None

    def queue(self, messages: Input) -> None:
        """Let messages enter before the next turn."""
        self.pending.extend(paired(as_messages(messages)))

    def inject(self, messages: Sequence[Message]) -> None:
        """Let messages of a policy enter before the next turn."""
        self.injected = (*self.injected, *messages)
        self.pending.extend(messages)


class Ledger:
    """What a run has committed, and what is open in it."""

    __slots__ = (
        "_state", "_told", "account", "attempt", "call_inside", "closed", "emit", "history", "inbox",
        "observed", "open", "produced", "recorder", "slots", "turn",
    )  # fmt: skip

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
        self.slots = Slots(policies) if policies else NO_SLOTS
        self.account = Account(config.price)
        if isinstance(self.account.payer, CallContext):
            self.account.payer.pays_for(self)
        self.attempt = Attempt(self.account, config.spec)
        self.turn = TurnState(0, 0, is_open=False)
        self.inbox = Inbox()
        self.produced: list[Message] = []
        self.closed = False
        self.open = open
        """The turn that was left open, by this run or one before it."""
        self.recorder: Recorder | None = None
        self.observed: observer.ObservedRun | None = None
        self.call_inside: Callable[[Call, str, dict[str, Any]], Awaitable[ToolResult]] | None = None
        self._state = config.state
        self._told = encode_state(config.state) if config.state else None

    def append(self, messages: Sequence[Message], *, by_policy: bool = False) -> None:
        """Let messages enter at the end of the turn, where they part no call from its result."""
        added, inbox = paired(messages), self.inbox
        if by_policy:
            inbox.injected = (*inbox.injected, *added)
        if self.closed:
            for message in added:
                self.history.append(self.vetted(message))
        elif inbox.appended is None:
            inbox.appended = added
        else:
            inbox.appended.extend(added)

    def replace_history(self, history: History) -> None:
        """Use another history from the next turn on."""
        self.inbox.history = history
        if self.closed:
            self._apply_changes()

    def enter_pending(self) -> None:
        """Move pending messages into the context; each changes from queue to history in one step."""
        pending = self.inbox.pending
        entered: list[Message] = []
        while pending:
            entered.append(self._commit(pending[0], pending))
        self.inbox.fresh = (*self.inbox.fresh, *entered)

    def open_turn(self) -> None:
        """Begin a turn and its reply; the reply begins once, however many attempts it takes."""
        if self.closed:
            raise asyncio.CancelledError  # into a task that swallowed one: the history is no longer its own
        turn = self.turn = TurnState(self.turn.number + 1, len(self.history.items))
        if observer.current is not None:
            turn.observed = observer.current.turn(turn.number)
        self.emit(TurnStart(turn.number))
        self.emit(MessageStart("assistant"))

    def reopen_turn(self, tools: Sequence[Tool]) -> None:
        """Take up the turn that was left open: announce its reply again, keep what has ended."""
        left = self.open
        assert left is not None
        self.open_turn()
        self.open, self.turn.left = None, left
        self._take_reply(left.reply, tools)
        for call in self.turn.calls:
            call.take_up(left, self.emit)

    def leave_open(self) -> None:
        """End the turn without its results: the reply leaves the history until its calls have ended."""
        turn = self.turn
        reply = turn.reply
        assert reply is not None
        calls = turn.all_calls
        results = {call.call.id: call.result for call in calls if call.result is not None and not call.waits}
        pending = {call.call.id: call.pending for call in calls if call.pending is not None}
        self.history = History.of(self.history.items[: turn.begins])
        self.produced = [message for message in self.produced if message is not reply]
        made = {call.call.id: fingerprint(call.call) for call in calls if call.outer is not None}
        self.open = OpenTurn(reply, set(results), results, pending, made)
        self.end_turn("approval")

    def open_attempts(self) -> list[Spent]:
        """What the attempts under way, here and in the runs inside, have spent if they end here."""
        if self.attempt.assembly is not None:
            return [self.attempt.spent()]
        contexts = [call.context for call in self.turn.all_calls if call.context is not None]
        return [spent for context in contexts for spent in context.open_attempts()]

    def discard_reply(self, number: int, error: AgentError) -> None:
        """Forget what a failed attempt showed, but not what it cost."""
        attempt = self.attempt
        if attempt.assembly is not None and attempt.assembly.has_content:
            self.emit(MessageDiscarded(number, message_of(error)))
        self.account.charge(*attempt.spent(error))
        attempt.assembly = None

    def commit_reply(
        self, tools: Sequence[Tool], stop_reason: StopReason, error: AgentError | None = None
    ) -> None:
        """Price the reply, put it into the history and end it; one that was cut off is kept as it is."""
        if self.closed:
            raise asyncio.CancelledError
        attempt = self.attempt
        made = attempt.message(stop_reason, error)
        message: Any = self.vetted(made) if self.slots.pre_commit else made
        self.account.charge(made.usage, made.cost)
        if attempt.observed is not None:
            attempt.end(error)
        attempt.assembly = None
        self._take_reply(message, tools)

    def settle(self, call: Call, result: ToolResult) -> None:
        """Give a call its result, once."""
        if call.result is not None:
            return
        if call.note:
            result = replace(result, content=(*result.content, Text(USER_NOTE + call.note)))
        for made in call.inside:
            if made.pending is None:
                self.settle(made, result)
        call.result = result
        if call.context is not None:
            call.context.close()
        if call.timer is not None:
            call.timer.cancel()
        if call.settled is not None:
            # The run is woken before the reader of its events, so one wake-up of the reader serves both.
            call.settled(1)
        call.context = call.settled = None  # what they hold holds the call: all is freed at once
        if self.recorder is not None:
            self.recorder.note(call)
        if call.observed is not None:
            call.observed.end(result, call.why)
        self.emit(ToolExecutionEnd(call.call.id, call.call.name, result, result.is_error, call.outer_id))

    def commit_results(self) -> None:
        """Put the results of all calls into the history, in call order."""
        calls = self.turn.calls
        results: list[Any] = []
        while calls:
            call, result = calls[0].call, calls[0].result
            assert result is not None
            message = ToolResultMessage(call.id, call.name, result.content, result.is_error, result.details)
            results.append(self._commit(message, calls))
        self.turn.results = tuple(results)

    def replace_reply(self, message: Message) -> bool:
        """Keep another reply for this turn; False if its tool calls differ from those that were run."""
        message = self.vetted(message)
        last = self.turn.reply
        if last is None or not isinstance(message, AssistantMessage) or message.tool_calls != last.tool_calls:
            log.warning("a policy's replacement was refused: the tool calls must stay as they are")
            return False
        self.history = self.history.replaced(last, message)
        self.produced[next(index for index, item in enumerate(self.produced) if item is last)] = message
        self.turn.reply = message
        return True

    def end_turn(self, reason: TurnEndReason) -> None:
        """End the turn; what was changed from outside meanwhile takes effect."""
        turn = self.turn
        assert turn.reply is not None
        turn.is_open, turn.reason = False, reason
        self.inbox.fresh = ()
        if self._state or self._told:
            self._told = state_changes(self._state, self._told or {}, self.emit)
        if turn.observed is not None:
            turn.observed.end(reason)
        self.emit(TurnEnd(turn.reply, turn.results, reason))
        if self.inbox.history is not None or self.inbox.appended:
            self._apply_changes()

    def close(self, stop_reason: StopReason, reason: str | None, error: AgentError | None) -> None:
        """Complete what is open, and announce the end of the run."""
        ending: Literal["error", "aborted"] = "error" if stop_reason == "error" else "aborted"
        inbox = self.inbox
        try:
            if self.attempt.observed is not None:
                self.attempt.end(error)
            if self.turn.is_open:
                if self.turn.reply is None:
                    self.commit_reply((), ending, error)
                self._settle_all(ending)
                self.end_turn(ending)
            if inbox.pending:
                self.enter_pending()
            if inbox.history is not None or inbox.appended:
                self._apply_changes()
        finally:
            self.closed = True
            emit, self.emit = self.emit, _ignore
            emit(AgentEnd(tuple(self.produced), stop_reason, reason))
            if inbox.history is not None or inbox.appended:
                self._apply_changes()

    def vetted(self, message: Message) -> Message:
        """The message as the pre-commit policies want it kept."""
        if not self.slots.pre_commit:
            return message
        kept, inbox = vet_commit(self.slots.pre_commit, message), self.inbox
        if inbox.injected and kept is not message:
            inbox.injected = tuple([kept if item is message else item for item in inbox.injected])
        return kept

    def _take_reply(self, message: AssistantMessage, tools: Sequence[Tool]) -> None:
        calls = message.tool_calls
        if calls[1:] and len({call.id for call in calls}) < len(calls):
            message = with_unique_ids(message)
            calls = message.tool_calls
        self.turn.reply = message
        for call in calls:
            self.turn.calls.append(Call(call, find_tool(tools, call.name)))
        self.history.append(message)
        self.produced.append(message)
        self.emit(MessageEnd(message))

    def _commit(self, message: Message, queue: list[Any]) -> Message:
        """Announce a message and keep it; it leaves the head of its queue in the same step."""
        if self.slots.pre_commit:
            message = self.vetted(message)
        self.emit(MessageStart(message.role))
        del queue[0]
        self.history.append(message)
        self.produced.append(message)
        self.emit(MessageEnd(message))
        return message

    def _apply_changes(self) -> None:
        """Carry out what was asked for during the turn: another history, appended messages."""
        inbox = self.inbox
        if inbox.history is not None:
            self.history, inbox.history = inbox.history, None
            self.open = None
        while inbox.appended:
            if self.closed:
                self.history.append(self.vetted(inbox.appended.pop(0)))
            else:
                self._commit(inbox.appended[0], inbox.appended)

    def _settle_all(self, ending: Literal["error", "aborted"]) -> None:
        """Give a result to every call that has none: the pairing rule holds in every outcome."""
        text = "not run: the reply failed" if ending == "error" else "cancelled: the run was aborted"
        for call in self.turn.calls:
            if call.result is None:
                call.why = call.why or f"tool call {text}"
                if call.task is not None and not call.task.get_loop().is_closed():
                    call.task.cancel()
                self.settle(call, failure(call.why))
        if self.turn.calls:
            self.commit_results()


def as_message(call: ToolCall, result: ToolResult) -> ToolResultMessage:
    """The result of a call as a message."""
    return ToolResultMessage(call.id, call.name, result.content, result.is_error, result.details)


def find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    """The tool of that name."""
    for tool in tools:
        if tool.name == name:
            return tool
    return None


def _ignore(event: AgentEvent) -> None:
    """Where a closed run's events go."""
