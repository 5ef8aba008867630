"""What a project brings along that is started or sent: read once, so that what was judged is what is used.

    .mcp.json          servers that are started, and programs of the project that they name
    .swink/tools       scripts, and the programs beside them
    .swink/commands    prompts, sent as the person's own words
    .swink/agents      and in .agents, .claude: agents that tasks are given to
    .swink/skills      and in .agents, .claude: skills; both of each folder from where work is done upwards
    .claude/settings.json, .swink/hooks.json
                       hooks that are run, and files of the project that they name

Every file is kept with a digest of its bytes, its executable bit and where it leads if it is a link. What
leads out of the project, is no regular file or is too large is not used, and said.
"""

import glob
import hashlib
import json
import os
import re
import shlex
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.beyondfiles import expand_braces, with_beyond
from swink.app.assistant.hookfiles import HOOK_FILES, HookEntry, read_hook_file
from swink.app.assistant.serverprograms import TooManyPrograms, command_line, named_files
from swink.messages.redact import redact_text
from swink.messages.redact.shown import escape_invisible
from swink.system.shorten import clip_end, clip_list

SERVERS = ".mcp.json"
SCRIPTS = ".swink/tools"
COMMANDS = ".swink/commands"
AGENTS = (".swink/agents", ".agents/agents", ".claude/agents")
"""Where a project, or a folder of it, keeps agents; the first are nearer."""
SKILLS = (".swink/skills", ".agents/skills", ".claude/skills")
"""Where a project, or a folder of it, keeps skills; the first are nearer."""
BROUGHT_ALONG = (SERVERS, SCRIPTS, COMMANDS, *AGENTS, *SKILLS)
"""Files, and folders with all that is in them, whose every change is asked about.

AGENTS.md is not one of them: it is text that the model reads, like any other file it looks at, it starts
nothing, and assistants are asked to keep it up to date.
"""
MOST_FILES = 2_000
"""Files and folders in one place; with more nothing of it is used."""
_MOST_IN_SKILLS = 10
"""How many times as many there may be among skills, each of which is a folder."""
MOST_BYTES = 64 << 20
"""Bytes of all files in one place, and of all programs of servers."""
_KEPT = 1 << 20
"""Bytes up to which a file is kept: larger ones are programs."""
_TEXTS = (".json", ".toml", ".md")
_MOST_LINES = 20
_LONGEST = 1_000
"""Characters of a command that are shown; a longer one is marked as cut."""
_KEPT_BELOW = re.compile(r"(.+/\.(?:swink|agents|claude)/(?:skills|agents))(?:/|$)")
_PROJECT = re.compile(
    r"\$\{(?:(?:CLAUDE|SWINK)_PROJECT_DIR|PWD)[^}]*\}|\$(?:(?:CLAUDE|SWINK)_PROJECT_DIR|PWD)\b"
    r"|(?:\$\(|`)\s*(?:pwd|git rev-parse --show-toplevel)\s*[)`]"
)
"""Ways to write the project's place in a command."""
_WRITTEN = re.compile(r"(?<!<)\d*>>?(?!&)\s*[^\s;|&<>]+")
_PATTERN = re.compile(r"\.\.?[/\w.-]*/[^/]*[*?[]|\.\w[\w-]*/.*[*?[]")
"""A word that names files by a pattern, and not what others are compared with."""


class BroughtFile(Struct, frozen=True):
    """One file as it was read; without data if it cannot be used or is too large to be kept."""

    digest: str
    data: bytes | None = None
    problem: str = ""

    def __repr__(self) -> str:
        return f"Piece({self.digest[:12]!r}, problem={self.problem!r})"


class Programs(Struct, frozen=True):
    """The files of a project that one of its servers names, as they were judged."""

    project: Path
    fields: Any
    digests: dict[str, str]

    def __repr__(self) -> str:
        return f"Programs({sorted(self.digests)})"

    def changed(self) -> str | None:
        """One that is not as it was, is new or is gone; blocking, raises `TooManyPrograms`."""
        now = {name: piece.digest for name, piece in _read_programs(self.project, self.fields).items()}
        differs = (name for name in {*self.digests, *now} if self.digests.get(name) != now.get(name))
        return min(differs, default=None)


