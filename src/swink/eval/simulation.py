"""Simulations: a model that plays the user of a case, and tools whose results are written down or made up.

simulation = Simulation(agent, case)          the agent has the case's simulated tools now
ending = await simulation.converse(run)       user ──▶ run(text) ──▶ agent ──▶ its answer ──▶ user ──▶ …
simulation.cost                               what the models that simulated cost
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

from swink import Agent, AgentResult, AssistantMessage, Tool, ToolContext, ToolError, Usage, UserMessage
from swink.agent.config import Model
from swink.errors import AgentError
from swink.eval.case import Case, PriorMessage, SimulatedTool, SimulatedUser
from swink.eval.importers.agentdojo import dojo_tools
from swink.eval.importers.tau import domain_tools
from swink.messages import Message
from swink.messages.jsondata import encode

Ending = Literal["goal", "turns", "agent", "messages"]
"""Why a conversation is over: the user has what it wanted or gave up, its turns ran out, the agent failed or
was stopped, or the messages of the case were all sent."""
Run = Callable[[str], Awaitable[AgentResult[Any]]]
"""Sends a message of the user to the agent and waits for the end of its run."""

STOP = "###STOP###"
"""What the model that plays the user says when it is done."""
GREETING = "Hi! How can I help you today?"
"""What the user hears first, so that it begins; the agent never sees it."""

_USER = """\
You play a user who talks to an assistant. You are not the assistant.

What you want: {goal}
{persona}
- Write only what the user says next: one short message, in the first person, nothing around it.
- Do not say everything at once. Tell what is needed for the next step, in your own words.
- Never make up facts that are not given above. If the assistant asks for something you were not told, say
  that you do not know it.
- When you have what you want, or it is clear that you will not get it, answer with {stop}
  and nothing else."""

_TOOL = """\
You stand in for a tool that a program calls. You get the name of the tool and its arguments, and answer with
the result alone, as the tool would give it: no explanation, no code fence. Stay consistent with the results
that you gave before.

{tools}"""


class Simulation:
    """The simulated user and the simulated tools of one attempt at a case.

    The agent gets the tools at once, each in place of its own tool of that name. Models that simulate are
    asked as the agent's own is, in conversations of their own.
    """

    def __init__(self, agent: Agent[Any, Any], case: Case) -> None:
        self._agent = agent
        self._case = case
        self.usage = Usage()
        """Tokens of the models that simulated."""
        self.cost: float | None = 0.0
        """Dollars for the models that simulated; None: unknown."""
        self.failure: AgentError | None = None
        """Why a model that stands in for a tool could not be asked, which is not the agent's fault."""
        self._makers: dict[str, _Maker] = {}
        self.said: tuple[str, ...] = ()
        """What the user has said so far."""
        self._add_tools()

    def charge(self, result: AgentResult[Any]) -> None:
        """Add what a simulating model used and cost, by its `result`."""
        self.usage += result.usage
        if result.usage.total:
            cost = result.cost
            self.cost = None if self.cost is None or cost is None else self.cost + cost.total

    async def converse(self, run: Run | None = None) -> Ending:
        """Send the messages of the case, and then those of its simulated user, until the conversation ends.

        `run` sends one message and waits for the agent's answer; without one, `agent.run` does.
        """
        send = run or self._agent.run
        player: _Player | None = None
        if (user := self._case.simulated_user) is not None:
            persona = f"\nWho you are: {user.persona}\n" if user.persona else ""
            prompt = _USER.format(goal=user.goal, persona=persona, stop=STOP)
            player = _Player(user, asked_alike(self._agent, user.model, prompt), self)
        waiting = list(self._case.user_messages)
        heard = GREETING if player is None else player.remember_all(self._case.history)
        while True:
            if waiting:
                text: str | None = waiting.pop(0)
                if player is not None:
                    player.remember(heard, text)
            elif player is None:
                return "messages"
            elif len(self.said) >= player.user.max_turns:
                return "turns"
            elif (text := await player.say(heard)) is None:
                return "goal"
            self.said += (text,)
            result = await send(text)
            if result.stop_reason in ("error", "aborted") or result.reason is not None:
                return "agent"
            heard = result.text or "(The assistant said nothing.)"

    def _add_tools(self) -> None:
        simulated = [self._tool(tool) for tool in self._case.simulated_tools]
        simulated += domain_tools(self._case)
        simulated += dojo_tools(self._case)
        if not simulated:
            return
        names = {tool.name for tool in simulated}
        kept = [tool for tool in self._agent.tools if not (isinstance(tool, Tool) and tool.name in names)]
        self._agent.tools = [*kept, *simulated]

    def _tool(self, simulated: SimulatedTool) -> Tool:
        own = [tool for tool in self._agent.tools if isinstance(tool, Tool) and tool.name == simulated.name]
        description, parameters = simulated.description, simulated.parameters
        if own and not parameters.get("properties"):
            parameters = own[0].parameters_schema
        if own and not description:
            description = own[0].description
        answer: _Script | _Maker = _Script(simulated.replies)
        if not simulated.replies:
            # One maker for all tools of a model, so that what it makes up agrees.
            new = _Maker(partial(asked_alike, self._agent, simulated.model), self)
            answer = self._makers.setdefault(simulated.model or "", new)
            answer.tools[simulated.name] = simulated

        async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Any:
            return await answer(simulated.name, arguments)

        return Tool.raw(simulated.name, description or simulated.name, parameters, execute)


