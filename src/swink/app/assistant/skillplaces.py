"""Where the skills of an assistant are found, the nearest first.

    .swink/skills, .agents/skills, .claude/skills    of the directory, and of each above it up to the root of
                                                     the project; only with trust
    skills                                           in swink's own configuration
    .agents/skills, .claude/skills                   of the user's home

Of two skills with one name the nearest counts; the other one is listed with its reason. Those of a project
are used as they were when they were trusted.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from swink.app.assistant.brought import SKILLS, Brought
from swink.errors import MisuseError
from swink.messages import Message
from swink.system.places import NoHome, config_dir, home_dir
from swink.system.threads import in_thread
from swink.tools import Tool
from swink.tools.skills import (
    BadSkill,
    InvalidSkill,
    Skill,
    enter_text,
    entered_skills,
    make_skill_tools,
    parse_skill,
    read_skills,
)
from swink.tools.skills.skillfile import FILE_NAMES

if TYPE_CHECKING:
    from swink.app.assistant.agentenvironment import AgentEnvironment

PREFIX = "/skill:"
"""What a person types before the name of a skill."""
SHARE = 0.02
"""How much of a model's window the index of skills may take."""
_USUAL_WINDOW = 200_000
_MANY = 30
"""Skills in one place, above which they are shown together."""


class Shadowed(Struct, frozen=True):
    """A skill that is not used because a nearer one has its name."""

    skill: Skill
    by: Skill

    @property
    def reason(self) -> str:
        """Why it is not used."""
        return f"{self.by.path} is nearer and has the same name"


class FoundSkills:
    """The skills that an assistant has, and those that it does not use, with the reason."""

    def __init__(
        self,
        skills: Sequence[Skill] = (),
        shadowed: Sequence[Shadowed] = (),
        bad: Sequence[BadSkill] = (),
    ) -> None:
        self.skills = {skill.name: skill for skill in skills}
        self.shadowed = tuple(shadowed)
        self.bad = tuple(bad)
        self._made: tuple[int, Sequence[Tool]] = 0, ()

    @property
    def notices(self) -> list[str]:
        """What is wrong with those that are broken, a line each."""
        return [f"a skill is not used: {bad}" for bad in self.bad]

    @property
    def folders(self) -> list[Path]:
        """The folders that tools and commands may read; blocking.

        Where many are in one place it is the place itself, and those that links in it lead to: a sandbox
        takes long for a thousand folders.
        """
        by_place: dict[Path, list[Path]] = {}
        for skill in self.skills.values():
            by_place.setdefault(skill.folder.parent, []).append(skill.folder)
        found: list[Path] = []
        for place, folders in by_place.items():
            is_many = len(folders) > _MANY
            found += [place, *filter(Path.is_symlink, folders)] if is_many else folders
        return found

    def tools(self, window: int | None) -> Sequence[Tool]:
        """The tools for a model with such a window; the same ones as long as it does not change."""
        if not self.skills:
            return ()
        most = int((window or _USUAL_WINDOW) * SHARE)
        if self._made[0] != most:
            self._made = most, make_skill_tools(list(self.skills.values()), most_tokens=most)
        return self._made[1]


def find_skills(brought: Brought | None) -> FoundSkills:
    """The skills of the user and of what a trusted project has brought along; blocking."""
    found: dict[str, Skill] = {}
    shadowed: list[Shadowed] = []
    bad: list[BadSkill] = []
    theirs = () if brought is None else _brought_skills(brought)
    for item in (*theirs, *_own_skills()):
        match item:
            case BadSkill():
                bad.append(item)
            case Skill() if (nearer := found.setdefault(item.name, item)) is not item:
                shadowed.append(Shadowed(item, nearer))
            case _:
                pass
    return FoundSkills(list(found.values()), shadowed, bad)


def prompt_for(skill: Skill, arguments: str, is_entered: bool) -> str:
    """What is sent when a person asks for a skill by `/skill:name arguments`; blocking."""
    wish = arguments or "Do what it says."
    if is_entered:
        return f"Use the skill {skill.name}, which is in this conversation already. {wish}"
    return f"{enter_text(skill)}\n\nUse the skill {skill.name}. {wish}"


async def make_skill_prompt(
    environment: "AgentEnvironment | None", messages: Sequence[Message], name: str, arguments: str
) -> str:
    """What `/skill:name arguments` sends, once the person was asked what the skill may do.

    Raises `MisuseError` if there is no such skill.
    """
    if environment is not None and environment.skills is None:
        await environment.read_skills()  # typed before the directory was read
    found = None if environment is None else environment.skills
    skill = None if found is None else found.skills.get(name)
    if environment is None or skill is None:
        raise MisuseError(f"there is no skill {name!r}; /skills lists them")
    if not await in_thread(lambda: skill.is_there):
        raise MisuseError(f"the skill {name} is gone: {skill.path} was removed")
    if environment.skill_permissions is not None:
        await environment.skill_permissions.offer(skill)
    return await in_thread(prompt_for, skill, arguments, name in entered_skills(messages))


def list_skills(found: FoundSkills | None, messages: Sequence[Message]) -> str:
    """The skills for people, those that are in the conversation marked, and why others are not used."""
    if found is None or not (found.skills or found.bad):
        return (
            "no skills; they are folders with a SKILL.md in .agents/skills, .claude/skills or .swink/skills "
            "of a trusted project, or in your home; swink skills new NAME writes one"
        )
    entered, lines = entered_skills(messages), list[str]()
    for skill in found.skills.values():
        mark = " (in this conversation)" if skill.name in entered else ""
        lines.append(f"{PREFIX}{skill.name}{mark}: {skill.description.splitlines()[0]}")
        lines.append(f"    {skill.path}")
    lines += [f"not used: {each.skill.path}: {each.reason}" for each in found.shadowed]
    return "\n".join([*lines, *(f"broken: {bad}" for bad in found.bad)])


def _brought_skills(brought: Brought) -> Iterator[Skill | BadSkill]:
    for place in brought.skill_places:
        for name in sorted(brought.pieces):
            folder, _, file = name.rpartition("/")
            data = brought.pieces[name].data
            if data is None or file not in FILE_NAMES or folder.rpartition("/")[0] != place:
                continue
            if file != FILE_NAMES[0] and f"{folder}/{FILE_NAMES[0]}" in brought.pieces:
                continue  # of both spellings in a folder the first counts
            path = brought.project / name
            try:
                yield parse_skill(path, data)
            except InvalidSkill as error:
                yield BadSkill(path, error.problem)


def _own_skills() -> Iterator[Skill | BadSkill]:
    places = [config_dir() / "skills"]
    with suppress(NoHome):
        places += [home_dir() / name for name in SKILLS[1:]]
    for place in places:
        skills, bad = read_skills(place)
        yield from (*skills, *bad)
