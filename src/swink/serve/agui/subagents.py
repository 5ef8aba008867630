"""The sub-agents of a run: which of them are at work, and what they say."""

from swink.events import (
    AgentEnd,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    NestedEvent,
    ToolExecutionEnd,
    TurnEnd,
    TurnStart,
)
from swink.messages import UserMessage
from swink.serve.agui.speaker import Event, Speaker

_Whose = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The outermost call, the names of the agents, the calls that started them."""


class SubagentSpeakers:
    """Gives each run of a sub-agent an id, and everything that it says that id."""

    def __init__(self) -> None:
        self._active: dict[_Whose, tuple[str, Speaker]] = {}
        self._count = 0

    def add(self, call_id: str, nested: NestedEvent) -> list[Event]:
        """The events for one of a sub-agent's."""
        whose = call_id, nested.path, nested.calls
        begun: list[Event] = []
        if whose not in self._active:
            begun = self._begin(whose)
        _, speaker = self._active[whose]
        match nested.event:
            case AgentEnd(stop_reason=stop_reason, reason=reason):
                wrong = (reason or stop_reason) if stop_reason in ("error", "aborted") else None
                return [*begun, *self._close(whose, wrong)]
            case MessageDiscarded():
                return [*begun, *speaker.drop()]
            case MessageEnd(message=UserMessage()):
                return begun  # what it was told is in the arguments of the call
            case ToolExecutionEnd() as event if isinstance(event.outer, str):
                return begun
            case (
                MessageStart() | MessageUpdate() | MessageEnd() | TurnStart() | TurnEnd() | ToolExecutionEnd()
            ) as event:
                return [*begun, *speaker.say(event)]
            case _:
                return begun

    def end(self, call_id: str | None = None) -> list[Event]:
        """End those that are left of a call, or all; the innermost first."""
        left = [whose for whose in self._active if call_id is None or whose[0] == call_id]
        left.sort(key=lambda whose: -len(whose[1]))
        return [event for whose in left for event in self._close(whose, None)]

    def _begin(self, whose: _Whose) -> list[Event]:
        call_id, path, calls = whose
        self._count += 1
        id = f"{call_id}-agent-{self._count}"
        self._active[whose] = id, Speaker(f"{id}-message-", tag=id)
        event: Event = {
            "type": "SUBAGENT_STARTED",
            "subagentRunId": id,
            "name": path[-1] if path else "agent",
        }
        started_by = calls[-1] if len(calls) == len(path) and calls else call_id if len(path) < 2 else ""
        if started_by:
            event["parentToolCallId"] = started_by
        outer = next((id for other, (id, _) in self._active.items() if _is_parent(other, whose)), None)
        if outer is not None:
            event["parentSubagentRunId"] = outer
        return [event]

    def _close(self, whose: _Whose, wrong: str | None) -> list[Event]:
        id, speaker = self._active.pop(whose)
        if wrong is not None:
            return [*speaker.close(), {"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": wrong}]
        finished = {"type": "SUBAGENT_FINISHED", "subagentRunId": id, "outcome": {"type": "success"}}
        return [*speaker.close(), finished]


def _is_parent(other: _Whose, whose: _Whose) -> bool:
    return other[0] == whose[0] and len(other[1]) == len(whose[1]) - 1 and other[1] == whose[1][:-1]
