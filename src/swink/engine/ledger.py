"""The ledger of a run: what is committed, and what is still open.

It is what makes a history interruption-proof. Every change of it is synchronous: a message enters the history and is
announced in one step, and `end` closes whatever is open (reply, calls, turn) without a single await.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from swink.account import Account
from swink.config import AgentContext, AgentLoopConfig, AgentResult
from swink.engine.history import History, paired
from swink.errors import AgentError
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
    ToolCall,
    ToolResult,
    ToolResultMessage,
    TurnEndReason,
    Usage,
    as_messages,
)
from swink.policy import Ending, Policy, PolicyContext, RunKey, Turn, slots_of, vet_commit
from swink.state import changes, copied, encoded
from swink.stream import Assembly
from swink.tool import Tool, ToolContext, failure

log = logging.getLogger("swink.run")


class Call:
    """One tool call on its way to a result."""

    __slots__ = (
        "arguments",
        "call",
        "context",
        "prepared",
        "result",
        "running",
        "task",
        "timer",
        "tool",
        "why",
    )

    def __init__(self, call: ToolCall, tool: Tool | None) -> None:
        self.call = call
        self.tool = tool
        self.arguments = call.arguments
        self.prepared: dict[str, Any] | None = None
        self.result: ToolResult | None = None
        self.running = False
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        self.context: ToolContext | None = None
        self.why = ""


class CallContext(ToolContext):
    """What a call of a run tells its run, until it is settled."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: "Ledger", call: Call) -> None:
        ToolContext.__init__(self, call.call.id, call.call.name, ledger.config.state)
        self._ledger: Ledger | None = ledger

    def close(self) -> None:
        """The call is over: whatever still runs of it is no longer heard."""
        self._ledger = None

    def _report(self, update: Any) -> None:
        if self._ledger is not None:
            self._ledger.emit(ToolExecutionUpdate(self.call_id, self.name, update))

    def _bill(self, usage: Usage, cost: Cost | None) -> None:
        if self._ledger is not None:
            self._ledger.account.charge(usage, cost)


