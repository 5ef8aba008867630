"""Permission rules of another program as ours, which never allow more than theirs.

What they deny is taken over wherever it has a meaning here. What they allow is taken over only if it has
exactly that meaning, or less, and if nothing that they ask about or deny, and that cannot be said here, could
be a part of it: it would be allowed otherwise.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.adopting.findings import Adoptable, NewRules, Places
from swink.app.assistant.rulebook import RuleBook, Scope
from swink.app.assistant.rules import BASH, MCP, CallRule, is_writable, parse_rule
from swink.errors import MisuseError

Verdict = Literal["allow", "deny", "ask"]


class ForeignRule(Struct, frozen=True):
    """A rule as another program has it, with what it speaks of in our terms.

    `tools` are those of ours that it is about, even if `why` says why it cannot be had; `pattern` is ours.
    """

    source: Path
    shown: str
    verdict: Verdict
    scope: Scope
    tools: tuple[str, ...]
    pattern: str | None = None
    why: str = ""
    told: str = ""
    server: str = ""
    """The MCP server whose tool it is about."""
    order: int = 0
    """Where of several rules the later one counts, its number."""


def find_rules_of(rules: Sequence[ForeignRule], places: Places) -> Iterator[Adoptable]:
    """What becomes of all rules of a program; they are judged together."""
    read = [translate(rule) for rule in rules]
    lost = [rule for rule, ours in read if rule.verdict != "allow" and (not ours or rule.told)]
    known = set(RuleBook(places.project).rules)
    for rule, ours in read:
        name = f"{rule.verdict} {rule.shown}"
        if not ours:
            yield Adoptable("rule", rule.source, name, "cannot", rule.why or "has no meaning here")
        elif rule.verdict == "allow" and (other := _part_of(rule, lost)):
            why = f"would allow what {other.verdict} {other.shown} does not, which cannot be said here"
            yield Adoptable("rule", rule.source, name, "cannot", why)
        elif rule.verdict == "allow" and rule.scope == "project" and not places.is_trusted:
            yield Adoptable("rule", rule.source, name, "cannot", "the folder is not trusted; see swink trust")
        elif known.issuperset(ours):
            yield Adoptable("rule", rule.source, name, "here", "is here already")
        else:
            lines = ", ".join(each.line for each in ours)
            where = "everywhere" if rule.scope == "user" else "in this project"
            becomes = f"becomes {lines} ({where}){rule.told}"
            yield Adoptable("rule", rule.source, name, "new", becomes, NewRules(ours, rule.scope))


def bash_rule(rule: ForeignRule, pattern: str) -> ForeignRule:
    """A rule for a command line: words, perhaps with ` *` or `:*` at the end for all that may follow."""
    rule = replace(rule, tools=(BASH,))
    if pattern in ("*", ":*", ""):
        return rule
    words = pattern.removesuffix(":*") if pattern.endswith(":*") else pattern.removesuffix(" *")
    is_open = words != pattern
    if not words.strip() or re.search(r"[*?\[\]{}]", words):
        return replace(rule, why="a * stands elsewhere than at the end, after a whole word")
    if is_open and rule.verdict == "deny" and not re.fullmatch(r"[\w.+-]+", words.split()[-1]):
        return replace(rule, why="it may go on in the middle of a word, which no rule here says")
    return replace(rule, pattern=f"{words} *" if is_open else words)


def path_rule(rule: ForeignRule, pattern: str) -> ForeignRule:
    """A rule for files, by a pattern relative to the project."""
    if re.search(r"[\[\]{}!\\]", pattern) or pattern.startswith(("~", "//", "$")) or ".." in pattern:
        return replace(rule, why="a path outside of the project, or a pattern that is none here")
    inside = pattern.removeprefix("./").removeprefix("/")
    if not inside:
        return replace(rule, why="the path is empty")
    return replace(rule, pattern=inside)


def translate(rule: ForeignRule) -> tuple[ForeignRule, tuple[CallRule, ...]]:
    """The rule, and ours that stand for it; none if it cannot be had, with the reason in the rule."""
    if rule.why or not rule.tools:
        return rule, ()
    if rule.verdict == "ask":
        return replace(rule, why="swink asks about what no rule allows; there is no rule to ask"), ()
    try:
        ours = tuple(
            parse_rule(tool if pattern is None else f"{tool}({pattern})", rule.verdict)
            for tool in rule.tools
            for pattern in _patterns(rule, tool)
        )
    except MisuseError as error:
        return replace(rule, why=str(error)), ()
    if not all(map(is_writable, ours)):
        return replace(rule, why="it cannot be written in one line"), ()
    return rule, ours


def _patterns(rule: ForeignRule, tool: str) -> Iterable[str | None]:
    """What is allowed is taken as it is; of a denied path also what is below it, of a bare name any."""
    pattern = rule.pattern
    if pattern is None or tool == BASH or rule.verdict == "allow":
        return [pattern]
    whole = pattern.removesuffix("/")
    whole = whole if "/" in whole else f"**/{whole}"
    return [whole] if whole.endswith("**") else [whole, f"{whole}/**"]


def _part_of(rule: ForeignRule, lost: Iterable[ForeignRule]) -> ForeignRule | None:
    """A rule that restricts something this one would allow; in doubt it does."""
    for other in lost:
        if other.order < rule.order or not _meet(rule, other):
            continue
        if BASH in rule.tools and are_apart(rule, other):
            continue
        return other
    return None


def _meet(rule: ForeignRule, other: ForeignRule) -> bool:
    """Whether two rules speak of a tool in common, as far as can be told."""
    if MCP in (*rule.tools, *other.tools):
        ours, theirs = _servers(rule), _servers(other)
        if ours is None or theirs is None:
            return set() not in (ours, theirs)
        return bool(ours & theirs)
    return not other.tools or bool({*rule.tools} & {*other.tools})


def _servers(rule: ForeignRule) -> set[str] | None:
    """The servers that a rule speaks of; None if that is unknown."""
    named = rule.pattern if MCP in rule.tools else rule.server
    return None if named is None or not rule.tools else {named} - {""}


def are_apart(rule: ForeignRule, other: ForeignRule) -> bool:
    """Whether two rules certainly speak of different commands."""
    if rule.pattern is None or other.pattern is None or re.search(r"[\"'\\$]", rule.pattern + other.pattern):
        return False
    ours, theirs = rule.pattern.removesuffix(" *").split(), other.pattern.removesuffix(" *").split()
    shorter = min(len(ours), len(theirs))
    return ours[:shorter] != theirs[:shorter]
