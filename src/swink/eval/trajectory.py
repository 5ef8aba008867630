"""Trajectories: what an agent did in one attempt at a case, and the collector that makes it of events."""

import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from swink.agent.policy import Ending, Policy, PolicyContext
from swink.events import (
    AgentEvent,
    MessageEnd,
    MessageUpdate,
    RetryScheduled,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
    final_text,
)
from swink.messages import AssistantMessage, Cost, Message, ToolResult, Usage, text_of


class TakenCall(Struct, frozen=True):
    """A call as it ran, in the model's order; one that was refused or never ran has `ran=False`.

    Args:
        id: the id of the call
        name: the tool
        result: the text of its result
        is_error: whether it failed
        turn: the turn it belongs to, from 1
        duration: seconds
    """

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
    """One attempt, from the first prompt to the last reply.

    Args:
        system_prompt: as it was sent
        model: the model that was asked
        calls: every call, in the model's order
        turns: how long each turn took
        stop_reason: how the last reply ended
        error: what went wrong
        error_kind: its kind
        usage: tokens of all requests
        duration: seconds
        retries: requests that were sent again
    """

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


class Collector(Policy):
    """A subscriber that keeps what a trajectory consists of, over all runs of one attempt.

    As a policy of those runs it also learns what events do not tell: figures of sub-agents, prompt and tools.

    Args:
        messages: what was said before the first run

    >>> collector = Collector()
    >>> agent.subscribe(collector)
    >>> await agent.run("Hello", policies=[collector])
    >>> collector.trajectory().response
    """

    def __init__(self, messages: tuple[Message, ...] = ()) -> None:
        self._began = time.monotonic()
        self._given = messages
        self._messages: list[Message] = []
        self._calls: list[TakenCall] = []
        self._turns: list[TakenTurn] = []
        self._turn: TakenTurn | None = None
        self._running: dict[str, _Running] = {}
        self._retries = 0
        self._spent: list[tuple[Usage, Cost | None]] = []
        self._ctx: PolicyContext | None = None
        self._ending: Ending | None = None

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case MessageUpdate():
                if self._turn is not None and self._turn.first_delta is None:
                    self._turn = replace(self._turn, first_delta=self._now())
            case MessageEnd(message):
                self._messages.append(message)
                if isinstance(message, AssistantMessage) and self._turn is not None:
                    cost = None if message.cost is None else message.cost.total
                    self._turn = replace(self._turn, replied=self._now(), usage=message.usage, cost=cost)
            case TurnStart():
                # Numbered over all runs of the attempt, each of which counts from 1.
                self._turn = TakenTurn(len(self._turns) + 1, self._now())
            case ToolExecutionStart(id, _, arguments):
                self._running[id] = _Running(arguments, self._now())
            case ToolExecutionEnd(id, _, result, is_error):
                begun = self._running.get(id) or _Running(None, self._now())
                self._running[id] = replace(begun, ended=self._now(), result=result, is_error=is_error)
            case TurnEnd(message):
                self._end_turn(message)
            case RetryScheduled():
                self._retries += 1
            case _:
                pass

    def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        """Keep the figures of the run in `ctx`, and how it ended: `ending`."""
        self._ctx, self._ending = ctx, ending
        self._spent.append((ctx.usage, ctx.cost))

    @property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """What the model was told about the tools that it was offered."""
        offered = () if self._ctx is None else self._ctx.tools
        told = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters_schema}
            for tool in offered
        ]
        return tuple(told)

    def trajectory(
        self, state: Mapping[str, Any] | None = None, files: Mapping[str, str | None] | None = None
    ) -> Trajectory:
        """What was collected so far, with the session's `state` and the `files` at the end."""
        ending, ctx, (usage, cost) = self._ending, self._ctx, self._total()
        last = next((item for item in reversed(self._messages) if isinstance(item, AssistantMessage)), None)
        return Trajectory(
            messages=(*self._given, *self._messages),
            system_prompt="" if ctx is None else ctx.system_prompt,
            model="" if ctx is None else str(ctx.model),
            tools=() if ctx is None else tuple([tool.name for tool in ctx.tools]),
            calls=tuple(self._calls),
            turns=tuple(self._turns),
            response=final_text(self._messages),
            stop_reason="aborted" if ending is None else ending.stop_reason,
            reason=None if ending is None else ending.reason,
            error=None if ending is None else ending.error,
            error_kind=None if last is None else last.error_kind,
            usage=usage,
            cost=cost,
            duration=self._now(),
            retries=self._retries,
            state=dict(state or {}),
            files=dict(files or {}),
        )

    def _end_turn(self, message: AssistantMessage) -> None:
        now = self._now()
        turn = self._turn or TakenTurn(len(self._turns) + 1, now)
        for call in [made.resolved for made in message.tool_calls]:
            running = self._running.pop(call.id, None) or _Running(None, now)
            result = "" if running.result is None else text_of(running.result.content)
            ran = running.arguments is not None
            arguments = call.arguments if running.arguments is None else running.arguments
            duration = max(0.0, (running.ended or now) - running.started) if ran else 0.0
            taken = TakenCall(call.id, call.name, arguments, result, running.is_error, ran, turn.turn)
            self._calls.append(replace(taken, started=running.started, duration=duration))
        self._turns.append(replace(turn, ended=now))
        self._turn = None
        self._running.clear()

    def _total(self) -> tuple[Usage, float | None]:
        spent = [(usage, None if cost is None else cost.total) for usage, cost in self._spent]
        spent = spent or [(turn.usage, turn.cost) for turn in self._turns]
        costs = [cost for _, cost in spent]
        usage = sum((usage for usage, _ in spent), Usage())
        known = [cost for cost in costs if cost is not None]
        return usage, sum(known) if len(known) == len(costs) else None

    def _now(self) -> float:
        return time.monotonic() - self._began


class _Running(Struct, frozen=True):
    """A call between its start and the end of its turn; without arguments it never ran."""

    arguments: dict[str, Any] | None
    started: float
    ended: float | None = None
    result: ToolResult | None = None
    is_error: bool = False
