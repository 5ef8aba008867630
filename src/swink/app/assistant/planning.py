"""Plan mode: tools that only look, an instruction to make a plan, and the way back.

plan       agent.tools = plan_tools(tools)    agent.system_prompt = plan_prompt(prompt)
execute    both as before                     the plan may be sent: EXECUTE
"""

from collections.abc import Sequence
from inspect import isawaitable
from typing import Any

from swink.agent import Agent
from swink.agent.config import PromptContext, SystemPrompt
from swink.messages import AssistantMessage, Message, UserMessage, text_of
from swink.tools import Tool, ToolSource, TurnContext, as_tools, narrowed

PLAN_INSTRUCTION = """# Plan mode

You are in plan mode: look, think and plan, and change nothing. Only tools that read are available; tools \
that write files or run commands come back when the user leaves plan mode. Do not ask for them, and do not \
pretend to have made a change.

Find out what you need to know first. Then give a plan that somebody else could carry out: the goal in one \
sentence, numbered steps that name the files and what changes in each, how the result will be checked, and \
what is uncertain. If a choice is the user's, ask instead of guessing."""
EXECUTE = "The plan is approved. Carry it out now; all tools are available again."
"""What is said to the agent when the user sends the plan for execution."""
OFFER = "Send the plan for execution?"


class PlanMode:
    """Whether an agent plans, and what it has while it carries out."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.is_on = False
        self._tools: Sequence[Tool | ToolSource] = ()
        self._prompt: SystemPrompt = ""

    def switch(self, is_on: bool) -> None:
        """Let the agent only look, or give it all its tools back."""
        if is_on == self.is_on:
            return
        agent = self.agent
        if is_on:
            self._tools, self._prompt = agent.tools, agent.system_prompt
            agent.tools, agent.system_prompt = plan_tools(self._tools), plan_prompt(self._prompt)
        else:
            agent.tools, agent.system_prompt = self._tools, self._prompt
        self.is_on = is_on

    @property
    def instructed(self) -> SystemPrompt:
        """The system prompt, without what plan mode adds."""
        return self._prompt if self.is_on else self.agent.system_prompt

    def instruct(self, prompt: SystemPrompt) -> None:
        """Take another system prompt from the next request on, while it plans with its instruction."""
        self._prompt = prompt
        self.agent.system_prompt = plan_prompt(prompt) if self.is_on else prompt

    def give(self, tools: Sequence[Tool | ToolSource]) -> None:
        """Let the agent have these tools; of them only those that look, while it plans."""
        self._tools = tools
        self.agent.tools = plan_tools(tools) if self.is_on else tools


def plan_tools(offers: Sequence[Tool | ToolSource]) -> list[Tool | ToolSource]:
    """The tools that say they are read-only, and the sources cut down to theirs."""
    found: list[Tool | ToolSource] = []
    for offer in offers:
        if not isinstance(offer, Tool):
            found.append(ReadOnlyTools(offer))
        else:
            found.extend(read_only([offer]))
    return found


class ReadOnlyTools:
    """A source of tools of which only the read-only ones are offered."""

    def __init__(self, source: ToolSource) -> None:
        self.source = source

    def tools(self) -> Sequence[Any]:
        """The tools as they are now."""
        return self.tools_for(TurnContext())

    def tools_for(self, context: TurnContext) -> Sequence[Any]:
        """The tools of a turn."""
        asked = getattr(self.source, "tools_for", None)
        return read_only(as_tools(self.source.tools() if asked is None else asked(context)))


def read_only(tools: Sequence[Tool]) -> list[Tool]:
    """Those that say they are; one that calls other tools keeps those of them that are."""
    return narrowed(tools, lambda tool: tool.read_only)


def plan_prompt(prompt: SystemPrompt) -> SystemPrompt:
    """The system prompt with the instruction of plan mode after it."""
    if isinstance(prompt, str):
        return _with_instruction(prompt)

    async def planned(context: PromptContext) -> str:
        text = prompt(context)
        return _with_instruction(await text if isawaitable(text) else text)

    return planned


def without_plan(prompt: str | None) -> str:
    """A prompt without what plan mode added: so it is saved if a conversation ends in it."""
    return (prompt or "").removesuffix(PLAN_INSTRUCTION).removesuffix("\n\n")


def has_plan(messages: Sequence[Message]) -> bool:
    """Whether the agent's last word is something that could be carried out: the offer makes sense."""
    for message in reversed(messages):
        match message:
            case AssistantMessage():
                return bool(message.text.strip()) and message.stop_reason not in ("error", "aborted")
            case UserMessage() if text_of(message.content).strip():
                return False
            case _:
                pass
    return False


def _with_instruction(prompt: str) -> str:
    return f"{prompt}\n\n{PLAN_INSTRUCTION}" if prompt else PLAN_INSTRUCTION
