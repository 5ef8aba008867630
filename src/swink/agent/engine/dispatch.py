"""One batch of tool calls: policies → approval → grouping → validation → run, with a result for every call.

Calls of a group run concurrently, each in a task of its own, so that one that ignores cancellation can be
abandoned. A call is settled exactly once, by what comes first: its own end, a timeout, a steering
interrupt, or an abort.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from swink.agent.engine.approval import ask_approval, needs_approval
from swink.agent.engine.ledger import Ledger
from swink.agent.engine.run import End, Run
from swink.agent.engine.turnstate import Call, CallContext
from swink.agent.grouping import BAD_PARTITION, groups_of
from swink.agent.policy import Inject, Rejected, Rewrite, Skip, Stop, consult
from swink.errors import InvalidInput, message_of
from swink.events import ToolExecutionStart
from swink.messages import Text, ToolCall, ToolResult, TurnEndReason, clean
from swink.messages.jsondata import DEEPEST
from swink.messages.readonly import freeze
from swink.messages.records import PendingApproval
from swink.messages.redact import describe_error, describe_traceback
from swink.stream import observer
from swink.system.aio import call_later, resolve
from swink.system.threads import in_thread
from swink.tools import CallWaits, InvalidArguments, ToolError, Transfer, as_result, cut_result, failure
from swink.tools.toolresult import LARGE, converted, is_large
from swink.tools.toolsearch import describe_unknown
from swink.tools.workers import GRACE, Abandoned

log = logging.getLogger("swink.tool")

INCOMPLETE = "error: tool call was incomplete due to max tokens reached"
STEERED = "tool call cancelled: user requested steering interrupt"
TRANSFERRED = "tool call not run: the conversation was handed over before"
ABORTED = "tool call cancelled: the run was aborted"
REWRITES = 8
"""Rounds in which policies may rewrite one call's arguments."""


class Outcome(Struct, frozen=True):
    """How a turn's calls ended, and with them the run, if a policy stopped it or a tool transferred it."""

    reason: TurnEndReason = "tools_executed"
    end: End | None = None
    refusal: str = TRANSFERRED


async def run_batch(run: Run) -> Outcome:
    """Settle every call of the turn's reply."""
    ledger = run.ledger
    for call in ledger.turn.calls:
        if call.call.partial_json is not None:
            ledger.settle(call, failure(_unparsed(call.call, ledger)))
    if run.ledger.slots.pre_dispatch:
        for call in _open(ledger):
            stopped = await ask_policies(run, call)
            if stopped is not None:
                return stopped
    deferred = False
    if run.setup.config.approval_mode != "off":
        for call in ledger.turn.calls:
            if needs_approval(run, call):
                stopped = await ask_person(run, call)
                if stopped is not None:
                    return stopped
                deferred = deferred or call.pending is not None
    batch = run.batch = Batch(run)
    waiting = list(ledger.turn.calls)
    for call in ledger.turn.calls:
        if call.result is not None:
            waiting.remove(call)
    groups = groups_of(run.setup.config.tool_execution, waiting)
    for call in waiting if groups is None else ():
        ledger.settle(call, failure(BAD_PARTITION))
    for group in groups or ():
        await batch.run_group([call for call in group if call.pending is None] if deferred else group)
        if group is not waiting or deferred:
            run.check()
            waiting = _open(ledger)
            if waiting and not batch.steered:
                batch.steered = await _steering_waits(run)
        if batch.steered:
            batch.outcome = batch.outcome or Outcome("steering_interrupt", refusal=STEERED)
        if batch.outcome is not None:
            for call in _open(ledger):
                ledger.settle(call, failure(batch.outcome.refusal))
            break
        if batch.waits or (deferred and any(call.pending is not None for call in group)):
            return await _wait_for_approval(run)
    return batch.outcome or Outcome()


async def _wait_for_approval(run: Run) -> Outcome:
    """End the run here: some calls wait for an approval, and later groups wait for these."""
    if run.recorder is not None:
        await run.recorder.begin([call for call in run.ledger.turn.all_calls if call.pending is not None])
    return Outcome("approval", End(reason="approval"))


async def ask_policies(run: Run, call: Call) -> Outcome | None:
    """Pre-dispatch policies over one call, asked again after a rewrite, so that no policy is bypassed."""
    for _ in range(REWRITES):
        before = call.arguments
        outcome = await _ask_each(run, call)
        if call.result is not None or call.arguments == before:
            return outcome
    text = f"tool call not run: policies still rewrite its arguments after {REWRITES} rounds"
    run.ledger.settle(call, failure(text))
    return None


