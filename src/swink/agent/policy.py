"""Policies: what may stop, steer or rewrite a run, in four slots, without touching the loop."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, cast, get_args

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from swink.errors import AgentError, InvalidInput
from swink.messages import (
    AssistantMessage,
    Cost,
    Input,
    Message,
    ModelSpec,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    TurnEndReason,
    Usage,
    UserMessage,
    as_messages,
)
from swink.messages.checks import check_type
from swink.messages.history import paired
from swink.messages.jsondata import clean, encode
from swink.messages.records import OpenTurn
from swink.messages.redact import describe_traceback
from swink.stream import ToolSpec
from swink.system.aio import raise_soon, resolve
from swink.tools.toolcontext import DepsT, WantsT

log = logging.getLogger("swink.policy")


class Stop(Struct, frozen=True):
    """End the run; the reason is in `AgentEnd` and the result. With an error, the run has failed."""

    reason: str
    error: AgentError | None = None
    expected: bool = False
    """Whether ending here is part of the plan: then `raise_for_error` does not raise `RunStopped`."""

    def __post_init__(self) -> None:
        force_setattr(self, "reason", _as_text(self.reason) or "stopped by a policy")
        check_type("Stop(error)", self.error, (AgentError, NoneType))


class Inject(Struct, frozen=True):
    """Add messages to the context: before this turn (pre_turn), or as the start of another one."""

    messages: tuple[Message, ...]

    def __post_init__(self) -> None:
        force_setattr(self, "messages", tuple(paired(as_messages(self.messages))))

    if TYPE_CHECKING:

        def __init__(self, messages: Input) -> None: ...


class Skip(Struct, frozen=True):
    """Do not run the call; the model gets this text as the result."""

    text: str

    def __post_init__(self) -> None:
        force_setattr(self, "text", _as_text(self.text) or "tool call skipped by a policy")


class Rewrite(Struct, frozen=True):
    """Run the call with these arguments instead."""

    arguments: dict[str, Any]

    def __post_init__(self) -> None:
        check_type("Rewrite(arguments)", self.arguments, dict)


class Replace(Struct, frozen=True):
    """Keep this message in the history instead."""

    message: Message

    def __post_init__(self) -> None:
        check_type("Replace(message)", self.message, get_args(Message))


def _as_text(value: Any) -> str:
    """Whatever a policy gave as its text: a verdict that forbids something must not fail for its wording."""
    if isinstance(value, str):
        return clean(value)
    return "" if value is None else encode(value).decode()


TurnVerdict = Stop | Inject | None
CallVerdict = Stop | Inject | Skip | Rewrite | None
RetryVerdict = Stop | None
ReplyVerdict = Stop | Inject | Replace | None
KeepVerdict = Replace | None
Verdict = Stop | Inject | Skip | Rewrite | Replace | None

_VERDICTS: Mapping[str, tuple[type, ...]] = {
    "pre_turn": (Stop, Inject),
    "pre_dispatch": (Stop, Inject, Skip, Rewrite),
    "pre_retry": (Stop,),
    "post_turn": (Stop, Inject, Replace),
    "post_loop": (Stop, Inject),
    "post_run": (),
}


class PolicyContext(Struct, Generic[DepsT], frozen=True):
    """What a policy sees: values, never live state; and the dependencies, as the program gave them.

    Args:
        turn: the number of the turn
        model: the model that is asked
        system_prompt: as it is sent
        messages: the history
    """

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
    tools: Sequence[ToolSpec] = ()
    """What the next request offers."""
    models: Sequence[ModelSpec] = ()
    """Whom the next request may reach: the model, then its fallbacks."""
    max_tokens: int | None = None
    """The most output the next request asks for, if the options say."""
    requests: int = 0
    """Of the run so far: turns, and every attempt that was retried or fell back."""
    injected: Sequence[Message] = ()
    """What policies added to the context in this run; everything else in `fresh` was sent to the agent."""
    run: "RunKey | None" = None
    """The same object throughout a run: a key for what policies remember of it, in a `WeakKeyDictionary`."""
    attempt: AssistantMessage | None = None
    """Before a retry: what arrived of the failed request, and its cost, which is not in `usage` yet."""
    reported_cost: Cost | None = None
    """As `cost`, without the replies of which no provider said anything."""
    deps: DepsT = cast(Any, None)
    """What the agent, or this run of it, was given as dependencies."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name != "deps"]

    def __repr__(self) -> str:
        return f"PolicyContext({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


class RunKey:
    """Tells runs apart, and says nothing else."""

    __slots__ = ("__weakref__",)


class InnerCall(Struct, frozen=True):
    """A call that was made inside of another, by a program in code mode, and its result."""

    call: ToolCall
    result: ToolResultMessage
    outer: str
    """The id of the call that it was made in."""


