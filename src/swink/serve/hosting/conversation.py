"""A conversation of a caller: a session of the store, and the runs of it in this process, one at a time."""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from swink.agent.policy import Answer
from swink.errors import SessionBusy, SessionError
from swink.memory import Session, SessionMeta
from swink.messages import Input, Message, ToolResult
from swink.messages.records import PendingApproval, Record
from swink.messages.redact import describe_traceback
from swink.serve.hosting.clienttools import ClientTool
from swink.serve.hosting.eventlog import EventLog, Numbered
from swink.serve.hosting.hostedrun import HostedRun
from swink.serve.hosting.keptstart import digest, record_start, recorded_start, still_open
from swink.serve.hosting.mailbox import RunWord
from swink.serve.hosting.recording import RecordingSession
from swink.serve.hosting.resumption import Resumption
from swink.serve.hosting.runrecords import RecordedRun, aborted_before, recorded_runs, unended_run
from swink.serve.hosting.servedagent import RunStart, WhenBusy, bind, make_agent, refusal_of_store
from swink.serve.hosting.terms import AgentRequest, Caller
from swink.serve.wire import Refused

if TYPE_CHECKING:
    from swink.serve.hosting.host import Host

log = logging.getLogger("swink.serve")

_OTHER = "this Idempotency-Key was sent with another request; take a new one"
UNSEEN = 1_000_000
"""More events than a client can have seen that are not recorded; later numbers begin behind them."""
BUSY_PAUSE = 0.5
"""Seconds between two looks whether a conversation that another worker has is free."""


