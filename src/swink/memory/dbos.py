"""Durable agents: runs as workflows of DBOS, which takes them up again after a crash, in any process.

    durable = DurableAgent(make_agent, store, name="support")      before DBOS.launch()
    result = await durable.run("ticket-17", "Refund order 17.")

DBOS keeps what is to be done, the session what was done: it is the journal of the run, so what holds for an
agent with a session holds here. A tool that ended never runs again; one that was interrupted runs again only
if it is idempotent or read-only, and otherwise the model is told that its outcome is unknown.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from swink import Agent
from swink.agent.policy import Answer
from swink.errors import InvalidContinue, InvalidInput, MisuseError, SessionConflict, SessionNotFound
from swink.events import final_text
from swink.memory import Session, Store
from swink.memory.meta import check_id
from swink.messages import Input, StopReason
from swink.messages.checks import check_hook, check_type
from swink.messages.codec import to_builtins
from swink.system.aio import resolve
from swink.system.extras import install_command

if TYPE_CHECKING:
    from dbos import DBOS

MakeAgent = Callable[[Session], Agent | Awaitable[Agent]]

_names: set[str] = set()
"""Of all durable agents of the program: DBOS finds the workflow to take up again by its name."""


class DurableResult(Struct, frozen=True):
    """What a durable run came to; its messages are in the session."""

    session: str
    text: str
    stop_reason: StopReason
    reason: str | None = None
    """Why a policy, a deadline or an approval ended the run."""


class DurableAgent:
    """An agent whose runs are workflows of DBOS.

    `make_agent(session)` returns the agent of one conversation, made with `session=session`; it may be async.
    It is called once for each run, and again when a run is taken up after a crash, so an agent made with the
    same code is there again. `store` keeps the sessions, where every process that may take up a run finds
    them. Make it before `DBOS.launch()`, in each of those processes, with the same name.

    `workflow(session_id, prompt, approvals)` is the workflow itself, for queues and timeouts of DBOS.
    """

    def __init__(self, make_agent: MakeAgent, store: Store, *, name: str = "agent") -> None:
        check_hook("make_agent", make_agent)
        check_type("store", store, Store)
        if name in _names:
            raise InvalidInput(f"there is already a durable agent {name!r}; give each its own name=")
        self._dbos = _load()
        self._make_agent = make_agent
        self._store = store
        self.name = name

        # DBOS puts marks on the function, which a method cannot have.
        async def workflow(
            session_id: str, prompt: Input | None = None, approvals: Mapping[str, Answer] | None = None
        ) -> dict[str, Any]:
            return await self._run(session_id, prompt, approvals or {})

        self.workflow = self._dbos.workflow(name=f"swink.{name}")(workflow)
        _names.add(name)

    async def run(
        self,
        workflow_id: str,
        prompt: Input | None = None,
        *,
        session: str | None = None,
        approvals: Mapping[str, Answer] | None = None,
    ) -> DurableResult:
        """Run to the end; the same `workflow_id` again gives the same result, and nothing runs twice.

        The session has the id of the workflow unless `session` names another: a conversation goes on with a
        new workflow on its session. There `approvals` answers what is pending, by call id. A run that failed
        raises its error; continue it without a prompt.
        """
        from dbos import SetWorkflowID

        check_id(workflow_id)
        session = check_id(workflow_id if session is None else session)
        with SetWorkflowID(workflow_id):
            return msgspec.convert(await self.workflow(session, prompt, approvals), DurableResult)

    async def _run(
        self, session_id: str, prompt: Input | None, approvals: Mapping[str, Answer]
    ) -> dict[str, Any]:
        """The workflow: two steps, of which DBOS repeats the one that was interrupted."""

        async def begin() -> int:
            session = await self._session(session_id)
            if unknown := approvals.keys() - _pending(session):
                waiting = ", ".join(sorted(_pending(session))) or "none"
                raise InvalidInput(f"no call {min(unknown)!r} waits for approval; pending: {waiting}")
            return session.meta.messages

        # The process that takes up the run sees by this number whether the prompt is in the session already.
        first = await self._dbos.run_step_async({"name": "begin"}, begin)

        async def finish() -> dict[str, Any]:
            return await self._finish(session_id, prompt, approvals, first)

        # Preemptible: if the workflow is cancelled or its time is up, the run is aborted in its middle.
        return await self._dbos.run_step_async({"name": "run", "preemptible": True}, finish)

    async def _finish(
        self, session_id: str, prompt: Input | None, approvals: Mapping[str, Answer], first: int
    ) -> dict[str, Any]:
        session = await self._session(session_id)
        agent = await resolve(self._make_agent(session))
        check_type("make_agent()", agent, Agent)
        is_new = prompt is not None and session.meta.messages == first
        # Calls that were approved wait no more once they have begun.
        answers = {id: answer for id, answer in approvals.items() if id in _pending(session)}
        stop_reason, reason = "stop", None
        try:
            result = await agent.run(prompt if is_new else None, approvals=answers or None)
        except InvalidContinue:
            pass  # the process ended between the last message and the note of DBOS that this was all
        else:
            if not result.stopped:  # that is in the reason
                result.raise_for_error()
            stop_reason, reason = result.stop_reason, result.reason
        await session.aclose()
        if is_new and session.meta.messages == first:
            raise MisuseError("nothing was saved: make_agent(session) has to pass session= to its Agent")
        return to_builtins(DurableResult(session_id, final_text(session.messages), stop_reason, reason))

    async def _session(self, id: str) -> Session:
        """The session, made if need be; a second process may have just made it."""
        try:
            return await self._store.open(id)
        except SessionNotFound:
            try:
                return await self._store.create(id=id)
            except SessionConflict:
                return await self._store.open(id)


def _pending(session: Session) -> set[str]:
    return {pending.call_id for pending in session.pending}


def _load() -> "type[DBOS]":
    try:
        from dbos import DBOS
    except ImportError as error:
        how = f"install it with: {install_command('dbos')}"
        raise MisuseError(f"durable agents need DBOS ({error}); {how}") from error
    return DBOS