class Turn(Struct, frozen=True):
    """A turn that has ended: its reply, the results of its calls, and the calls inside of these.

    Args:
        message: the reply
        tool_results: the results of its calls
        reason: why the turn ended
        inner_calls: calls that tools of it made inside
    """

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    reason: TurnEndReason
    inner_calls: tuple[InnerCall, ...] = ()


class Ending(Struct, frozen=True):
    """How a run ended, for its post-run policies."""

    stop_reason: StopReason
    reason: str | None
    """Why a policy, a deadline or a pause ended it."""
    error: str | None
    turn: Turn | None
    """The last turn; a run may end before its first."""
    open: OpenTurn | None = None
    """A turn that waits for approval, or was not gone on with; it is not in the history."""


class ApprovalRequest(Struct, frozen=True):
    """A call that waits for approval: `arguments` are what will run, `shown` is what to show people.

    Args:
        call_id: the id of the call
        name: its tool
        requires_approval: whether the tool itself asks, or only the mode
        context: what a policy would see
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    shown: dict[str, Any]
    requires_approval: bool
    context: PolicyContext

    def __repr__(self) -> str:
        return f"ApprovalRequest({self.call_id!r}, {self.name!r}, shown={self.shown!r})"


class Approved(Struct, frozen=True):
    """Run it, with other arguments if given: an edited copy of the request's `arguments`, taken as they are.

    The model reads the note below the result, such as what of its edit was refused; it is also the reason in
    `ApprovalResolved`.
    """

    arguments: dict[str, Any] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        check_type("Approved(arguments)", self.arguments, (dict, NoneType))
        check_type("Approved(note)", self.note, str)


class Rejected(Struct, frozen=True):
    """Do not run it; the model is told the reason."""

    reason: str | None = None

    def __post_init__(self) -> None:
        check_type("Rejected(reason)", self.reason, (str, NoneType))


class Deferred(Struct, frozen=True):
    """Nobody is there to say yes or no: the run ends here, and `run(approvals=…)` goes on."""


Answer = bool | Approved | Rejected | Deferred
"""What an approval callback returns."""
Approve = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]


async def defer(request: ApprovalRequest) -> Deferred:
    """An approval callback that leaves the answer to every `request` for later: `Agent(model,
    approve=defer)`.
    """
    return Deferred()


_SLOTS = {slot.replace("_", ""): slot for slot in (*_VERDICTS, "pre_commit")}


class Policy(Generic[WantsT]):
    """Subclass and override what you need; every method may be sync or async, except `pre_commit`.

    A policy that raises is logged and ignored, unless `fail_closed` is set: then the run stops. One that is
    a `Policy[Db]` has `ctx.deps: Db`.
    """

    fail_closed: bool = False
    for_sub_agents: bool = True
    """Whether it holds for the sub-agents of an assistant too. False for what keeps one conversation."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in vars(cls):
            slot = _SLOTS.get(name.replace("_", "").lower())
            if slot is not None and name != slot and not name.startswith("_"):
                raise InvalidInput(f"{cls.__name__}.{name} would never be called; the slot is named {slot}")

    def pre_turn(self, ctx: PolicyContext[WantsT]) -> TurnVerdict | Awaitable[TurnVerdict]:
        """Before a turn: None, Stop or Inject. `ctx` is what is known then, as in every slot."""

    def pre_dispatch(
        self, ctx: PolicyContext[WantsT], call: ToolCall
    ) -> CallVerdict | Awaitable[CallVerdict]:
        """Before a call is approved and run: None, Stop, Skip, Rewrite or Inject; `ctx` as in `pre_turn`."""

    def pre_retry(self, ctx: PolicyContext[WantsT]) -> RetryVerdict | Awaitable[RetryVerdict]:
        """Before a failed request is sent again, to this model or another: None, or Stop to fail the turn
        (`ctx`).
        """

    def post_turn(self, ctx: PolicyContext[WantsT], turn: Turn) -> ReplyVerdict | Awaitable[ReplyVerdict]:
        """After a turn, in its `ctx`: None, Stop, Inject, or Replace of its reply (calls unchanged)."""

    def post_loop(self, ctx: PolicyContext[WantsT]) -> TurnVerdict | Awaitable[TurnVerdict]:
        """When the agent would stop, with the `ctx` of that moment: None, Stop or Inject."""

    def post_run(self, ctx: PolicyContext[WantsT], ending: Ending) -> Awaitable[None] | None:
        """When the run has ended, as `ending` says, with its last `ctx`; nothing can be changed. Its caller
        waits.
        """

    def pre_commit(self, message: Message) -> KeepVerdict:
        """Just before a message enters the history: None or Replace. Sync, since a commit must not wait."""


asking: ContextVar[bool] = ContextVar("swink.asking_a_policy", default=False)
"""Whether a policy is being asked: what it queues meanwhile is its own, and nobody's message to the agent."""

