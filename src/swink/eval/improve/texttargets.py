"""Targets: the text of an agent that is to be improved, and agents with another one in its place.

system_prompt     what the agent is told first
tool:NAME         the description of a tool
skill:NAME        the instructions of a skill, without the front matter of its SKILL.md
"""

import html
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from swink import Agent, Tool, ToolContext
from swink.errors import InvalidInput, MisuseError
from swink.eval.attempt import Factory
from swink.eval.case import Case
from swink.messages import Text
from swink.system.aio import resolve
from swink.tools import ToolResult
from swink.tools.skills.skillfile import Skill, read_skills
from swink.tools.skills.skilltools import SKILL, enter_text

_BY_FUNCTION = "the system prompt is made by a function, and only a text can be improved"
_LISTED = re.compile(r"<name>\n(.*?)\n</name>.*?<location>\n(.*?)\n</location>", re.S)


class NothingToImprove(MisuseError):
    """There is no text of that name, or no case that asks for another one."""


class TextTarget(Struct, frozen=True):
    """Which text of an agent is meant."""

    kind: Literal["system_prompt", "tool", "skill"]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def meaning(self) -> str:
        """What it is, for the model that writes a better one."""
        match self.kind:
            case "system_prompt":
                return "the system prompt of an AI agent"
            case "tool":
                return f"the description of the tool {self.name!r}, which tells an AI agent when to call it"
            case "skill":
                return f"the instructions of the skill {self.name!r}, which an AI agent enters for its tasks"

    def text_of(self, agent: Agent[Any, Any]) -> str:
        """The text as it is now; raises `NothingToImprove` if there is none."""
        match self.kind:
            case "system_prompt":
                prompt = agent.system_prompt
                if not isinstance(prompt, str):
                    raise NothingToImprove(_BY_FUNCTION)
                return prompt
            case "tool":
                return _named(agent, self.name).description
            case "skill":
                return _skill_of(agent, self.name).body

    def put(self, agent: Agent[Any, Any], text: str) -> None:
        """Give the agent another text in its place."""
        match self.kind:
            case "system_prompt":
                agent.system_prompt = text
            case "tool":
                _exchange(agent, replace(_named(agent, self.name), description=text))
            case "skill":
                skill = replace(_skill_of(agent, self.name), body=text)
                _exchange(agent, _entering(_named(agent, SKILL), skill))


def parse_target(text: str) -> TextTarget:
    """The target of `system_prompt`, `tool:NAME` or `skill:NAME`; anything else is refused."""
    kind, _, name = text.partition(":")
    match kind, name:
        case "system_prompt", "":
            return TextTarget("system_prompt")
        case "tool" | "skill", str() if name.strip():
            return TextTarget(kind, name.strip())
        case _:
            raise InvalidInput(f"the target is {text!r}; write system_prompt, tool:NAME or skill:NAME")


def with_text(factory: Factory, target: TextTarget, text: str) -> Factory:
    """A factory whose agents have another text in place of the target."""

    async def make(case: Case) -> Agent[Any, Any]:
        agent = await resolve(factory(case))
        target.put(agent, text)
        return agent

    return make


def check_reach(target: TextTarget, cases: Sequence[Case]) -> None:
    """Raise `NothingToImprove` if every case brings a system prompt of its own."""
    if target.kind == "system_prompt" and all(case.system_prompt is not None for case in cases):
        raise NothingToImprove("every case has a system_prompt of its own, so the agent's is never used")


def _named(agent: Agent[Any, Any], name: str) -> Tool:
    tools = [tool for tool in agent.tools if isinstance(tool, Tool)]
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        names = [tool.name for tool in tools]
        if name == SKILL:
            raise NothingToImprove("the agent has no skills; give it some with tools=skill_tools(folder)")
        raise NothingToImprove(f"the agent has no tool {name!r}{_others(name, names)}")
    return found


def _skill_of(agent: Agent[Any, Any], name: str) -> Skill:
    listed = {
        html.unescape(found): Path(html.unescape(place))
        for found, place in _LISTED.findall(_named(agent, SKILL).description)
    }
    if name not in listed:
        raise NothingToImprove(f"the agent has no skill {name!r}{_others(name, list(listed))}")
    skills, bad = read_skills(listed[name].parent)
    if not skills:
        why = str(bad[0]) if bad else f"{listed[name]} is gone"
        raise NothingToImprove(f"the skill {name!r} cannot be read: {why}")
    return skills[0]


def _others(name: str, names: Sequence[str]) -> str:
    if not names:
        return "; it has none"
    near = get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(sorted(names)[:20])}"


def _exchange(agent: Agent[Any, Any], tool: Tool) -> None:
    agent.tools = [
        tool if isinstance(other, Tool) and other.name == tool.name else other for other in agent.tools
    ]


def _entering(tool: Tool, skill: Skill) -> Tool:
    """The tool that enters skills, with other instructions for one of them."""
    body = tool.body

    async def enter(call_id: str, arguments: Any, ctx: ToolContext) -> Any:
        result = await body(call_id, arguments, ctx)
        if isinstance(result, ToolResult) and result.details == {"skill": skill.name}:
            return replace(result, content=(Text(enter_text(skill)),))
        return result

    return replace(tool, body=enter)
