"""Files with shell hooks, and what stands in them.

    [[hooks]] in config.toml     event, command, matcher, timeout; our names of tools, or names = "claude"
    .swink/hooks.json            the published JSON form; our names of tools
    .claude/settings.json        its `hooks`; the other program's names of tools and arguments

What means nothing is said with its place; the rest is run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

if TYPE_CHECKING:
    from swink.policies.hooks.hook import Hook

THEIR_HOOKS = ".claude/settings.json"
OUR_HOOKS = ".swink/hooks.json"
HOOK_FILES = (THEIR_HOOKS, OUR_HOOKS)
SETTINGS = "config.toml"
_FIELDS = {"event", "command", "matcher", "timeout", "names"}
THEIR_NAMES = "claude"
"""What `names` of a hook in config.toml says where it was written for the other program."""


class HookEntry(Struct, frozen=True):
    """A hook as a file has it, not looked at closely yet: what checks it is loaded by those who have any."""

    source: str
    event: str
    command: str
    matcher: str = ""
    timeout: float | None = None
    foreign_names: bool = False

    @property
    def name(self) -> str:
        """The entry in one line, for people and for what trust remembers."""
        tools = f"({self.matcher})" if self.matcher else ""
        return f"{self.event}{tools} runs {self.command}"

    def make(self) -> "Hook":
        """The hook itself; raises `InvalidInput`."""
        from swink.policies.hooks.hook import MOST_SECONDS, TIMEOUT, Hook

        timeout = self.timeout if self.timeout is not None and 0 < self.timeout <= MOST_SECONDS else TIMEOUT
        event = cast("Any", self.event)
        return Hook(event, self.command, self.matcher, timeout, self.foreign_names, self.source)


def read_hook_file(name: str, data: bytes) -> tuple[list[HookEntry], list[str]]:
    """The hooks of a file in the published form, and what in it means nothing."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        return [], [f"{name} is no JSON ({error}), so its hooks are not run"]
    if not isinstance(found, dict):
        return [], [f"{name} holds no JSON object, so its hooks are not run"]
    fields = cast("dict[str, Any]", found)
    events = fields.get("hooks", fields if name == OUR_HOOKS else {})
    if fields.get("disableAllHooks") is True:
        return [], []
    if not isinstance(events, dict):
        return [], [f"{name}: hooks is no JSON object, so its hooks are not run"]
    entries: list[HookEntry] = []
    problems: list[str] = []
    for event, groups in cast("dict[str, Any]", events).items():
        for item in _read_event(name, event, groups):
            if isinstance(item, HookEntry):
                entries.append(item)
            else:
                problems.append(item)
    return entries, problems


def read_own_hooks(tables: Sequence[Mapping[str, Any]]) -> tuple[list[HookEntry], list[str]]:
    """The hooks of config.toml, and what in them means nothing."""
    entries: list[HookEntry] = []
    problems: list[str] = []
    for number, table in enumerate(tables, 1):
        where = f"{SETTINGS}: [[hooks]] number {number}"
        if unknown := sorted({*table} - _FIELDS):
            problems.append(f"{where}: {unknown[0]} means nothing; known: {', '.join(sorted(_FIELDS))}")
        if (names := table.get("names", THEIR_NAMES)) != THEIR_NAMES:
            problems.append(f"{where}: names is {THEIR_NAMES!r} or left out, not {names!r}")
        entry = _read_entry(SETTINGS, str(table.get("event", "")), table.get("matcher"), table)
        if isinstance(entry, HookEntry):
            entries.append(entry)
        else:
            problems.append(f"{where} is not run: {entry}")
    return entries, problems


def make_hooks(entries: Iterable[HookEntry]) -> tuple[list["Hook"], list[str]]:
    """The hooks themselves, and what is wrong with others."""
    from swink.errors import InvalidInput

    hooks: list[Hook] = []
    problems: list[str] = []
    for entry in entries:
        try:
            hooks.append(hook := entry.make())
            if entry.timeout is not None and hook.timeout != entry.timeout:
                told = f"its timeout {entry.timeout} is no number of seconds up to a day"
                problems.append(f"the hook {entry.command!r} has {hook.timeout:g} s: {told}")
        except InvalidInput as error:
            problems.append(f"a hook of {entry.source} is not run: {error}")
    return hooks, problems


def _read_event(name: str, event: str, groups: Any) -> Iterator[HookEntry | str]:
    if not isinstance(groups, list):
        yield f"{name}: {event} holds no list, so it runs nothing"
        return
    for group in cast("list[Any]", groups):
        match group:
            case {"hooks": [*hooks]}:
                for hook in hooks:
                    entry = _read_entry(name, event, cast("dict[str, Any]", group).get("matcher"), hook)
                    yield entry if isinstance(entry, HookEntry) else f"{name}: {event}: {entry}"
            case _:
                yield f"{name}: {event} has an entry without a list of hooks, which is not run"


def _read_entry(source: str, event: str, matcher: Any, hook: Any) -> HookEntry | str:
    match hook:
        case {"type": str() as kind} if kind != "command":
            return f"a hook of the type {kind} is not run; swink runs commands"
        case {"command": str() as command} if command.strip():
            timeout = cast("dict[str, Any]", hook).get("timeout")
            if isinstance(timeout, bool) or not isinstance(timeout, int | float | None):
                return f"the timeout of {command!r} is no number of seconds"
            tools = matcher if isinstance(matcher, str) else ""
            is_foreign = source == THEIR_HOOKS or cast("dict[str, Any]", hook).get("names") == THEIR_NAMES
            return HookEntry(source, event, command, tools, timeout, is_foreign)
        case _:
            return "a hook has no command"
