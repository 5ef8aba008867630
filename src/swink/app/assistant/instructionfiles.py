"""Instructions: what AGENTS.md files tell an assistant.

    AGENTS.md of the user's configuration    always
    AGENTS.md of a trusted project           from its root down to the directory, the nearest last
    CLAUDE.md beside them                    in each directory that has no AGENTS.md

Each is fenced with its path, so that the model can tell whose words they are; together they are bounded.
"""

import os
import re
from pathlib import Path

from msgspec import Struct

from swink.system.places import config_dir
from swink.system.shorten import clip_list

NAME = "AGENTS.md"
MOST_CHARACTERS = 32_000
"""Characters of all instructions together; about 8,000 tokens."""
OTHER_NAME = "CLAUDE.md"
"""What another program reads; the project's alone, and where there is no `NAME`."""
_MOST_BYTES = 1 << 20
_MOST_NAMED = 3
_IMPORT = re.compile(r"(?<!\S)@((?:~/|\.{0,2}/)?[\w.-]+(?:/[\w.-]+)*)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


class Instructions(Struct, frozen=True):
    """The text for the system prompt, the files it is from, and what was wrong with some."""

    text: str = ""
    files: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()


def read_instructions(directory: Path, project: Path | None) -> Instructions:
    """The user's instructions and, if a project is given, those from it down to the directory; blocking."""
    texts: list[str] = []
    files: list[Path] = []
    notices: list[str] = []
    room = MOST_CHARACTERS
    theirs = [] if project is None else find_instructions(directory, project)
    for path in [config_dir() / NAME, *theirs]:
        try:
            text = _read(path, project)
        except OSError as error:
            notices.append(f"{path} was not read: {error.strerror or error}")
            continue
        if not text:
            continue
        if room <= 0:
            filled = f"the instructions before it fill {MOST_CHARACTERS:,} characters"
            notices.append(f"{path} was not read: {filled}")
            continue
        if len(text) > room:
            notices.append(f"{path} is too long: of {len(text):,} characters the first {room:,} are used")
            text = f"{text[:room]}\n[cut here]"
        if path.name == OTHER_NAME and (named := imports_in(text)):
            notices.append(f"{path} imports {named}; imports are not followed, the agent can read the files")
        room -= len(text)
        files.append(path)
        fenced = text.replace("</instructions", "<\u200b/instructions")  # nothing in it ends its fence
        texts.append(f'<instructions file="{path}">\n{fenced}\n</instructions>')
    if texts:
        texts.insert(0, "Follow these instructions of the user and the project; the later ones are nearer:")
    return Instructions("\n\n".join(texts), tuple(files), tuple(notices))


def find_instructions(directory: Path, project: Path) -> list[Path]:
    """The files of a project with instructions for a directory, the nearest last; blocking."""
    places = [place for place in (directory, *directory.parents) if place.is_relative_to(project)]
    found = [own_instructions(place) for place in reversed(places)]
    return [path for path in found if path is not None]


def own_instructions(directory: Path) -> Path | None:
    """The file with the instructions of one directory; blocking."""
    paths = (directory / name for name in (NAME, OTHER_NAME))
    return next((path for path in paths if os.path.lexists(path)), None)


def imports_in(text: str) -> str:
    """The files that a text imports as `@path`, named for people; empty if there are none."""
    named = dict.fromkeys(found.rstrip(".") for found in _IMPORT.findall(_CODE.sub("", text)))
    return ", ".join(clip_list([f"@{name}" for name in named if "." in name or "/" in name], _MOST_NAMED))


def _read(path: Path, project: Path | None) -> str:
    """The text of a file, empty if there is none; one that leads out of the project is refused."""
    if not os.path.lexists(path):
        return ""
    real = Path(os.path.realpath(path))
    if project is not None and path.is_relative_to(project) and not real.is_relative_to(project):
        raise OSError(f"it is a link to {real}, outside of the project")
    if not real.is_file():
        raise OSError("it is not a file")
    with real.open("rb") as file:
        return file.read(_MOST_BYTES).decode("utf-8", "replace").strip()
