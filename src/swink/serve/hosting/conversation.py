"""A conversation of a caller: a session of the store, and the runs of it in this process, one at a time."""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from swink.agent.policy import Answer
from swink.errors import SessionBusy, SessionConflict, SessionError, SessionNotFound
from swink.memory import Session, SessionMeta
from swink.messages import Input, Message, ToolResult
from swink.messages.records import PendingApproval
from swink.messages.redact import describe_traceback
from swink.serve.hosting.clienttools import ClientTool
from swink.serve.hosting.eventlog import EventLog
from swink.serve.hosting.hostedrun import HostedRun
from swink.serve.hosting.servedagent import RunStart, WhenBusy, bind, make_agent
from swink.serve.hosting.terms import AgentRequest, Caller
from swink.serve.wire import Refused

if TYPE_CHECKING:
    from swink.serve.hosting.host import Host

log = logging.getLogger("swink.serve")

BUSY_PAUSE = 0.5
"""Seconds between two looks whether a conversation that another worker has is free."""


class Conversation:
    """One conversation of a caller; `Host.open` gives it."""

    def __init__(self, host: "Host", caller: Caller, session: Session) -> None:
        self.caller = caller
        self._host = host
        self._session = session
        self._turn = asyncio.Lock()
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

    def run(self, id: str) -> HostedRun:
        """A run that this process knows of; `Refused` if there is none of that id."""
        if (run := self.runs.get(id)) is None:
            raise Refused(404, "there is no such run in this conversation")
        return run

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
        start = RunStart(
            input=input,
            approvals=approvals or {},
            client_tools=client_tools,
            tool_results=tool_results,
            output=output,
            state=state,
            **more,
        )
        if key is not None and (known := self._keys.get(key)) is not None:
            return known
        is_queued = self.is_busy
        if is_queued and when_busy == "refuse":
            raise Refused(409, "a run of this conversation is under way; wait for it, or ask to be queued")
        if self.waiting >= self._host.limits.waiting:
            raise Refused(429, "too many runs wait in this conversation; try again when one has ended")
        run = HostedRun(f"run_{secrets.token_hex(12)}", start, EventLog(self._host.limits.events))
        self._host.admit(self.caller)
        self.runs[run.id] = run
        if key is not None:
            self._keys[key] = run
        self.waiting += 1
        self._host.carry(self, self._carry(run, when_busy == "queue"))
        if not is_queued:
            await run.wait_begun()
        return run

    def take(self, session: Session) -> None:
        """Take what the store has by now, unless a run of this process writes it."""
        if not self.is_busy:
            self._session = session

    async def _carry(self, run: HostedRun, may_wait: bool) -> None:
        """The life of a run: its turn, the claim on the session, the agent, the end."""
        is_waiting = True
        try:
            async with self._turn:
                is_waiting, self.waiting, self.running = False, self.waiting - 1, run
                try:
                    await self._carry_claimed(run, may_wait)
                finally:
                    self.running = None
        except Refused as refused:
            run.refuse(refused)
        except SessionError as error:
            run.refuse(refusal_of_store(error))
        except Exception as error:
            # A hook of the application's, or a fault of ours: the client's stream ends all the same.
            log.error("run %s failed\n%s", run.id, describe_traceback(error))
            run.refuse(Refused(500, "the run failed; the server's log says why"))
        finally:
            self.waiting -= is_waiting
            await run.finish()
            self._host.release(self.caller)
            self._host.keep(self)

    async def _carry_claimed(self, run: HostedRun, may_wait: bool) -> None:
        while True:
            try:
                async with self._host.claim(self.id) as session:
                    self._session = session
                    request = AgentRequest(self.caller, self.id)
                    made = await make_agent(self._host.factory, request)
                    self._client_tools |= {tool.name for tool in run.start.client_tools}
                    seconds = self._host.limits.approval_seconds
                    await run.carry_out(*bind(made, run.start, seconds, session=session))
                return
            except SessionBusy:
                if not may_wait:
                    text = "a run of this conversation is under way on another worker; wait for its end"
                    raise Refused(409, text) from None
            await asyncio.sleep(BUSY_PAUSE)


def refusal_of_store(error: SessionError) -> Refused:
    """What a client is told when the store refuses."""
    if isinstance(error, SessionNotFound):
        return Refused(404, "there is no such conversation")
    if isinstance(error, SessionConflict | SessionBusy):
        return Refused(409, "the conversation was continued elsewhere; read its messages and ask again")
    log.error("the store failed: %s", error)
    return Refused(503, "the conversation cannot be stored now; nothing was lost, try again later")
