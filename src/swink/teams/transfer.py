"""Handoff: an agent passes the conversation on to another, and a team follows it.

    support ── transfer_to_agent("billing") ──▶ billing ── … ──▶ the answer

Each agent keeps its own prompt, model and tools; what passes on is the conversation.
"""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.errors import AlreadyRunning, InvalidInput, MisuseError
from swink.messages import Input
from swink.messages.history import Snapshot
from swink.teams.flow import Flow, NestedStream, blamed, failed, summed
from swink.teams.member import Emit, check_members, start_over
from swink.tools import Tool, ToolContext, ToolError, Transfer

MAX_TRANSFERS = 5


def transfer_tool(
    targets: Mapping[str, str] | Iterable[str],
    *,
    name: str = "transfer_to_agent",
    description: str = "Hand the conversation off to another agent, which answers from then on.",
) -> Tool:
    """The tool with which an agent hands off; `targets` are names, or a mapping from name to purpose.

    Args:
        name: of the tool
        description: what the model is told of it

    >>> support = Agent(model, tools=[transfer_tool({"billing": "Invoices and refunds."})])
    """
    known: dict[str, str] = {**targets} if isinstance(targets, Mapping) else dict.fromkeys(targets, "")
    if not known:
        raise MisuseError("a transfer tool needs somebody to hand off to")
    purposes = {target: f": {purpose}" if purpose else "" for target, purpose in known.items()}
    listed = "".join(f"\n- {target}{purpose}" for target, purpose in purposes.items())

    async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Transfer:
        target, message = arguments["agent"], arguments.get("message", "")
        route = current_route.get()
        if route is not None:
            if refusal := route.refusal(target):
                raise ToolError(f"not handed off: {refusal}")
            route.pending = target
        return Transfer(target, f"Handed over to {target}." + (f" {message}" if message else ""))

    agent = {"type": "string", "enum": list(known), "description": "Who takes over."}
    message = {"type": "string", "description": "What the other agent should know."}
    schema: dict[str, Any] = {"type": "object", "properties": {"agent": agent, "message": message}}
    schema |= {"required": ["agent"], "additionalProperties": False}
    return Tool.raw(name, f"{description} Agents:{listed}", schema, execute)


class TransferRoute:
    """Who had the conversation in this run, and who may still get it."""

    def __init__(self, names: Iterable[str], start: str, max_transfers: int, allow_cycles: bool) -> None:
        self.names = tuple(names)
        self.visited = [start]
        self.pending: str | None = None
        self._max = max_transfers
        self._allow_cycles = allow_cycles

    def refusal(self, target: str) -> str | None:
        """Why the conversation cannot go there; None if it can."""
        route = " → ".join(self.visited)
        if self.pending is not None:
            return f"the conversation is already being handed off to {self.pending!r}"
        if target not in self.names:
            return f"there is no agent {target!r}; there are {', '.join(self.names)}"
        if target == self.visited[-1]:
            return f"{target!r} has the conversation already; answer yourself"
        if target in self.visited and not self._allow_cycles:
            return f"{target!r} has had the conversation already ({route}); answer yourself"
        if len(self.visited) > self._max:
            return f"{self._max} handoffs are the limit ({route}); answer yourself"
        return None

    def hand_over_to(self, target: str) -> None:
        self.visited.append(target)
        self.pending = None


current_route: ContextVar[TransferRoute | None] = ContextVar("swink.transfer_route", default=None)


class Team:
    """Agents that hand one conversation over to each other; the one that has it answers, in later runs too.

    Args:
        agents: the members by name
        start: the first to answer (default: the first of them)
        max_transfers: of one run
        allow_cycles: whether a run may come back to an agent

    >>> team = Team({"support": support, "billing": billing})
    >>> answer = await team.run("I was charged twice.")
    """

    def __init__(
        self,
        agents: Mapping[str, Agent[Any, Any]],
        *,
        start: str | None = None,
        max_transfers: int = MAX_TRANSFERS,
        allow_cycles: bool = False,
    ) -> None:
        if not isinstance(agents, Mapping):
            raise InvalidInput(f"a team is a dict of agents by name, not {type(agents).__name__}")
        if not agents:
            raise MisuseError("a team needs at least one agent")
        check_members(agents)
        self.agents = dict(agents)
        self.start = next(iter(self.agents)) if start is None else start
        if self.start not in self.agents:
            names = ", ".join(self.agents)
            raise MisuseError(f"there is no agent {self.start!r} to start with; there are {names}")
        if len({id(agent) for agent in self.agents.values()}) != len(self.agents):
            raise MisuseError("one agent cannot be two members of a team")
        self.active = self.start
        self.max_transfers = max_transfers
        self.allow_cycles = allow_cycles
        self._flow = Flow(self.agents, self._body)

    async def run(self, input: Input, *, deadline: float | None = None) -> AgentResult:
        """Run on `input` to the end, whoever answers; `deadline` is in seconds."""
        return await self._flow.run(input, deadline=deadline)

    def run_sync(self, input: Input, *, deadline: float | None = None) -> AgentResult:
        """`run`, with its `input` and `deadline`, for code without an event loop."""
        return self._flow.run_sync(input, deadline=deadline)

    def stream(self, input: Input, *, deadline: float | None = None) -> NestedStream:
        """A run on `input` as a stream of events, each with its agent's name; `deadline` is in seconds."""
        return self._flow.stream(input, deadline=deadline)

    async def perform(self, input: Input, emit: Emit) -> AgentResult:
        """Run on `input` to the end, telling every event to `emit`."""
        return await self._flow.perform(input, emit)

    def abort(self) -> None:
        """End the run that is under way, whoever answers."""
        self._flow.abort()

    @property
    def is_running(self) -> bool:
        """Whether a run is under way."""
        return self._flow.is_running

    @property
    def messages(self) -> Snapshot:
        """The conversation, as the agent that has it knows it."""
        return self.agents[self.active].messages

    def reset(self) -> None:
        """Back to the beginning: every agent as it was made, and the first one to answer."""
        if self.is_running:
            raise AlreadyRunning
        for agent in self.agents.values():
            agent.reset()
        self.active = self.start

    def start_over(self) -> "Team":
        """The same team, of agents as they were made."""
        agents: dict[str, Any] = {name: start_over(agent) for name, agent in self.agents.items()}
        most, cycles = self.max_transfers, self.allow_cycles
        return Team(agents, start=self.start, max_transfers=most, allow_cycles=cycles)

    async def _body(self, flow: Flow, input: Input, emit: Emit) -> AgentResult:
        route = TransferRoute(self.agents, self.active, self.max_transfers, self.allow_cycles)
        current_route.set(route)
        results = [await flow.step(self.active, input, emit)]
        while results[-1].stop_reason == "transfer":
            target = results[-1].reason or ""
            route.pending = None
            refusal = route.refusal(target)
            if refusal is None and self.agents[target].is_running:
                refusal = f"{target!r} is busy elsewhere"
            if refusal is not None:
                return failed(results, f"{self.active}: handoff refused: {refusal}")
            self.agents[target].messages = self.agents[self.active].messages
            route.hand_over_to(target)
            self.active = target
            results.append(await flow.step(target, None, emit))
        return summed([*results[:-1], blamed(self.active, results[-1])])
