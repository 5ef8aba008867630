"""The journal: what a session is told of a turn while its tools run, so that none of them runs twice.

    TurnOpened CallStarted… → the tools run → CallEnded… → the turn's messages, which replace all of it

That a call begins is stored before it does; how it ended, as soon as it has. Whoever takes up the turn in
another process keeps what has ended, and knows of what has begun. Tools that only read need no journal.
"""

from collections.abc import Iterable, Sequence

from swink.agent.engine.ledger import Call, Ledger
from swink.agent.session.saver import Saver
from swink.messages import Message, ToolResult, ToolResultMessage
from swink.messages.records import CallEnded, CallStarted, OpenTurn, PendingApproval, TurnOpened
from swink.tools import Tool, failure

UNKNOWN = (
    "outcome unknown: the program ended while this call was running, so it may have taken effect or not; "
    "look before you call again"
)
NOT_RUN = "tool call not run: the program ended before it began"
NOT_APPROVED = "tool call not run: instead of an approval the user sent a new message"


class Journal:
    """The journal of a run's turns, one after the other."""

    __slots__ = ("_ledger", "_saver")

    def __init__(self, ledger: Ledger, saver: Saver) -> None:
        self._ledger = ledger
        self._saver = saver
        ledger.ended = self._end

    async def begin(self, calls: Sequence[Call]) -> None:
        """Store that these calls begin. What raises here keeps them from running."""
        is_open = self._is_open
        waiting = calls if is_open else [call for call in self._ledger.calls if call.result is None]
        if not any(call.tool is not None and not call.tool.read_only for call in waiting):
            return
        if not is_open:
            self._open()
        self._saver.notes.extend([CallStarted(call.call.id) for call in calls])
        await self._saver.save(final=False)

    def ask(self, question: PendingApproval) -> None:
        """Somebody is asked: a question that takes long is stored, so that it is asked again after a kill."""
        if not self._is_open:
            self._open()
        self._saver.notes.append(question)
        self._saver.save_later()

    async def wait_for(self, pending: Iterable[PendingApproval]) -> None:
        """Store that the turn waits for somebody's word."""
        if not self._is_open:
            self._open()
        self._saver.notes.extend(pending)
        await self._saver.save(final=False)

    @property
    def _is_open(self) -> bool:
        reply = self._ledger.reply
        return reply is not None and self._saver.known.has_open(reply)

    def _open(self) -> None:
        ledger = self._ledger
        assert ledger.reply is not None
        settled = [_ended(ledger, call, call.result) for call in ledger.calls if call.result is not None]
        self._saver.notes[:] = [TurnOpened(ledger.reply), *settled]

    def _end(self, call: Call, result: ToolResult) -> None:
        """Note a result; the last one goes with the turn's messages, unless policies are asked before."""
        ledger = self._ledger
        if not self._is_open:
            return
        self._saver.notes.append(_ended(ledger, call, result))
        if ledger.slots.post_turn or any(other.result is None for other in ledger.calls):
            self._saver.save_soon()


def settled_turn(turn: OpenTurn) -> list[Message]:
    """The messages of a turn that is not gone on with: what is known of each call, and nothing runs."""
    results: list[Message] = []
    for call in turn.reply.tool_calls:
        id = call.id
        text = UNKNOWN if id in turn.started else NOT_APPROVED if id in turn.pending else NOT_RUN
        result = turn.results.get(id) or failure(text)
        results.append(ToolResultMessage(id, call.name, result.content, result.is_error, result.details))
    return [turn.reply, *results]


def known_result(turn: OpenTurn, id: str, tool: Tool | None) -> ToolResult | None:
    """What a call that is taken up again already came to; None if it may run."""
    if id in turn.results or id not in turn.started:
        return turn.results.get(id)
    return None if tool is not None and (tool.idempotent or tool.read_only) else failure(UNKNOWN)


def _ended(ledger: Ledger, call: Call, result: ToolResult) -> CallEnded:
    kept = ledger.result_message(call.call, result)
    return CallEnded(call.call.id, ToolResult(kept.content, kept.details, kept.is_error))
