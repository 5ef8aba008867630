"""Resumption: a run that another process began is gone on with, and tells nothing twice.

An agent that takes up a conversation announces its run, its turn and the reply of that turn anew. Here is
what of this was told before; and what has to be told that was not, such as that a reply was lost.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from swink.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    ApprovalRequested,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from swink.messages import AssistantMessage, Message
from swink.serve.hosting.eventlog import Numbered
from swink.serve.hosting.runrecords import told_by

LOST = "the process that received this reply ended before it was complete"


class Resumption:
    """What was told of a run before this process took it up."""

    def __init__(self, recorded: Sequence[Numbered], *, has_prompt: bool) -> None:
        self._told = told_by(recorded)
        self.messages = self._told.messages
        """The messages that were told."""
        self.lacks_prompt = has_prompt and not self.messages
        """Whether the prompt of the run was never committed."""
        self._is_begun = bool(recorded)
        self._turns = 0
        self._in_turn = self._has_reply = False
        self.in_reply = False
        """Whether a reply was begun and not ended: clients have seen deltas that are recorded nowhere."""
        self._calls: set[tuple[type[AgentEvent], str]] = set()
        for numbered in recorded:
            self._note(numbered.event)
        self._was_open = self._in_turn

    def missing(self, *, is_open: bool) -> list[AgentEvent]:
        """What has to be told first; `is_open` says whether the session has a turn whose tools are to run."""
        if self.in_reply:
            return [MessageDiscarded(1, LOST)]
        end = self._told.turn_end
        if self._in_turn and self._has_reply and not is_open and end is not None:
            self._in_turn = self._was_open = False
            return [end]
        return []

    def untold(self, event: AgentEvent) -> AgentEvent | None:
        """The event as it is told, or None if it was told before."""
        match event:
            case AgentStart() if self._is_begun:
                return None
            case TurnStart(turn):
                return None if self._in_turn else replace(event, turn=turn + self._turns - self._was_open)
            case MessageStart(role="assistant") if self._in_turn:
                return None
            case MessageEnd(message=AssistantMessage()) if self._in_turn and self._has_reply:
                self._has_reply = False
                return None
            case ToolExecutionStart() | ToolExecutionEnd() | ApprovalRequested() if self._in_turn:
                return None if (type(event), event.call_id) in self._calls else event
            case TurnEnd():
                self._in_turn = False
                return event
            case _:
                return event

    def end_of(self, messages: Sequence[Message]) -> AgentEnd:
        """The end of a run that had come to its end, and could not say so."""
        last = messages[-1] if messages else None
        return AgentEnd((), last.stop_reason if isinstance(last, AssistantMessage) else "stop")

    def _note(self, event: AgentEvent) -> None:
        match event:
            case TurnStart():
                self._turns += 1
                self._in_turn, self._has_reply = True, False
                self._calls.clear()
            case MessageStart(role="assistant"):
                self.in_reply = True
            case MessageEnd(message=AssistantMessage()):
                self.in_reply, self._has_reply = False, True
            case ToolExecutionStart() | ToolExecutionEnd() | ApprovalRequested():
                self._calls.add((type(event), event.call_id))
            case TurnEnd():
                self._in_turn = False
            case _:
                pass
