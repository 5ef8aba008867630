"""Rules: which calls run, or never run, without a question.

tool                every call of a tool              write_file
bash(words *)       commands that begin so            bash(git status *)
bash(words)         this command alone                bash(make test)
tool(glob)          calls whose path matches          edit_file(src/**)
mcp(server)         every tool of an MCP server       mcp(github)
net(host)           a host that commands reach        net(pypi.org), net(*.corp), net(index.corp@10.0.0.5)

A line for bash is allowed if each of its commands is covered by a rule; a line that is not understood
completely is covered by none but `bash` itself. A denial needs one command alone; where it is not certain
that a line does not run what one denies, a person is asked, unless rules name the whole of its commands.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal

from msgspec import Struct

from swink.app.assistant.commandlines import is_move, quote, runs_others
from swink.app.assistant.denials import Denied, is_uncertain
from swink.errors import MisuseError
from swink.tools import is_tool_name
from swink.tools.coding.declared import find_declared
from swink.tools.coding.syntax import SimpleCommand, Word, read_commands
from swink.tools.coding.wishes import parse_pattern

BASH = "bash"
MCP = "mcp"
NET = "net"

SEPARATOR = " ; "
"""Between rules that a person edits in one line."""

Verdict = Literal["allow", "deny"]

_RULE = re.compile(r"(allow|deny)\s+(.+)", re.S)
_FORM = re.compile(r"([A-Za-z0-9_-]+)(?:\((.*)\))?", re.S)
_GLOBS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_LONGEST = 2_000


class CallRule(Struct, frozen=True):
    """One rule; without a pattern it speaks of every call of the tool."""

    tool: str
    pattern: str | None = None
    verdict: Verdict = "allow"

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    @property
    def line(self) -> str:
        """The rule as it stands in a file."""
        return f"{self.verdict} {self}"


class JudgedCall:
    """What rules look at: a call's tool, its server, its command, and its path relative to the workspace."""

    def __init__(
        self, name: str, arguments: Mapping[str, Any], *, server: str | None = None, path: str | None = None
    ) -> None:
        self.name = name
        self.server = server
        self.path = path
        command = arguments.get("command") if name == BASH else None
        self.command = command if isinstance(command, str) else None

    @cached_property
    def commands(self) -> list[SimpleCommand] | None:
        """The simple commands of the line; None if it is not understood, or is no line."""
        if self.command is None or not (self.command.isascii() or _reads_bytes_as_text()):
            return None
        return read_commands(self.command)


def parse_rule(text: str, verdict: Verdict = "allow") -> CallRule:
    """A rule as a user writes it, with or without `allow` or `deny` before it; raises `MisuseError`."""
    text = text.strip()
    if match := _RULE.fullmatch(text):
        verdict, text = ("allow" if match[1] == "allow" else "deny"), match[2].strip()
    form = _FORM.fullmatch(text)
    if form is None or len(text) > _LONGEST or not text.isprintable() or not is_tool_name(form[1]):
        how = "write bash(git status *), edit_file(src/**) or a tool's name"
        raise MisuseError(f"{text[:80]!r} is no rule; {how}")
    tool, pattern = form[1], form[2]
    if pattern is not None:
        pattern = pattern.strip()
        if tool == BASH:
            pattern = _checked_command(pattern, verdict)
        elif tool == NET:
            parse_pattern(pattern)
        elif not pattern:
            how = f"write {tool} to mean every call"
            raise MisuseError(f"{text!r}: nothing stands between the parentheses; {how}")
    elif tool in (MCP, NET):
        needed = "the name of a server: mcp(github)" if tool == MCP else "a host: net(pypi.org)"
        raise MisuseError(f"{tool} needs {needed}")
    return CallRule(tool, pattern, verdict)


def is_writable(rule: CallRule) -> bool:
    """Whether a rule, written in one line and perhaps among others, is read as the same one."""
    try:
        return SEPARATOR not in rule.line and parse_rule(rule.line) == rule
    except MisuseError:
        return False


def allowed_by(rules: Sequence[CallRule], call: JudgedCall) -> tuple[CallRule, ...]:
    """The rules that together allow a call; none if it is not allowed."""
    rules = [rule for rule in rules if rule.verdict == "allow"]
    whole = next((rule for rule in rules if _speaks_of_all(rule, call) or _matches_path(rule, call)), None)
    if whole is not None:
        return (whole,)
    patterns = [rule for rule in rules if rule.tool == BASH and rule.pattern is not None]
    if call.commands is None or not patterns:
        return ()
    used: dict[CallRule, None] = {}
    for command in call.commands:
        rule = next((rule for rule in patterns if _covers(rule, command)), None)
        if rule is not None:
            used[rule] = None
        elif not is_move(command):
            return ()
    return tuple(used)


