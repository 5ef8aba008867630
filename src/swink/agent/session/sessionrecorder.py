"""How a run is recorded in a session: the messages of each turn, and a journal of the turn under way.

    TurnOpened CallStarted… → the tools run → CallEnded… → the turn's messages, which replace all of it

That a call begins is stored before it does; how it ended, as soon as it has. Another process that takes up
the turn keeps what has ended, and knows of what has begun. Tools that only read need no journal.
"""

import logging
from collections.abc import Callable, Sequence

from swink.agent.config import AgentContext, AgentLoopConfig, PlainSession
from swink.agent.engine.ledger import Ledger, as_message
from swink.agent.engine.turnstate import Call
from swink.agent.queues import Queues
from swink.agent.session.saver import Saver
from swink.agent.session.sessiondiff import ConversationState, SessionDiff, call_ids
from swink.events import CompactionReport
from swink.messages import Message, ToolResult, ToolResultMessage
from swink.messages.history import History
from swink.messages.records import (
    CallEnded,
    CallStarted,
    OpenTurn,
    PendingApproval,
    TurnOpened,
    fingerprint,
)

log = logging.getLogger("swink.tool")


class SessionRecorder:
    """Records one run, as the engine's `Recorder`."""

    __slots__ = ("_diff", "_ledger", "saver")

    def __init__(self, diff: SessionDiff, ledger: Ledger) -> None:
        self._diff = diff
        self._ledger = ledger
        self.saver = Saver(diff, self._state)

    @property
    def is_up_to_date(self) -> bool:
        """Whether the session has everything, and nothing is on its way to it."""
        return self.saver.is_up_to_date

    def note(self, happened: Sequence[Message] | PendingApproval | Call) -> None:
        """Note prompts, a question or a result; a question that takes long is asked again after a kill."""
        if isinstance(happened, Call):
            self._note_result(happened)
        elif not isinstance(happened, PendingApproval):
            self.saver.save_later()
        elif self._diff.takes_records:
            self._open_journal()
            self.saver.notes.append(happened)
            self.saver.save_later()

    async def ask(self) -> None:
        """Store what a model is about to be asked, if the session wants that first."""
        if self._diff.saves_prompts_first:
            await self.saver.save(final=False)

    async def begin(self, calls: Sequence[Call]) -> None:
        """Store that these calls begin, or wait for an approval. What raises here keeps them from running."""
        waiting = [call.pending for call in calls if call.pending is not None]
        if not self._diff.takes_records:
            if waiting:
                log.warning(
                    "the session keeps messages alone, so calls that wait for approval are lost with this "
                    "process; use a session of a store, or one whose append takes state and records"
                )
            return
        if not waiting:
            unsettled = calls if self._is_open else [call for call in self._calls if call.result is None]
            if not any(call.tool is not None and not call.tool.read_only for call in unsettled):
                return
        self._open_journal()
        self.saver.notes.extend(waiting or [CallStarted(call.call.id, _made(call)) for call in calls])
        await self.saver.save(final=False)

    async def save(self) -> None:
        """Return when the session has everything."""
        await self.saver.save()

    def close(self, *, is_late: bool = False) -> None:
        """Begin nothing more; if it is late, an append under way is cancelled."""
        self.saver.close()
        if is_late:
            self.saver.cancel()

    @property
    def _calls(self) -> Sequence[Call]:
        return self._ledger.turn.all_calls

    @property
    def _is_open(self) -> bool:
        reply = self._ledger.turn.reply
        return reply is not None and self._diff.has_open(reply)

    def _open_journal(self) -> None:
        """Begin the journal of the turn, unless the session has it already."""
        if not self._is_open:
            reply = self._ledger.turn.reply
            assert reply is not None
            ended = [call for call in self._calls if call.result is not None and not call.waits]
            settled = [self._ended(call, call.result) for call in ended if call.result is not None]
            self.saver.notes[:] = [TurnOpened(reply), *settled]

    def _note_result(self, call: Call) -> None:
        """Note a result; the last one goes with the turn's messages, unless policies are asked before."""
        if call.result is None or call.waits or not self._diff.takes_records or not self._is_open:
            return
        self.saver.notes.append(self._ended(call, call.result))
        if self._ledger.slots.post_turn or any(other.result is None for other in self._calls):
            self.saver.save_soon()

    def _ended(self, call: Call, result: ToolResult) -> CallEnded:
        kept = self._ledger.vetted(as_message(call.call, result))
        assert isinstance(kept, ToolResultMessage)
        return CallEnded(call.call.id, ToolResult(kept.content, kept.details, kept.is_error), _made(call))

    def _state(self, final: bool) -> ConversationState:
        """The conversation as it is now; the open turn counts only if it is final."""
        ledger, turn = self._ledger, self._ledger.turn
        is_open = turn.is_open and not final
        upto = turn.begins if is_open else len(ledger.history)
        reply = turn.reply if is_open else None if ledger.open is None else ledger.open.reply
        return ConversationState(
            ledger.history,
            upto,
            ledger.produced,
            ledger.inbox.pending,
            None if reply is None else call_ids(reply),
        )


def _made(call: Call) -> str:
    return "" if call.outer is None else fingerprint(call.call)


class AgentSession:
    """The session of an agent, kept up to date during its runs and between them."""

    __slots__ = ("_diff", "_recorder")

    def __init__(
        self,
        session: PlainSession,
        history: History,
        config: AgentLoopConfig,
        context: AgentContext,
        queues: Queues,
    ) -> None:
        self._diff = SessionDiff.of(session, history, config, context, queues)
        self._recorder: SessionRecorder | None = None

    @property
    def id(self) -> str | None:
        """The id of the session, if it has one."""
        return self._diff.session_id

    def record(self, ledger: Ledger) -> SessionRecorder:
        """What records the run of this ledger; `SessionConflict` if the session went on without it."""
        self._diff.check_writer()
        self._recorder = SessionRecorder(self._diff, ledger)
        return self._recorder

    def save_soon(self) -> None:
        """Save what was queued during a run, without waiting for it; safe from any thread."""
        if (recorder := self._recorder) is not None:
            recorder.saver.save_soon()

    def release(self) -> None:
        """The run is over: what is queued from now on goes with the next append."""
        self._recorder = None

    def note_compaction(self, report: CompactionReport) -> None:
        """Tell the session why the history is another one, with what it is told next."""
        self._diff.report = report

    async def save(self, look: Callable[[], tuple[History, OpenTurn | None]]) -> None:
        """Save history and open turn, as they are then, while no run is active."""

        def state(final: bool) -> ConversationState:
            history, turn = look()
            return ConversationState(history, len(history), open=turn and call_ids(turn.reply))

        await Saver(self._diff, state).save()
