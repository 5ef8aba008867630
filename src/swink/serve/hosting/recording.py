"""Recording: the events of a run go into its session with the messages that they tell of.

    event → held until it is recorded, but for deltas and news → the log, and so the readers

What begins or ends something is recorded before any client sees it: after the process was killed, the
session knows where every client is, but for the deltas of the last reply. A worker that has lost its claim
shows nothing more: whoever goes on with the run tells the rest.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from swink.errors import AgentError, SessionConflict
from swink.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from swink.memory import Session, SessionMeta
from swink.messages import AssistantMessage, Message
from swink.messages.records import Conversation, Record, RunStarted, TurnOpened
from swink.serve.hosting.eventlog import EventLog, Numbered
from swink.serve.hosting.runrecords import told_by, write_events

log = logging.getLogger("swink.serve")
Done = Callable[[BaseException | None], None]


class RecordingSession:
    """The session of a run: every append of the agent takes the run's events along."""

    saves_prompts_first = True
    """The events that are recorded when a reply begins tell of no prompt that is not stored."""

    def __init__(self, session: Session, run: str, events: EventLog, *, is_claimed: bool = False) -> None:
        self._session = session
        self._run = run
        self._log = events
        self._told = told_by(events.after(0))
        self._last = events.last
        self._sure = events.last
        """Up to which event nothing has to wait to be recorded."""
        self._waiting: list[Numbered] = []
        """Events that are not recorded."""
        self._unshown: deque[Numbered] = deque()
        self._appends = 0
        self._is_claimed = is_claimed
        self.is_lost = False
        """Whether another worker has taken the session over."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> str:
        return self._session.id

    @property
    def messages(self) -> Sequence[Message]:
        return self._session.messages

    @property
    def state(self) -> dict[str, Any]:
        return self._session.state

    @property
    def conversation(self) -> Conversation:
        """What the session adds up to."""
        return self._session.conversation

    @property
    def written(self) -> int:
        """How often an agent has written here."""
        return self._session.written

    @property
    def meta(self) -> SessionMeta:
        """The metadata, with a sequence that counts the appends of the agent alone."""
        return replace(self._session.meta, sequence=self._appends)

    async def stored(self) -> None:
        """Wait until every append has ended."""
        await self._session.stored()

    async def begin(self, started: RunStarted) -> None:
        """Record that the run begins."""
        await self._session.append([], records=[started])

    async def append(
        self,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        """Add messages, the state and records in one transaction, and the events that are waiting."""
        taken = self._take()
        try:
            await self._session.append(messages, state=state, records=[*records, *self._written(taken)])
        except BaseException as error:
            self._keep(taken, error)
            raise
        self._appends += 1
        self._recorded(taken)

    def start_append(
        self,
        done: Done,
        messages: Sequence[Message],
        state: dict[str, Any] | None,
        records: Sequence[Record],
        writer: Any,
    ) -> None:
        """As `append`, then call back in this event loop; for the engine."""
        taken = self._take()

        def ended(error: BaseException | None) -> None:
            if error is None:
                self._appends += 1
                self._recorded(taken)
            else:
                self._keep(taken, error)
            done(error)

        self._session.start_append(ended, messages, state, [*records, *self._written(taken)], writer)

    def publish(self, event: AgentEvent) -> None:
        """Number an event, and let readers see it as soon as they may."""
        self._last += 1
        numbered = Numbered(self._last, event)
        self._waiting.append(numbered)
        self._unshown.append(numbered)
        match event:
            case MessageStart(role="assistant") | ToolExecutionStart() | ToolExecutionEnd() | TurnEnd():
                self._append_soon([])
            case ApprovalRequested() | ApprovalResolved():
                self._append_soon([])
            case MessageEnd(message=AssistantMessage() as reply) if reply.tool_calls and not reply.failed:
                self._append_soon([TurnOpened(reply)])
            case _:
                pass  # a reply without calls is in the engine's next append
        self._show()

    async def finish(self, end: AgentEnd | None) -> None:
        """Record what is left, with the end unless the run goes on elsewhere; then let readers see it."""
        if end is not None:
            self._last += 1
            self._waiting.append(Numbered(self._last, end))
            self._unshown.append(self._waiting[-1])
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        taken = self._take()
        try:
            if taken and not self.is_lost:
                record = write_events(self._run, taken, self._told, ended=end is not None)
                await self._session.append([], records=[record])
        except AgentError as error:
            self._note(error)
            if not self.is_lost:
                log.error("the end of run %s could not be recorded: %s", self._run, error)
        self._recorded(taken)

    def _append_soon(self, records: Sequence[Record]) -> None:
        work = self._append_events(records, self._last)
        task = asyncio.get_running_loop().create_task(work, name="swink-record")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _append_events(self, records: Sequence[Record], upto: int) -> None:
        taken = self._take(upto)  # what came after may tell of a message that is not stored
        if not (taken or records):
            return  # an append of the agent has taken them along
        try:
            await self._session.append([], records=[*records, *self._written(taken)])
        except AgentError as error:
            # The engine's next append fails too, and ends the run; readers see the events meanwhile.
            log.warning("events of run %s could not be recorded: %s", self._run, error)
            self._sure = max(self._sure, taken[-1].id if taken else 0)
            self._keep(taken, error)
            self._show()
        else:
            self._recorded(taken)

    def _keep(self, taken: Sequence[Numbered], error: BaseException) -> None:
        """Let events that could not be recorded wait for the next append."""
        self._waiting[:0] = taken
        self._note(error)

    def _note(self, error: BaseException) -> None:
        if self._is_claimed and isinstance(error, SessionConflict) and not self.is_lost:
            self.is_lost = True
            log.warning("run %s goes on elsewhere: another worker has taken its conversation over", self._run)

    def _take(self, upto: int | None = None) -> list[Numbered]:
        waiting = self._waiting
        count = sum([each.id <= upto for each in waiting]) if upto is not None else len(waiting)
        taken, self._waiting = waiting[:count], waiting[count:]
        return taken

    def _written(self, taken: Sequence[Numbered]) -> list[Record]:
        return [write_events(self._run, taken, self._told)] if taken else []

    def _recorded(self, taken: Sequence[Numbered]) -> None:
        if taken:
            self._sure = self._log.recorded = max(self._sure, taken[-1].id)
        self._show()

    def _show(self) -> None:
        """Let readers see the events up to the first one that has to be recorded before."""
        unshown = self._unshown
        while (
            not self.is_lost and unshown and (unshown[0].id <= self._sure or not _is_held(unshown[0].event))
        ):
            self._log.put(unshown.popleft())


def _is_held(event: AgentEvent) -> bool:
    """Whether readers see an event only when it is recorded."""
    match event:
        case AgentStart() | TurnStart() | MessageStart() | MessageEnd() | TurnEnd() | AgentEnd():
            return True
        case ToolExecutionStart() | ToolExecutionEnd() | ApprovalRequested() | ApprovalResolved():
            return True
        case _:
            return False