class Brought(Struct, frozen=True):
    """All that a project brings along, by path."""

    project: Path
    pieces: dict[str, BroughtFile] = {}
    servers: dict[str, Any] = {}
    programs: dict[str, Programs] = {}
    """What each server names."""
    skill_places: tuple[str, ...] = SKILLS
    """Where skills were looked for, the nearest first."""
    agent_places: tuple[str, ...] = AGENTS
    """Where agents were looked for, the nearest first."""
    hooks: tuple[HookEntry, ...] = ()
    hook_programs: dict[str, Programs] = {}
    """What each command of a hook names."""
    hook_notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Brought({str(self.project)!r}, {sorted(self.pieces)})"

    @property
    def digests(self) -> dict[str, str]:
        """What to remember of it: a digest for each file and each server."""
        found = {name: piece.digest for name, piece in self.pieces.items()}
        for name, fields in self.servers.items():
            text = json.dumps(fields, sort_keys=True)
            found[f"{SERVERS}: {_key(name)}"] = hashlib.sha256(text.encode()).hexdigest()
        for hook in self.hooks:
            name = f"{hook.source}: {_key(hook.name)}"
            said = json.dumps([hook.event, hook.matcher, hook.command, hook.timeout, hook.foreign_names])
            found[name] = hashlib.sha256(said.encode()).hexdigest()
        return found

    @property
    def program_paths(self) -> list[str]:
        """The files that servers and hooks name, which run outside the sandbox."""
        found = [*self.programs.values(), *self.hook_programs.values()]
        return [str(self.project / name) for programs in found for name in programs.digests]

    @property
    def notices(self) -> list[str]:
        """What is not used, and why."""
        problems = {name: piece.problem for name, piece in self.pieces.items() if piece.problem}
        unused = [f"{self.project / name} is not used: {problem}" for name, problem in problems.items()]
        return [*unused, *self.hook_notices]

    def data(self, name: str) -> bytes | None:
        """A file as it was read; None if there is none that can be used."""
        piece = self.pieces.get(name)
        return None if piece is None else piece.data

    def texts(self, folder: str, ending: str) -> dict[Path, bytes]:
        """The files directly in a folder that end so and can be used, by their names."""
        return {
            self.project / name: piece.data
            for name, piece in sorted(self.pieces.items())
            if piece.data is not None and name.rpartition("/")[0] == folder and name.endswith(ending)
        }


def read_brought(project: Path, directory: Path | None = None) -> Brought:
    """Read what a project brings along for work in a directory of it, both by their real paths; blocking."""
    return _with_hooks(_read_luggage(project, directory or project))


def _with_hooks(brought: Brought) -> Brought:
    """The same with the hooks of the project; of their files no other part counts."""
    project, pieces = brought.project, dict(brought.pieces)
    entries: list[HookEntry] = []
    notices: list[str] = []
    for place in HOOK_FILES:
        for name, piece in read_place(project, place).items():
            if piece.data is None or name != place:  # a folder of that name
                pieces[name] = piece
                continue
            found, problems = read_hook_file(name, piece.data)
            entries += found
            notices += problems
    if not entries:
        return replace(brought, pieces=pieces, hook_notices=tuple(notices))
    room, read, programs = [MOST_BYTES], dict[str, BroughtFile](), dict[str, Programs]()
    for entry in list(entries):
        fields = _hook_fields(project, entry)
        try:
            named = _read_programs(project, fields, read, room)
            why = next((f"{name}: {piece.problem}" for name, piece in named.items() if piece.problem), "")
        except TooManyPrograms as error:
            named, why = dict[str, BroughtFile](), str(error)
        if why:  # what cannot be judged is not run
            entries.remove(entry)
            notices.append(f"a hook of {entry.source} is not run: {why}")
            continue
        programs[entry.command] = Programs(
            project, fields, {name: piece.digest for name, piece in named.items()}
        )
        for name, piece in named.items():
            pieces.setdefault(name, piece)
    return replace(
        brought, pieces=pieces, hooks=tuple(entries), hook_programs=programs, hook_notices=tuple(notices)
    )


def _hook_fields(project: Path, entry: HookEntry) -> dict[str, Any]:
    """The command line of a hook: from the project's place, without quotes and files that it only writes.

    Beside its pieces stand the words as a shell takes them, which may hold spaces, and what patterns match.
    """
    command = _PROJECT.sub(".", entry.command)
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    try:
        words = list(reader)
    except ValueError:
        words = []
    words = [name for word in words for name in expand_braces(word)]
    matched = [
        name
        for word in words
        if _PATTERN.match(word)
        for name in islice(glob.iglob(word, root_dir=project), MOST_FILES)
    ]
    bare = re.sub("[\"']", "", command)
    expanded = [name for word in bare.split() if "{" in word for name in expand_braces(word)]
    spoken = [bare, *expanded, *(word for word in words if re.search(r"[\s=(]", word))]
    return {"command": "sh", "args": ["-c", *(_WRITTEN.sub(" ", line) for line in spoken), *matched]}


def _read_luggage(project: Path, directory: Path) -> Brought:
    pieces: dict[str, BroughtFile] = {}
    agents = _list_upwards(project, directory, AGENTS)
    for place in (SERVERS, SCRIPTS, COMMANDS, *agents):
        pieces |= read_place(project, place)
    skills = _list_upwards(project, directory, SKILLS)
    pieces |= _read_skills(project, skills)
    return replace(_with_servers(project, pieces), skill_places=skills, agent_places=agents)


