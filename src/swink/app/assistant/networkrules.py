"""Network rules: which hosts the commands of an agent reach, and who is asked about the others.

metadata services, deny rules → network = off, on or a list → this session → saved rules → a question

The first that speaks of a host decides. Several commands that want the same host are one question.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from swink.app.assistant.packageindexes import find_indexes
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import (
    ABSENT,
    Always,
    AlwaysIndex,
    ByRule,
    DomainQuestion,
    Once,
    Reconsider,
    Refuse,
    Reply,
)
from swink.app.assistant.rulebook import RulesNotSaved
from swink.app.assistant.rules import NET, CallRule
from swink.app.assistant.shellsettings import PROJECT_FILE, ShellSettings
from swink.app.assistant.toolcalls import SessionTrust
from swink.messages.redact.shown import show_arguments
from swink.system.places import NoHome
from swink.system.threads import in_thread
from swink.tools.coding.addresses import is_metadata_name
from swink.tools.coding.wishes import Wish, allowed_by, parse_pattern

_DESCRIPTIONS = {
    "ask": "the network is reached by HTTP and HTTPS only; the person is asked about each domain",
    "off": "there is no network",
    "on": "the network is reached by HTTP and HTTPS only",
}


class _Open(Struct, eq=False):
    """A question that waits, and how many commands wait with it."""

    question: DomainQuestion
    task: "asyncio.Task[Reply]"
    waiting: int = 0


class NetworkRules:
    """The `DomainGate` of the coding agent; `tell` says what was refused without a question."""

    def __init__(
        self, permissions: Permissions, shell: ShellSettings, directory: Path, tell: Callable[[str], None]
    ) -> None:
        self._permissions = permissions
        self._shell = shell
        self._directory = directory
        self._tell = tell
        self._open: dict[Wish, _Open] = {}
        permissions.judges_domain = lambda question: self.judge(question.wish) is not None

    def describe(self) -> str:
        """What commands reach, as a model is told."""
        network = self._shell.now.network
        if isinstance(network, tuple):
            return f"of the network only these domains are reached, by HTTP and HTTPS: {', '.join(network)}"
        return _DESCRIPTIONS[network]

    @property
    def has_denials(self) -> bool:
        """Whether rules deny hosts, so that commands need the proxy whatever the settings say."""
        return any(rule.tool == NET and rule.verdict == "deny" for rule in self._permissions.rules.rules)

    async def refuses(self, wish: Wish, command: str) -> str:
        """Empty if a command may reach a host, else the reason, for the model."""
        while True:
            if (why := self.judge(wish)) is not None:
                return self._refuse(wish, why) if why else ""
            match await self._ask(wish, command):
                case Refuse(reason, by) if by == ABSENT:
                    return self._refuse(wish, f"nobody is there to allow it; {_how_to_allow(wish)}")
                case Refuse(reason, by):
                    return f"{by}: {reason}" if reason else by
                case Reconsider():
                    continue
                case _:
                    return ""

    def judge(self, wish: Wish) -> str | None:
        """Empty if a host is allowed, the reason if it is refused; None if the person is to decide."""
        if denial := find_denial(self._permissions, wish):
            return denial
        match self._shell.now.network:
            case "off":
                return f"the network is off ({self._whose()}); {_how_to_allow(wish)}"
            case "on":
                return ""
            case tuple() as domains:
                is_listed = allowed_by(domains, wish)
                return "" if is_listed else f"it is not among the domains of network; {_how_to_allow(wish)}"
            case "ask":
                trusted = [trust.command or "" for trust in self._permissions.trusted_hosts]
                saved = [rule.pattern or "" for rule in _rules(self._permissions, "allow")]
                return "" if allowed_by([*trusted, *saved], wish) else None

    def _whose(self) -> str:
        is_projects = self._shell.now.network != self._shell.chosen.network
        return f"network in {PROJECT_FILE}" if is_projects else 'network = "off" in [sandbox]'

    def _refuse(self, wish: Wish, why: str) -> str:
        self._tell(f"a command was kept from {wish}: {why}")
        return why

    async def _ask(self, wish: Wish, command: str) -> Reply:
        """The person's reply, for every command that waits for it."""
        shown = str(show_arguments({"command": command})["command"])
        index = await in_thread(find_indexes, self._directory)
        one = self._open.get(wish)
        if one is not None and one.question.reply.done():
            await asyncio.wait({one.task})  # this command was not in the question that was answered
            return Reconsider()
        if one is None:
            question = DomainQuestion(wish, [shown], index if wish.host in index else ())
            one = self._open[wish] = _Open(question, asyncio.create_task(self._ask_person(question)))
        else:
            one.question.commands.append(shown)
            self._permissions.domains.changed()
        one.waiting += 1
        try:
            return await asyncio.shield(one.task)
        finally:
            one.waiting -= 1
            if not one.question.reply.done():
                one.question.commands.remove(shown)
                self._permissions.domains.changed()
            if not one.waiting and not one.task.done():
                one.task.cancel()
                self._open.pop(wish, None)

    async def _ask_person(self, question: DomainQuestion) -> Reply:
        try:
            reply = await self._permissions.ask_domain(question)
        finally:
            if (now := self._open.get(question.wish)) is not None and now.question is question:
                del self._open[question.wish]
        match reply:
            case Always():
                self._permissions.trusted_hosts[SessionTrust(NET, question.wish.pattern)] = None
            case AlwaysIndex():
                for rule in question.rules:
                    self._permissions.trusted_hosts[SessionTrust(NET, rule.pattern)] = None
            case ByRule(rules, scope):
                await self._save(rules or question.rules, scope)
            case Once() | Refuse() | Reconsider():
                return reply
        self._permissions.reconsider()
        return reply

    async def _save(self, rules: tuple[CallRule, ...], scope: str) -> None:
        try:
            await in_thread(self._permissions.rules.add, rules, "user" if scope == "user" else "project")
        except (RulesNotSaved, NoHome) as error:
            self._tell(f"{error}; the host is allowed this time")


def find_denial(permissions: Permissions, wish: Wish) -> str:
    """Why nothing reaches a host, in the sandbox or outside; empty if no rule says so."""
    if is_metadata_name(wish.name):
        return "metadata services are never reached"
    denials = (rule for rule in _rules(permissions, "deny") if parse_pattern(rule.pattern or "").denies(wish))
    return next((f"the user's rule: deny {rule}" for rule in denials), "")


def _rules(permissions: Permissions, verdict: str) -> list[CallRule]:
    rules = (rule for rule in permissions.rules.rules if rule.tool == NET and rule.pattern is not None)
    return [rule for rule in rules if rule.verdict == verdict]


def _how_to_allow(wish: Wish) -> str:
    """The settings that would allow a host without a question."""
    return (
        f'to allow it: --network {wish.pattern}, or network = ["{wish.pattern}"] in [sandbox] of config.toml'
    )
