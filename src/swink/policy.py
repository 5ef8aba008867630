"""Policies: what may stop, steer or rewrite a run, in four slots, without touching the loop."""

import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from swink.messages import AssistantMessage, Cost, Message, ModelSpec, ToolCall, ToolResultMessage, TurnEndReason, Usage, as_messages

log = logging.getLogger("swink.policy")


class Stop(Struct, frozen=True):
    """End the run; the reason is in `AgentEnd` and the result."""

    reason: str


class Inject(Struct, frozen=True):
    """Add messages to the context: before this turn (pre_turn), or as the start of another one."""

    messages: Any

    def __post_init__(self) -> None:
        as_messages(self.messages)

    @property
    def as_messages(self) -> tuple[Message, ...]:
        """The messages."""
        return as_messages(self.messages)


class Skip(Struct, frozen=True):
    """Do not run the call; the model gets this text as the result."""

    text: str


class Rewrite(Struct, frozen=True):
    """Run the call with these arguments instead."""

    arguments: dict[str, Any]


class Replace(Struct, frozen=True):
    """Keep this message in the history instead."""

    message: Message


Verdict = Stop | Inject | Skip | Rewrite | Replace | None


class PolicyContext(Struct, frozen=True):
    """What a policy sees: values, never live state."""

    turn: int
    model: ModelSpec
    system_prompt: str
    messages: Sequence[Message]
    fresh: Sequence[Message]
    """The messages that entered the context for this turn."""
    usage: Usage
    """Of the run so far, failed attempts and sub-agents included."""
    cost: Cost | None
    """None: unknown."""
    state: Mapping[str, Any]


class Turn(Struct, frozen=True):
    """A finished turn."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    reason: TurnEndReason


class Policy:
    """Subclass and override what you need; every method may be sync or async, except `pre_commit`.

    A policy that raises is logged and ignored, unless `fail_closed` is set: then the run stops.
    """

    fail_closed: ClassVar[bool] = False

    def pre_turn(self, ctx: PolicyContext) -> Any:
        """Before a turn: None, Stop or Inject."""

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Any:
        """Before a call is approved and run: None, Stop, Skip or Rewrite."""

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> Any:
        """After a turn is in the history: None, Stop, Inject, or Replace of its reply (tool calls unchanged)."""

    def post_loop(self, ctx: PolicyContext) -> Any:
        """When the agent would stop: None, Stop or Inject."""

    def pre_commit(self, message: Message) -> Any:
        """Just before a message enters the history: None or Replace. Sync, since history is never left waiting."""


class NudgeReasoningOnly(Policy):
    """Ask once for an answer when a reply holds nothing but thinking."""

    def __init__(self, text: str = "Please give your answer.") -> None:
        self.text = text

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> Verdict:
        """Inject the nudge, unless the turn was already the answer to one."""
        nudged = any(getattr(message, "text", "") == self.text for message in ctx.fresh)
        return Inject(self.text) if turn.reason == "reasoning_only" and not nudged else None


class Slots:
    """The overridden methods of some policies, by slot; an empty slot is an empty tuple."""

    __slots__ = ("post_loop", "post_turn", "pre_commit", "pre_dispatch", "pre_turn")

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.pre_turn = _overriding(policies, "pre_turn")
        self.pre_dispatch = _overriding(policies, "pre_dispatch")
        self.post_turn = _overriding(policies, "post_turn")
        self.post_loop = _overriding(policies, "post_loop")
        self.pre_commit = _overriding(policies, "pre_commit")


async def consult(policy: Policy, slot: str, *values: Any) -> Verdict:
    """Ask one policy; a failure is its own, not the run's, unless it guards something."""
    try:
        verdict = getattr(policy, slot)(*values)
        return await verdict if inspect.isawaitable(verdict) else verdict
    except Exception as error:
        # A policy is somebody else's code: it must not take the run down with it.
        log.exception("policy %s failed in %s", type(policy).__name__, slot)
        return Stop(f"{type(policy).__name__} failed: {type(error).__name__}") if policy.fail_closed else None


def vet_commit(policies: Sequence[Policy], message: Message) -> Message:
    """The message as the pre-commit policies want it kept; a guard that fails withholds the content."""
    for policy in policies:
        try:
            verdict = policy.pre_commit(message)
        except Exception:
            # As in `consult`; the history cannot wait, so a guard fails closed by withholding.
            log.exception("policy %s failed in pre_commit", type(policy).__name__)
            verdict = Replace(_withheld(message, type(policy).__name__)) if policy.fail_closed else None
        if isinstance(verdict, Replace) and type(verdict.message) is type(message):
            message = verdict.message
    return message


def _withheld(message: Any, policy: str) -> Any:
    from msgspec.structs import replace

    calls = getattr(message, "tool_calls", ())
    content = (*as_messages(f"[withheld: {policy} failed]")[0].content, *calls)  # type: ignore[union-attr]
    return replace(message, content=content) if hasattr(message, "content") else message


def _overriding(policies: Sequence[Policy], slot: str) -> tuple[Policy, ...]:
    return tuple(policy for policy in policies if getattr(type(policy), slot) is not getattr(Policy, slot))
