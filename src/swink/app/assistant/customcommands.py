"""Custom commands: Markdown files that become prompts.

    commands/proofread.md of the user's configuration, .swink/commands/proofread.md of a trusted project

    ---
    description: look for bugs in a file
    ---
    Review $ARGUMENTS. Look for …

`/proofread src/main.py` sends the text with `$ARGUMENTS` (or `$1` … `$9`, words) replaced; without either the
arguments come after it. Of two commands with one name the user's own counts.
"""

import os
import re
import shlex
from pathlib import Path

from msgspec import Struct

from swink.app.assistant.brought import COMMANDS, Brought
from swink.system.frontmatter import has_front_matter, read_front_matter
from swink.system.places import config_dir

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_SLOT = re.compile(r"\$(?:ARGUMENTS|([1-9]))")
_MOST_BYTES = 200_000
_MOST_FILES = 200


class CustomCommand(Struct, frozen=True):
    """One command: its name with the slash, a line of help, and the text that it sends."""

    name: str
    help: str
    text: str
    path: Path

    def expand(self, arguments: str) -> str:
        """The prompt for some arguments."""
        try:
            words = shlex.split(arguments)
        except ValueError:  # an apostrophe, most likely
            words = arguments.split()

        def fill(slot: re.Match[str]) -> str:
            if slot[1] is None:
                return arguments
            return words[int(slot[1]) - 1] if int(slot[1]) <= len(words) else ""

        text, count = _SLOT.subn(fill, self.text)
        return text if count or not arguments else f"{text}\n\n{arguments}"


def read_commands(brought: Brought | None) -> tuple[dict[str, CustomCommand], list[str]]:
    """The commands of the user and of a trusted project by name, and what was wrong with others; blocking."""
    found: dict[str, CustomCommand] = {}
    notices: list[str] = []
    theirs = {} if brought is None else brought.texts(COMMANDS, ".md")
    own: dict[Path, bytes | None] = dict.fromkeys(_own_files(notices))
    for path, data in [*list(theirs.items())[:_MOST_FILES], *own.items()]:
        try:
            command = parse_command(path, _read(path) if data is None else data)
        except (OSError, ValueError) as error:
            notices.append(f"{path} is no command: {error}")
        else:
            found[command.name] = command
    return found, notices


def _own_files(notices: list[str]) -> list[Path]:
    place = config_dir() / "commands"
    try:
        names = sorted(entry.name for entry in os.scandir(place) if entry.name.endswith(".md"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        notices.append(f"{place} was not read: {error.strerror}")
        return []
    return [place / name for name in names[:_MOST_FILES]]


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise ValueError("it is not a file")
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)


def parse_command(path: Path, data: bytes) -> CustomCommand:
    """The command in a file; raises `ValueError` if it is none."""
    if not _NAME.fullmatch(path.stem):
        raise ValueError("its name consists of a-z, 0-9, - and _")
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it is longer than {_MOST_BYTES:,} bytes")
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    described = None
    if has_front_matter(text):
        head = read_front_matter(text, lenient=True)
        described, text = head.text("description"), head.body
    if not (text := text.strip()):
        raise ValueError("it is empty")
    about = (described or text.lstrip("# ")).partition("\n")[0]
    return CustomCommand(f"/{path.stem}", about[:100], text, path)
