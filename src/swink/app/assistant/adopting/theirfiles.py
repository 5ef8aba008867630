"""Files of another program, read with patience: a broken one is a finding with its line, never an error."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from swink.app.assistant.adopting.findings import Adoptable, Kind, Places, new_file
from swink.app.assistant.agentfiles import AgentFile, parse_agent
from swink.app.assistant.customcommands import parse_command
from swink.app.assistant.instructionfiles import OTHER_NAME, imports_in
from swink.system.frontmatter import read_front_matter
from swink.system.places import config_dir
from swink.tools.skills import list_files, read_skills

MOST_BYTES = 4 << 20
_MOST_FILES = 500
_COMMENT_OR_TEXT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
_RUNS = re.compile(r"!`[^`]+`")
_UNREAD = ("permissionMode", "hooks", "mcpServers", "skills", "memory", "isolation", "background", "color")
"""Keys in files of agents that mean nothing here."""


def read_table(path: Path, broken: list[Adoptable]) -> dict[str, Any]:
    """The object in a JSON (comments and final commas are fine) or TOML file; empty if there is none.

    What is wrong with the file is added to `broken`. Blocking.
    """
    try:
        if not os.path.lexists(path):
            return {}
        text = read_text(path)
        found: Any = tomllib.loads(text) if path.suffix == ".toml" else _read_json(text)
        if not isinstance(found, dict):
            raise ValueError("line 1: it holds no object")
    except OSError as error:
        broken.append(
            Adoptable("file", path, path.name, "cannot", f"was not read: {error.strerror or error}")
        )
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        broken.append(Adoptable("file", path, path.name, "cannot", f"was not read: {why}"))
    else:
        return cast("dict[str, Any]", found)
    return {}


def read_text(path: Path) -> str:
    """A file's text; raises `OSError`, or `ValueError` if it is none."""
    if not path.is_file():
        raise OSError("it is not a file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MB")
    return data.decode("utf-8-sig")


