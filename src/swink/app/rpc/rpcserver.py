"""The methods of `swink rpc`, on the hosting of served agents, for the one program at the other end.

run            → the run's id at once, then notifications `event` until one of the type result
abort … approve  to the run that is under way
sessions.*     what is saved
shutdown       or the end of input: runs are aborted, what arrived is saved, and the program ends
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.policy import Answer, Approved, Rejected
from swink.app.acp.connection import (
    INTERNAL_ERROR,
    INVALID_PARAMETERS,
    NO_METHOD,
    NOT_FOUND,
    Connection,
    RequestRefused,
)
from swink.app.cli.jsonlines import JsonPrinter
from swink.app.rpc.codingagent import ClientPerson
from swink.app.rpc.rpctypes import (
    ApproveParameters,
    EventParameters,
    ForkParameters,
    ListParameters,
    OfRun,
    OpenParameters,
    RunAnswer,
    RunParameters,
    SavedSessions,
    SayParameters,
    SessionAnswer,
    ShutdownAnswer,
    ShutdownParameters,
)
from swink.errors import AgentError
from swink.events import AgentEnd, AgentEvent, ApprovalRequested, ApprovalResolved
from swink.events.eventlines import complete, encode_event
from swink.messages import Input
from swink.messages.jsondata import encode
from swink.serve.hosting import Caller, Conversation, Host, HostedRun
from swink.serve.native.bodies import InputParts, ListedConversation, ShownConversation, as_input
from swink.serve.wire import Refused
from swink.system.oneline import shorten

log = logging.getLogger("swink.rpc")

CONFLICT = -32_001
"""The code of what cannot be done now: a run is under way, or none is."""
_CODES = {400: INVALID_PARAMETERS, 404: NOT_FOUND, 409: CONFLICT, 410: CONFLICT, 429: CONFLICT}
_NO_SESSION = "there is no such session; sessions.list names those there are"
_TITLE = 60
_LAST_EVENTS = 10.0
"""Seconds in which aborted runs end when the program does."""
T = TypeVar("T")


class RpcServer:
    """Answers one program until it leaves."""

    def __init__(
        self,
        connection: Connection,
        host: Host,
        caller: Caller,
        person: ClientPerson,
        begun: Callable[[Agent], object] = lambda agent: None,
    ) -> None:
        """`begun` is told of the agent of each run."""
        self._connection, self._host, self._caller, self._person = connection, host, caller, person
        self._begun = begun
        self._runs: dict[str, HostedRun] = {}
        self._tellers: set[asyncio.Task[None]] = set()
        self._methods: dict[str, Callable[[Raw], Awaitable[Any]]] = {
            "run": self._run,
            "abort": self._abort,
            "steer": self._steer,
            "follow_up": self._follow_up,
            "approve": self._approve,
            "sessions.list": self._list,
            "sessions.open": self._open,
            "sessions.fork": self._fork,
            "shutdown": self._shutdown,
        }

    async def serve(self) -> None:
        """Answer until the input ends or `shutdown` is asked for; then end what runs."""
        try:
            await self._connection.serve(self)
        finally:
            for run in self._runs.values():
                run.abort()
            if self._tellers:
                await asyncio.wait(self._tellers, timeout=_LAST_EVENTS)
            await self._host.aclose()
            for task in (left := list(self._tellers)):
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._connection.aclose()

    async def answer(self, method: str, parameters: Raw) -> Mapping[str, Any]:
        """The result of a request; raises `RequestRefused`."""
        if (found := self._methods.get(method)) is None:
            known = ", ".join(self._methods)
            raise RequestRefused(NO_METHOD, f"there is no method {shorten(method, 60)}; there are {known}")
        try:
            return msgspec.to_builtins(await found(parameters))
        except Refused as refused:
            said = _NO_SESSION if refused.status == 404 else str(refused)
            raise RequestRefused(_CODES.get(refused.status, INTERNAL_ERROR), said) from None

    def hear(self, method: str, parameters: Raw) -> None:
        """Take a notification: none of a program's has a meaning."""
        log.warning("%s has no id, so it is not answered, and nothing is done", shorten(method, 60))

    async def _run(self, parameters: Raw) -> RunAnswer:
        asked = msgspec.json.decode(parameters, type=RunParameters)
        given = None if asked.input is None else as_input(asked.input)
        if asked.session is None:
            if given is None:
                raise Refused(400, "pass input, or the session that goes on")
            title = shorten(asked.input, _TITLE) if isinstance(asked.input, str) else ""
            return await self._begin(given, title)
        conversation = await self._host.open(self._caller, asked.session)
        return self._follow(conversation, await conversation.start(given))

    async def _begin(self, given: Input, title: str) -> RunAnswer:
        """Start a run in a new session, which is gone again if the run is refused."""
        conversation = await self._host.create(self._caller, title)
        try:
            run = await conversation.start(given)
        except (Refused, AgentError):
            await self._host.delete(self._caller, conversation.id)
            raise
        return self._follow(conversation, run)

    async def _abort(self, parameters: Raw) -> RunAnswer:
        session, run = self._under_way(msgspec.json.decode(parameters, type=OfRun).session)
        run.abort()
        return RunAnswer(run.id, session)

    async def _steer(self, parameters: Raw) -> RunAnswer:
        return self._say(parameters, HostedRun.steer)

    async def _follow_up(self, parameters: Raw) -> RunAnswer:
        return self._say(parameters, HostedRun.follow_up)

    async def _approve(self, parameters: Raw) -> RunAnswer:
        asked = msgspec.json.decode(parameters, type=ApproveParameters)
        answer: Answer = Approved(asked.arguments) if asked.approved else Rejected(asked.reason)
        for session, run in self._runs.items():
            if asked.session in (None, session) and self._answer_call(run, asked.call_id, answer):
                return RunAnswer(run.id, session)
        if asked.session is not None:
            conversation = await self._host.open(self._caller, asked.session)
            if any(call.call_id == asked.call_id for call in conversation.pending):
                started = await conversation.start(None, approvals={asked.call_id: answer})
                return self._follow(conversation, started)
        raise Refused(409, f"no call {asked.call_id[:80]!r} waits for an approval")

    async def _list(self, parameters: Raw) -> SavedSessions:
        asked = msgspec.json.decode(parameters, type=ListParameters)
        metas = await self._host.list(self._caller, asked.limit, asked.search)
        return SavedSessions([ListedConversation.of(meta) for meta in metas])

    async def _open(self, parameters: Raw) -> ShownConversation:
        asked = msgspec.json.decode(parameters, type=OpenParameters)
        conversation = await self._host.open(self._caller, asked.session)
        messages = msgspec.json.decode(encode(conversation.messages))
        return ShownConversation.of(conversation, [complete(message) for message in messages])

    async def _fork(self, parameters: Raw) -> SessionAnswer:
        asked = msgspec.json.decode(parameters, type=ForkParameters)
        return SessionAnswer((await self._host.fork(self._caller, asked.session, asked.at)).id)

    async def _shutdown(self, parameters: Raw) -> ShutdownAnswer:
        msgspec.json.decode(parameters, type=ShutdownParameters)
        asyncio.get_running_loop().call_soon(self._connection.end)  # once the answer is sent
        return ShutdownAnswer()

    def _say(self, parameters: Raw, how: Callable[[HostedRun, Any], None]) -> RunAnswer:
        asked = msgspec.json.decode(parameters, type=SayParameters)
        session, run = self._under_way(asked.session)
        message: str | InputParts = asked.message
        how(run, as_input(message))
        return RunAnswer(run.id, session)

    def _answer_call(self, run: HostedRun, call_id: str, answer: Answer) -> bool:
        if self._person.answer(call_id, answer):
            return True
        try:
            run.approve(call_id, answer)
        except Refused:
            return False
        return True

    def _under_way(self, session: str | None) -> tuple[str, HostedRun]:
        """The session and its run; that of the only one if none is named."""
        running = {id: run for id, run in self._runs.items() if session in (None, id)}
        if len(running) == 1:
            return running.popitem()
        if running:
            raise Refused(400, "several runs are under way; say whose with session")
        raise Refused(409, "no run is under way")

    def _follow(self, conversation: Conversation, run: HostedRun) -> RunAnswer:
        self._runs[conversation.id] = run
        if run.agent is not None:
            self._begun(run.agent)
        task = asyncio.create_task(self._tell_events(conversation.id, run), name="swink-rpc-events")
        self._tellers.add(task)
        task.add_done_callback(self._tellers.discard)
        return RunAnswer(run.id, conversation.id)

    async def _tell_events(self, session: str, run: HostedRun) -> None:
        """Send the events of a run and its result, as fast as the program reads them."""
        number, end = 0, AgentEnd((), "error")
        try:
            async for numbered in run.events():
                number, event = numbered.id, numbered.event
                self._note(event)
                if isinstance(event, AgentEnd):
                    end = event
                self._tell(session, run, number, encode_event(event))
                await self._connection.drained()
        except Refused as refused:  # the program has read so slowly that events are gone
            end = AgentEnd((), "error", str(refused))
        finally:
            if self._runs.get(session) is run:
                del self._runs[session]
        result = run.result or AgentResult((), end.stop_reason, error=end.reason)
        printer = JsonPrinter(lambda line: self._tell(session, run, number + 1, line.rstrip()))
        printer.session = lambda: session
        printer.print_result(result)

    def _note(self, event: AgentEvent) -> None:
        match event:
            case ApprovalRequested(call_id):
                self._person.expect(call_id)
            case ApprovalResolved(call_id):
                self._person.forget(call_id)
            case _:
                pass

    def _tell(self, session: str, run: HostedRun, number: int, event: bytes) -> None:
        told = EventParameters(session, run.id, number, Raw(event))
        fields = {name: getattr(told, name) for name in told.__struct_fields__}
        self._connection.tell("event", fields)
