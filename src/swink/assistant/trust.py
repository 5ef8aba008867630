"""Trust: whose instructions, servers, scripts and commands an assistant may take up.

    trust.json    {"/home/ada/project": {"trusted": true}, "/home/ada/src": {"trusted": true, "below": true}}

What is trusted is a project: the git repository that a directory is in, else the directory itself, by its
real path. It covers other projects below it only where that was said. A home directory, or one above it, is
never trusted: everything that was ever downloaded would be.
"""

import os
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from swink.assistant.settings import save_whole
from swink.errors import AgentError
from swink.filelock import alone
from swink.keys.store import config_dir

Standing = Literal["trusted", "refused", "unasked", "never"]
"""What is known about a project; `never` is one that cannot be trusted as a whole."""

READ_WHEN_TRUSTED = "its instructions, MCP servers, scripts and commands"

QUESTION = (
    "Do you trust the files in this folder? If you do, its instructions, MCP servers, scripts and "
    "commands are used."
)
ANSWERS: dict[str, str] = {
    "y": "yes, trust this project",
    "a": "yes, and every project below it",
    "n": "no, work without them; commands stay in the sandbox",
}
"""The keys that answer the question, and what they mean."""


BROUGHT_ALONG = ("AGENTS.md", ".mcp.json", ".swink/tools", ".swink/commands")


def what_is_there(project: Path) -> list[str]:
    """What the project brings along that would be read; blocking."""
    return [name for name in BROUGHT_ALONG if os.path.lexists(project / name)]


class TrustError(AgentError):
    """What is trusted could not be read or written."""


class _Entry(Struct, frozen=True, omit_defaults=True):
    trusted: bool
    below: bool = False


class Trust(Struct, frozen=True):
    """What is known about the project of a directory."""

    project: Path
    standing: Standing

    @property
    def is_trusted(self) -> bool:
        """Whether what the project brings along may be used."""
        return self.standing == "trusted"

    @property
    def notice(self) -> str | None:
        """What to say about a project that is not trusted."""
        match self.standing:
            case "refused":
                return f"{self.project} is not trusted: {READ_WHEN_TRUSTED} are not read (/trust asks again)"
            case "never":
                return (
                    f"{self.project} is never trusted as a whole: {READ_WHEN_TRUSTED} are not read; "
                    "start swink in the directory of a project"
                )
            case _:
                return None


def look_up(directory: str | Path) -> Trust:
    """What is known about the project that a directory is in; raises `TrustError`."""
    project = find_project(directory)
    if is_too_wide(project):
        return Trust(project, "never")
    entries = _load()
    own = entries.get(str(project))
    if own is not None:
        return Trust(project, "trusted" if own.trusted else "refused")
    for place in project.parents:
        entry = entries.get(str(place))
        if entry is not None and entry.below and not is_too_wide(place):
            return Trust(project, "trusted" if entry.trusted else "refused")
    return Trust(project, "unasked")


def answer(directory: str | Path, key: str) -> Trust:
    """Remember the answer to the question, one of `ANSWERS`; raises `TrustError` if that fails."""
    project = find_project(directory)
    if is_too_wide(project):
        return Trust(project, "never")
    _change(project, _Entry(key != "n", below=key == "a"))
    return Trust(project, "refused" if key == "n" else "trusted")


def forget(directory: str | Path) -> None:
    """Ask again about the project of a directory."""
    _change(find_project(directory), None)


def find_project(directory: str | Path) -> Path:
    """The directory that is trusted or not: the root of the git repository, else the directory itself."""
    here = Path(os.path.realpath(directory))
    for place in (here, *here.parents):
        if is_too_wide(place):
            return here
        if _is_repository(place):
            return place
    return here


def is_too_wide(directory: Path) -> bool:
    """Whether a directory is the root of the disk, somebody's home, or above it."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    return directory == Path(directory.anchor) or home.is_relative_to(directory)


def _is_repository(place: Path) -> bool:
    """Whether a repository begins here; one that somebody else made, as in /tmp, does not count."""
    try:
        owner = os.stat(place / ".git").st_uid
    except OSError:
        return False
    return not hasattr(os, "geteuid") or os.geteuid() == 0 or owner in (0, os.geteuid())


def _file() -> Path:
    return config_dir() / "trust.json"


def _load() -> dict[str, _Entry]:
    path = _file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, _Entry])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TrustError(
            f"{path} cannot be read ({error}), so no folder is trusted; correct it or delete it"
        ) from error


def _change(project: Path, entry: _Entry | None) -> None:
    path = Path(os.path.realpath(_file()))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(path.with_name(f"{path.name}.lock")):
            entries = {name: kept for name, kept in _load().items() if name != str(project)}
            if entry is not None:
                entries[str(project)] = entry
            save_whole(path, msgspec.json.format(msgspec.json.encode(entries)))
    except (OSError, UnicodeEncodeError) as error:
        raise TrustError(f"the answer could not be remembered: {path}: {error}") from error
