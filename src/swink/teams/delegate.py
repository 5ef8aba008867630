"""An agent as a tool of another: it works on a task of its own and gives back its answer.

What it spends is charged to the caller, its events are the call's updates, it ends when the caller ends, and
the caller's budget binds it. Each call gets an agent of its own, so calls share nothing.
"""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypedDict, Unpack, cast, overload

import msgspec
from typing_extensions import TypeVar

from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.engine.account import payer
from swink.errors import InvalidTool
from swink.messages import AssistantMessage, Text, ToolResult
from swink.messages.codec import plain, to_builtins
from swink.stream import observer
from swink.system.aio import resolve
from swink.teams.member import AnyMember, Ensemble, Maker, Member, inside, perform, start_over
from swink.teams.transfer import current_route
from swink.tools import Tool, ToolContext, ToolError

D = TypeVar("D", default=Any)

MAX_DEPTH = 5

_TASK = {"type": "string", "minLength": 1, "description": "What to do, with all it needs to know."}
_PARAMETERS = {
    "type": "object",
    "properties": {"task": _TASK},
    "required": ["task"],
    "additionalProperties": False,
}
_depth: ContextVar[int] = ContextVar("swink.agent_depth", default=0)


class DelegateOptions(TypedDict, total=False):
    """The keywords of `agent_tool`."""

    remember: bool
    output: Any
    max_depth: int
    timeout: float | None
    requires_approval: bool | Callable[[dict[str, Any]], bool]


@overload
def agent_tool(
    agent: Agent[None, Any] | Ensemble | Callable[[], Any],
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[DelegateOptions],
) -> Tool[Any]: ...
@overload
def agent_tool(
    agent: Agent[D, Any] | Callable[[ToolContext[D]], Any],
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[DelegateOptions],
) -> Tool[D]: ...
def agent_tool(
    agent: Member | Maker,
    name: str | None = None,
    description: str | None = None,
    *,
    remember: bool = False,
    output: Any = None,
    max_depth: int = MAX_DEPTH,
    timeout: float | None = None,
    requires_approval: bool | Callable[[dict[str, Any]], bool] = False,
) -> Tool[Any]:
    """A tool that gives a task to an agent (or a team, or a pipeline) and returns its answer.

    `agent` is one to make copies of, or a function that makes one and may take the call's `ToolContext`: each
    call gets its own, with the history it was made with, and with the caller's dependencies unless it has
    its own. `remember=True` uses the very agent given, whose conversation goes on from call to call, one at
    a time. With `output` the answer is data of that shape. Agents may be nested `max_depth` deep. Approvals
    inside are asked of the sub-agent's own `approve`; they cannot be deferred, since the call around them
    cannot wait: the caller's model is told. Defer the approval of this tool instead. `name` and `description`
    are what the caller's model is told, `timeout` is in seconds, `requires_approval` as for `tool`.

    >>> lead = Agent(model, tools=[agent_tool(researcher, "research", "Finds sources on a question.")])
    """
    name = _checked_name(name, agent, remember, output)

    async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        depth = _depth.get()
        if depth >= max_depth:
            why = f"agents are nested {depth} deep already, and {max_depth} is the limit"
            raise ToolError(f"{name!r} was not started: {why}; do it yourself")
        member = await _member(agent, remember, ctx)
        if member.is_running:
            raise ToolError(f"{name!r} is busy with another task; try again when it is done")
        # The call runs in a task of its own, so these hold for it and for what it starts alone.
        _depth.set(depth + 1)
        current_route.set(None)
        payer.set(ctx)
        observer.agent_name.set(name)

        def emit(event: Any) -> None:
            ctx.update(inside(name, event, call_id))

        result = await perform(member, arguments["task"], emit, output=output, deps=ctx.deps)
        return _answer(name, result, output is not None)

    return Tool.raw(
        name,
        description or f"Gives a task to {name}, which works on it and answers.",
        _PARAMETERS,
        execute,
        timeout=timeout,
        requires_approval=requires_approval,
        sequential=remember,
    )


def _checked_name(given: str | None, agent: object, remember: bool, output: Any) -> str:
    """The name of the tool; what cannot be delegated to is refused."""
    is_member = isinstance(agent, AnyMember)
    name = given or (agent.name if isinstance(agent, Agent) else None)
    if name is None:
        raise InvalidTool('a tool needs a name: agent_tool(agent, "research"), or Agent(name="research")')
    if not is_member and not callable(agent):
        kind = type(agent).__name__
        raise InvalidTool(f"tool {name!r} needs an agent or a function that makes one, not {kind}")
    if remember and not is_member:
        needed = "the agent itself, not a function that makes one"
        raise InvalidTool(f"tool {name!r}: remember=True needs {needed}")
    if output is not None and isinstance(agent, Ensemble):
        raise InvalidTool(f"tool {name!r}: output= works with a single agent")
    return name


async def _member(agent: Any, remember: bool, ctx: ToolContext) -> Member:
    """Who works on the task: the agent itself, one like it, or one that the function makes."""
    if isinstance(agent, AnyMember):
        member = cast(Member, agent)
        return member if remember else start_over(member)
    return await resolve(agent(ctx) if _takes_context(agent) else agent())


def _takes_context(make: Any) -> bool:
    """Whether a function wants the context of the call: its first parameter has to be given."""
    try:
        first = next(iter(inspect.signature(make).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    if first is None or first.default is not first.empty:
        return False
    return first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)


def _answer(name: str, result: AgentResult, structured: bool) -> ToolResult:
    """What the caller's model is told; a failure is an error result it can act on."""
    details = {
        "agent": name,
        "stop_reason": result.stop_reason,
        "reason": result.reason,
        "usage": to_builtins(result.usage),
        "cost": None if result.cost is None else result.cost.total,
        "messages": len(result.messages),
    }
    so_far = f"\nWhat it said so far:\n{result.text}" if result.text else ""
    match result.stop_reason:
        case "error":
            raise ToolError(f"{name!r} failed: {result.error}{so_far}", details)
        case "aborted":
            raise ToolError(f"{name!r} was aborted: {result.reason or result.error}{so_far}", details)
        case "transfer":
            why = f"wanted to hand off to {result.reason!r}, which only works in a team"
            raise ToolError(f"{name!r} {why}{so_far}", details)
        case _ if result.pending:
            names = ", ".join(sorted({pending.name for pending in result.pending}))
            why = f"{names} needs approval, which cannot be deferred inside another agent's call"
            hint = f"put requires_approval on {name!r} itself, or give the agent inside another approve"
            raise ToolError(f"{name!r} was stopped: {why}; nothing of it was run ({hint}){so_far}", details)
        case _ if result.reason is not None:
            raise ToolError(f"{name!r} was stopped: {result.reason}{so_far}", details)
        case _ if structured:
            return _said(msgspec.json.encode(result.output, enc_hook=plain).decode(), details)
        case _:
            replies = [message for message in result.messages if isinstance(message, AssistantMessage)]
            if replies and replies[-1].stop_reason == "length":
                return _said(f"{result.text}\n[cut off: the reply reached its maximum length]", details)
            return _said(result.text or "(it gave no answer)", details)


def _said(text: str, details: dict[str, Any]) -> ToolResult:
    return ToolResult((Text(text),), details)
