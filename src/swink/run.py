"""One run: its ledger of what is committed and what is open, and the task that drives it.

The ledger is what makes a history interruption-proof. Every change of it is synchronous: a message enters the history
and is announced in one step, and `close` ends whatever is open (reply, calls, turn, run) without a single await,
whoever calls it and wherever the run was.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import coroutine
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from swink.account import Account
from swink.config import AgentContext, AgentLoopConfig, AgentResult
from swink.errors import Aborted, AgentError
from swink.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    StateChanged,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from swink.history import History
from swink.messages import (
    AssistantMessage,
    Cost,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    TurnEndReason,
    Usage,
)
from swink.policy import Policy, PolicyContext, slots_of, vet_commit
from swink.state import changes, copied, encoded
from swink.stream import Assembly
from swink.tool import Tool, ToolContext
from swink.watch import Watch

log = logging.getLogger("swink.run")

SAVE_WITHIN, SAVE_ABORTED = 60.0, 5.0
"""Seconds the last save of a run may take, in general and after an abort."""
ABANDON_AFTER = 1.0
"""Seconds after an abort at which a run that swallows cancellation is closed without it."""


class Call:
    """One tool call on its way to a result."""

    __slots__ = ("arguments", "call", "context", "prepared", "result", "running", "task", "timer", "tool", "why")

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

    __slots__ = ("_run",)

    def __init__(self, run: "Run", call: Call) -> None:
        ToolContext.__init__(self, call.call.id, call.call.name, run.config.state)
        self._run: Run | None = run

    def close(self) -> None:
        """The call is over: whatever still runs of it is no longer heard."""
        self._run = None

    def _report(self, update: Any) -> None:
        if self._run is not None:
            self._run.emit(ToolExecutionUpdate(self.call_id, self.name, update))

    def _bill(self, usage: Usage, cost: Cost | None) -> None:
        if self._run is not None:
            self._run.account.charge(usage, cost)


class Sink(Protocol):
    """Where a run's events go, and who is woken when it is over."""

    def push(self, event: AgentEvent) -> None:
        """Take an event."""
        ...

    def wake(self) -> None:
        """The run is over."""
        ...


