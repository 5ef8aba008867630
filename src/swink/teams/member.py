"""Members: what can be run inside something else, how it is run there, and the events that come out."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.policy import enclosing
from swink.errors import AlreadyRunning, InvalidInput
from swink.events import AgentEvent, ToolExecutionUpdate
from swink.events import NestedEvent as NestedEvent
from swink.messages import Input
from swink.tools import ToolContext

Emit = Callable[[Any], None]
"""Takes an `AgentEvent` or a `NestedEvent`."""


def inside(name: str, event: AgentEvent | NestedEvent, call_id: str = "") -> NestedEvent:
    """The event one level further out; an agent's report of its sub-agent's event becomes that event."""
    match event:
        case ToolExecutionUpdate(update=NestedEvent() as inner) | (NestedEvent() as inner):
            return NestedEvent((name, *inner.path), inner.event, (call_id, *inner.calls))
        case _:
            return NestedEvent((name,), event, (call_id,))


@runtime_checkable
class Ensemble(Protocol):
    """Several agents that share the interface of one: a pipeline or a team."""

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        ...

    def abort(self) -> None: ...

    def start_over(self) -> "Ensemble":
        """Another one of the same kind, of agents as they were made."""
        ...

    async def perform(self, input: Input, emit: Emit) -> AgentResult:
        """Run to the end, reporting events."""
        ...


Member = Agent[Any, Any] | Ensemble
AnyMember = Agent | Ensemble
"""As `Member`, for `isinstance`."""


def check_members(members: Mapping[str, Member]) -> None:
    """Refuse what is no member, such as a list of them, where it is given."""
    for name, member in members.items():
        if not isinstance(member, AnyMember):
            kind = type(member).__name__
            raise InvalidInput(f"member {name!r} is an agent, a team or a pipeline, not {kind}")


async def perform(
    member: Member, input: Input | None, emit: Emit, *, output: Any = None, deps: Any = None
) -> AgentResult:
    """Run a member to the end, reporting its events; the limits of the runs around it bind it too.

    An agent that has no dependencies of its own is given these.
    """
    if not isinstance(member, Agent):
        assert input is not None
        return await member.perform(input, emit)
    if member.is_running:
        raise AlreadyRunning
    with member.subscribe(emit):
        deps = deps if member.deps is None else None
        return await member.run(input, output=output, policies=enclosing.get(), deps=deps)


def start_over(member: Member) -> Member:
    """A member like this one, with a history and state of its own: those it was made with."""
    if not isinstance(member, Agent):
        return member.start_over()
    other = member.copy()
    other.reset()
    other.model, other.tools, other.system_prompt = member.model, member.tools, member.system_prompt
    return other


Maker = Callable[[], Any] | Callable[[ToolContext], Any]
"""Makes a member, sync or async."""
