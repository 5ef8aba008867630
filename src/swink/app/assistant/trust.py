"""Trust: whose instructions, servers, scripts, skills, commands and agents an assistant may take up.

    trust.json    {"/home/ada/project": {"trusted": true, "allowed": {".mcp.json": "9f86d0…"}},
                   "/home/ada/src": {"trusted": true, "below": true}}

What is trusted is a project: the git repository that a directory is in, else the directory itself, by its
real path. A home directory, or one above it, is never trusted: everything that was ever downloaded would be.
A git worktree is trusted as its repository is, with what that was allowed to bring along.

What a project brings along (`BROUGHT_ALONG`) is trusted as it was when the person was asked: a digest of each
file is kept, any change is asked about, and what is used are the bytes that were judged. Where projects below
a directory are trusted too, those are not asked about; but what they bring along is, once for each of them.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.brought import BROUGHT_ALONG as BROUGHT_ALONG
from swink.app.assistant.brought import Brought, describe_changes, left_elsewhere, read_brought
from swink.app.assistant.instructionfiles import own_instructions
from swink.app.assistant.linkedtree import find_linked
from swink.errors import AgentError
from swink.system.filelock import alone
from swink.system.files import write_whole
from swink.system.places import config_dir
from swink.system.shorten import clip_list

Standing = Literal["trusted", "refused", "unasked", "changed", "never"]
"""What is known about a project; `changed` is one that is trusted, but not with all that it brings along now,
`never` one that cannot be trusted as a whole."""

READ_WHEN_TRUSTED = "its instructions, MCP servers, hooks, scripts, skills, commands and agents"

_QUESTION = f"Do you trust the files in this folder? If you do, {READ_WHEN_TRUSTED} are used."
_CHANGED = "You trust this folder, but have not seen this in it yet. Use it as it is now?"
_ANSWERS: dict[str, str] = {
    "y": "yes, trust this project",
    "a": "yes, and every project below it",
    "n": "no, work without them; commands stay in the sandbox",
}
_ANSWERS_TO_CHANGES: dict[str, str] = {
    "y": "yes, as it is now",
    "n": "no, do not trust this project any more; commands stay in the sandbox",
}
_MOST_TOLD = 3


def what_is_there(project: Path) -> list[str]:
    """What the project brings along that would be read; blocking."""
    instructions = own_instructions(project)
    found = [name for name in BROUGHT_ALONG if os.path.lexists(project / name)]
    return [*([] if instructions is None else [instructions.name]), *found]


class TrustError(AgentError):
    """What is trusted could not be read or written."""


class _Entry(Struct, frozen=True, omit_defaults=True):
    trusted: bool
    below: bool = False
    allowed: dict[str, str] = {}


class Trust(Struct, frozen=True):
    """What is known about the project of a directory, and what it brings along as it was judged."""

    project: Path
    standing: Standing
    brought: Brought = Brought(Path())
    changes: tuple[str, ...] = ()
    """What is not allowed yet, a line each, of a project that is `changed`."""
    skipped: str | None = None
    """What to say of a project that is not trusted where nobody can be asked."""

    @property
    def is_trusted(self) -> bool:
        """Whether what the project brings along may be used."""
        return self.standing == "trusted"

    @property
    def question(self) -> str:
        """What to ask about the project."""
        return _CHANGED if self.standing == "changed" else _QUESTION

    @property
    def answers(self) -> dict[str, str]:
        """The keys that answer the question, and what they mean."""
        return _ANSWERS_TO_CHANGES if self.standing == "changed" else _ANSWERS

    @property
    def notice(self) -> str | None:
        """What to say about a project that is not trusted."""
        if self.skipped is not None:
            return self.skipped
        match self.standing:
            case "refused":
                return f"{self.project} is not trusted: {READ_WHEN_TRUSTED} are not read (/trust asks again)"
            case "changed":
                told = "; ".join(clip_list(self.changes, _MOST_TOLD))
                why = f"{self.project} brings along what you have not allowed yet ({told})"
                how = "to allow it, run swink trust in that folder"
                return f"{why}, so {READ_WHEN_TRUSTED} are not read; {how}"
            case "never":
                how = f"{READ_WHEN_TRUSTED} are not read; start swink in the directory of a project"
                return f"{self.project} is never trusted as a whole: {how}"
            case _:
                return None


def look_up(directory: str | Path) -> Trust:
    """What is known about the project that a directory is in; blocking, raises `TrustError`."""
    project = find_project(directory)
    if is_too_wide(project):
        return Trust(project, "never")
    entry = _entry_of(project, _load())
    if entry is not None and not entry.trusted:
        return Trust(project, "refused")
    brought = read_brought(project, Path(os.path.realpath(directory)))
    if entry is None:
        return Trust(project, "unasked", brought)
    changes = describe_changes(entry.allowed, brought)
    return Trust(project, "changed" if changes else "trusted", brought, changes)


def look_afresh(directory: str | Path) -> Trust:
    """The project of a directory as if it had never been asked about; blocking."""
    project = find_project(directory)
    if is_too_wide(project):
        return Trust(project, "never")
    return Trust(project, "unasked", read_brought(project, Path(os.path.realpath(directory))))


def decisions() -> dict[str, str]:
    """What was decided about each project, in words; blocking, raises `TrustError`."""
    words = {True: "trusted", False: "not trusted"}
    return {
        project: f"{words[entry.trusted]}{', with every project below it' if entry.below else ''}"
        for project, entry in sorted(_load().items())
    }


def answer(trust: Trust, key: str) -> Trust:
    """Remember an answer, one of `answers`, about what was looked up; raises `TrustError` if that fails."""
    if is_too_wide(trust.project):
        return Trust(trust.project, "never")
    is_trusted = key != "n"

    def decide(known: _Entry | None) -> _Entry:
        was_below = trust.standing == "changed" and known is not None and known.below
        below = key == "a" or was_below
        before = {} if known is None else left_elsewhere(known.allowed, trust.brought)
        return _Entry(True, below, before | trust.brought.digests) if is_trusted else _Entry(False)

    _change(trust.project, decide)
    return decided(trust, is_trusted)


def decided(trust: Trust, is_trusted: bool) -> Trust:
    """The same project, with what was looked at, as trusted or refused."""
    return replace(trust, standing="trusted" if is_trusted else "refused", changes=())


def forget(directory: str | Path) -> bool:
    """Ask again about the project of a directory; whether anything was known."""
    was_known: list[bool] = []
    _change(find_project(directory), lambda known: was_known.append(known is not None))
    return any(was_known)


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
    """Whether a directory is the root of the disk, the user's home, or above it."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    return directory == Path(directory.anchor) or home.is_relative_to(directory)


