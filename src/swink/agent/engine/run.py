"""One run: its ledger, its saver, and its life from the first prompt to the last save.

Whoever ends a run (its own last turn, a policy, an abort, a failure, a closed event loop) calls `end`, which
completes everything without a single await. Saving and the post-run policies follow in a task of their own:

    end → last save → post-run policies → finished

within one time limit, which an abort or a deadline makes shorter; what does not stop then is left behind.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from copy import copy
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.config import AgentContext, AgentLoopConfig, AgentResult, PromptContext, SystemPrompt
from swink.agent.engine.ledger import Ledger
from swink.agent.policy import Answer, Ending, Policy, PolicyContext, RunKey, Stop, consult
from swink.agent.session.journal import Journal
from swink.agent.session.known import Known
from swink.agent.session.saver import Saver
from swink.errors import Aborted, AgentError, HookFailed, InvalidInput, NetworkError, NotSaved, said
from swink.events import AgentEvent, AgentStart
from swink.messages import Message, StopReason, clean
from swink.messages.codec import copy_state
from swink.messages.history import History
from swink.messages.records import OpenTurn, pending_of
from swink.messages.redact import describe_error, describe_traceback
from swink.stream import observer
from swink.stream.watch import Watch
from swink.system.aio import call_later, outlast, resolve, retrieve, start_task, started, wake
from swink.tools import Tool, as_offers, offered_tools

log = logging.getLogger("swink")
saving = logging.getLogger("swink.run")

SAVE_WITHIN, SAVE_ABORTED = 60.0, 5.0
"""Seconds the last save and the post-run policies of a run may take, in general and after an abort."""
SAVE_LATE, SAVE_LEAST = 2.0, 1.0
"""Seconds after its deadline at which they are left behind; and the least they get if all else was late."""
SAVE_AGAIN = 3
"""How often the last save is begun when it is cancelled."""
ABANDON_AFTER = 1.0
"""Seconds after an abort at which a run that swallows cancellation is ended without it."""


class End(Struct, frozen=True):
    """How a run ends. Without a stop reason it is that of the last reply."""

    stop_reason: StopReason | None = None
    reason: str | None = None
    error: AgentError | None = None

    @classmethod
    def by(cls, stop: Stop) -> "End":
        """The end that a policy asked for."""
        return cls(None if stop.error is None else "error", stop.reason, stop.error)


class Lifetime:
    """From start to finish: what may abort a run, from any thread, and who waits for it.

    `interrupt` makes the run end itself soon; it is called once, in the thread of the event loop.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.aborted: str | None = None
        self.failure: BaseException | None = None
        self.is_over = False
        self.deadline = inf
        self.detached = False
        self._interrupt: Callable[[], None] | None = interrupt
        self._thread = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None
        self._finished: asyncio.Future[None] | None = None

    def limit(self, deadline: float | None) -> None:
        """Abort after so many seconds."""
        if deadline is None or self.aborted is not None:
            return
        reason, self.deadline = f"deadline of {deadline:g} s passed", self.loop.time() + deadline
        if deadline <= 0:
            self.abort(reason)
        else:
            self._timer = call_later(self.loop, deadline, self.abort, reason)

    def abort(self, reason: str = "the run was aborted") -> None:
        """End the run soon, keeping what arrived; safe from any thread, and nothing once it is over."""
        if threading.get_ident() != self._thread:
            with suppress(RuntimeError):  # the event loop is closed
                self.loop.call_soon_threadsafe(self.abort, reason)
        elif self.aborted is None and self._interrupt is not None:
            self.aborted = reason
            self._interrupt()

    async def wait(self) -> None:
        """Return when the run is over; cancelling the waiter aborts the run, and still waits for its end."""
        if not self.is_over:
            if self._finished is None:
                self._finished = self.loop.create_future()
            await outlast(self._finished, cancelled=lambda: self.abort("the caller was cancelled"))

    def stop_timers(self) -> None:
        """The deadline no longer matters."""
        if self._timer is not None:
            self._timer.cancel()

    def finish(self) -> None:
        """The run is over: whoever waits goes on."""
        self.stop_timers()
        self.is_over = True
        self._interrupt = None
        if self.detached:
            self.log_failure()
        if self._finished is not None and not self._finished.done() and not self.loop.is_closed():
            self._finished.set_result(None)

    def log_failure(self) -> None:
        """Log the exception of a run that nobody awaits."""
        if self.failure is not None:
            log.warning("a detached run failed: %s", clean(describe_error(self.failure)))