def table(value: Any) -> dict[str, Any]:
    """A value that should be an object with names; empty if it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """The texts in a value that should be a list of them."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def files_in(folder: Path, ending: str) -> list[Path]:
    """The files with an ending in a folder and below it, in order; blocking."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        found += [Path(place, name) for name in sorted(names) if name.endswith(ending)]
        if len(found) >= _MOST_FILES:
            break
    return found[:_MOST_FILES]


def find_skills_of(folder: Path, places: Places, *, is_read: bool) -> Iterator[Adoptable]:
    """Skills, which are read where they are if `is_read`; others of a single file are copied; blocking."""
    skills, bad = read_skills(folder)
    for broken in bad:
        name, why = broken.path.parent.name, f"is no skill: {broken.problem}"
        yield Adoptable("skill", broken.path, name, "cannot", why)
    for skill in skills:
        if is_read:
            is_users = not skill.path.is_relative_to(places.project)
            how = "as it is" if is_users or places.is_trusted else "once the folder is trusted (swink trust)"
            yield Adoptable("skill", skill.path, skill.name, "read", f"is read {how}: /skill:{skill.name}")
        elif list_files(skill.folder):
            how = f"has other files; link to it: ln -s {places.short(skill.folder)} ~/.agents/skills/"
            yield Adoptable("skill", skill.path, skill.name, "cannot", how)
        else:
            ours = config_dir() / "skills" / skill.name / "SKILL.md"
            becomes = f"becomes /skill:{skill.name}"
            yield new_file("skill", skill.path, skill.name, ours, skill.path.read_bytes(), becomes)


def find_not_yet(folder: Path, kind: Kind, ending: str) -> Iterator[Adoptable]:
    """Files of a kind that swink does not read yet."""
    for path in files_in(folder, ending):
        yield Adoptable(kind, path, path.stem, "yet", f"swink reads no {kind}s yet")


def find_agents(folder: Path, places: Places, *, is_users: bool, is_read: bool) -> Iterator[Adoptable]:
    """Agents in Markdown files: read where they are (`is_read`), or copied to where they are; blocking."""
    for path in files_in(folder, ".md"):
        try:
            if not is_users and not _is_inside(path, places.project):
                raise OSError("it leads out of the project")
            if is_read and path.parent != folder:
                raise OSError(f"it is not directly in {places.short(folder)}")
            text = read_text(path)
            agent = parse_agent(path, text.encode())
            if "permission" in read_front_matter(text, lenient=True):
                raise ValueError("its permissions cannot be kept; name its tools in a line of tools:")
        except (OSError, ValueError) as error:
            yield Adoptable("agent", path, path.stem, "cannot", f"is no agent here: {error}")
            continue
        if is_read:
            later = "" if is_users or places.is_trusted else " once the folder is trusted (swink trust)"
            told = "".join(f"; {note}" for note in (*_describe(agent, text), *agent.notes))
            yield Adoptable(
                "agent", path, agent.name, "read", f"is read as it is{later}: @{agent.name}{told}"
            )
            continue
        ours = (config_dir() if is_users else places.project / ".swink") / "agents" / path.name
        if not is_users and not _is_inside(ours, places.project):
            why = f"{places.short(ours.parent)} leads out of the project"
            yield Adoptable("agent", path, agent.name, "cannot", why)
            continue
        where = "" if is_users else f" in {places.short(ours)}, which trust then asks about"
        told = "".join(f"; {note}" for note in (*_describe(agent, text), *agent.notes))
        becomes = f"becomes the agent @{agent.name}{where}{told}"
        yield new_file("agent", path, agent.name, ours, text.encode(), becomes)


def _describe(agent: AgentFile, text: str) -> Iterator[str]:
    """What an agent has here, and what of its file means nothing here."""
    if agent.tools is not None:
        names = [*sorted(agent.tools.names), *(f"mcp({name})" for name in sorted(agent.tools.servers))]
        yield f"its tools are {', '.join(names)}" if names else "it has no tools"
    if agent.reads_only:
        yield "it only reads"
    if agent.model is not None:
        yield f"its model is {agent.model} where it can be had, else its caller's"
    head = read_front_matter(text, lenient=True)
    if unread := [
        key for key in _UNREAD if key in head and not (key == "permissionMode" and agent.reads_only)
    ]:
        yield f"not read: {', '.join(unread)}"


def find_commands(folder: Path, places: Places, *, is_users: bool) -> Iterator[Adoptable]:
    """Commands in Markdown files, which become commands of the user or of the project."""
    for path in files_in(folder, ".md"):
        try:
            if not is_users and not _is_inside(path, places.project):
                raise OSError("it leads out of the project")
            text = read_text(path)
        except (OSError, ValueError) as error:
            yield Adoptable("command", path, path.stem, "cannot", f"was not read: {error}")
            continue
        yield command(path, path.stem.lower(), text, places, is_users=is_users)


def command(source: Path, name: str, text: str, places: Places, *, is_users: bool) -> Adoptable:
    """What becomes of one command; blocking."""
    path = (places.commands if is_users else places.project_commands) / f"{name}.md"
    data = text.encode("utf-8", "replace")
    try:
        if not is_users and not _is_inside(path, places.project):
            raise ValueError(f"{places.short(path.parent)} leads out of the project")
        parse_command(path, data)
    except ValueError as error:
        return Adoptable("command", source, f"/{name}", "cannot", f"is no command here: {error}")
    runs = "; its !`…` stays text, nothing is run" if _RUNS.search(text) else ""
    where = "" if is_users else f" in {places.short(path)}, which trust then asks about"
    return new_file("command", source, f"/{name}", path, data, f"becomes /{name}{where}{runs}")


def find_read(kind: Kind, path: Path, places: Places) -> Iterator[Adoptable]:
    """A file of the project that swink reads where it is; blocking."""
    if not os.path.lexists(path):
        return
    try:
        text = read_text(path)
        imports = imports_in(text) if path.name == OTHER_NAME else ""
    except OSError as error:
        why = f"was not read: {error.strerror or error}"
        yield Adoptable(kind, path, path.name, "cannot", why)
    except ValueError as error:
        yield Adoptable(kind, path, path.name, "cannot", f"was not read: {error}")
    else:
        how = "is read as it is" if places.is_trusted else "is read once the folder is trusted (swink trust)"
        told = f"; imports are not followed ({imports})" if imports else ""
        yield Adoptable(kind, path, path.name, "read", f"{how}{told}")


def find_own_instructions(path: Path) -> Iterator[Adoptable]:
    """The user's own instructions, which become ours if there are none; blocking."""
    if not os.path.lexists(path):
        return
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        yield Adoptable("instructions", path, path.name, "cannot", f"was not read: {error}")
        return
    ours = config_dir() / "AGENTS.md"
    imports = imports_in(text)
    told = f"; imports are not followed ({imports})" if imports else ""
    becomes = f"becomes {ours}{told}"
    yield new_file("instructions", path, path.name, ours, text.encode(), becomes)


def _is_inside(path: Path, project: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(project)


def _read_json(text: str) -> Any:
    """JSON, with comments and commas before the end; raises `ValueError` with the line."""
    # What is left out becomes blanks, so that lines and columns stay what they are in the file.
    plain = _COMMENT_OR_TEXT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    plain = _TRAILING.sub(lambda found: found[1] or " ", plain)
    return json.loads(plain) if plain.strip() else {}
