"""The terms on which a served agent is asked: by whom, for which conversation, and within which limits."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from swink.agent.agent import Agent
from swink.errors import InvalidInput


class Caller(Struct, frozen=True):
    """Who asks. Conversations belong to the name; `data` is what `authorize` tells the factory."""

    name: str
    data: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise InvalidInput("a caller has a name: a printable text that is not empty")

    def __repr__(self) -> str:
        return f"Caller({self.name!r})"


LOCAL = Caller("local")
"""Who asks where nobody has to say who they are: a program on this machine."""


class AgentRequest(Struct, frozen=True):
    """What a factory is told: for whom the agent is, and for which conversation.

    Args:
        caller: who asks
    """

    caller: Caller
    conversation: str | None = None
    """The id of the conversation; None for a request that brings its whole history."""
    client: str = "native"
    """The door by which it was asked for."""


Factory = Callable[[AgentRequest], Agent[Any, Any] | Awaitable[Agent[Any, Any]]]
"""Makes the agent of a conversation; asked before each of its runs."""


class ServeLimits(Struct, frozen=True, kw_only=True):
    """What a served agent allows; what is over a limit gets a status that says so, and nothing is lost.

    Args:
        runs_per_caller: runs at the same time of one caller
    """

    body: int = 16 * 1024 * 1024
    """Bytes of a request."""
    body_seconds: float = 60.0
    """How long a request may take to arrive."""
    runs: int = 1_000
    """Runs under way at once, those that wait in a queue included."""
    runs_per_caller: int = 250
    waiting: int = 16
    """Runs that may wait behind another one of their conversation."""
    events: int = 10_000
    """Events of a run that are kept in memory; older ones are read from the session's records."""
    idle_seconds: float = 300.0
    """How long a run that has ended, or a conversation that nobody asks for, stays in memory."""
    approval_seconds: float = 300.0
    """How long a run waits for an approval; after that it ends, and an answer begins the next one."""
    send_seconds: float = 30.0
    """How long a reader may take to accept what is sent; it is cut off then, and may come back."""
    silence_seconds: float = 15.0
    """After so long without an event a stream says that it is still there."""
    lease_seconds: float = 10.0
    """How long the claim of a worker that died holds a conversation."""
    shutdown_seconds: float = 10.0
    """How long runs get to end their turn when the application is shut down."""

    take_up_seconds: float = 5.0
    """How long a new process leaves clients to ask for their runs, before it goes on with the rest."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not getattr(self, name) > 0:
                raise InvalidInput(
                    f"ServeLimits({name}={getattr(self, name)!r}): a limit is a number above 0"
                )
