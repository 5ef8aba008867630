"""Sub-agents in a UI message: a data part for each run of one, which is replaced as it goes on.

data-subagent   {"name", "call", "status": "running" | "done" | "error", "text", "tools"}
"""

from typing import Any

from swink.events import AgentEnd, MessageEnd, NestedEvent, ToolExecutionStart
from swink.messages import AssistantMessage

_Whose = tuple[str, tuple[str, ...], tuple[str, ...]]


class SubagentParts:
    """What the sub-agents of a run do, told after each of their messages and calls."""

    def __init__(self) -> None:
        self._active: dict[_Whose, dict[str, Any]] = {}
        self._count = 0

    def add(self, call_id: str, nested: NestedEvent) -> list[dict[str, Any]]:
        """The part of a sub-agent, if the event has changed it."""
        whose = call_id, nested.path, nested.calls
        is_new = whose not in self._active
        if is_new:
            self._count += 1
            about: dict[str, Any] = {
                "name": "/".join(nested.path),
                "call": call_id,
                "status": "running",
                "text": "",
                "tools": [],
            }
            self._active[whose] = {"type": "data-subagent", "id": f"subagent-{self._count}", "data": about}
        data = self._active[whose]["data"]
        match nested.event:
            case MessageEnd(message=AssistantMessage() as message) if message.text:
                return [self._with(whose, text=message.text)]
            case ToolExecutionStart(name=name):
                return [self._with(whose, tools=[*data["tools"][-19:], name])]
            case AgentEnd(stop_reason=stop_reason):
                part = self._with(whose, status="error" if stop_reason in ("error", "aborted") else "done")
                del self._active[whose]
                return [part]
            case _:
                return [self._active[whose]] if is_new else []

    def end(self, call_id: str | None = None) -> list[dict[str, Any]]:
        """End those that are left of a call, or all."""
        left = [whose for whose in self._active if call_id is None or whose[0] == call_id]
        parts = [self._with(whose, status="done") for whose in left]
        for whose in left:
            del self._active[whose]
        return parts

    def _with(self, whose: _Whose, **changes: Any) -> dict[str, Any]:
        part = self._active[whose]
        part = self._active[whose] = {**part, "data": {**part["data"], **changes}}
        return part