class Run:
    """One run of an agent, from the first prompt to the last save."""

    def __init__(
        self,
        config: AgentLoopConfig,
        context: AgentContext,
        history: History,
        emit: Callable[[AgentEvent], None],
        released: Callable[["Run"], None],
        *,
        tools: Sequence[Tool] = (),
        policies: Sequence[Policy] = (),
        deps: Any = None,
        tool_choice: str | None = None,
        overflow: bool = False,
        known: Known | None = None,
        open: OpenTurn | None = None,
        approvals: Mapping[str, Answer] | None = None,
    ) -> None:
        # At most 29 attributes: with more, CPython keeps the names of each instance's own, at 5 µs a run.
        self._given = config
        self.config = copy(config)
        self.routes = config.routes()
        self.context = context
        self.deps = config.deps if deps is None else deps
        self.extra_tools = self.tools = tuple(tools)
        self._offers: Sequence[Any] | None = None
        self.tool_choice = tool_choice
        self.overflow = overflow
        self.dropped: dict[int, tuple[History | None, int]] | None = None
        self.pausing = False
        self.ending: End | None = None
        self.system_prompt = ""
        self.prompt_source: SystemPrompt | None = None
        self.approvals = approvals or {}
        self.ledger = Ledger(config, history, emit, (*config.policies, *policies), open)
        self.slots = self.ledger.slots
        self.saver: Saver | None = None
        self.journal: Journal | None = None
        if known is None and config.save is not None:
            known = Known(config.save, history)
        if known is not None:
            self.saver = Saver(known, self.ledger.standing)
            self.journal = Journal(self.ledger, self.saver) if known.takes_records else None
        self.life = Lifetime(self._interrupt)
        self.watch = Watch(self.life.loop, self._abandon_stream)
        self._released = released
        self._key: RunKey | None = None
        self._task: asyncio.Task[None] | None = None
        self._abandoning: asyncio.TimerHandle | None = None
        self._winding_up: asyncio.Task[None] | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._step: asyncio.Future[None] | None = None

    def start(
        self, prompts: Sequence[Message], body: Coroutine[Any, Any, None], deadline: float | None
    ) -> None:
        """Announce the run, take the prompts into the history, and let the body drive it."""
        ledger = self.ledger
        ledger.emit(AgentStart())
        ledger.pending.extend(prompts)
        ledger.enter_pending()
        if self.saver is not None and prompts:
            self.saver.save_later()
        variables = None
        if observer.current is not None:
            known = None if self.saver is None else self.saver.known.session_id
            session_id = known or self.config.options.session_id
            ledger.observed = observer.current.run(ledger.model, session_id, prompts)
            variables = ledger.observed.context
        self._task = self.watch.task = start_task(self.life.loop, body, "swink-run", variables)
        if self.life.aborted is not None:
            self._task.cancel()
        self.life.limit(deadline)

    def check(self) -> None:
        """Stop here if the run was aborted or ended meanwhile."""
        if self.ledger.closed or self.life.aborted is not None:
            raise asyncio.CancelledError

    async def set_up(self) -> None:
        """Take what the turn works with, once: what is changed from now on acts at the next turn."""
        before, config = self.config, copy(self._given)
        prompt, offers = self.context.system_prompt, self.context.tools
        self.config = config
        if (
            config.model is not before.model
            or config.stream_fn is not before.stream_fn
            or config.fallbacks is not before.fallbacks
        ):
            self.routes = config.routes()
        self.ledger.model = self.routes[0][0]
        if offers is not self._offers:
            await self._take_tools(offers)
        if prompt is not self.prompt_source:
            await self.write_prompt(prompt)

    async def _take_tools(self, offers: Sequence[Any]) -> None:
        """The tools of this turn; a list may be changed in place, and sources are asked at every turn."""
        given = as_offers(offers)
        tools = [offer for offer in given if isinstance(offer, Tool)]
        if len(tools) < len(given):
            self.tools = await offered_tools(given, self.extra_tools, self.config.warned)
        else:
            self.tools = (*tools, *self.extra_tools)
            self._offers = offers if isinstance(offers, tuple) else None

    async def write_prompt(self, prompt: SystemPrompt) -> None:
        """Bring the system prompt up to date: a text is read at every turn, a function asked once a run."""
        self.prompt_source = prompt
        if isinstance(prompt, str):
            self.system_prompt = prompt
            return
        context = PromptContext(self.deps, copy_state(self.config.state), self.ledger.history.snapshot())
        written = await resolve(prompt(context))
        if not isinstance(written, str):
            raise InvalidInput(f"system_prompt() returned {type(written).__name__}; it returns a str")
        self.system_prompt = written

    def policy_context(self) -> PolicyContext:
        """What policies see."""
        config, ledger = self.config, self.ledger
        self._key = self._key or RunKey()
        return PolicyContext(
            ledger.turn,
            ledger.model,
            self.system_prompt,
            ledger.history.snapshot(),
            ledger.fresh,
            *ledger.account.totals,
            copy_state(config.state),
            self.tools,
            tuple([model for model, _ in self.routes]),
            config.options.max_tokens,
            ledger.requests,
            tuple(ledger.injected),
            self._key,
            reported_cost=ledger.account.reported_cost,
        )

    def end(self, end: End, failure: BaseException | None = None) -> None:
        """End the run, whoever causes it: complete what is open and announce it. Synchronous, and only once.

        A `failure` is an exception of somebody else's code, which whoever awaits the run gets.
        """
        life = self.life
        if self.ending is not None:
            if life.loop.is_closed():
                self._finish()
            return
        self.ending = end = self._completed(end, failure)
        life.failure = failure
        if self._task is not None and failure is not None and not isinstance(failure, Exception):
            self._task.add_done_callback(retrieve)  # it goes on to end the event loop
        try:
            self.ledger.close(end.stop_reason or "stop", end.reason, end.error)
        except Exception as error:
            # Nothing of ours raises there. If anything does, the run ends all the same, and raises it.
            life.failure = failure or error
        if (observed := self.ledger.observed) is not None:
            observed.end(
                end.stop_reason or "stop", end.error, *self.ledger.account.totals, self.ledger.produced
            )
        self.watch.stop()
        life.stop_timers()
        if self._abandoning is not None:
            self._abandoning.cancel()
        if end.stop_reason == "error" and failure is None:
            log.warning("the run failed: %s", clean(self.error_text or "no reason was given"))
        is_saved = self.saver is None or self.saver.is_up_to_date
        if life.loop.is_closed() or (is_saved and not self.slots.post_run):
            self._finish()
        else:
            self._winding_up = start_task(life.loop, self._wind_up())
            self._winding_up.add_done_callback(retrieve)

    async def wound_up(self) -> None:
        """Return when nothing is left to do. The run's task waits here, so that asyncio.run() does too."""
        if self._winding_up is not None:
            await asyncio.wait([self._winding_up])

    def result(self) -> AgentResult[None]:
        """What the run came to."""
        end, ledger = self.ending or End(), self.ledger
        kind = None if end.error is None else end.error.kind
        why = self.error_text, kind, end.reason, end.error
        result = AgentResult(tuple(ledger.produced), end.stop_reason or "stop", *ledger.account.totals, *why)
        return result if ledger.open is None else replace(result, pending=pending_of(ledger.open))

    @property
    def error_text(self) -> str | None:
        """What went wrong, as the policies want it kept."""
        if self.ending is None or self.ending.error is None:
            return None
        reply = self.ledger.reply
        kept = reply.error_message if reply is not None and reply.failed else None
        return said(self.ending.error) if kept is None else kept

    def _completed(self, end: End, failure: BaseException | None) -> End:
        """The end with what follows from it: the last reply's stop reason, an abort's or a hook's error."""
        if failure is not None:
            error = end.error or HookFailed(describe_error(failure))
            error.__cause__ = failure
            return End("error", end.reason, error)
        if end.stop_reason == "aborted":
            reason = self.life.aborted
            return End("aborted", reason, Aborted(reason or "the run was cancelled"))
        if end.stop_reason is None and (reply := self.ledger.reply) is not None:
            return End(reply.stop_reason, end.reason, end.error)
        return end

    def _interrupt(self) -> None:
        """An abort: cancel the task; if it swallows that, the run ends without it."""
        loop = self.life.loop
        if self.ending is not None or loop.is_closed():
            self.end(End("aborted"))
            self._hurry()
            return
        if self._task is not None:
            self._task.cancel()
        self._abandoning = loop.call_later(ABANDON_AFTER, self.end, End("aborted"))

    def _abandon_stream(self) -> None:
        """The reply goes on although it was cancelled: the run ends without it."""
        text = "the stream brings no content, and does not stop when it is cancelled"
        self.end(End("error", error=NetworkError(text, model=str(self.ledger.model))))

    async def _wind_up(self) -> None:
        """What is left to do after the end, within a time limit: the last save, and the post-run policies."""
        life = self.life
        now = life.loop.time()
        limit = now + (SAVE_ABORTED if life.aborted is not None else SAVE_WITHIN)
        limit = max(min(limit, life.deadline + SAVE_LATE), now + SAVE_LEAST)
        self._limit = life.loop.call_at(limit, self._too_late)
        try:
            with suppress(asyncio.CancelledError):
                await started()
            if self.saver is not None:
                await self._save_rest(self.saver)
            for policy in self.slots.post_run:
                await self._tell(policy)
        except BaseException as error:
            life.failure = life.failure or error
            raise
        finally:
            self._stop_limit()
            self._finish()

    async def _save_rest(self, saver: Saver) -> None:
        """Save what the end of the run added; asyncio.run() may cancel the save meanwhile."""
        late = error = NotSaved("the session did not save in time")
        for _ in range(SAVE_AGAIN):
            error = await self._do(saver.save(), late)
            if not isinstance(error, asyncio.CancelledError):
                break
        if error is not None:
            error = late if isinstance(error, asyncio.CancelledError) else error
            saving.error("the end of a run was not saved\n%s", describe_traceback(error))
            self.life.failure = self.life.failure or error
            saver.give_up()

    async def _tell(self, policy: Policy) -> None:
        end = self.ending
        assert end is not None
        ledger = self.ledger
        ending = Ending(end.stop_reason or "stop", end.reason, self.error_text, ledger.last, ledger.open)
        late = TimeoutError()
        error = await self._do(consult(policy, "post_run", self.policy_context(), ending), late)
        if error is late:
            log.error("policy %s did not take the end of a run in time", type(policy).__name__)
        elif error is not None and not isinstance(error, asyncio.CancelledError):
            self.life.failure = self.life.failure or error  # it ends the program, and is raised there already

    async def _do(self, work: Coroutine[Any, Any, Any], late: TimeoutError) -> BaseException | None:
        """Do one of the last steps, cancelled or not; what it raised, or `late` if it takes too long."""
        loop = self.life.loop
        step = self._step = loop.create_future()
        task = loop.create_task(work)
        task.add_done_callback(lambda _: wake(step))
        if self._limit is None:
            loop.call_soon(wake, step)  # after its first step: what it begins at once is begun
        with suppress(asyncio.CancelledError):
            await outlast(step, cancelled=self._hurry)
        if not task.done():
            task.cancel()
            task.add_done_callback(retrieve)
            return late
        return asyncio.CancelledError() if task.cancelled() else task.exception()

    def _hurry(self) -> None:
        """An abort after the end: the last steps get no more time than after any abort."""
        loop, limit = self.life.loop, self._limit
        if limit is not None and not loop.is_closed() and limit.when() > loop.time() + SAVE_ABORTED:
            self._stop_limit()
            self._limit = loop.call_later(SAVE_ABORTED, self._too_late)

    def _stop_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()

    def _too_late(self) -> None:
        self._limit = None
        if self._step is not None:
            wake(self._step)

    def _finish(self) -> None:
        """The run is over: the agent is free again, and whoever waits or reads goes on."""
        if not self.life.is_over:
            if self.saver is not None:
                self.saver.close()
            self.life.finish()
            self._released(self)