class Ledger:
    """What a run has committed, and what is open in it."""

    __slots__ = (
        "__weakref__",
        "_appended",
        "_key",
        "_known_state",
        "_message_open",
        "_next_history",
        "_turn_open",
        "account",
        "assembly",
        "calls",
        "closed",
        "config",
        "context",
        "emit",
        "error",
        "extra_tools",
        "fresh",
        "history",
        "injected",
        "last",
        "model",
        "pending",
        "produced",
        "reason",
        "reply",
        "requests",
        "results",
        "slots",
        "stop_reason",
        "turn",
    )

    def __init__(
        self,
        config: AgentLoopConfig,
        context: AgentContext,
        history: History,
        emit: Callable[[AgentEvent], None],
        tools: Sequence[Tool],
        policies: Sequence[Policy],
    ) -> None:
        self.config = config
        self.context = context
        self.history = history
        self.emit = emit
        self.extra_tools = tuple(tools)
        self.slots = slots_of((*config.policies, *policies))
        self.account = Account(config.price)
        self.turn = 0
        self.requests = 0
        self.produced: list[Message] = []
        self.fresh: tuple[Message, ...] = ()
        self.pending: list[Message] = []
        self.injected: list[Message] = []
        self.assembly: Assembly | None = None
        self.model = config.model
        self.reply: AssistantMessage | None = None
        self.calls: list[Call] = []
        self.results: tuple[ToolResultMessage, ...] = ()
        self.last: Turn | None = None
        self.stop_reason: StopReason | None = None
        self.reason: str | None = None
        self.error: AgentError | None = None
        self.closed = False
        self._key: RunKey | None = None
        self._turn_open = False
        self._message_open = False
        self._known_state = encoded(config.state)
        self._next_history: History | None = None
        self._appended: list[Message] | None = None

    def append(self, messages: Sequence[Message]) -> None:
        """Add messages at the end of the turn, where they part no call from its result."""
        added = paired(messages)
        if self.closed:
            for message in added:
                self.history.append(self._vetted(message))
        elif self._appended is None:
            self._appended = added
        else:
            self._appended.extend(added)

    def queue(self, messages: Input) -> None:
        """Let messages enter before the next turn."""
        self.pending.extend(paired(as_messages(messages)))

    def inject(self, messages: Sequence[Message]) -> None:
        """Let messages of a policy enter before the next turn."""
        self.injected.extend(messages)
        self.pending.extend(messages)

    def inject_behind(self, messages: Sequence[Message]) -> None:
        """Let messages of a policy enter at the end of the turn."""
        self.injected.extend(messages)
        self.append(messages)

    def replace_history(self, history: History) -> None:
        """Use another history from the next turn on."""
        self._next_history = history
        if self.closed:
            self._take_over()

    def enter_pending(self) -> None:
        """Move pending messages into the context; a message leaves the queue and enters the history in one step."""
        while self.pending:
            self.fresh = (*self.fresh, self._commit(self.pending[0], self.pending))

    def open_turn(self) -> None:
        """Begin a turn."""
        self._refuse_if_closed()
        self.turn += 1
        self._turn_open = True
        self.reply = None
        self.results = ()
        self.emit(TurnStart(self.turn))

    def open_reply(self) -> None:
        """Begin the turn's reply; once per turn, however many attempts it takes."""
        self._message_open = True
        self.emit(MessageStart("assistant"))

    def attempt(self, error: AgentError) -> AssistantMessage:
        """What arrived of the attempt that failed, and what it cost."""
        terminal = self.assembly.terminal if self.assembly is not None else None
        usage = terminal.usage if terminal is not None else Usage()
        cost = self.account.price(self.model, usage)
        return (self.assembly or Assembly()).message(self.model, "error", usage=usage, cost=cost, error=error)

    def discard_reply(self, attempt: int, error: AgentError) -> None:
        """Forget what a failed attempt showed, but not what it cost."""
        if self.assembly is not None:
            if self.assembly.has_content:
                self.emit(MessageDiscarded(attempt, str(error)))
            if self.assembly.terminal is not None and self.assembly.terminal.usage.total:
                usage = self.assembly.terminal.usage
                self.account.charge(usage, self.account.price(self.model, usage))
        self.assembly = None

    def commit_reply(
        self, stop_reason: StopReason, usage: Usage, cost: Cost | None, error: AgentError | None = None
    ) -> None:
        """Price the reply, put it into the history and end it."""
        self._refuse_if_closed()
        if not self._message_open:
            self.open_reply()
        cost = cost or self.account.price(self.model, usage)
        message = (self.assembly or Assembly()).message(
            self.model, stop_reason, usage=usage, cost=cost, error=error
        )
        message = self._vetted(message)
        assert isinstance(message, AssistantMessage)
        self.account.charge(usage, cost)
        self.assembly = None
        self._message_open = False
        calls = message.tool_calls
        if len(calls) > 1 and len({call.id for call in calls}) < len(calls):
            message = _with_unique_ids(message)
            calls = message.tool_calls
        self.reply = message
        self.calls = [Call(call, self.find_tool(call.name)) for call in calls]
        self._keep(message)
        self.emit(MessageEnd(message))

    def commit_partial(self, ending: Literal["error", "aborted"]) -> None:
        """Keep what arrived of a reply that did not come to its end, and what it cost."""
        terminal = self.assembly.terminal if self.assembly is not None else None
        self.commit_reply(ending, terminal.usage if terminal is not None else Usage(), None, self.error)

    def settle(self, call: Call, result: ToolResult) -> None:
        """Give a call its result, once."""
        if call.result is not None:
            return
        call.result = result
        if call.context is not None:
            call.context.close()
        if call.timer is not None:
            call.timer.cancel()
        self.emit(ToolExecutionEnd(call.call.id, call.call.name, result, result.is_error))

    def commit_results(self) -> None:
        """Put the results of all calls into the history, in call order."""
        committed: list[ToolResultMessage] = []
        while self.calls:
            call, result = self.calls[0].call, self.calls[0].result
            assert result is not None
            message = self._commit(
                ToolResultMessage(call.id, call.name, result.content, result.is_error, result.details),
                self.calls,
            )
            assert isinstance(message, ToolResultMessage)
            committed.append(message)
        self.results = tuple(committed)

    def replace_reply(self, message: Message) -> bool:
        """Keep another reply for this turn; False if its tool calls are not the same, since their results are already there."""
        message = self._vetted(message)
        if (
            self.reply is None
            or not isinstance(message, AssistantMessage)
            or message.tool_calls != self.reply.tool_calls
        ):
            log.warning("a policy's replacement was refused: the tool calls must stay as they are")
            return False
        self.history = self.history.replaced(self.reply, message)
        self.produced[next(index for index, item in enumerate(self.produced) if item is self.reply)] = message
        self.reply = message
        return True

    def end_turn(self, reason: TurnEndReason) -> None:
        """End the turn."""
        assert self.reply is not None
        changed = self._state_changed()
        self._turn_open = False
        self.fresh = ()
        self.last = Turn(self.reply, self.results, reason) if self.slots.post_run else None
        if changed is not None:
            self.emit(changed)
        self.emit(TurnEnd(self.reply, self.results, reason))
        self._take_over()

    def stop(self, reason: str) -> None:
        """A policy ends the run."""
        self.reason = reason
        self.stop_reason = self.reply.stop_reason if self.reply is not None else "stop"

    def fail(self, error: AgentError) -> None:
        """The run ends in an error."""
        self.error = error
        self.stop_reason = "error"

    def end(self) -> None:
        """Close what is open, and announce the end of the run."""
        if self.stop_reason is None and self.reply is not None:
            self.stop_reason = self.reply.stop_reason
        ending: Literal["error", "aborted"] = "error" if self.stop_reason == "error" else "aborted"
        try:
            if self._turn_open:
                if self.reply is None:
                    self.commit_partial(ending)
                self._settle_all(ending)
                self.end_turn(ending)
            self.enter_pending()
            self._take_over()
        finally:
            self.closed = True
            emit, self.emit = self.emit, _ignore
            emit(AgentEnd(tuple(self.produced), self.stop_reason or "stop", self.reason))
            self._take_over()

    def outcome(self) -> AgentResult:
        """What the run came to."""
        return AgentResult(
            tuple(self.produced),
            self.stop_reason or "stop",
            *self.account.totals,
            self.error_text,
            None if self.error is None else self.error.kind,
            self.reason,
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of this turn."""
        return (*self.context.tools, *self.extra_tools) if self.extra_tools else tuple(self.context.tools)

    def find_tool(self, name: str) -> Tool | None:
        """The tool of that name."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        return None

    def policy_context(self) -> PolicyContext:
        """What policies see."""
        config = self.config
        self._key = self._key or RunKey()
        return PolicyContext(
            self.turn,
            self.model,
            self.context.system_prompt,
            self.history.snapshot(),
            self.fresh,
            *self.account.totals,
            copied(config.state),
            self.tools,
            (config.model, *[model for model, _ in config.fallbacks])
            if config.fallbacks
            else (config.model,),
            config.options.max_tokens,
            self.requests,
            tuple(self.injected),
            self._key,
        )

    @property
    def ending(self) -> Ending:
        """How the run ended."""
        return Ending(self.stop_reason or "stop", self.reason, self.error_text, self.last)

    @property
    def error_text(self) -> str | None:
        """What went wrong, as the policies want it kept."""
        if self.error is None:
            return None
        kept = self.reply.error_message if self.reply is not None and self.reply.failed else None
        return str(self.error) if kept is None else kept

    def _commit(self, message: Message, queue: list[Any]) -> Message:
        """Announce a message and keep it; it leaves the head of its queue in the same step, so that it is always in one place."""
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

    def _take_over(self) -> None:
        """What was changed from outside during the turn takes effect: another history, appended messages."""
        if self._next_history is not None:
            self.history, self._next_history = self._next_history, None
        while self._appended:
            if self.closed:
                self.history.append(self._vetted(self._appended.pop(0)))
            else:
                self._commit(self._appended[0], self._appended)

    def _state_changed(self) -> StateChanged | None:
        if not self.config.state and not self._known_state:
            return None
        before, self._known_state = self._known_state, encoded(self.config.state)
        return changes(before, self._known_state)

    def _settle_all(self, ending: Literal["error", "aborted"]) -> None:
        """A result for every call that has none: the pairing rule holds in every outcome."""
        text = (
            "tool call not run: the reply failed"
            if ending == "error"
            else "tool call cancelled: the run was aborted"
        )
        for call in self.calls:
            if call.result is None:
                call.why = call.why or text
                if call.task is not None and not call.task.get_loop().is_closed():
                    call.task.cancel()
                self.settle(call, failure(call.why))
        if self.calls:
            self.commit_results()

    def _refuse_if_closed(self) -> None:
        # A task that swallowed its cancellation may still be on its way; the history is no longer its own.
        if self.closed:
            raise asyncio.CancelledError


def _with_unique_ids(message: AssistantMessage) -> AssistantMessage:
    """The message with no two calls of one id, which could not be answered separately."""
    seen: set[str] = set()
    content: list[Any] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            id, count = block.id, 1
            while id in seen:
                count += 1
                id = f"{block.id}_{count}"
            seen.add(id)
            block = replace(block, id=id)
        content.append(block)
    return replace(message, content=tuple(content))


def _ignore(event: AgentEvent) -> None:
    """Where a closed run's events go."""