def _list_upwards(project: Path, directory: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """These folders, in the project by their names, of each directory from one up to the project's."""
    above = [place for place in (directory, *directory.parents) if place.is_relative_to(project)]
    found = [(place / name).relative_to(project) for place in above or [project] for name in names]
    return tuple(_key(path.as_posix()) for path in found)


def _read_skills(project: Path, places: tuple[str, ...]) -> dict[str, BroughtFile]:
    """The files of all skills; a link to a folder that is read anyway is passed over."""
    found: dict[str, BroughtFile] = {}
    for place in places:
        for name, piece in read_place(project, place).items():
            path = project / name
            real = Path(os.path.realpath(path)) if path.is_symlink() else path
            is_read = any(real.is_relative_to(project / other) for other in places)
            if real is path or not is_read or not real.is_dir():
                found[name] = piece
    return found


def hook_digests(brought: Brought) -> dict[str, str]:
    """What is to be remembered of hooks, and of the files that they name."""
    named = {name: digest for each in brought.hook_programs.values() for name, digest in each.digests.items()}
    own = {name: digest for name, digest in brought.digests.items() if name.partition(": ")[0] in HOOK_FILES}
    return named | own


def left_elsewhere(allowed: Mapping[str, str], now: Brought) -> dict[str, str]:
    """Those of the digests that are of skills and agents in folders that were not looked into this time."""
    below = {name: _KEPT_BELOW.match(name) for name in allowed}
    places = (*now.skill_places, *now.agent_places)
    return {
        name: allowed[name] for name, found in below.items() if found is not None and found[1] not in places
    }


def _with_servers(project: Path, pieces: dict[str, BroughtFile]) -> Brought:
    """The files, with those that servers name."""
    file = pieces.get(SERVERS)
    if file is None or file.data is None:
        return Brought(project, pieces)
    try:
        servers = read_servers(file.data)
    except ValueError:
        servers = {}  # it is reported when servers are started
    except RecursionError:
        pieces[SERVERS] = replace(file, data=None, problem="it is nested too deeply")
        return Brought(project, pieces)
    room, read, programs = [MOST_BYTES], dict[str, BroughtFile](), dict[str, Programs]()
    for server, fields in servers.items():
        try:
            named = _read_programs(project, fields, read, room)
        except TooManyPrograms as error:
            pieces[SERVERS] = replace(file, data=None, problem=str(error))
            continue
        programs[server] = Programs(project, fields, {name: piece.digest for name, piece in named.items()})
        for name, piece in named.items():
            pieces.setdefault(name, piece)
            if piece.problem:  # a server whose program cannot be judged is not started
                pieces[SERVERS] = replace(file, data=None, problem=f"of {name}: {piece.problem}")
    return Brought(project, pieces, servers, programs)


def read_place(project: Path, place: str) -> dict[str, BroughtFile]:
    """The files of one place by their path in the project; blocking."""
    folder = os.path.realpath((project / place).parent)
    if not os.path.lexists(project / place):
        return {}
    if not Path(folder).is_relative_to(project):
        return {place: BroughtFile(f"in {_key(folder)}", problem="it leads out of the project")}
    found: dict[str, BroughtFile] = {}
    waiting, count, room = [place], 0, [MOST_BYTES]
    most = MOST_FILES * (_MOST_IN_SKILLS if place.endswith(SKILLS) else 1)
    while waiting:
        if count + len(waiting) > most:
            return {place: BroughtFile("too many", problem=f"it holds more than {most:,} files")}
        name = waiting.pop()
        count += 1
        try:
            if stat.S_ISDIR(os.lstat(project / name).st_mode):
                with os.scandir(project / name) as entries:
                    waiting += [f"{name}/{entry.name}" for entry in islice(entries, most + 1)]
                continue
        except OSError as error:
            found[_key(name)] = _unreadable(error)
            continue
        piece = _read(project, project / name, room)
        if piece.data is None and not piece.problem and name.endswith(_TEXTS):
            piece = replace(piece, problem=f"it is larger than {_KEPT >> 20} MB")
        found[_key(name)] = piece
        if room[0] < 0:
            return {place: piece}
    return found


def describe_changes(before: Mapping[str, str], now: Brought) -> tuple[str, ...]:
    """What is new, changed or removed, a line each; the first ones, and how many more there are."""
    digests = left_elsewhere(before, now) | now.digests
    started: list[str] = []
    others: list[str] = []
    for name in sorted({*before, *digests}):
        if before.get(name) != digests.get(name):
            how = "new" if name not in before else "changed" if name in digests else "removed"
            is_started = name.partition(": ")[0] in (SERVERS, *HOOK_FILES) and ": " in name
            (started if is_started else others).append(f"{how}: {_label(name, now)}")
    # What is started is never among those that are only counted.
    return (*started, *clip_list(others, max(1, _MOST_LINES - len(started))))


def _label(name: str, now: Brought) -> str:
    """A file by its path; a server with what it would start or reach."""
    file, _, server = name.partition(": ")
    if file in HOOK_FILES and server:
        label = f"hook of {file}: {clip_end(redact_text(server), _LONGEST)}"
        known = next((hook for hook in now.hooks if hook.source == file and _key(hook.name) == server), None)
        return one_line(label if known is None else with_beyond(label, known.command, now.project))
    if file != SERVERS or not server:
        return one_line(name)
    fields = next((fields for known, fields in now.servers.items() if _key(known) == server), None)
    return f"server {server_label(server, fields, of=f' of {SERVERS}', project=now.project)}"


def server_label(name: str, fields: Any, of: str = "", project: Path | None = None) -> str:
    """A server by its name, with what it would start or reach, and what that runs beyond its files."""
    beyond = ""
    match fields:
        case {"command": str()}:
            words = list(map(str, command_line(cast("dict[str, Any]", fields))))
            what = " ".join(words)
            beyond = "" if project is None else with_beyond("", shlex.join(words), project)
        case {"url": str() as what}:
            pass
        case _:
            what = ""
    started = f": {clip_end(redact_text(what), _LONGEST)}" if what else ""
    return one_line(f"{name}{of}{started}{beyond}")


def one_line(text: str) -> str:
    """Text in which nothing is hidden."""
    return escape_invisible(text).replace("\n", "\\n").replace("\t", "\\t")


def _read(project: Path, path: Path, room: list[int]) -> BroughtFile:
    """One file; `room` is how many bytes may still be read."""
    try:
        is_link = path.is_symlink()
        target = os.readlink(path) if is_link else ""
        real = os.path.realpath(path) if is_link else str(path)
        if is_link and (not Path(real).is_relative_to(project) or os.path.isdir(real)):
            leads = "to a folder" if os.path.isdir(real) else "out of the project"
            return BroughtFile(f"link {_key(target)}", problem=f"it is a link that leads {leads}")
        return _read_file(real, target, room)
    except OSError as error:
        return _unreadable(error)


def _read_file(path: str, target: str, room: list[int]) -> BroughtFile:
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOFOLLOW"):  # not every system has each
        flags |= getattr(os, name, 0)
    with open(path, "rb", opener=lambda path, _: os.open(path, flags)) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            return BroughtFile("no file", problem="it is no regular file")
        digest = hashlib.sha256(f"{bool(mode & 0o111)} {_key(target)}\0".encode())
        data = b""
        while chunk := file.read(_KEPT):
            room[0] -= len(chunk)
            if room[0] < 0:
                return BroughtFile("too large", problem=f"there are more than {MOST_BYTES >> 20} MB")
            digest.update(chunk)
            data = data + chunk if len(data) <= _KEPT else data
    return BroughtFile(digest.hexdigest(), data if len(data) <= _KEPT else None)


def _read_programs(
    project: Path, fields: Any, read: dict[str, BroughtFile] | None = None, room: list[int] | None = None
) -> dict[str, BroughtFile]:
    """What a server names in the project, and where links there lead; `read` is what was read already."""
    read, room = {} if read is None else read, [MOST_BYTES] if room is None else room
    found: dict[str, BroughtFile] = {}
    for path in named_files(project, fields):
        real = Path(os.path.realpath(path))
        if real != path and path.is_relative_to(project):
            found[_key(path.relative_to(project).as_posix())] = BroughtFile(f"leads to {_key(str(real))}")
        if real.is_relative_to(project):
            name = _key(real.relative_to(project).as_posix())
            if name not in read:
                read[name] = _read(project, real, room)
            found[name] = read[name]
    return found


def _unreadable(error: OSError) -> BroughtFile:
    return BroughtFile("unreadable", problem=error.strerror or str(error))


def read_servers(data: bytes) -> dict[str, Any]:
    """What `SERVERS` says about each server; raises `ValueError`, or `RecursionError` if it is too deep."""
    match json.loads(data):
        case {"mcpServers": dict()} as found:
            json.dumps(found["mcpServers"])  # raises here if it is nested too deeply, and never later
            return cast("dict[str, Any]", found["mcpServers"])
        case _:
            raise ValueError('it is not of the form {"mcpServers": {"name": {"command": "…"}}}')


def _key(name: str) -> str:
    """A name that can be written as JSON; no two names are written alike."""
    return name.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()
