"""`swink skills`: which skills there are here, what one says, whether it is right, and a new one."""

import argparse
import os
from difflib import get_close_matches
from pathlib import Path

from swink.app.assistant.skillplaces import FoundSkills, find_skills
from swink.app.cli.directory import trust_without_person
from swink.app.cli.terminal import say, table, with_bold_head
from swink.errors import MisuseError
from swink.system.files import write_whole
from swink.system.oneline import strip_controls
from swink.system.places import home_dir
from swink.tools.skills import check_skill, find_skill_file, list_files

_LONGEST = 80
_NEW = """\
---
name: {name}
description: {description}
---

# {title}

What to do, step by step. The model reads this when it enters the skill.

- Files that are long or rarely needed go into references/, and are named here.
- Programs go into scripts/; say how to call them: `python scripts/NAME.py ARGUMENT`.
- Templates and other files go into assets/.
"""
_DESCRIPTION = "What it does. Use it when …"


def list_command(arguments: argparse.Namespace) -> int:
    """`swink skills list`: the skills of this directory, and why others are not used."""
    found = _found()
    if not (found.skills or found.bad):
        say("no skills here; swink skills new NAME writes one")
        return 0
    rows: list[tuple[str, ...]] = [("NAME", "WHERE", "DESCRIPTION")]
    for skill in found.skills.values():
        about = strip_controls(skill.description.splitlines()[0])
        shown = about if len(about) <= _LONGEST else f"{about[:_LONGEST]}…"
        rows.append((strip_controls(skill.name), _short(skill.folder), shown))
    print(with_bold_head(table(rows)))
    for each in found.shadowed:
        say(strip_controls(f"not used: {each.skill.path}: {each.reason}"))
    for bad in found.bad:
        say(strip_controls(f"not used: {bad}"), "warning")
    return 0


def show_command(arguments: argparse.Namespace) -> int:
    """`swink skills show`: what a skill says, and the files that it has."""
    skills = _found().skills
    skill = skills.get(arguments.name)
    if skill is None:
        near = get_close_matches(str(arguments.name), list(skills), 1)
        hint = f"did you mean {near[0]}?" if near else "swink skills list shows what there is"
        raise MisuseError(f"there is no skill {arguments.name!r}; {hint}")
    print(strip_controls(f"{skill.name}: {skill.path}"))
    for name, value in skill.fields.items():
        if name != "name":
            print(strip_controls(f"{name}: {value if isinstance(value, str) else repr(value)}".strip()))
    for file in list_files(skill.folder):
        print(strip_controls(f"file: {file}"))
    print()
    print("\n".join(map(strip_controls, skill.body.splitlines())))
    return 0


def check_command(arguments: argparse.Namespace) -> int:
    """`swink skills check`: all that is wrong with skills, as the published validator judges."""
    folders = [folder for place in arguments.places or ["."] for folder in _folders(Path(place))]
    is_good = True
    for folder in folders:
        problems = check_skill(folder)
        path = find_skill_file(folder) or folder
        for problem in problems:
            print(strip_controls(f"{path}:{problem.line}: {problem.text}"))
        if not problems:
            say(strip_controls(f"{path} is right"))
        is_good = is_good and not problems
    return 0 if is_good else 1


def new_command(arguments: argparse.Namespace) -> int:
    """`swink skills new`: write a skill to begin with."""
    name: str = arguments.name
    place = home_dir() / ".agents/skills" if arguments.user else Path(".agents/skills").absolute()
    folder = place / name
    if "/" in name or name in ("", ".", ".."):
        raise MisuseError(f"{name!r} is no name of a skill: lower-case letters, digits and hyphens make one")
    if os.path.lexists(folder):
        raise MisuseError(f"{folder} is there already")
    about = " ".join((arguments.description or _DESCRIPTION).split())
    title = name.replace("-", " ").capitalize()
    quoted = '"' + about.replace("\\", "\\\\").replace('"', '\\"') + '"'
    text = _NEW.format(name=name, description=quoted, title=title)
    folder.mkdir(parents=True)
    write_whole(folder / "SKILL.md", text.encode(), private=False)
    if problems := check_skill(folder):
        (folder / "SKILL.md").unlink()
        folder.rmdir()
        raise MisuseError(f"nothing was written: {problems[0].text}")
    print(folder / "SKILL.md")
    if not arguments.description:
        say("write what it is for into its description: that is all a model sees before it enters the skill")
    return 0


def _found() -> FoundSkills:
    trust = trust_without_person()
    if trust.notice:
        say(strip_controls(trust.notice), "warning")
    return find_skills(trust.brought if trust.is_trusted else None)


def _folders(place: Path) -> list[Path]:
    """The folders of skills that a path means: itself, that of its SKILL.md, or those in it."""
    place = place.expanduser().absolute()
    if place.name.lower() == "skill.md" and place.is_file():
        return [place.parent]
    if not place.is_dir() or find_skill_file(place) is not None:
        return [place]
    inner = [place, *(place / name for name in (".agents/skills", ".claude/skills", ".swink/skills"))]
    found = [child for folder in inner if folder.is_dir() for child in sorted(folder.iterdir())]
    return [child for child in found if child.is_dir() and find_skill_file(child)] or [place]


def _short(path: Path) -> str:
    here, home = Path.cwd(), home_dir()
    if path.is_relative_to(here):
        return strip_controls(path.relative_to(here).as_posix())
    is_ours = path.is_relative_to(home)
    return strip_controls(f"~/{path.relative_to(home).as_posix()}" if is_ours else str(path))