def asked_alike(agent: Agent[Any, Any], model: Model | None, system_prompt: str) -> Agent:
    """An agent that asks a model as another does, with nothing else of it."""
    return agent.copy(
        model=model or agent.model,
        system_prompt=system_prompt,
        tools=(),
        messages=(),
        policies=(),
        hosted=(),
        approve=None,
        state={},
        deps=None,
    )


async def converse(agent: Agent[Any, Any], case: Case, *, run: Run | None = None) -> Simulation:
    """Have the case's user talk to the agent, whose simulated tools answer; the simulation knows the rest."""
    simulation = Simulation(agent, case)
    await simulation.converse(run)
    return simulation


def said_before(item: PriorMessage) -> Message:
    """A message of a case's history as the agent remembers it."""
    return UserMessage(item.content) if item.role == "user" else AssistantMessage(item.content)


class _Player:
    """A model that plays the user: what the agent says is said to it, and what it answers is the user's."""

    def __init__(self, user: SimulatedUser, agent: Agent[Any, Any], simulation: Simulation) -> None:
        self.user = user
        self._agent = agent
        self._simulation = simulation

    def remember(self, heard: str, said: str) -> None:
        """Have said a message that stands in the case."""
        exchange: list[Message] = [UserMessage(heard), AssistantMessage(said)]
        self._agent.append_messages(exchange)

    def remember_all(self, history: tuple[PriorMessage, ...]) -> str:
        """Have said and heard what stands in the case's history; returns what is to be answered now."""
        heard = GREETING
        for item in history:
            if item.role == "user":
                self.remember(heard, item.content)
            heard = item.content if item.role == "assistant" else "(The assistant said nothing.)"
        return heard

    async def say(self, heard: str) -> str | None:
        """What the user says to that; None if it is done."""
        result = await self._agent.run(heard)
        self._simulation.charge(result)
        text = result.raise_for_error().text.strip()
        return None if STOP in text or not text else text


class _Script:
    """Results that are written down: one after the other, the last one again and again."""

    def __init__(self, replies: tuple[Any, ...]) -> None:
        self._replies = list(replies)

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Any:
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        match reply:
            case {"error": str(text), **rest} if not rest:
                raise ToolError(text)
            case _:
                return reply


class _Maker:
    """A model that makes up the results of tools; it sees one call after the other, and what it answered."""

    def __init__(self, make: Callable[[str], Agent[Any, Any]], simulation: Simulation) -> None:
        self._make = make
        self._simulation = simulation
        self._agent: Agent[Any, Any] | None = None
        self._turn = asyncio.Lock()
        self.tools: dict[str, SimulatedTool] = {}

    async def __call__(self, name: str, arguments: dict[str, Any]) -> str:
        async with self._turn:
            if self._agent is None:
                about: list[str] = []
                for tool in self.tools.values():
                    told = f"{tool.name}: {tool.description}\nArguments: {encode(tool.parameters).decode()}"
                    about.append(f"{told}\n{tool.instructions}".strip())
                self._agent = self._make(_TOOL.format(tools="\n\n".join(about)))
            call = encode({"tool": name, "arguments": arguments}).decode()
            result = await self._agent.run(call)
            self._simulation.charge(result)
            try:
                return result.raise_for_error().text
            except AgentError as error:
                self._simulation.failure = error
                raise ToolError(f"the model that stands in for {name} failed: {error}") from error