async def _ask_each(run: Run, call: Call) -> Outcome | None:
    """One round; a stop settles every call still open."""
    ledger = run.ledger
    for policy in run.ledger.slots.pre_dispatch:
        verdict = await consult(policy, "pre_dispatch", run.policy_context(call.known), call.as_it_will_run)
        run.check()
        match verdict:
            case Inject(messages):
                ledger.append(messages, by_policy=True)
            case Stop(reason) as stop:
                refusal = f"tool call not run: {reason}"
                for waiting in _open(ledger) if call.outer is None else [call]:
                    ledger.settle(waiting, failure(refusal))
                return Outcome(end=End.by(stop), refusal=refusal)
            case Skip(text):
                ledger.settle(call, failure(text))
                return None
            case Rewrite(arguments):
                if not _take_arguments(run, call, arguments):
                    return None
            case _:
                pass
    return None


async def ask_person(run: Run, call: Call) -> Outcome | None:
    """Ask for approval, and again where policies rewrite what was approved: what runs is what was seen."""
    for _ in range(REWRITES):
        if call.result is not None or not needs_approval(run, call):
            return None
        verdict = await ask_approval(run, call)
        if isinstance(verdict, PendingApproval):
            call.pending = verdict
            return None
        if isinstance(verdict, Rejected):
            reason = f": {verdict.reason}" if verdict.reason else " by the user"
            run.ledger.settle(call, failure(f"tool call rejected{reason}"))
            return None
        call.note = verdict.note
        if verdict.arguments is None or not _take_arguments(run, call, verdict.arguments):
            return None
        approved = call.arguments
        stopped = await ask_policies(run, call)
        if stopped is not None or call.arguments == approved:
            return stopped
    text = f"tool call not run: policies still rewrite what was approved after {REWRITES} rounds"
    run.ledger.settle(call, failure(text))
    return None


def _take_arguments(run: Run, call: Call, arguments: dict[str, Any]) -> bool:
    """Let a call run with other arguments; one with arguments that are no JSON is settled instead."""
    try:
        call.arguments = freeze(arguments, "the rewritten arguments")
    except InvalidInput as error:
        log.error("tool %r is not run: %s", call.call.name, error)
        run.ledger.settle(call, failure(f"tool call not run: {error}"))
        return False
    return True