def denied_by(rules: Iterable[CallRule], call: JudgedCall) -> CallRule | None:
    """The first rule that denies a call."""
    for rule in rules:
        denied = _denied(rule, call)
        runs = denied is not None and denied.is_in(call.command or "", call.commands)
        if rule.verdict == "deny" and (runs or _speaks_of_all(rule, call) or _matches_path(rule, call)):
            return rule
    return None


def doubt_about(rules: Iterable[CallRule], call: JudgedCall) -> str | None:
    """Why a call that no rule denies may still run what one denies; None if it certainly does not."""
    for rule in rules:
        denied = _denied(rule, call)
        if denied is not None and (why := denied.why_unsure(call.commands)) is not None:
            return f"a rule denies {rule}, and this may run it: {why}"
    return None


def is_exact(rule: CallRule) -> bool:
    """Whether a rule names one whole command."""
    return rule.tool == BASH and rule.pattern is not None and not _read_pattern(rule.pattern)[1]


def _checked_command(pattern: str, verdict: Verdict) -> str:
    words, is_open = _read_pattern(pattern)
    if not words:
        raise MisuseError(
            f"bash({pattern}): write the beginning of one command, e.g. bash(git status *); "
            "* stands at the end, after a blank, and the rest is plain words"
        )
    if verdict == "allow" and is_open and runs_others(words[0]) and len(words) < 3:
        raise MisuseError(
            f"bash({pattern}) would allow anything, since {words[0]} runs what it is given; "
            "name the whole command, or write bash to allow every command"
        )
    return " ".join([quote(words), *(["*"] if is_open else [])])


@lru_cache(500)
def _read_pattern(pattern: str) -> tuple[list[str], bool]:
    """The words of a pattern, and whether others may follow; no words if it is no pattern."""
    is_open = pattern.endswith(" *")
    commands = read_commands(pattern.removesuffix(" *")) or []
    if len(commands) != 1 or commands[0].inputs or any(map(is_uncertain, commands[0].words)):
        return [], is_open
    return [word.text for word in commands[0].words], is_open


def _speaks_of_all(rule: CallRule, call: JudgedCall) -> bool:
    if rule.tool == MCP:
        return call.server is not None and rule.pattern == call.server
    return rule.tool == call.name and rule.pattern is None


def _matches_path(rule: CallRule, call: JudgedCall) -> bool:
    if rule.tool != call.name or call.name == BASH or rule.pattern is None or call.path is None:
        return False
    pattern, path = rule.pattern, call.path
    if rule.verdict == "deny":  # on many systems other letters name the same file
        pattern, path = _fold(pattern), _fold(path)
    return _glob(pattern).fullmatch(path) is not None


def _fold(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _covers(rule: CallRule, command: SimpleCommand) -> bool:
    """Whether a command begins with the words of a rule, and what follows adds no option that does more.

    A file that a wildcard finds could be one. Of a command with declared options, the others are such.
    """
    assert rule.pattern is not None
    words, is_open = _read_pattern(rule.pattern)
    fixed, rest = command.words[: len(words)], command.words[len(words) :]
    if command.inputs or not words or list(fixed) != [Word(word) for word in words]:
        return False
    if not rest:
        return True
    if not is_open or not all(map(_is_argument, rest)):
        return False
    added = [word.text for word in rest]
    declared = find_declared([*words, *added])
    return declared is None or len(declared.words) > len(words) or declared.takes(added)


def _is_argument(word: Word) -> bool:
    return not word.varies and (not word.wild or (word.wild[0] > 0 and word.text[0] not in "-+"))


def _denied(rule: CallRule, call: JudgedCall) -> Denied | None:
    """The command that a rule denies, if the call is one of bash."""
    if rule.verdict != "deny" or rule.pattern is None or rule.tool != BASH or call.command is None:
        return None
    words, is_open = _read_pattern(rule.pattern)
    return Denied(tuple(words), is_open)


@lru_cache(500)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stay within a name, `**` crosses directories."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
    return re.compile("".join([_GLOBS.get(piece) or re.escape(piece) for piece in pieces]), re.S)


def _reads_bytes_as_text() -> bool:
    """Whether the locale leaves no doubt about characters beyond ASCII."""
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "C")
    return locale in ("C", "POSIX") or "utf" in locale.lower()
