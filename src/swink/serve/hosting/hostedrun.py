"""A hosted run: it lives by itself, and whoever likes reads its numbered events.

    waiting → begun → AgentStart … AgentEnd → over

Clients that leave do not end it. Whatever happens, the events go from `AgentStart` to `AgentEnd`.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

from msgspec.structs import replace

from swink.agent.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.policy import Answer, Approved, Deferred, Rejected
from swink.errors import AgentError, InvalidContinue, NoMessages
from swink.events import AgentEnd, AgentEvent, AgentStart, ApprovalRequested, ApprovalResolved, CustomEvent
from swink.messages import Input, ToolCall
from swink.messages.records import RunStarted
from swink.messages.redact import describe_traceback
from swink.serve.hosting.approvals import Approvals
from swink.serve.hosting.eventlog import EventLog, Numbered
from swink.serve.hosting.recording import RecordingSession
from swink.serve.hosting.resumption import Resumption
from swink.serve.hosting.servedagent import RunStart, refusal_of
from swink.serve.wire import Refused

log = logging.getLogger("swink.serve")

MOST_RULES, LONGEST_RULE = 20, 1_000


class HostedRun:
    """One run of a served agent."""

    def __init__(self, id: str, start: RunStart, events: EventLog) -> None:
        self.id = id
        self.start = start
        self.log = events
        self.result: AgentResult[Any] | None = None
        """What the run came to, once it has ended."""
        self.client_calls: tuple[ToolCall, ...] = ()
        """Calls of client tools that wait for the client, once it has ended."""
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Whether the run could begin: set when it has, and with a `Refused` if it could not."""
        self.is_pausing = False
        """Whether the application is shutting down: then the run goes on in its next process."""
        self.recording: RecordingSession | None = None
        """What records the events, if the run is one of a conversation."""
        self.resumption: Resumption | None = None
        """What is known of the run, if it was begun in another process."""
        self.is_elsewhere = False
        """Whether another worker carries it out, and this one only tells its events."""
        self.is_queued = False
        """Whether it was promised to begin after the one before it."""
        self.is_recorded = False
        """Whether the session knows of it: then it is not lost with this process."""
        self.uncount: Callable[[], None] | None = None
        """Takes it out of the runs under way, which are limited; called once, before its end is told."""
        self._agent: Agent[Any, Any] | None = None
        self._approvals: Approvals | None = None
        self._offered: dict[str, Callable[[Sequence[str]], None]] = {}
        self._is_aborted = self._is_started = False
        self._end: AgentEnd | None = None

    @property
    def is_over(self) -> bool:
        """Whether no event follows any more."""
        return self.log.closed

    @property
    def is_lost(self) -> bool:
        """Whether another worker has taken it over, and has the rest of its events."""
        return self.recording is not None and self.recording.is_lost

    @property
    def agent(self) -> Agent[Any, Any] | None:
        """The agent that runs, once the run has begun."""
        return self._agent

    @property
    def state(self) -> dict[str, Any]:
        """The session state of the agent as it is now."""
        return {} if self._agent is None else self._agent.state

    async def events(self, after: int = 0) -> AsyncGenerator[Numbered, None]:
        """Every event after that number, until the last; leaving it does not end the run."""
        async with aclosing(self.log.batches(after)) as batches:
            async for batch in batches:
                for numbered in batch:
                    yield numbered

    def abort(self) -> None:
        """End the run, keeping what arrived; one that waits does not begin."""
        if self.is_elsewhere and not self.is_over:
            raise Refused(409, "the run is under way on another worker; ask again, that one may answer")
        self._is_aborted = True
        if self._agent is not None:
            self._agent.abort()

    def pause(self) -> None:
        """Stop after the current turn, to go on in another process."""
        self.is_pausing = True
        if self._approvals is not None:
            self._approvals.put_off()
        if self._agent is not None:
            self._agent.pause()

    def steer(self, message: Input) -> None:
        """Say something while it works: the next turn gets it."""
        self._active.steer(message)

    def follow_up(self, message: Input) -> None:
        """Say something for when it would stop."""
        self._active.follow_up(message)

    def approve(self, call_id: str, answer: Answer, rules: Sequence[str] = ()) -> None:
        """Answer a call that waits for approval; `Refused` if it does not.

        `rules` are kept for the calls to come, where `offer_rules` has offered that.
        """
        if self._approvals is None or self.is_over:
            raise Refused(409, f"no call {call_id[:80]!r} of this run waits for an approval")
        if rules:
            if call_id not in self._offered:
                raise Refused(409, "this application keeps no rules for this call; answer without rules")
            self._offered[call_id](rules)
        self._approvals.answer(call_id, answer)

    def offer_rules(self, call_id: str, rules: Sequence[str], take: Callable[[Sequence[str]], None]) -> None:
        """Tell the client which rules would allow a call and its like; `take` gets those it wants kept.

        More or longer ones than a person reads, which no door would take back, are not offered.
        """
        if len(rules) > MOST_RULES or any(len(rule) > LONGEST_RULE for rule in rules):
            return
        self._offered[call_id] = take
        self._tell(CustomEvent("approval_rules", {"call_id": call_id, "rules": list(rules)}))

    async def ask_client(self, call_id: str) -> Answer:
        """What the client says to a call that its events have asked about; put off if it says nothing.

        For an approve function of the application, which decides what the client is asked at all.
        """
        return Deferred() if self._approvals is None or self.is_over else await self._approvals.wait(call_id)

    async def ask_about(self, name: str, shown: dict[str, Any]) -> Answer:
        """Ask the client about something that is no call, over its events like a call; put off as above."""
        call_id = f"ask_{secrets.token_hex(8)}"
        self._tell(ApprovalRequested(call_id, name, shown))
        answer: Answer = Rejected("it was not answered")
        try:
            answer = await self.ask_client(call_id)
            return answer
        finally:
            self._tell(ApprovalResolved(call_id, name, answer is True or isinstance(answer, Approved)))

    def notify(self, text: str) -> None:
        """Tell the client something that is no part of the conversation, as `CustomEvent("notice")`."""
        self._tell(CustomEvent("notice", {"text": text}))

    def _tell(self, event: AgentEvent) -> None:
        if self._end is None and not self.is_over:
            self._number(event)

    async def wait_begun(self) -> None:
        """Return once the run has begun; raises `Refused` if it cannot begin."""
        await asyncio.wait([self.begun])
        self.begun.result()

    async def carry_out(
        self, agent: Agent[Any, Any], approvals: Approvals, started: RunStarted = RunStarted("", "")
    ) -> None:
        """Run the agent, which is bound to the conversation, from its first event to its last."""
        if self._is_aborted:
            raise Refused(409, "the run was aborted before it began")
        _current.set(self)  # the task is the run's own
        given, options = self.start.run_options()
        resumption = self.resumption
        try:
            stream = agent.stream(given, **options)
        except (InvalidContinue, NoMessages) as error:
            if resumption is None:
                raise refusal_of(error) from None
            self._end = resumption.end_of(agent.messages)
            return
        except AgentError as error:
            raise refusal_of(error) from None
        if self.recording is not None and not self.is_recorded:
            await self.recording.begin(started)
            self.is_recorded = True
        if self.is_pausing:
            return  # it begins in the next process
        self._agent, self._approvals = agent, approvals
        with agent.subscribe(self._publish):
            try:
                stream.detach()
            except AgentError as error:
                raise refusal_of(error) from None
            self._mark_begun()
            try:
                self.result = await stream.result()
            except asyncio.CancelledError:
                agent.abort()
                await agent.wait_for_idle()
                raise
            except Exception as error:
                # A hook of the application's; the events have ended in good order.
                if not self.is_lost:
                    log.error("run %s failed\n%s", self.id, describe_traceback(error))
        names = {tool.name for tool in self.start.client_tools}
        if self.result is not None:
            self.client_calls = tuple(
                [
                    ToolCall(call.call_id, call.name, call.arguments)
                    for call in self.result.pending
                    if call.name in names
                ]
            )

    def refuse(self, refused: Refused) -> None:
        """Tell who started the run why it could not begin, or, if that was told, why it ends."""
        reason = "aborted" if self._is_aborted else str(refused)
        if not self.begun.done():
            self.begun.set_exception(refused)
            self.begun.exception()  # nobody may be waiting any more
        if self._end is None:
            self._end = AgentEnd((), "aborted" if self._is_aborted else "error", reason)

    async def finish(self) -> None:
        """Record the end, then let readers see it; does nothing the second time."""
        if self.log.closed:
            self._uncount()
            return
        end = self._end or AgentEnd((), "aborted", "the run was cancelled")
        self._mark_begun()
        goes_on = self.is_lost or (self._goes_on(end) if self.recording is not None else self.is_pausing)
        if not goes_on and not (self.log.last or self._is_started):
            self._number(AgentStart())
        if self.recording is not None:
            if self.resumption is not None:
                end = replace(end, messages=(*self.resumption.messages, *end.messages))
            await self.recording.finish(None if goes_on else end)
        elif not goes_on:
            self.log.push(end)
        self._uncount()
        self.log.close()

    def _uncount(self) -> None:
        uncount, self.uncount = self.uncount, None
        if uncount is not None:
            uncount()

    def _goes_on(self, end: AgentEnd) -> bool:
        """Whether the run was only stopped for another process to go on with it."""
        return (
            self.is_pausing
            and not self._is_aborted
            and (end.reason == "paused" or end.stop_reason == "aborted")
        )

    def _publish(self, event: AgentEvent) -> None:
        if isinstance(event, AgentEnd):
            self._end = event  # readers see it when it is recorded
            return
        if self._approvals is not None and not self._approvals.shows(event):
            return
        told = event if self.resumption is None else self.resumption.untold(event)
        if told is None:
            return
        self._number(told)

    def _number(self, event: AgentEvent) -> None:
        self._is_started = True
        if self.recording is not None:
            self.recording.publish(event)
        else:
            self.log.push(event)

    def _mark_begun(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    @property
    def _active(self) -> Agent[Any, Any]:
        if self.is_over or self._end is not None:
            raise Refused(409, "the run has ended; start another one")
        if self._agent is None:
            raise Refused(409, "the run has not begun yet; it waits for the one before it")
        return self._agent


_current: ContextVar[HostedRun | None] = ContextVar("swink.serve.hosted_run", default=None)


def current_run() -> HostedRun | None:
    """The hosted run that the caller is part of, if it is part of one."""
    return _current.get()