class Run:
    """The ledger of one run, and its task."""

    __slots__ = (
        "__weakref__",
        "_abandoning",
        "_abort_reason",
        "_appended",
        "_deadline",
        "_ended",
        "_finished",
        "_known_state",
        "_message_open",
        "_next_history",
        "_saved",
        "_saver",
        "_saving",
        "_sink",
        "_task",
        "_thread",
        "_turn_open",
        "account",
        "assembly",
        "calls",
        "closed",
        "config",
        "context",
        "dropped",
        "emit",
        "error",
        "extra_tools",
        "failure",
        "fresh",
        "history",
        "is_over",
        "loop",
        "model",
        "overflow",
        "pausing",
        "pending",
        "produced",
        "reason",
        "reply",
        "results",
        "slots",
        "stop_reason",
        "tool_choice",
        "turn",
        "watch",
    )

    def __init__(
        self,
        config: AgentLoopConfig,
        context: AgentContext,
        history: History,
        sink: Sink,
        ended: Callable[["Run"], None],
        *,
        tools: Sequence[Tool] = (),
        policies: Sequence[Policy] = (),
        tool_choice: str | None = None,
        overflow: bool = False,
    ) -> None:
        self.config = config
        self.context = context
        self.history = history
        self.emit = sink.push
        self._sink = sink
        self._ended = ended
        self.extra_tools = tuple(tools)
        self.tool_choice = tool_choice
        self.overflow = overflow
        self.slots = slots_of((*config.policies, *policies))
        self.turn = 0
        self.account = Account(config.price)
        self.produced: list[Message] = []
        self.fresh: tuple[Message, ...] = ()
        self.pending: list[Message] = []
        self.dropped: dict[int, int] | None = None
        self.assembly: Assembly | None = None
        self.model = config.model
        self.reply: AssistantMessage | None = None
        self.calls: Sequence[Call] = ()
        self.results: tuple[ToolResultMessage, ...] = ()
        self.stop_reason: StopReason | None = None
        self.reason: str | None = None
        self.error: AgentError | None = None
        self.failure: BaseException | None = None
        self.pausing = False
        self.closed = False
        self._turn_open = False
        self._message_open = False
        self._saved = 0
        self._saving: asyncio.Future[None] | None = None
        self._saver: asyncio.Task[None] | None = None
        self.is_over = False
        self._known_state = encoded(config.state)
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.get_ident()
        self._abort_reason: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._abandoning: asyncio.TimerHandle | None = None
        self._next_history: History | None = None
        self._appended: list[Message] | None = None
        self.loop = asyncio.get_running_loop()
        self._finished: asyncio.Future[None] | None = None
        self.watch: Watch | None = None

    # What a run is told from outside

    def start(self, prompts: Sequence[Message], body: Callable[["Run"], Coroutine[Any, Any, None]], deadline: float | None = None) -> None:
        """Announce the run, take the prompts into the history, and begin.

        The body is run up to its `begun()`, so that a task cancelled before its first step ends the run like any other.
        """
        self.emit(AgentStart())
        self.pending.extend(prompts)
        self.enter_pending()
        coroutine = body(self)
        coroutine.send(None)
        self._task = self.loop.create_task(coroutine)
        self.watch = Watch(self._task, self.loop)
        if self._abort_reason is not None:
            self._task.cancel()
        elif deadline is not None and deadline <= 0:
            self.abort(f"deadline of {deadline:g} s passed")
        elif deadline is not None:
            self._deadline = self.loop.call_later(deadline, self.abort, f"deadline of {deadline:g} s passed")

    def abort(self, reason: str = "the run was aborted") -> None:
        """End the run at once, keeping what arrived; safe from any thread."""
        if threading.get_ident() != self._thread:
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self.abort, reason)
            return
        if self.closed or self._abort_reason is not None:
            return
        self._abort_reason = reason
        if self._task is not None:
            self._task.cancel()
        self._abandoning = self.loop.call_later(ABANDON_AFTER, self.close, "aborted")

    async def wait(self) -> None:
        """Return when the run is over; cancelling the waiter aborts the run, and still waits for its end."""
        interrupted: asyncio.CancelledError | None = None
        while not self.is_over:
            if self._finished is None:
                self._finished = self.loop.create_future()
            try:
                await asyncio.wait([self._finished])
            except asyncio.CancelledError as error:
                interrupted = error
                self.abort("the caller was cancelled")
        if interrupted is not None:
            raise interrupted

    def replace_history(self, history: History) -> None:
        """Use another history from the next turn on."""
        self._next_history = history

    def outcome(self) -> AgentResult:
        """What the run came to."""
        return AgentResult(
            tuple(self.produced),
            self.stop_reason or "stop",
            *self.account.totals,
            None if self.error is None else str(self.error),
            None if self.error is None else self.error.kind,
            self.reason,
        )

    # The ledger: what the loop and the dispatch write down

    @property
    def aborting(self) -> bool:
        """Whether the run was aborted or closed meanwhile."""
        return self.closed or self._abort_reason is not None

    def check(self) -> None:
        """Stop here if the run was aborted or closed meanwhile."""
        if self.closed or self._abort_reason is not None:
            raise asyncio.CancelledError

    def append(self, messages: Sequence[Message]) -> None:
        """Add messages at the end of the turn, where they part no call from its result."""
        self._appended = [*(self._appended or ()), *messages]

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
        self.calls = ()
        self.results = ()
        self.emit(TurnStart(self.turn))

    def open_reply(self) -> None:
        """Begin the turn's reply; once per turn, however many attempts it takes."""
        self._message_open = True
        self.emit(MessageStart("assistant"))

    def discard_reply(self, attempt: int, error: AgentError) -> None:
        """Forget what a failed attempt showed, but not what it cost."""
        if self.assembly is not None:
            if self.assembly.has_content:
                self.emit(MessageDiscarded(attempt, str(error)))
            if self.assembly.terminal is not None and self.assembly.terminal.usage.total:
                usage = self.assembly.terminal.usage
                self.account.charge(usage, self.account.price(self.model, usage))
        self.assembly = None

    def commit_reply(self, stop_reason: StopReason, usage: Usage, cost: Cost | None, error: AgentError | None = None) -> AssistantMessage:
        """Price the reply, put it into the history and end it."""
        self._refuse_if_closed()
        if not self._message_open:
            self.open_reply()
        cost = cost or self.account.price(self.model, usage)
        message = (self.assembly or Assembly()).message(self.model, stop_reason, usage=usage, cost=cost, error=error)
        self.account.charge(usage, cost)
        self.assembly = None
        self._message_open = False
        calls = message.tool_calls
        if len(calls) > 1 and len({call.id for call in calls}) < len(calls):
            message = _with_unique_ids(message)
            calls = message.tool_calls
        if self.slots.pre_commit:
            message = vet_commit(self.slots.pre_commit, message)
            assert isinstance(message, AssistantMessage)
            calls = message.tool_calls
        self.reply = message
        self.calls = [Call(call, self.find_tool(call.name)) for call in calls] if calls else ()
        self._keep(message)
        self.emit(MessageEnd(message))
        return message

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

    def commit_results(self) -> tuple[ToolResultMessage, ...]:
        """Put the results of all calls into the history, in call order."""
        committed: list[ToolResultMessage] = []
        for call in self.calls:
            assert call.result is not None
            result = call.result
            message = self._commit(ToolResultMessage(call.call.id, call.call.name, result.content, result.is_error, result.details))
            assert isinstance(message, ToolResultMessage)
            committed.append(message)
        self.results = tuple(committed)
        self.calls = ()
        return self.results

    def replace_reply(self, message: Message) -> None:
        """Keep another reply for this turn; its tool calls must be the same, since their results are already there."""
        if self.reply is None or not isinstance(message, AssistantMessage) or message.tool_calls != self.reply.tool_calls:
            log.warning("a policy's replacement was refused: the tool calls must stay as they are")
            return
        self.history = self.history.replaced(self.reply, message)
        self.produced[next(index for index, item in enumerate(self.produced) if item is self.reply)] = message
        self.reply = message

    def end_turn(self, reason: TurnEndReason) -> None:
        """End the turn."""
        assert self.reply is not None
        changed = self._state_changed()
        self._turn_open = False
        self.fresh = ()
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

    async def save(self) -> None:
        """Hand what is new to the session; one append at a time, and a cancelled wait does not cancel the append."""
        while self._saved < len(self.produced):
            if self._saving is None:
                self._saving = asyncio.ensure_future(self._append(len(self.produced)))
            try:
                await asyncio.shield(self._saving)
            finally:
                if self._saving.done():
                    self._saving = None

    def close(self, stop_reason: StopReason | None = None) -> None:
        """End whatever is open and the run with it. Synchronous and idempotent: nothing can interrupt it."""
        if self.closed:
            return
        if stop_reason is not None and self.stop_reason not in ("error", "aborted"):
            self.stop_reason = stop_reason
            self.reason = self._abort_reason or self.reason
            if stop_reason == "aborted" and self.error is None:
                self.error = Aborted(self.reason or "the run was cancelled")
        if self.stop_reason is None and self.reply is not None:
            self.stop_reason = self.reply.stop_reason
        ending: Literal["error", "aborted"] = "error" if self.stop_reason == "error" else "aborted"
        if self._turn_open:
            if self.reply is None:
                terminal = self.assembly.terminal if self.assembly is not None else None
                self.commit_reply(ending, terminal.usage if terminal is not None else Usage(), None, self.error)
            self._settle_all(ending)
            self.end_turn(ending)
        self.enter_pending()
        self._take_over()
        self.closed = True
        self.emit(AgentEnd(tuple(self.produced), self.stop_reason or "stop", self.reason))
        self.emit = _ignore
        self._take_over()
        for timer in (self._deadline, self._abandoning):
            if timer is not None:
                timer.cancel()
        if self.config.save is None or self.loop.is_closed():
            self._over()
        else:
            self._saver = self.loop.create_task(self._save_rest())

    def crash(self, error: BaseException) -> None:
        """A hook failed: the run ends in an error, and whoever awaits it gets the exception itself."""
        self.failure = error
        if self.error is None:
            self.error = HookFailed(f"{type(error).__name__}: {error}")
        self.stop_reason = "error"
        self.close("error")
        if self._task is not None and not isinstance(error, Exception):
            # It goes on to end the event loop; asyncio need not warn that nobody asked this task for it.
            self._task.add_done_callback(lambda task: task.exception())

    # Facts the loop asks for

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
        return PolicyContext(
            self.turn,
            self.model,
            self.context.system_prompt,
            self.history.snapshot(),
            self.fresh,
            *self.account.totals,
            copied(self.config.state),
        )

    # Inside

    async def _append(self, upto: int) -> None:
        assert self.config.save is not None
        await self.config.save(self.produced[self._saved : upto])
        self._saved = upto

    async def _save_rest(self) -> None:
        """Save what the end of the run added, within bounds: a session that hangs or fails is the caller's to hear."""
        until = self.loop.time() + (SAVE_ABORTED if self._abort_reason is not None else SAVE_WITHIN)
        try:
            while self._saved < len(self.produced):
                try:
                    async with asyncio.timeout_at(until):
                        await self.save()
                except asyncio.CancelledError:
                    continue
        except Exception as error:
            # A session is somebody else's code; the run is over, so its failure is kept for whoever awaits the result.
            log.exception("the end of a run was not saved")
            if self._saving is not None:
                self._saving.cancel()
            self.failure = self.failure or (TimeoutError("the session did not save in time") if isinstance(error, TimeoutError) else error)
        finally:
            self._over()

    def _over(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self._finished is not None and not self.loop.is_closed():
            self._finished.set_result(None)
        self._ended(self)
        self._sink.wake()

    def _commit(self, message: Message, queue: list[Message] | None = None) -> Message:
        """Announce a message and keep it; it leaves the head of its queue in the same step, so that it is always in one place."""
        if self.slots.pre_commit:
            message = vet_commit(self.slots.pre_commit, message)
        self.emit(MessageStart(message.role))
        if queue is not None:
            del queue[0]
        self._keep(message)
        self.emit(MessageEnd(message))
        return message

    def _refuse_if_closed(self) -> None:
        # A task that swallowed its cancellation may still be on its way; the history is no longer its own.
        if self.closed:
            raise asyncio.CancelledError

    def _take_over(self) -> None:
        """What was changed from outside during the turn takes effect: another history, appended messages."""
        if self._next_history is not None:
            self.history, self._next_history = self._next_history, None
        while self._appended:
            if self.closed:
                self.history.append(self._appended.pop(0))
            else:
                self._commit(self._appended[0], self._appended)

    def _keep(self, message: Message) -> None:
        self.history.append(message)
        self.produced.append(message)

    def _state_changed(self) -> StateChanged | None:
        if not self.config.state and not self._known_state:
            return None
        before, self._known_state = self._known_state, encoded(self.config.state)
        return changes(before, self._known_state)

    def _settle_all(self, ending: Literal["error", "aborted"]) -> None:
        """A result for every call that has none: the pairing rule holds in every outcome."""
        text = "tool call not run: the reply failed" if ending == "error" else "tool call cancelled: the run was aborted"
        for call in self.calls:
            if call.result is None:
                call.why = call.why or text
                if call.task is not None:
                    call.task.cancel()
                self.settle(call, ToolResult((Text(call.why),), is_error=True))
        if self.calls:
            self.commit_results()


class HookFailed(AgentError):
    """A hook of the application raised; the exception itself is raised from the run."""

    kind = "hook"


@coroutine
def begun() -> Generator[None, None, None]:
    """Where a run's body stands when its task is made."""
    yield


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