def _is_repository(place: Path) -> bool:
    """Whether a repository begins here; one that another user made, as in /tmp, does not count."""
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
        what = f"{path} cannot be read ({error}), so no folder is trusted"
        raise TrustError(f"{what}; correct it or delete it") from error


def _entry_of(project: Path, entries: dict[str, _Entry]) -> _Entry | None:
    """What was decided about a project; a git worktree is as its main tree is, unless it was asked about."""
    if str(project) not in entries and (linked := find_linked(project)) is not None:
        main = linked.main
        if main is not None and not is_too_wide(main) and _is_repository(main):
            return _entry_for(main, entries) or _entry_for(project, entries)
    return _entry_for(project, entries)


def _entry_for(project: Path, entries: dict[str, _Entry]) -> _Entry | None:
    """The project's own entry, or what one above it says for projects below; that has allowed nothing yet."""
    if (own := entries.get(str(project))) is not None:
        return own
    for place in project.parents:
        entry = entries.get(str(place))
        if entry is not None and entry.below and not is_too_wide(place):
            return _Entry(entry.trusted)
    return None


def _change(project: Path, decide: Callable[[_Entry | None], _Entry | None]) -> None:
    path = Path(os.path.realpath(_file()))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(path.with_name(f"{path.name}.lock")):
            entries = _load()
            entry = decide(entries.pop(str(project), None))
            if entry is not None:
                entries[str(project)] = entry
            write_whole(path, msgspec.json.format(msgspec.json.encode(entries)))
    except (OSError, UnicodeEncodeError) as error:
        raise TrustError(f"the answer could not be remembered: {path}: {error}") from error
