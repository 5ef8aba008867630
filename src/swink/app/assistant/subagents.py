"""Sub-agents: tools by which the assistant gives a task to an agent of its own.

    explore   reads and searches only; plan mode has it too
    task      has the tools of the assistant

Each call gets a new agent with the assistant's model and approvals; its events are the call's updates, and
what it spends is charged to the assistant. The very policies of the assistant hold for every agent started
inside the run, so that limits count all of them together.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.policy import Policy, PolicyContext, enclosing
from swink.messages import ToolCall, ToolResult
from swink.teams.delegate import agent_tool
from swink.tools import Tool, ToolContext, ToolError

_KEPT = 50
Kind = Literal["explore", "task"]

_DESCRIPTIONS: dict[Kind, str] = {
    "explore": "Have a sub-agent search and read the files to answer a question, and report. It sees nothing "
    "of this conversation and cannot change anything. Use it for broad questions whose answer takes "
    "many files; several calls run at once.",
    "task": "Have a sub-agent do a piece of work with all your tools, and report. It sees nothing of this "
    "conversation, so say all it needs to know. Use it for work that is apart from the rest.",
}
PROMPTS: dict[Kind, str] = {
    "explore": "You answer one question about the files of a directory for another agent. Search and read; "
    "you cannot change anything. Report what you found, with places as path:line, and what you "
    "did not find. Be brief: your report is all that the other agent sees.",
    "task": "You do one piece of work in a directory for another agent. Do all of it and nothing else, check "
    "it, and report what you did, what you found and what is left. Be brief: your report is all "
    "that the other agent sees.",
}


class HoldBelow(Policy):
    """Makes policies of an agent hold for the agents that its calls start, at any depth."""

    fail_closed = True

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = tuple([policy for policy in policies if policy.for_sub_agents])

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> None:
        """Add them to those that bind whatever is started here; also in a turn that is taken up later."""
        held = enclosing.get()
        if added := [policy for policy in self._policies if not any(policy is one for one in held)]:
            enclosing.set((*held, *added))


class SubAgent(Struct, frozen=True):
    """A sub-agent as people see it: its task, its state and its cost."""

    call_id: str
    kind: Kind
    task: str
    started: float
    ended: float | None = None
    outcome: str = "running"
    cost: float | None = None


class SubAgents:
    """The tools `explore` and `task`, and a list of what they started."""

    def __init__(self, make: Callable[[Kind], Agent]) -> None:
        self._make = make
        self._listed: dict[str, SubAgent] = {}
        self._running: dict[str, Agent] = {}

    @property
    def listed(self) -> Sequence[SubAgent]:
        """The sub-agents, the newest last."""
        return list(self._listed.values())

    def stop(self, call_id: str) -> bool:
        """End one; its call gets what it said so far. False if it does not run."""
        agent = self._running.get(call_id)
        if agent is not None:
            agent.abort()
        return agent is not None

    def tools(self) -> tuple[Tool, ...]:
        return self._tool("explore"), self._tool("task")

    def _tool(self, kind: Kind) -> Tool:
        async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
            agent = self._running[call_id] = self._make(kind)
            self._list(SubAgent(call_id, kind, arguments["task"], time.time()))
            outcome, cost = "ended with the run", None
            try:
                inner = agent_tool(lambda: agent, kind, _DESCRIPTIONS[kind], max_depth=1)
                result: ToolResult = await inner.execute(call_id, arguments, ctx)
                outcome, cost = "done", result.details.get("cost")
                return result
            except ToolError as error:
                details: dict[str, Any] = error.details or {}
                outcome, cost = str(error).partition("\n")[0], details.get("cost")
                raise
            finally:
                del self._running[call_id]
                self._list(replace(self._listed[call_id], ended=time.time(), outcome=outcome, cost=cost))

        about = agent_tool(lambda: self._make(kind), kind, _DESCRIPTIONS[kind])
        schema, is_reader = about.parameters_schema, kind == "explore"
        return Tool.raw(kind, about.description, schema, execute, read_only=is_reader)

    def _list(self, sub_agent: SubAgent) -> None:
        self._listed[sub_agent.call_id] = sub_agent
        ended = [id for id, listed in self._listed.items() if listed.ended is not None]
        for id in ended[:-_KEPT]:
            del self._listed[id]
