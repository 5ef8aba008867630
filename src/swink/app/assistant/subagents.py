"""Sub-agents: tools by which the assistant gives a task to an agent of its own.

    explore   reads and searches only; plan mode has it too
    task      has the tools of the assistant, or is one of the agents that files describe

Each call gets a new agent with the assistant's model and approvals; its events are the call's updates, and
what it spends is charged to the assistant. The very policies of the assistant hold for every agent started
inside the run, so that limits count all of them together.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.policy import Policy, PolicyContext, enclosing
from swink.app.assistant.delegates import MOST_DEEP, Delegate, Kind
from swink.app.assistant.delegates import SubAgent as SubAgent
from swink.messages import Text, ToolCall, ToolResult
from swink.system.shorten import clip_end
from swink.teams.delegate import agent_tool
from swink.tools import Tool, ToolContext, ToolError

if TYPE_CHECKING:
    from swink.app.assistant.agentfiles import AgentFile
    from swink.app.assistant.backgroundagents import BackgroundAgents
    from swink.app.assistant.brought import Brought
    from swink.events.transcript import Totals

_KEPT = 50
_DESCRIBED = 600
"""Characters of what an agent says it is for."""

_DESCRIPTIONS: dict[Kind, str] = {
    "explore": "Have a sub-agent search and read the files to answer a question, and report. It sees nothing "
    "of this conversation and cannot change anything. Use it for broad questions whose answer takes "
    "many files; several calls run at once.",
    "task": "Have a sub-agent do a piece of work with all your tools, and report. It sees nothing of this "
    "conversation, so say all it needs to know. Use it for work that is apart from the rest.",
}
_AGENTS = (
    "\n\nWith `agent` one of these does it, as its description says; where the user writes @NAME or "
    "@agent-NAME of one of them, give it that work:\n"
)
_BACKGROUND = "Return at once and report later, by a message: for long work that nothing else waits for."
_BEGUN = "{} has begun to work in the background. Its report will come as a message; do not wait for it."


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


class SubAgents:
    """The tools `explore` and `task`, and a list of what they started."""

    def __init__(
        self, make: Callable[..., Awaitable[Agent]], policies: Callable[[], Sequence[Policy]] = lambda: ()
    ) -> None:
        self._make = make
        self._policies = policies  # what binds all that works for the assistant
        self._listed: dict[str, SubAgent] = {}
        self._running: dict[str, Agent] = {}
        self.files: Mapping[str, AgentFile] = {}
        """The agents that files describe, by name."""
        self.background: BackgroundAgents | None = None
        """Where agents work whose call does not wait for them; None: nobody would take their reports."""

    @property
    def listed(self) -> Sequence[SubAgent]:
        """The sub-agents, the newest last."""
        return list(self._listed.values())

    def stop(self, call_id: str) -> bool:
        """End one; its call gets what it said so far. False if it does not run."""
        agent = self._running.get(call_id)
        if agent is None:
            return self.background is not None and self.background.stop(call_id)
        agent.abort()
        return True

    def read_files(self, brought: "Brought | None") -> Sequence[str]:
        """Read the agents of a trusted project and of the user; what was wrong with files. Blocking."""
        from swink.app.assistant.agentfiles import read_agents  # not before the first frame

        self.files, notices = read_agents(brought)
        return notices

    def work_in_background(
        self, directory: Path, deliver: Callable[[str], None], tell: Callable[[str], None], *, saves: bool
    ) -> "BackgroundAgents":
        """Let agents work in the background, whose reports are delivered; with sessions if it `saves`."""
        from swink.app.assistant.backgroundagents import BackgroundAgents

        self.background = BackgroundAgents(self._make, directory, self.show, tell)
        self.background.policies = self._policies
        self.background.deliver, self.background.saves = deliver, saves
        return self.background

    def add_spent(self, totals: "Totals") -> "Totals":
        """The totals of the conversation with what its background agents spent."""
        return totals if self.background is None else self.background.add_spent(totals)

    async def look(self) -> None:
        """Report the background agents that were interrupted."""
        if self.background is not None:
            await self.background.look()

    async def aclose(self) -> None:
        """End those that work in the background; they can be resumed."""
        if self.background is not None:
            await self.background.aclose()

    def tools(self) -> tuple[Tool, ...]:
        return self._tool("explore", {}), self.task_tool()

    def task_tool(self, caller: Delegate = Delegate("task")) -> Tool:
        """The tool `task` of the assistant, or of an agent that it started."""
        return self._tool("task", self.files, caller.files)

    def _tool(
        self, kind: Kind, files: "Mapping[str, AgentFile]", around: "tuple[AgentFile, ...]" = ()
    ) -> Tool:
        async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
            name = arguments.get("agent")
            delegate = Delegate(kind, None if name is None else files[name], around)
            if background is not None and arguments.get("background"):
                id = await background.start(delegate, arguments["task"])
                return ToolResult((Text(_BEGUN.format(id)),), {"agent": delegate.name, "background": id})
            return await self._run(delegate, call_id, arguments, ctx)

        background = self.background if kind == "task" and not around else None
        about = agent_tool(lambda: self._make(Delegate(kind)), kind, _DESCRIPTIONS[kind])
        description, schema = (
            _described(about.description, files),
            _with_options(about.parameters_schema, files, background),
        )
        return Tool.raw(kind, description, schema, execute, read_only=kind == "explore")

    async def _run(
        self, delegate: Delegate, call_id: str, arguments: dict[str, Any], ctx: ToolContext
    ) -> ToolResult:
        """Have it work on its task to the end, listed meanwhile and afterwards."""
        agent = await self._make(delegate)
        key = self._free_key(call_id)
        self._running[key] = agent
        self.show(SubAgent(key, delegate.kind, arguments["task"], time.time(), name=delegate.name))
        outcome, cost = "ended with the run", None
        try:
            inner = agent_tool(lambda: agent, delegate.name, max_depth=MOST_DEEP)
            result: ToolResult = await inner.execute(call_id, {"task": arguments["task"]}, ctx)
            outcome, cost = "done", result.details.get("cost")
            return result
        except ToolError as error:
            details: dict[str, Any] = error.details or {}
            outcome, cost = str(error).partition("\n")[0], details.get("cost")
            raise
        finally:
            del self._running[key]
            self.show(replace(self._listed[key], ended=time.time(), outcome=outcome, cost=cost))

    def _free_key(self, call_id: str) -> str:
        """The call's id, unless a call of another agent with the same one runs."""
        number, key = 1, call_id
        while key in self._running:
            number += 1
            key = f"{call_id} {number}"
        return key

    def show(self, sub_agent: SubAgent) -> None:
        """List a sub-agent as it is now."""
        self._listed[sub_agent.call_id] = sub_agent
        ended = [id for id, listed in self._listed.items() if listed.ended is not None]
        for id in ended[:-_KEPT]:
            del self._listed[id]


def _described(text: str, files: "Mapping[str, AgentFile]") -> str:
    if not files:
        return text
    listed = [f"- {name}: {clip_end(file.description, _DESCRIBED)}" for name, file in files.items()]
    return text + _AGENTS + "\n".join(listed)


def _with_options(
    schema: Mapping[str, Any], files: "Mapping[str, AgentFile]", background: "BackgroundAgents | None"
) -> Mapping[str, Any]:
    more: dict[str, Any] = {}
    if files:
        told = "Who does it; without it a general agent."
        more["agent"] = {"type": "string", "enum": [*files], "description": told}
    if background is not None:
        more["background"] = {"type": "boolean", "description": _BACKGROUND}
    return {**schema, "properties": {**schema["properties"], **more}} if more else schema