class Conversation:
    """One conversation of a caller; `Host.open` gives it."""

    def __init__(self, host: "Host", caller: Caller, session: Session) -> None:
        self.caller = caller
        self._host = host
        self._session = session
        self._turn = asyncio.Lock()
        self._claimed_session: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._client_tools: set[str] = set()
        self._keys: dict[str, HostedRun] = {}
        self.runs: dict[str, HostedRun] = {}
        """The runs that this process knows of, the newest last."""
        self.running: HostedRun | None = None
        """The run that is under way."""
        self.waiting = 0
        """How many runs wait behind it."""

    @property
    def id(self) -> str:
        return self._session.id

    @property
    def meta(self) -> SessionMeta:
        """What a list shows of it: title, times, how many messages."""
        return self._session.meta

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that are committed, also those that were compacted away."""
        return tuple(self._session.conversation.everything.values())

    @property
    def state(self) -> Mapping[str, Any]:
        """The session state as it is now."""
        return self._session.state if self.running is None else self.running.state

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """The calls that wait for an approval, those of client tools left out."""
        return tuple([call for call in self._session.pending if call.name not in self._client_tools])

    @property
    def is_busy(self) -> bool:
        """Whether a run is under way here, or waits."""
        return self.running is not None or self._turn.locked() or self.waiting > 0

    @property
    def _is_ending(self) -> bool:
        """Whether the run under way has told its end, and only has to give the conversation free."""
        return self.running is not None and self.running.is_over

    async def find_run(self, id: str, after: int = 0) -> HostedRun:
        """A run of this process, or one that another process began; `Refused` if there is none of that id.

        One that has not ended is gone on with here, unless its worker lives. `after` is the last event that
        the client has: what follows gets higher numbers.
        """
        if (run := self._known(id)) is not None:
            return run
        recorded = (await self._recorded()).get(id)
        if (run := self._known(id)) is not None:
            return run  # somebody else has asked for it meanwhile
        if recorded is None:
            raise Refused(404, "there is no such run in this conversation")
        run = self._new_run(id, recorded_start(recorded.started))
        run.is_recorded = True
        if recorded.ended:
            _feed(run, recorded)
            run.refuse(Refused(409, "the run has ended"))
        else:
            self._host.admit(self.caller, run)
        self.runs[id] = run
        if recorded.ended:
            self._host.keep(self)
        else:
            run.is_elsewhere = True
            self._host.carry(self, self._carry_on(run, after))
        return run

    async def find_unended(self) -> str | None:
        """The id of the newest run, if it has not ended: it is under way somewhere, or was interrupted."""
        if self.running is not None and not self.running.is_over:
            return self.running.id
        try:
            return unended_run(await self._host.store.load(self.id))
        except SessionError as error:
            raise refusal_of_store(error) from None

    async def take_up(self) -> None:
        """Go on with the runs that another process began and did not end."""
        for id, recorded in (await self._recorded()).items():
            if not recorded.ended and id not in self.runs:
                await self.find_run(id, recorded.last + UNSEEN)

    async def start(
        self,
        input: Input | None,
        *,
        approvals: Mapping[str, Answer] | None = None,
        client_tools: Sequence[ClientTool] = (),
        tool_results: Mapping[str, ToolResult] = {},
        key: str | None = None,
        when_busy: WhenBusy = "refuse",
        output: Any = None,
        state: dict[str, Any] | None = None,
        **more: Any,
    ) -> HostedRun:
        """Start a run; `Refused` if it cannot be, or if one is under way and this one is not to wait for it.

        The same `key` again gives the run that was started with it. `more` are further fields of `RunStart`.
        """
        if when_busy not in ("queue", "refuse"):
            raise Refused(400, 'when_busy is "queue" or "refuse"')
        start = RunStart(
            input=input,
            approvals=approvals or {},
            client_tools=client_tools,
            tool_results=tool_results,
            output=output,
            state=state,
            **more,
        )
        if key is not None and (known := await self._keyed(key, start)) is not None:
            return known
        is_queued = self.is_busy and (self.waiting > 0 or not self._is_ending)
        if is_queued and when_busy == "refuse":
            raise Refused(409, "a run of this conversation is under way; wait for it, or ask to be queued")
        if self.waiting >= self._host.limits.waiting:
            raise Refused(429, "too many runs wait in this conversation; try again when one has ended")
        run = self._new_run(f"run_{secrets.token_hex(12)}", start)
        run.is_queued = is_queued
        self._host.admit(self.caller, run)
        self.runs[run.id] = run
        if key is not None:
            self._keys[key] = run
        self.waiting += 1
        carrying = self._host.carry(self, self._carry(run, key, when_busy == "queue"))
        if is_queued:
            await self._accept(run, key)
        else:
            try:
                await run.wait_begun()
            except _Repeated as repeated:
                self._drop(run)
                return await self.find_run(repeated.run)
            except Refused:
                self._drop(run)
                await asyncio.wait([carrying])  # the next one finds the conversation free
                raise
        return run

    async def abort(self, run: HostedRun) -> None:
        """End a run, keeping what arrived; one that waits does not begin, here or anywhere."""
        await self.tell(run, RunWord("abort"))
        if run.is_recorded and not run.begun.done():
            await self._record(run, aborted_before(run.id))

    async def tell(self, run: HostedRun, word: RunWord) -> None:
        """Say something to a run, wherever it is carried out; `Refused` if it does not take it."""
        if run.is_elsewhere and not run.is_over:
            await self._host.send(run, word)
        else:
            word.say(run)

    def leave(self, run: HostedRun) -> None:
        """End a run whose client has left."""
        if not run.is_over:
            self._host.carry(None, self._leave(run))

    async def _leave(self, run: HostedRun) -> None:
        try:
            await self.abort(run)
        except (Refused, SessionError) as error:
            log.info("run %s is not aborted although its client left: %s", run.id, error)

    def take(self, session: Session) -> None:
        """Take what the store has by now, unless a run of this process writes it."""
        if self.running is None:
            self._session = session

    async def _carry(self, run: HostedRun, key: str | None, may_wait: bool) -> None:
        """The life of a run: its turn, the claim on the session, the agent, the end."""
        is_waiting = True
        try:
            async with self._turn:
                is_waiting, self.waiting, self.running = False, self.waiting - 1, run
                while not await self._claimed(run, key, may_wait):  # noqa: ASYNC110 - another process has it
                    await asyncio.sleep(BUSY_PAUSE)
            if run.is_elsewhere:
                await self._carry_on(run, 0)
        except Exception as error:
            run.refuse(_refusal(run, error))
        finally:
            self.waiting -= is_waiting
            await self._let_go(run)

    async def _claimed(self, run: HostedRun, key: str | None, may_wait: bool) -> bool:
        """Carry out a run while the session is claimed; False if another worker has it."""
        try:
            async with self._host.claim(self.id) as session:
                self._session = session
                if key is not None and (known := await self._recorded_with(key, run)) is not None:
                    raise _Repeated(known)
                if run.is_recorded:
                    recorded = (await self._recorded())[run.id]
                    # While it waited, it was aborted, or another worker went on with the conversation.
                    run.is_elsewhere = bool(recorded.events)
                if not run.is_elsewhere:
                    await self._carry_out(run, session, key)
            return True
        except SessionBusy:
            if may_wait:
                return False
            if key is not None and (known := await self._recorded_with(key, run)) is not None:
                raise _Repeated(known) from None
            raise Refused(
                409, "a run of this conversation is under way on another worker; wait for its end"
            ) from None

    async def _carry_on(self, run: HostedRun, after: int) -> None:
        """Follow a run that another process began, and go on with it as soon as nobody else has it."""
        try:
            while not run.log.closed:
                try:
                    async with self._turn, self._host.claim(self.id) as session:
                        everything = await self._recorded()
                        recorded = everything[run.id]
                        _feed(run, recorded)
                        if run.log.closed:
                            run.refuse(Refused(409, "the run has ended"))
                            break
                        if not await self._waits_for_another(run, everything):
                            self._session, self.running, run.is_elsewhere = session, run, False
                            if recorded.events:
                                _resume(run, recorded, session, after)
                            await self._carry_out(run, session, recorded.started.key)
                            break
                except SessionBusy:
                    _feed(run, recorded := (await self._recorded())[run.id])
                await asyncio.sleep(BUSY_PAUSE)
        except Exception as error:
            run.refuse(_refusal(run, error))
        finally:
            await self._let_go(run)

    async def _carry_out(self, run: HostedRun, session: Session, key: str | None) -> None:
        """Run the agent on the session; the end is recorded before the claim is given back."""
        recording = RecordingSession(session, run.id, run.log, is_claimed=self._host.has_claims)
        start = run.start
        started = record_start(run.id, self.caller.name, start, key)
        self._client_tools |= set(started.client_tools)
        self._claimed_session.set_result(session)
        run.recording = recording
        try:
            made = await make_agent(self._host.factory, AgentRequest(self.caller, self.id))
            if run.resumption is not None:
                for event in run.resumption.missing(is_open=session.conversation.open is not None):
                    recording.publish(event)
            seconds = self._host.limits.approval_seconds
            await run.carry_out(*bind(made, start, seconds, session=recording), started)
        except Exception as error:
            refused = _refusal(run, error)
            if not run.is_recorded:
                run.recording = None  # it never began: nothing is recorded of it
            run.refuse(refused)
        finally:
            await run.finish()
            self._claimed_session = asyncio.get_running_loop().create_future()

    async def _accept(self, run: HostedRun, key: str | None) -> None:
        """Return once a run that waits is recorded, or has begun: from then on no kill loses it."""
        await self._record(run, record_start(run.id, self.caller.name, run.start, key))
        run.is_recorded = True

    async def _record(self, run: HostedRun, record: Record) -> None:
        """Record something of a run that waits, as soon as a run of this process has the session."""
        while not run.begun.done():
            claimed = self._claimed_session
            await asyncio.wait([claimed, run.begun], return_when=asyncio.FIRST_COMPLETED)
            if self.running is run:
                await asyncio.wait([run.begun])  # its turn has come, and it records itself
            if run.begun.done():
                return
            try:
                await claimed.result().append([], records=[record])
                return
            except SessionBusy:
                pass  # its claim has just ended
            except SessionError as error:
                run.abort()
                self._drop(run)
                raise refusal_of_store(error) from None

    async def _waits_for_another(self, run: HostedRun, recorded: Mapping[str, RecordedRun]) -> bool:
        """Whether a run that was accepted before this one has not ended; it is gone on with here, too."""
        for id, each in recorded.items():
            if id == run.id:
                return False
            if not each.ended and not (await self.find_run(id, each.last + UNSEEN)).is_over:
                return True
        return False

    async def _let_go(self, run: HostedRun) -> None:
        if self.running is run:
            self.running = None
        await run.finish()
        if run.is_lost:
            self._drop(run)  # who asks for it now gets what the other worker records
        self._host.keep(self)

    def _known(self, id: str) -> HostedRun | None:
        """A run of this process; one that another worker has taken over is read from its records."""
        run = self.runs.get(id)
        return None if run is None or run.is_lost else run

    def _drop(self, run: HostedRun) -> None:
        """Forget a run that never began, or that another worker has."""
        if self.runs.get(run.id) is run:
            del self.runs[run.id]
        for key in [key for key, known in self._keys.items() if known is run]:
            del self._keys[key]

    def _new_run(self, id: str, start: RunStart) -> HostedRun:
        run = HostedRun(id, start, EventLog(self._host.limits.events))

        async def older(after: int) -> Sequence[Numbered]:
            recorded = (await self._recorded()).get(id)
            return [] if recorded is None else [each for each in recorded.events if each.id > after]

        run.log.older = older
        return run

    async def _recorded(self) -> dict[str, RecordedRun]:
        try:
            return recorded_runs(await self._host.store.load(self.id, types=("run_started", "run_events")))
        except SessionError as error:
            raise refusal_of_store(error) from None

    async def _keyed(self, key: str, start: RunStart) -> HostedRun | None:
        """The run that was started with this key, here or on another worker."""
        if key not in self._keys and (found := await self._recorded_with(key, start)) is not None:
            return await self.find_run(found)
        known = self._keys.get(key)  # it may have come meanwhile
        if known is None:
            return None
        if digest(known.start) != digest(start):
            raise Refused(422, _OTHER)
        return await self._first_with_key(known)

    async def _first_with_key(self, run: HostedRun) -> HostedRun:
        """This run once it has begun, or the one that another worker has begun with its key."""
        if not run.is_queued:
            try:
                await run.wait_begun()
            except _Repeated as repeated:
                return await self.find_run(repeated.run)
        return run

    async def _recorded_with(self, key: str, run: HostedRun | RunStart) -> str | None:
        """The run that was begun with a key, if that is not this one."""
        start = run.start if isinstance(run, HostedRun) else run
        for id, recorded in (await self._recorded()).items():
            if recorded.started.key == key and not (isinstance(run, HostedRun) and run.id == id):
                if recorded.started.asked != digest(start):
                    raise Refused(422, _OTHER)
                return id
        return None


class _Repeated(Refused):
    """A request with an idempotency key that another worker has answered already."""

    def __init__(self, run: str) -> None:
        super().__init__(409, "this request was answered already")
        self.run = run


def _feed(run: HostedRun, recorded: RecordedRun) -> None:
    """Give the log what is recorded and it does not have."""
    for numbered in recorded.events:
        if numbered.id > run.log.last:
            run.log.put(numbered)
    run.log.recorded = run.log.last
    if recorded.ended:
        run.log.close()


def _resume(run: HostedRun, recorded: RecordedRun, session: Session, after: int) -> None:
    """Let a run go on behind what is recorded of it, and behind what clients may have seen besides."""
    resumption = Resumption(recorded.events, has_prompt=bool(recorded.started.input))
    run.resumption = resumption
    last = run.log.last
    # What clients have seen and nobody recorded had numbers too, and each client may have seen another part.
    is_cut = resumption.in_reply or after > last
    run.log.last = max(last + UNSEEN * is_cut, after)
    pending = {call.call_id for call in session.pending}
    run.start = still_open(run.start, pending, lacks_prompt=resumption.lacks_prompt)


def _refusal(run: HostedRun, error: Exception) -> Refused:
    """What a client is told of a run that could not be carried out."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, SessionError):
        return refusal_of_store(error)
    log.error("run %s failed\n%s", run.id, describe_traceback(error))
    return Refused(500, "the run failed; the server's log says why")