enclosing: ContextVar[tuple[Policy, ...]] = ContextVar("swink.enclosing_policies", default=())
"""Policies of enclosing runs that bind inner runs too; code that starts an agent inside a run adds them."""
aside: ContextVar[object] = ContextVar("swink.aside", default=None)
"""What marks a run that no call pays for, and all runs inside it: it is beside the run that started it."""


class NudgeReasoningOnly(Policy):
    """Ask once for an answer when a reply holds nothing but thinking."""

    def __init__(self, text: str = "Please give your answer.") -> None:
        self.text = text

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> ReplyVerdict:
        """Inject the nudge, unless the turn was already the answer to one."""
        nudged = any(getattr(message, "text", "") == self.text for message in ctx.fresh)
        return Inject(self.text) if turn.reason == "reasoning_only" and not nudged else None


class Slots:
    """The policies that override each slot; an empty slot is an empty tuple."""

    __slots__ = ("post_loop", "post_run", "post_turn", "pre_commit", "pre_dispatch", "pre_retry", "pre_turn")

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.pre_turn = _overriding(policies, "pre_turn")
        self.pre_dispatch = _overriding(policies, "pre_dispatch")
        self.pre_retry = _overriding(policies, "pre_retry")
        self.post_turn = _overriding(policies, "post_turn")
        self.post_loop = _overriding(policies, "post_loop")
        self.post_run = _overriding(policies, "post_run")
        self.pre_commit = _overriding(policies, "pre_commit")


async def consult(policy: Policy, slot: str, *values: Any) -> Verdict:
    """Ask one policy; a failure is its own, not the run's, unless it guards something."""
    token = asking.set(True)
    try:
        verdict = await resolve(getattr(policy, slot)(*values))
        if verdict is not None and not isinstance(verdict, _VERDICTS[slot]):
            known = " or ".join(["None", *[kind.__name__ for kind in _VERDICTS[slot]]])
            raise InvalidInput(f"{slot} cannot return a {type(verdict).__name__}; it returns {known}")
        return verdict
    except Exception as error:
        # A policy is foreign code: it must not take the run down with it.
        log.error("policy %s failed in %s\n%s", type(policy).__name__, slot, describe_traceback(error))
        return Stop(f"{type(policy).__name__} failed: {type(error).__name__}") if policy.fail_closed else None
    finally:
        asking.reset(token)


def vet_commit(policies: Sequence[Policy], message: Message) -> Message:
    """The message as the pre-commit policies want it kept; a guard that fails withholds the content."""
    for policy in policies:
        try:
            verdict = policy.pre_commit(message)
            message = message if verdict is None else _replacement(message, verdict)
        except BaseException as error:
            # As in `consult`; the history cannot wait, so a guard fails closed by withholding.
            log.error("policy %s failed in pre_commit\n%s", type(policy).__name__, describe_traceback(error))
            message = _withheld(message, type(policy).__name__) if policy.fail_closed else message
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise_soon(error)
    return message


def vet_all(policies: Sequence[Policy], messages: Sequence[Message]) -> Sequence[Message]:
    """Messages that enter a history, as the pre-commit policies among these want them kept."""
    guards = Slots(policies).pre_commit if policies else ()
    return [vet_commit(guards, message) for message in messages] if guards else messages


def _replacement(message: Message, verdict: Any) -> Message:
    if inspect.iscoroutine(verdict):
        verdict.close()
        raise InvalidInput("pre_commit must be sync: a commit must not wait")
    if not isinstance(verdict, Replace) or type(verdict.message) is not type(message):
        raise InvalidInput(f"pre_commit of a {message.role} message returns None or a Replace with one")
    if getattr(verdict.message, "tool_call_id", None) != getattr(message, "tool_call_id", None):
        raise InvalidInput("a tool result stays the result of its own call")
    return verdict.message


def _withheld(message: Message, policy: str) -> Message:
    text = Text(f"[withheld: {policy} failed]")
    match message:
        case AssistantMessage():
            error = None if message.error_message is None else text.text
            return replace(message, content=(text, *message.tool_calls), error_message=error)
        case ToolResultMessage():
            return replace(message, content=(text,), details=None)
        case UserMessage():
            return replace(message, content=(text,))
        case _:
            return message


def check_slots(policy: Policy) -> None:
    """Warn of a policy without a slot of its own, such as one whose method has another name."""
    if not any(_overriding((policy,), slot) for slot in Slots.__slots__):
        slots = ", ".join(Slots.__slots__)
        log.warning("%s has none of %s, so it is never called", type(policy).__name__, slots)


def _overriding(policies: Sequence[Policy], slot: str) -> tuple[Policy, ...]:
    return (
        tuple([policy for policy in policies if getattr(type(policy), slot) is not getattr(Policy, slot)])
        if policies
        else ()
    )


NO_SLOTS = Slots(())
