"""Agents as files: Markdown whose front matter says who works, and whose text is the system prompt.

    .swink/agents, .agents/agents, .claude/agents of a trusted project, from where work is done up to its
    root; agents of the user's configuration, ~/.agents/agents, ~/.claude/agents. Of two with one name the
    nearest counts: the first in this order.

    ---
    name: reviewer
    description: Looks for bugs in a change. Use it after every edit.
    tools: Read, Grep, Bash         without this line all that the caller has
    model: inherit                  or provider:model, or sonnet, opus, haiku where the provider has them
    max_turns: 20
    ---
    You review changes. …

The spellings of Claude Code are read too: `maxTurns`, `disallowedTools`, its names of tools, and of
`permissionMode` that which narrows (`plan`). An agent never gets more than its caller has.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from swink.app.assistant.agenttoolnames import ToolNames, UnknownDenial, parse_tools
from swink.app.assistant.brought import Brought
from swink.system.frontmatter import BadFrontMatter, FrontMatter, read_front_matter
from swink.system.places import config_dir

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST_BYTES = 200_000
_MOST_FILES = 200
_MOST_TURNS = 10_000


class AgentFile(Struct, frozen=True):
    """One agent: what it is called and for, its system prompt, and what narrows it."""

    name: str
    description: str
    prompt: str
    path: Path
    tools: ToolNames | None = None
    """What it may use of its caller's tools; None: all of them."""
    denied: ToolNames = ToolNames()
    reads_only: bool = False
    model: str | None = None
    max_turns: int | None = None
    notes: tuple[str, ...] = ()
    """What of the file is not kept."""

    def allows(self, name: str, server: str | None = None) -> bool:
        """Whether it may use a tool of this name, of an MCP server if one is given."""
        if self.denied.has(name, server):
            return False
        return self.tools is None or self.tools.has(name, server)


def read_agents(brought: Brought | None) -> tuple[dict[str, AgentFile], list[str]]:
    """The agents of a trusted project and of the user by name, and what was wrong with others; blocking."""
    found: dict[str, AgentFile] = {}
    notices: list[str] = []
    for folder in () if brought is None else brought.agent_places:
        theirs = {} if brought is None else brought.texts(folder, ".md")
        _take(found, notices, [(path, lambda data=data: data) for path, data in theirs.items()])
    home = Path(os.path.expanduser("~"))
    for place in (config_dir() / "agents", home / ".agents" / "agents", home / ".claude" / "agents"):
        _take(found, notices, [(path, lambda path=path: _read(path)) for path in _files(place, notices)])
    return dict(sorted(found.items())), notices


def _take(
    found: dict[str, AgentFile], notices: list[str], files: Iterable[tuple[Path, Callable[[], bytes]]]
) -> None:
    """Add the agents of one folder, where no nearer one has their name."""
    here: dict[str, Path] = {}
    for path, read in list(files)[:_MOST_FILES]:
        try:
            agent = parse_agent(path, read())
        except OSError as error:
            notices.append(f"{path} was not read: {error.strerror or error}")
            continue
        except BadFrontMatter as error:
            notices.append(f"{path} is no agent: {error}")
            continue
        if agent.name in here:
            notices.append(f"{path} is left out: {here[agent.name].name} beside it is named {agent.name} too")
            continue
        here[agent.name] = path
        if found.setdefault(agent.name, agent) is agent:
            notices += [f"{path}: {note}" for note in agent.notes]


def _files(place: Path, notices: list[str]) -> list[Path]:
    try:
        return sorted(place / entry.name for entry in os.scandir(place) if entry.name.endswith(".md"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        notices.append(f"{place} was not read: {error.strerror}")
        return []


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise OSError("it is not a file")
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)


def parse_agent(path: Path, data: bytes) -> AgentFile:
    """The agent in a file; raises `BadFrontMatter`, with the line, if it is none."""
    if len(data) > _MOST_BYTES:
        raise BadFrontMatter(1, f"it is longer than {_MOST_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadFrontMatter(line, "it is not UTF-8") from error
    head = read_front_matter(text, lenient=True)
    prompt = head.body
    name = head.text("name") or path.stem
    if not _NAME.fullmatch(name):
        raise BadFrontMatter(
            head.line("name"), f"its name {name[:80]!r} is not of a-z, 0-9, - and _, at most 64"
        )
    description = " ".join((head.text("description") or "").split())
    if not description:
        raise BadFrontMatter(
            head.line("description"), "description is missing: it says when to call the agent"
        )
    if not prompt:
        raise BadFrontMatter(head.last_line, "it ends with its head: the system prompt is missing")
    notes: list[str] = []
    return AgentFile(
        name,
        description,
        prompt,
        path,
        tools=_tools(head, notes),
        denied=_denied(head),
        reads_only=(head.text("permissionMode") or "").casefold() == "plan",
        model=_model(head),
        max_turns=_turns(head),
        notes=tuple(notes),
    )


def _tools(head: FrontMatter, notes: list[str]) -> ToolNames | None:
    if "tools" not in head:
        return None
    words = _words(head, "tools")
    if words == ["*"]:
        return None
    return parse_tools(words, notes)


def _denied(head: FrontMatter) -> ToolNames:
    names, servers = frozenset[str](), frozenset[str]()
    for key in ("disallowedTools", "disallowed_tools", "disallowed-tools"):
        if key in head:
            try:
                denied = parse_tools(_words(head, key), [], is_denial=True)
            except UnknownDenial as error:
                raise BadFrontMatter(head.line(key), str(error)) from None
            names, servers = names | denied.names, servers | denied.servers
    return ToolNames(names, servers)


def _words(head: FrontMatter, key: str) -> Sequence[str]:
    words = head.words(key)
    if words is None:
        raise BadFrontMatter(head.line(key), f"{key} is no list of names")
    if not words and head.fields[key] != []:
        raise BadFrontMatter(
            head.line(key), f"{key} is empty: name some, write [] for none, or leave the line out"
        )
    return words


def _model(head: FrontMatter) -> str | None:
    model = head.text("model")
    return None if model in (None, "", "inherit", "default") else model


def _turns(head: FrontMatter) -> int | None:
    for key in ("max_turns", "maxTurns", "max-turns"):
        text = head.text(key)
        if text is None:
            continue
        if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= _MOST_TURNS:
            raise BadFrontMatter(
                head.line(key), f"{key} is a number from 1 to {_MOST_TURNS:,}, not {text[:40]!r}"
            )
        return int(text)
    return None
