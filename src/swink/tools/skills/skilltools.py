"""The tools through which a model uses skills: `skill` enters one, `find_skills` looks for more.

The text of a skill is entered into a conversation once: what was entered is read from the conversation
itself, so that a fork before it, or a conversation that is opened again, needs no other record.
"""

import html
import os
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from swink.errors import InvalidInput
from swink.messages import AssistantMessage, Message, Text, ToolResultMessage, UserMessage
from swink.system.shorten import clip_list
from swink.tools import Tool, ToolContext, ToolError, ToolResult
from swink.tools.definition import tool
from swink.tools.skills.skillfile import MOST_BYTES, Skill, read_skills
from swink.tools.skills.skillindex import search_skills, write_index

SKILL = "skill"
"""The name of the tool that enters a skill."""
MOST_TOKENS = 4_000
"""Tokens of the index: 2 % of a window of 200,000."""
_MOST_FILES = 100
_OPENING = re.compile(r'<skill_content name="([^"]*)">')
_USE = """Enter the instructions of a skill into the conversation. When a task fits the description of a \
skill, enter it before you begin, and follow it. Each is entered once."""


def skill_tools(*places: str | Path, most_tokens: int = MOST_TOKENS) -> list[Tool]:
    """The tools for the skills in some `places`: `Agent(tools=[*skill_tools("skills")])`; blocking.

    A place is a folder of skills, or the folder of one. Names and descriptions are in the description of
    `skill`, up to so many tokens; if there are more, `find_skills` searches the rest. Of two skills with one
    name the first counts. Without any skill there is no tool. A skill that is broken raises `InvalidInput`.

    Args:
        most_tokens: of names and descriptions together
    """
    found: dict[str, Skill] = {}
    for place in places:
        if not Path(place).expanduser().is_dir():
            raise InvalidInput(f"{place} is no folder of skills: there is no such directory")
        skills, bad = read_skills(place)
        if bad:
            raise InvalidInput("; ".join(map(str, bad)))
        for skill in skills:
            found.setdefault(skill.name, skill)
    return make_skill_tools(list(found.values()), most_tokens=most_tokens)


def make_skill_tools(skills: Sequence[Skill], *, most_tokens: int = MOST_TOKENS) -> list[Tool]:
    """The tools for some skills, each with a name of its own."""
    if not skills:
        return []
    index, rest = write_index(skills, most_tokens)
    by_name = {skill.name: skill for skill in skills}
    more = f"\n{len(rest)} more are found with find_skills." if rest else ""

    @tool(name=SKILL, description=f"{_USE}\n{index}{more}", read_only=True, max_result=2 * MOST_BYTES)
    def enter(ctx: ToolContext, name: str, again: bool = False) -> ToolResult:
        """Enter a skill.

        Args:
            name: The name of the skill.
            again: True only if its text is no longer in the conversation.
        """
        chosen = by_name.get(name.strip())
        if chosen is None:
            raise ToolError(f"there is no skill {name!r}{_nearest(name, list(by_name))}")
        if not again and _is_entered(ctx, chosen.name):
            return ToolResult((Text(f"The skill {chosen.name} is in this conversation already: follow it."),))
        if not chosen.is_there:
            raise ToolError(f"the skill {chosen.name} is gone: {chosen.path} was removed")
        return ToolResult((Text(enter_text(chosen)),), {"skill": chosen.name})

    @tool(read_only=True)
    def find_skills(query: str) -> str:
        """Look for skills that are not in the list, by what they are for.

        Args:
            query: What the skill should be able to do, in a few words.
        """
        found = search_skills(skills, query)
        return write_index(found, most_tokens)[0] if found else "No skill fits; use other words."

    return [enter, find_skills] if rest else [enter]


def enter_text(skill: Skill) -> str:
    """What a model is given of a skill when it is entered; blocking."""
    files = list_files(skill.folder)
    listed = "\n".join(f"<file>{html.escape(name)}</file>" for name in clip_list(files, _MOST_FILES))
    resources = f"\n<skill_resources>\n{listed}\n</skill_resources>" if files else ""
    body = skill.body.replace("</skill_content", "<\u200b/skill_content")  # nothing in it ends its fence
    return (
        f'<skill_content name="{html.escape(skill.name)}">\n{body}\n\n'
        f"Skill directory: {skill.folder}\n"
        f"Relative paths in this skill are relative to the skill directory.{resources}\n</skill_content>"
    )


def list_files(folder: Path) -> list[str]:
    """The files of a skill besides its SKILL.md, by their paths in its folder; blocking."""
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        inside = Path(place).relative_to(folder)
        found += [(inside / name).as_posix() for name in sorted(names) if not name.startswith(".")]
        if len(found) > 10 * _MOST_FILES:
            break
    return [name for name in found if name.lower() != "skill.md"]


def entered_skills(messages: Sequence[Message]) -> dict[str, Message]:
    """The skills that were entered into a conversation, by a model or a person, and where each was last."""
    return dict(_entered(messages))


def _entered(messages: Sequence[Message]) -> Iterator[tuple[str, Message]]:
    for message in messages:
        match message:
            case ToolResultMessage(tool_name="skill", is_error=False) | UserMessage():
                if opening := _OPENING.match(message.text):
                    yield html.unescape(opening[1]), message
            case _:
                pass


def _is_entered(ctx: ToolContext, name: str) -> bool:
    """Whether a skill is in the conversation, or an earlier call of the same reply enters it."""
    messages = ctx.messages
    if name in entered_skills(messages):
        return True
    last = next((message for message in reversed(messages) if isinstance(message, AssistantMessage)), None)
    for call in () if last is None else [made.resolved for made in last.tool_calls]:
        if call.id == ctx.call_id:
            return False
        arguments: Any = call.arguments
        if call.name == SKILL and str(arguments.get("name", "")).strip() == name:
            return True
    return False


def _nearest(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, 3, 0.5)
    return (
        f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(clip_list(names, 20))}"
    )