class Batch:
    """The calls of one reply while they run, group by group."""

    __slots__ = (
        "_asking", "_done", "_ledger", "_left", "_loop", "outcome", "run", "steered", "vetting", "waits"
    )  # fmt: skip

    def __init__(self, run: Run) -> None:
        self.run = run
        self.steered = self.waits = False
        self.outcome: Outcome | None = None
        self.vetting: asyncio.Lock | None = None  # calls inside others are asked about one at a time
        self._ledger = run.ledger
        self._loop = run.life.loop
        self._asking = 0
        self._left = 0
        self._done: asyncio.Future[None]

    async def run_group(self, group: Sequence[Call]) -> None:
        """Run calls concurrently and wait until each is settled."""
        ready: list[Call] = []
        for call in group:
            if self._prepare(call):
                ready.append(call)
        if not ready:
            return
        if self.run.recorder is not None:
            await self.run.recorder.begin(ready)
            self.run.check()
        self._left = len(ready)
        self._done = self._loop.create_future()
        for call in ready:
            call.settled = self._finish_if_done
        for call in ready:
            if self.steered:  # by a call that an eager task factory has run already
                self._ledger.settle(call, failure(STEERED))
            else:
                self._start(call)
        try:
            await self._done
        except GeneratorExit:
            raise  # the event loop is gone; there is nothing left to wait with
        except BaseException:
            await self._end_all(ready)
            raise

    def _prepare(self, call: Call) -> bool:
        """Make the arguments what the tool takes; a call that cannot start is settled here."""
        if call.tool is None:
            known = (call.known or self.run.setup).tools
            self._ledger.settle(call, failure(describe_unknown(call.call.name, known)))
            return False
        try:
            call.prepared = call.tool.prepare(call.arguments)
            return True
        except InvalidArguments as error:
            text = "error: invalid arguments:\n" + "\n".join(f"- {problem}" for problem in error.problems)
        except Exception as error:
            # Types of the tool's own are built here; what they raise is the model's to see, too.
            text = f"error: invalid arguments: {describe_error(error)}"
        self._ledger.settle(call, failure(text))
        return False

    def _start(self, call: Call) -> None:
        """Announce a call and let it run, within its time."""
        tool, run = call.tool, self.run
        assert tool is not None
        call.context = CallContext(self._ledger, call, run.setup.config.state, run.setup.deps, self._loop)
        timeout = tool.timeout if tool.timeout is not None else run.setup.config.tool_timeout
        if timeout is not None:
            why = f"error: tool {tool.name!r} timed out after {timeout:g} s"
            call.timer = call_later(self._loop, timeout, self.end, call, why)
        self._ledger.emit(ToolExecutionStart(call.call.id, tool.name, call.arguments, call.outer_id))
        variables = None
        if observer.current is not None:
            call.observed = observer.current.call(call.call, call.arguments, tool.description)
            variables = call.observed.context
        call.task = self._loop.create_task(self._run_call(call), name=tool.name, context=variables)

    async def _run_call(self, call: Call) -> None:
        """Run one call and settle it, whatever it does; then see whether steering came meanwhile."""
        tool, context = call.tool, call.context
        assert tool is not None
        assert context is not None
        call.running = True
        try:
            try:
                value = await tool.body(call.call.id, call.prepared, context)
                if type(value) is str and len(value) <= tool.max_result <= LARGE:
                    result = as_result(value)
                elif is_large(value):
                    result = await in_thread(converted, value, tool.max_result)
                else:
                    result = cut_result(as_result(value), tool.max_result)
                if type(value) is not str and isinstance(value, Transfer) and call.result is None:
                    self.run.batch.outcome = Outcome("transfer", End("transfer", value.to))
            except KeyboardInterrupt:
                raise
            except CallWaits:
                call.waits = self.waits = True
                result = as_result(CallWaits.__doc__)
            except BaseException as error:
                if isinstance(error, GeneratorExit) and self._is_closing(call):
                    raise
                # A tool is foreign code: what it raises goes to the model, and must not end the run.
                result = cut_result(_result_of(error, call), tool.max_result)
            self._ledger.settle(call, result)
            if self._left and not self.steered:
                await self.look_for_steering()
        except BaseException as error:
            # Only a steering provider or a subscriber raises here, and the batch must not hang.
            if not self._done.done() and not self._loop.is_closed():
                self._done.set_exception(error)

    def _is_closing(self, call: Call) -> bool:
        """Whether the event loop is gone and the call's coroutine is closed, not run."""
        try:
            current = asyncio.current_task()
        except RuntimeError:  # no event loop runs
            return True
        return call.task is not None and call.task is not current

    async def look_for_steering(self) -> None:
        """Cancel the other calls if steering waits; the batch is not over while a provider is being asked."""
        self._asking += 1
        try:
            if not await _steering_waits(self.run):
                return
            self.steered = True
            for other in self._ledger.turn.calls:
                self.end(other, STEERED)
        except Exception as error:
            # A steering provider is foreign code, and its failure ends the run.
            if not self._done.done():
                self._done.set_exception(error)
        finally:
            self._asking -= 1
            self._finish_if_done()

    async def _end_all(self, ready: Sequence[Call]) -> None:
        """An abort: every call gets its grace, then its result."""
        self._done = self._loop.create_future()
        for call in ready:
            self.end(call, ABORTED if call.outer is None else call.outer.why or ABORTED)
            if call.result is not None and call.task is not None:
                call.task.cancel()  # it may still be asking for steering
        if self._left:
            await self._done

    def end(self, call: Call, why: str) -> None:
        """Cancel a running call; past its grace it is abandoned."""
        if call.result is not None or call.task is None or call.why:
            return
        call.why = why
        if call.context is not None:
            call.context.cancel()
        call.task.cancel()
        if call.running:
            abandoned = failure(f"{why}; tool abandoned: {Abandoned.__doc__}")
            self._loop.call_later(GRACE * 1.5, self._ledger.settle, call, abandoned)
        else:
            self._ledger.settle(call, failure(why))

    def _finish_if_done(self, settled: int = 0) -> None:
        self._left -= settled
        if not self._left and not self._asking:
            try:  # noqa: SIM105 (`suppress` would cost more than the rest)
                self._done.set_result(None)
            except (asyncio.InvalidStateError, RuntimeError):
                pass  # the batch was cancelled, or its event loop is closed


async def _steering_waits(run: Run) -> bool:
    """Whether steering is there, without losing it: what had to be taken to know is held in `pending`."""
    config, ledger = run.setup.config, run.ledger
    if ledger.inbox.pending:
        return True
    if config.peek_steering is not None:
        return bool(config.peek_steering())
    if config.get_steering is None:
        return False
    ledger.inbox.queue(await resolve(config.get_steering()))
    return bool(ledger.inbox.pending)


def _open(ledger: Ledger) -> list[Call]:
    return [call for call in ledger.turn.calls if call.result is None]


def _unparsed(call: ToolCall, ledger: Ledger) -> str:
    if ledger.turn.reply is not None and ledger.turn.reply.stop_reason == "length":
        return INCOMPLETE
    text = call.partial_json or ""
    wrong = f"are not a JSON object of at most {DEEPEST} levels"
    return f"error: the arguments {wrong}; repair them and call again. What arrived:\n{text[:2_000]}"


def _result_of(error: BaseException, call: Call) -> ToolResult:
    """What the model is told of a call that raised; `why` says who ended it, if anybody did."""
    if call.observed is not None:
        call.observed.failed(error)
    match error:
        case asyncio.CancelledError():
            return failure(call.why or "error: the tool cancelled itself")
        case Abandoned():
            return failure(f"{call.why or ABORTED}; tool abandoned: {error}")
        case ToolError():
            return ToolResult((Text(message_of(error)),), error.details, True)
        case _:
            text, lines = describe_error(error), describe_traceback(error)
            log.warning("tool %r raised %s (the model is told)\n%s", call.call.name, clean(text), lines)
            return failure(f"error: {text}")
