"""The system prompt of an assistant: who it is, where it works and how; short for small models."""

import os
import platform
import re
from datetime import date
from pathlib import Path

from msgspec import Struct

from swink.app.assistant.smallmodels import PROMPT, is_small_local
from swink.messages import ModelSpec

SMALL_WINDOW = 16_000
"""Tokens of context below which a model gets a short prompt, and no tools unless it is a local one."""

_BRANCH = re.compile(r"ref: refs/heads/([^\s~^:?*\[\\<>]{1,100})|([0-9a-f]{12})[0-9a-f]*")
_LONGEST_HEAD = 1_000

_SHORT = "You are a helpful assistant in a terminal. Answer briefly and directly."

_CHAT = """You are swink, a helpful assistant in a terminal. Answer directly, as briefly as the question \
allows, in the language of the user. Markdown is rendered. Say so when you do not know."""

_CODING = """You are swink, a coding agent in a terminal, working with a person in their directory.

How you work:
- Look before you change: read the files and search the code with the tools; never guess what is in them.
- Do what was asked, all of it and nothing else; keep to the style of the code around it.
- Change files with edit_file and write_file, not with shell commands. Use bash for tests, builds and git.
- Check what you did: run the tests or the program where there are some, and say honestly what failed.
- Commit, push or delete only when asked to. Never print or write out keys and passwords.
- For work of several steps keep a list with todo. Calls that do not depend on each other go in one reply.
- When a call is refused, do not try the same by another way; ask what is wanted instead.

How you write: brief and plain, in the user's language; Markdown is rendered. Name places as path:line. No \
preamble, no summary of what the person has just seen."""


class Surroundings(Struct, frozen=True):
    """What the prompt says about the place: the directory, the system, the day, the branch."""

    directory: str
    system: str
    day: str
    branch: str | None = None

    def __str__(self) -> str:
        lines = [
            f"Directory: {self.directory if self.directory.isprintable() else repr(self.directory)}",
            f"Git branch: {self.branch}" if self.branch else "Not a git repository",
            f"System: {self.system}",
            f"Date: {self.day}",
        ]
        return "<environment>\n" + "\n".join(lines) + "\n</environment>"


def look_around(directory: Path, today: date | None = None) -> Surroundings:
    """What there is to say about a directory now; blocking, so call it in a thread."""
    shell = os.path.basename(os.environ.get("SHELL") or "sh")
    system = f"{platform.system()} {platform.machine()}, shell {shell}"
    day = (today or date.today()).isoformat()
    return Surroundings(str(directory), system, day, _branch(directory))


def is_small(model: ModelSpec) -> bool:
    """Whether a model has too little context for all tools and a long prompt, or reads them too slowly."""
    has_room = model.context_window is None or model.context_window >= SMALL_WINDOW
    return not has_room or is_small_local(model)


def describe_small(model: ModelSpec) -> str:
    """What people have to know of a small model."""
    other = "/model, --model or, on the page, the Model menu takes another one"
    if is_small_local(model):
        gets = "it gets a short prompt and six tools, without AGENTS.md, MCP servers and sub-agents"
        return f"{model} is a small model: {gets}; {other}"
    window = f"{model.context_window:,}"
    return f"{model} has room for {window} tokens: it gets a short prompt and no tools; {other}"


def system_prompt(model: ModelSpec, around: Surroundings, *, coding: bool, instructions: str = "") -> str:
    """The prompt for a model; instructions are what AGENTS.md files say, fenced already."""
    if is_small(model):
        return PROMPT if coding and is_small_local(model) else _SHORT
    return "\n\n".join(part for part in (_CODING if coding else _CHAT, str(around), instructions) if part)


def _branch(directory: Path) -> str | None:
    """The branch that is checked out, without running git: HEAD of the nearest repository says it.

    Nobody may have trusted the repository yet, so nothing but a name gets into the prompt.
    """
    git = find_git(directory)
    if git is None:
        return None
    try:
        if git.is_file():  # a worktree or a submodule
            git = (git.parent / _read_line(git).removeprefix("gitdir:").strip()).resolve()
        head = _BRANCH.fullmatch(_read_line(git / "HEAD"))
    except (OSError, ValueError):
        return None
    if head is None or not head[0].isprintable():
        return "unknown"
    return head[1] or f"detached at {head[2]}"


def _read_line(path: Path) -> str:
    if not path.is_file():
        raise OSError("it is not a file")
    with path.open("rb") as file:
        return file.read(_LONGEST_HEAD).decode().strip()


def find_git(directory: Path) -> Path | None:
    """The `.git` of the repository that a directory is in."""
    return next((git for place in (directory, *directory.parents) if (git := place / ".git").exists()), None)
