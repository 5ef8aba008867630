"""The host: all conversations of one served application, and the runs that live in this process."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from swink.errors import InvalidInput, SessionConflict, SessionError
from swink.memory import LeasingBackend, Session, SessionMeta, Store
from swink.messages import Message
from swink.messages.redact import describe_traceback
from swink.serve.hosting.clienttools import ClientTool
from swink.serve.hosting.conversation import Conversation
from swink.serve.hosting.eventlog import EventLog
from swink.serve.hosting.folderclaims import FolderClaims
from swink.serve.hosting.hostedrun import HostedRun
from swink.serve.hosting.mailbox import PAUSE, Mailbox, RunWord
from swink.serve.hosting.servedagent import RunStart, bind, make_agent, refusal_of_store
from swink.serve.hosting.terms import LOCAL, AgentRequest, Caller, Factory, ServeLimits
from swink.serve.wire import Refused

log = logging.getLogger("swink.serve")

TAKEN_UP = 200
"""How many conversations, the last updated first, are looked through for runs to go on with."""
_PLACE = "swink-serve"


class Host:
    """The conversations of a served application. Each belongs to the caller that began it."""

    def __init__(
        self,
        factory: Factory,
        store: Store,
        limits: ServeLimits = ServeLimits(),
        *,
        directory: str | None = None,
        claims: FolderClaims | None = None,
    ) -> None:
        """With `directory`, all callers share the store's sessions of that directory.

        `claims` are for a store whose sessions cannot be claimed, and that several processes use. Runs that
        were interrupted there are offered to people, and do not go on by themselves.
        """
        self.factory = factory
        self.store = store
        self.limits = limits
        self.closing = False
        self.claims = claims
        self._directory = directory
        self._running: Counter[str] = Counter()
        self._known: WeakValueDictionary[str, Conversation] = WeakValueDictionary()
        self._kept: dict[str, tuple[Conversation, asyncio.TimerHandle | None]] = {}
        self._taking_up: asyncio.Task[None] | None = None
        self._mailbox = Mailbox(store, self._runs_here)
        self._taking_mail: asyncio.Task[None] | None = None
        self._tasks: dict[asyncio.Task[None], Conversation | None] = {}

    async def create(self, caller: Caller, title: str = "", *, id: str | None = None) -> Conversation:
        """Begin a conversation of this caller."""
        try:
            session = await self.store.create(title, id=id, directory=self._place(caller))
        except SessionConflict:
            raise Refused(409, "there is a conversation of that id already; choose another one") from None
        except InvalidInput as error:
            raise Refused(400, str(error)) from None
        except SessionError as error:
            raise refusal_of_store(error) from None
        return self._of(caller, session)

    async def open(self, caller: Caller, id: str) -> Conversation:
        """A conversation of this caller as it is now; `Refused` for an unknown or foreign id alike."""
        known = self._known.get(id)
        if known is not None and known.running is not None and known.meta.directory == self._place(caller):
            return known
        session = await self.read(id)
        if session.meta.directory != self._place(caller):
            raise Refused(404, "there is no such conversation")
        return self._of(caller, session)

    async def list(self, caller: Caller, limit: int = 50, search: str | None = None) -> Sequence[SessionMeta]:
        """The conversations of this caller, the last updated first; with `search` those where it was said."""
        place = self._place(caller)
        if search is None or not search.strip():
            return await self.store.list(limit=limit, directory=place)
        metas = {meta.id: meta for meta in await self.store.list(directory=place)}
        hits = await self.store.search(search, limit=1_000)
        found = [meta for meta in metas.values() if search.lower() in meta.title.lower()]
        found += [metas[hit.session] for hit in hits if hit.session in metas]
        return list({meta.id: meta for meta in found}.values())[:limit]

    async def delete(self, caller: Caller, id: str) -> None:
        """Forget a conversation; a run of it is aborted first."""
        conversation = await self.open(caller, id)
        for run in list(conversation.runs.values()):
            if not run.is_over:
                run.abort()
        tasks = [task for task, owner in self._tasks.items() if owner is conversation]
        if tasks:
            await asyncio.wait(tasks)
        try:
            await self.store.delete(id)
        except SessionError as error:
            raise refusal_of_store(error) from None
        self._forget(id)

    async def fork(self, caller: Caller, id: str, at: int | None = None) -> Conversation:
        """A new conversation that begins with the first messages of this one, or with all of them."""
        await self.open(caller, id)
        try:
            return self._of(caller, await self.store.fork(id, at))
        except InvalidInput as error:
            raise Refused(400, str(error)) from None
        except SessionError as error:
            raise refusal_of_store(error) from None

    async def stateless(
        self,
        caller: Caller,
        messages: Sequence[Message],
        client_tools: Sequence[ClientTool] = (),
        **more: Any,
    ) -> HostedRun:
        """A run of a history that the client brings and keeps; `more` are further fields of `RunStart`."""
        start = RunStart(client_tools=client_tools, **more)
        run = HostedRun(f"run_{secrets.token_hex(12)}", start, EventLog(self.limits.events))
        self.admit(caller, run)
        self.carry(None, self._carry_stateless(run, caller, messages))
        try:
            await run.wait_begun()
        except asyncio.CancelledError:
            run.abort()  # nobody can come back to it
            raise
        return run

    def admit(self, caller: Caller, run: HostedRun) -> None:
        """Count a run of this caller; `Refused` if there are too many, or the application is closing."""
        if self.closing:
            raise Refused(503, "the server is shutting down; ask again soon")
        if self._running.total() >= self.limits.runs or (
            self._running[caller.name] >= self.limits.runs_per_caller
        ):
            raise Refused(429, "too many runs are under way; try again when one has ended")
        self._running[caller.name] += 1
        run.uncount = partial(self._release, caller)

    def carry(self, conversation: Conversation | None, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let the work of a run go on by itself, until it ends or the host closes."""
        task = asyncio.get_running_loop().create_task(work, name="swink-hosted-run")
        self._tasks[task] = conversation
        if conversation is not None:
            self._keep_until(conversation, None)
        task.add_done_callback(self._tasks.pop)
        if self.has_claims and (self._taking_mail is None or self._taking_mail.done()):
            self._taking_mail = asyncio.create_task(self._take_mail(), name="swink-take-mail")
        return task

    async def send(self, run: HostedRun, word: RunWord) -> None:
        """Say something to a run that another worker carries out."""
        if not self.has_claims:
            raise Refused(409, "the run is under way in another program; say it there, or wait for its end")
        try:
            await self._mailbox.send(run, word, self.limits.lease_seconds)
        except SessionError as error:
            raise refusal_of_store(error) from None

    async def _take_mail(self) -> None:
        """Hear what other workers are asked to tell the runs of this one, as long as there are any."""
        while True:
            await asyncio.sleep(PAUSE)
            if not self._tasks:
                return
            try:
                await self._mailbox.take()
            except SessionError as error:
                log.warning("what other workers were told is not heard now: %s", error)

    def _runs_here(self) -> Sequence[HostedRun]:
        owners = {owner for owner in self._tasks.values() if owner is not None}
        return [run for owner in owners for run in owner.runs.values() if not run.is_over]

    def keep(self, conversation: Conversation) -> None:
        """Keep what a run has left in memory for some time."""
        if self.closing:
            self._forget(conversation.id)
        elif not conversation.is_busy:
            timer = asyncio.get_running_loop().call_later(
                self.limits.idle_seconds, self._forget, conversation.id
            )
            self._keep_until(conversation, timer)

    async def read(self, id: str) -> Session:
        """A session as it is stored; `Refused` if there is none."""
        try:
            return await self.store.open(id)
        except InvalidInput:
            raise Refused(404, "there is no such conversation") from None
        except SessionError as error:
            raise refusal_of_store(error) from None

    @property
    def has_claims(self) -> bool:
        """Whether the store keeps workers from running one conversation at once."""
        return isinstance(self.store.sync.backend, LeasingBackend)

    async def leaves_alone(self, conversation: Conversation) -> bool:
        """Whether a run that did not end is offered to people: no process has it, and it does not go on."""
        if self.claims is None or conversation.is_busy:
            return False
        return await self.claims.is_free(conversation.id)

    @asynccontextmanager
    async def claim(self, id: str) -> AsyncGenerator[Session]:
        """The session of a run; no other worker runs it inside the block, if the store has leases."""
        if self.has_claims:
            async with self.store.claim(id, seconds=self.limits.lease_seconds) as session:
                yield session
        elif self.claims is not None:
            async with self.claims.claim(id), await self.store.open(id) as session:
                yield session
        else:
            async with await self.store.open(id) as session:
                yield session

    def take_up_soon(self) -> None:
        """Go on with the runs that the process before this one did not end; clients that ask come first."""
        if self._taking_up is None:
            self._taking_up = asyncio.get_running_loop().create_task(self._take_up(), name="swink-take-up")

    async def _take_up(self) -> None:
        await asyncio.sleep(self.limits.take_up_seconds)
        try:
            await self.take_up()
        except SessionError as error:
            log.error("runs of before are not gone on with: %s", error)

    async def take_up(self) -> None:
        """Go on with the runs of conversations that the process before this one did not end."""
        for meta in await self.store.list(limit=TAKEN_UP):
            place, _, name = (meta.directory or "").partition(":")
            if self._directory is None and (place != _PLACE or not name):
                continue
            if self._directory is not None and meta.directory != self._directory:
                continue
            caller = LOCAL if self._directory is not None else Caller(name)
            try:
                await (await self.open(caller, meta.id)).take_up()
            except Refused as refused:
                log.warning("the runs of conversation %s are not gone on with: %s", meta.id, refused)

    async def aclose(self) -> None:
        """Begin no more runs; let those under way end their turn, and save them."""
        self.closing = True
        for task in (self._taking_up, self._taking_mail):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        for conversation in {owner for owner in self._tasks.values() if owner is not None}:
            for run in conversation.runs.values():
                run.pause()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=self.limits.shutdown_seconds)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        for id in list(self._kept):
            self._forget(id)

    async def _carry_stateless(self, run: HostedRun, caller: Caller, messages: Sequence[Message]) -> None:
        try:
            made = await make_agent(self.factory, AgentRequest(caller, None))
            await run.carry_out(*bind(made, run.start, self.limits.approval_seconds, messages=messages))
        except Refused as refused:
            run.refuse(refused)
        except Exception as error:
            # A hook of the application's, or a fault of ours: the client's stream ends all the same.
            log.error("run %s failed\n%s", run.id, describe_traceback(error))
            run.refuse(Refused(500, "the run failed; the server's log says why"))
        finally:
            await run.finish()

    def _release(self, caller: Caller) -> None:
        self._running[caller.name] -= 1
        if not self._running[caller.name]:
            del self._running[caller.name]

    def _of(self, caller: Caller, session: Session) -> Conversation:
        known = self._known.get(session.id)
        if known is None:
            known = self._known[session.id] = Conversation(self, caller, session)
        else:
            known.take(session)
        return known

    def _keep_until(self, conversation: Conversation, timer: asyncio.TimerHandle | None) -> None:
        _, before = self._kept.get(conversation.id, (None, None))
        if before is not None:
            before.cancel()
        self._kept[conversation.id] = conversation, timer

    def _forget(self, id: str) -> None:
        _, timer = self._kept.pop(id, (None, None))
        if timer is not None:
            timer.cancel()

    def _place(self, caller: Caller) -> str:
        """Where the sessions of a caller are said to have taken place."""
        return self._directory or f"{_PLACE}:{caller.name}"
