"""The luggage of a project, in words: what it brings along that is used once the project is trusted."""

import tomllib
from pathlib import Path

from msgspec.structs import replace

from swink.app.assistant.beyondfiles import with_beyond
from swink.app.assistant.brought import COMMANDS, SCRIPTS, Brought, one_line, server_label
from swink.app.assistant.instructionfiles import find_instructions
from swink.app.assistant.trust import Trust, look_afresh
from swink.messages.redact import redact_text
from swink.system.shorten import clip_end, clip_list

_MOST_NAMED = 6
_LONGEST = 1_000


def describe_luggage(brought: Brought, directory: Path) -> list[tuple[str, str]]:
    """What is used of a project in a directory: kind and a line each, of what is started its command.

    Blocking.
    """
    project = brought.project
    found = [("instructions", _name(path, project)) for path in find_instructions(directory, project)]
    found += [
        ("server", server_label(name, fields, project=project)) for name, fields in brought.servers.items()
    ]
    found += [("hook", line) for line in list_hooks(brought)]
    for path, data in brought.texts(SCRIPTS, ".toml").items():
        found.append(("script", f"{_name(path, project)}{_command_of(data)}"))
    for path in brought.texts(COMMANDS, ".md"):
        found.append(("command", f"/{one_line(path.stem)}: {_name(path, project)}"))
    for path in (path for folder in brought.agent_places for path in brought.texts(folder, ".md")):
        found.append(("agent", f"{one_line(path.stem)}: {_name(path, project)}"))
    for name in sorted(brought.pieces):
        path = project / name
        place = Path(name).parent.parent.as_posix()
        if path.name in ("SKILL.md", "skill.md") and place in brought.skill_places:
            found.append(("skill", f"{one_line(path.parent.name)}: {_name(path, project)}"))
    return found


def list_hooks(brought: Brought) -> list[str]:
    """The hooks of a project, each with its command and what that runs beyond its files; blocking."""
    return [
        one_line(with_beyond(_clip(f"{hook.source}: {hook.name}"), hook.command, brought.project))
        for hook in brought.hooks
    ]


def _clip(label: str) -> str:
    return clip_end(redact_text(label), _LONGEST)


def with_skipped(trust: Trust, directory: Path) -> Trust:
    """The same, with a notice of what is skipped and how to allow it: nobody can be asked; blocking."""
    if trust.standing not in ("unasked", "refused"):
        return trust
    luggage = describe_luggage(look_afresh(directory).brought, directory)
    named = ", ".join(clip_list([_short(kind, line) for kind, line in luggage], _MOST_NAMED))
    how = "swink trust shows it and asks, swink trust --yes allows it"
    told = f"{trust.project} is not trusted, so this in it is not used: {named}; {how}"
    return replace(trust, skipped=told if luggage else "")


def _short(kind: str, line: str) -> str:
    return line if kind == "instructions" else f"{kind} {line.partition(': ')[0]}"


def _name(path: Path, project: Path) -> str:
    return one_line(path.relative_to(project).as_posix())


def _command_of(data: bytes) -> str:
    """What a script tool starts."""
    try:
        match tomllib.loads(data.decode("utf-8")).get("command"):
            case str() as line:
                pass
            case [*words]:
                line = " ".join(map(str, words))
            case _:
                return ""
    except (ValueError, RecursionError):  # it is reported when tools are made
        return ""
    return f": {one_line(clip_end(redact_text(line), _LONGEST))}"
