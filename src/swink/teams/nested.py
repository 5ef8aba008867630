"""Events of agents inside other agents, teams and pipelines."""

from collections.abc import Callable
from typing import Any

from swink.events import AgentEvent, ToolExecutionUpdate
from swink.events import NestedEvent as NestedEvent

Emit = Callable[[Any], None]
"""Takes an `AgentEvent` or a `NestedEvent`."""


def inside(name: str, event: AgentEvent | NestedEvent, call_id: str = "") -> NestedEvent:
    """The event one level further out; an agent's report of its sub-agent's event becomes that event."""
    match event:
        case ToolExecutionUpdate(update=NestedEvent() as inner) | (NestedEvent() as inner):
            return NestedEvent((name, *inner.path), inner.event, (call_id, *inner.calls))
        case _:
            return NestedEvent((name,), event, (call_id,))
