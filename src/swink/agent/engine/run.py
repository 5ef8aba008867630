"""One run: what its turns work with, its ledger and its life, from the first prompt to the last save.

Whatever ends a run (its own last turn, a policy, an abort, a failure, a closed event loop) calls `end`, which
completes everything without a single await. Saving and the post-run policies follow in a task of their own:

    end → last save → post-run policies → finished
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import Context, copy_context
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.agentresult import AgentResult, is_answered
from swink.agent.endedturn import ended_turn
from swink.agent.engine.laststeps import LastSteps
from swink.agent.engine.ledger import Ledger, Recorder
from swink.agent.engine.runlifetime import Lifetime
from swink.agent.engine.turnsetup import TurnSetup
from swink.agent.policy import Answer, Ending, Policy, PolicyContext, RunKey, Stop, consult
from swink.errors import Aborted, AgentError, HookFailed, NetworkError, message_of
from swink.events import AgentStart
from swink.messages import Message, StopReason, clean
from swink.messages.codec import copy_state
from swink.messages.history import History
from swink.messages.records import pending_of
from swink.messages.redact import describe_error
from swink.stream import observer
from swink.stream.watch import Watch
from swink.system.aio import mark_exception_seen, start_task
from swink.tools import Inside

log = logging.getLogger("swink")

ABANDON_AFTER = 1.0
"""Seconds after an abort at which a run that swallows cancellation is ended without it."""


class End(Struct, frozen=True):
    """How a run ends. Without a stop reason it is that of the last reply."""

    stop_reason: StopReason | None = None
    reason: str | None = None
    error: AgentError | None = None
    stopped: bool = False
    """Whether a policy wants it that did not expect to."""

    @classmethod
    def by(cls, stop: Stop) -> "End":
        """The end that a policy asked for."""
        if stop.error is not None:
            return cls("error", stop.reason, stop.error)
        return cls(None, stop.reason, stopped=not stop.expected)


class Run:
    """One run of an agent, from the first prompt to the last save."""

    __slots__ = (
        "__weakref__", "_abandoning", "_key", "_released", "_task", "approvals", "batch", "dropped",
        "ending", "last_steps", "ledger", "life", "overflow", "pausing", "recorder", "setup", "watch",
    )  # fmt: skip

    def __init__(
        self,
        setup: TurnSetup,
        ledger: Ledger,
        released: Callable[["Run"], None],
        *,
        record: Callable[[Ledger], Recorder] | None = None,
        overflow: bool = False,
        approvals: Mapping[str, Answer] | None = None,
    ) -> None:
        self.setup = setup
        self.ledger = ledger
        self.overflow = overflow
        """Whether the context did not fit when the last run ended."""
        self.approvals = approvals or {}
        self.dropped: dict[int, tuple[History | None, int]] | None = None
        """What each context transformer has dropped, as far as it was announced."""
        self.pausing = False
        self.ending: End | None = None
        self.life = Lifetime(self._interrupt)
        self.watch = Watch(self.life.loop, self._abandon_stream)
        self.recorder = ledger.recorder = None if record is None else record(ledger)
        self.batch: Any = None  # the calls under way, which may make calls themselves
        self._released = released
        self._key: RunKey | None = None
        self._task: asyncio.Task[None] | None = None
        self._abandoning: asyncio.TimerHandle | None = None
        self.last_steps: LastSteps | None = None
        """What is left to do after the end; the run's task waits for it."""

    def start(
        self,
        prompts: Sequence[Message],
        body: Coroutine[Any, Any, None],
        deadline: float | None = None,
        session_id: str | None = None,
    ) -> None:
        """Announce the run, take the prompts into the history, and let the body drive it."""
        ledger = self.ledger
        ledger.emit(AgentStart())
        ledger.inbox.pending.extend(prompts)
        ledger.enter_pending()
        if self.recorder is not None and prompts:
            self.recorder.note(prompts)
        variables: Context | None = None
        if observer.current is not None:
            session_id = session_id or self.setup.config.options.session_id
            token = observer.agent_name.set(observer.agent_name.get() or self.setup.config.name)
            ledger.observed = observer.current.run(ledger.attempt.model, session_id, prompts)
            observer.agent_name.reset(token)
            variables = ledger.observed.context
        self.watch.variables = variables = variables or copy_context()
        self._task = self.watch.task = start_task(self.life.loop, body, "swink-run", variables)
        if self.life.aborted is not None:
            self._task.cancel()
        if deadline is not None:
            self.life.limit(deadline)

    def check(self) -> None:
        """Stop here if the run was aborted or ended meanwhile."""
        if self.ledger.closed or self.life.aborted is not None:
            raise asyncio.CancelledError

    def policy_context(self, known: Inside | None = None) -> PolicyContext:
        """The run as policies see it now, in values that do not change; its tools are those known."""
        setup, ledger = self.setup, self.ledger
        self._key = self._key or RunKey()
        return PolicyContext(
            ledger.turn.number,
            ledger.attempt.model,
            setup.system_prompt,
            ledger.history.snapshot(),
            ledger.inbox.fresh,
            *ledger.account.totals,
            copy_state(setup.config.state),
            (known or setup).tools,
            tuple([model for model, _ in setup.routes]),
            setup.config.options.max_tokens,
            ledger.attempt.requests,
            ledger.inbox.injected,
            self._key,
            reported_cost=ledger.account.reported_cost,
            deps=setup.deps,
        )

    def end(self, end: End, failure: BaseException | None = None) -> None:
        """End the run, whatever causes it: complete what is open and announce it. Synchronous, and only once.

        A `failure` is an exception of foreign code, which is raised to the caller of the run.
        """
        life, ledger = self.life, self.ledger
        if self.ending is not None:
            if life.loop.is_closed():
                self._finish()
            return
        self.ending = end = self._completed(end, failure)
        life.failure = failure
        if self._task is not None and failure is not None and not isinstance(failure, Exception):
            self._task.add_done_callback(mark_exception_seen)  # it goes on to end the event loop
        stop_reason = end.stop_reason or "stop"
        try:
            ledger.close(stop_reason, end.reason, end.error)
        except Exception as error:
            # Nothing of ours raises there. If anything does, the run ends all the same, and raises it.
            life.fail(error)
        if ledger.observed is not None:
            ledger.observed.end(stop_reason, end.error, *ledger.account.totals, ledger.produced)
        self.watch.stop()
        if life.deadline < inf:
            life.stop_timer()
        if self._abandoning is not None:
            self._abandoning.cancel()
        if end.stop_reason == "error" and failure is None:
            log.warning("the run%s failed: %s", self._called, clean(self.error_text or "no reason was given"))
        elif end.stopped and not is_answered(ledger.produced):
            text = "the run%s was stopped before its answer: %s"
            log.warning(text, self._called, clean(end.reason or "no reason was given"))
        is_saved = self.recorder is None or self.recorder.is_up_to_date
        if life.loop.is_closed() or (is_saved and not ledger.slots.post_run):
            self._finish()
        else:
            self.last_steps = LastSteps(
                life, self.recorder, ledger.slots.post_run, self._tell_end, self._finish
            )

    def result(self) -> AgentResult[None]:
        """What the run came to."""
        end, ledger = self.ending or End(), self.ledger
        kind = None if end.error is None else end.error.kind
        why = self.error_text, kind, end.reason, end.error
        result = AgentResult(tuple(ledger.produced), end.stop_reason or "stop", *ledger.account.totals, *why)
        if end.stopped or ledger.open is not None:
            result = replace(result, stopped=end.stopped, pending=pending_of(ledger.open))
        return result

    @property
    def error_text(self) -> str | None:
        """What went wrong, as the policies want it kept."""
        if self.ending is None or self.ending.error is None:
            return None
        reply = self.ledger.turn.reply
        kept = reply.error_message if reply is not None and reply.failed else None
        return message_of(self.ending.error) if kept is None else kept

    @property
    def _called(self) -> str:
        """The name of the agent, for the log."""
        name = self.setup.config.name
        return "" if name is None else f" of {clean(name)}"

    def _completed(self, end: End, failure: BaseException | None) -> End:
        """The end with what follows from it: the last reply's stop reason, an abort's or a hook's error."""
        if failure is not None:
            error = end.error or HookFailed(describe_error(failure))
            error.__cause__ = failure
            return End("error", end.reason, error)
        if end.stop_reason == "aborted":
            reason, advice = self.life.aborted, self.life.advice
            text = f"{self.ledger.attempt.model}: {reason} ({advice})" if advice else reason
            return End("aborted", reason, Aborted(text or "the run was cancelled"))
        if end.stop_reason is None and (reply := self.ledger.turn.reply) is not None:
            return End(reply.stop_reason, end.reason, end.error, end.stopped)
        return end

    def _interrupt(self) -> None:
        """An abort: cancel the task; if it swallows that, the run ends without it."""
        loop = self.life.loop
        if self.ending is not None or loop.is_closed():
            self.end(End("aborted"))
            if self.last_steps is not None:
                self.last_steps.hurry()
            return
        if self._task is not None:
            self._task.cancel()
        self._abandoning = loop.call_later(ABANDON_AFTER, self.end, End("aborted"))

    def _abandon_stream(self) -> None:
        """The reply goes on although it was cancelled: the run ends without it."""
        text = "the stream brings no content, and does not stop when it is cancelled"
        self.end(End("error", error=NetworkError(text, model=str(self.ledger.attempt.model))))

    async def _tell_end(self, policy: Policy) -> None:
        end, turn = self.ending, self.ledger.turn
        assert end is not None
        last = None if turn.reply is None or turn.reason is None else ended_turn(turn, turn.reason)
        ending = Ending(end.stop_reason or "stop", end.reason, self.error_text, last, self.ledger.open)
        await consult(policy, "post_run", self.policy_context(), ending)

    def _finish(self) -> None:
        """The run is over: the agent is free again, and who waits or reads goes on."""
        if not self.life.is_over:
            if self.recorder is not None:
                self.recorder.close()
            self.life.finish()
            self.batch = None  # it holds the run
            self._released(self)
