"""Trajectories: what an agent did in one attempt at a case, as its events tell it."""

from typing import Any

from msgspec import Struct, field

from swink.messages import Message, Usage


class TakenCall(Struct, frozen=True):
    """A call as it ran, in the model's order; one that was refused or never ran has `ran=False`."""

    id: str
    name: str
    arguments: dict[str, Any]
    """Those that ran: policies and people may have changed the model's."""
    result: str = ""
    is_error: bool = False
    ran: bool = True
    turn: int = 1
    started: float = 0.0
    """Seconds from the beginning of the attempt."""
    duration: float = 0.0


class TakenTurn(Struct, frozen=True):
    """A reply of the model and its tool calls."""

    turn: int
    started: float = 0.0
    first_delta: float | None = None
    replied: float = 0.0
    ended: float = 0.0
    usage: Usage = Usage()
    cost: float | None = None


class Trajectory(Struct, frozen=True, kw_only=True):
    """One attempt, from the first prompt to the last reply."""

    messages: tuple[Message, ...] = ()
    """All of the conversation, prompts included."""
    system_prompt: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    """What the agent was offered."""
    calls: tuple[TakenCall, ...] = ()
    turns: tuple[TakenTurn, ...] = ()
    response: str = ""
    """The last text."""
    stop_reason: str = "stop"
    reason: str | None = None
    """Why a policy, a limit or a deadline ended it."""
    error: str | None = None
    error_kind: str | None = None
    usage: Usage = Usage()
    cost: float | None = None
    """Dollars, sub-agents included; None: unknown."""
    duration: float = 0.0
    retries: int = 0
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The session state at the end."""
    files: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """The files that the case has expectations about, at the end; None: not there, or no text."""
