"""Members: what can be run inside something else, and how it is run there."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from swink.agent import Agent
from swink.config import AgentResult
from swink.errors import AlreadyRunning
from swink.messages import Input
from swink.policy import enclosing
from swink.teams.nested import Emit


@runtime_checkable
class Ensemble(Protocol):
    """Several agents with the face of one: a pipeline or a team."""

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        ...

    def abort(self) -> None:
        """End the current run."""
        ...

    def fresh(self) -> "Ensemble":
        """The same, of agents as they were made."""
        ...

    async def perform(self, input: Input, emit: Emit) -> AgentResult:
        """Run to the end, reporting events."""
        ...


Member = Agent | Ensemble


async def perform(member: Member, input: Input | None, emit: Emit, *, output: Any = None) -> AgentResult:
    """Run a member to the end, reporting its events; the limits of the runs around it bind it too."""
    if not isinstance(member, Agent):
        assert input is not None
        return await member.perform(input, emit)
    if member.is_running:
        raise AlreadyRunning
    with _bound(member), member.subscribe(emit):
        return await member.run(input, output=output)


def fresh(member: Member) -> Member:
    """A member like this one, with a history and state of its own: those it was made with."""
    if not isinstance(member, Agent):
        return member.fresh()
    config = member._config
    *_, messages, state = member._initial
    copy = Agent(
        config.model,
        system_prompt=member.system_prompt,
        tools=member.tools,
        messages=list(messages),
        stream_fn=config.stream_fn,
        options=config.options,
        retry=config.retry,
        fallback_models=list(config.fallbacks),
        policies=config.policies,
        approve=config.approve,
        approval_mode=config.approval_mode,
        transform_context=None if member._own_window else config.transform_context,
        convert_to_llm=config.convert_to_llm,
        get_api_key=config.get_api_key,
        steering_mode=member.steering_mode,
        follow_up_mode=member.follow_up_mode,
        tool_execution=config.tool_execution,
        tool_timeout=config.tool_timeout,
        state=state,
    )
    # The member may have changed its model since it was made with its key.
    copy._config.key_owner = config.key_owner
    return copy


@contextmanager
def _bound(agent: Agent) -> Generator[None]:
    """Add the policies of the enclosing runs that bind sub-agents, for one run."""
    config = agent._config
    own = tuple(config.policies)
    config.policies = (
        *own,
        *(policy for policy in enclosing.get() if not any(policy is known for known in own)),
    )
    try:
        yield
    finally:
        config.policies = own


Maker = Callable[[], Any]
"""Makes a member, sync or async."""
