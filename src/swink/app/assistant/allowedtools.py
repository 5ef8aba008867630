"""What the `allowed-tools` of a skill mean here: rules, and what of it cannot be had, with the reason.

Bash(git:*) Read        in the names of Claude Code, as published
bash(git log *)         or in ours, as in a file of rules
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from swink.app.assistant.adopting.clauderules import read_claude_rule
from swink.app.assistant.adopting.foreignrules import ForeignRule, translate
from swink.app.assistant.commandlines import word_set
from swink.app.assistant.rules import MCP, NET, CallRule, parse_rule
from swink.errors import MisuseError
from swink.system.shorten import clip_end
from swink.tools.skills import Skill

_WORD = re.compile(r"[^\s,()]+(?:\([^()]*(?:\([^()]*\)[^()]*)*\)?)?|[^\s,]")
"""A name, perhaps with a pattern; blanks and commas stand between them."""
_OURS = word_set(
    f"bash edit_file write_file delete_file read_file list_files find_files search_text fetch_url {MCP} {NET}"
)
_NOT_ASKED_ABOUT = word_set(
    "TodoWrite TodoRead Task Agent Skill WebSearch BashOutput KillShell KillBash AskUserQuestion ExitPlanMode"
)
"""Tools of theirs whose likes need no approval here: there is nothing to allow."""
_MOST = 100
_LONGEST = 80


class AllowedTools(Struct, frozen=True):
    """Rules that allow what a skill asks for, and why the rest of it allows nothing."""

    rules: tuple[CallRule, ...] = ()
    problems: tuple[str, ...] = ()


def read_allowed_tools(skill: Skill) -> AllowedTools:
    """What a skill asks to be allowed; it never means more than what is written."""
    rules: dict[CallRule, None] = {}
    problems: dict[str, None] = {}
    words = _WORD.findall(skill.allowed_tools)
    for word in words[:_MOST]:
        try:
            rules.update(dict.fromkeys(_read(word, skill)))
        except MisuseError as error:
            problems[f"{clip_end(word, _LONGEST)} ({error})"] = None
    if len(words) > _MOST:
        problems[f"the names after the first {_MOST} (they are too many)"] = None
    return AllowedTools(tuple(rules), tuple(problems))


def _read(word: str, skill: Skill) -> Iterator[CallRule]:
    name, _, inside = word.partition("(")
    if name in _NOT_ASKED_ABOUT:
        return
    if not word.isprintable():
        raise MisuseError("it holds characters that cannot be shown")
    if name == NET:
        raise MisuseError("a skill allows no hosts; they are asked about when a command wants one")
    if name in _OURS:
        yield parse_rule(word)
        return
    if name != "Bash" and inside.startswith(("/", "~")):
        raise MisuseError("an absolute path, where paths of the project are meant")
    rule, ours = translate(read_claude_rule(ForeignRule(skill.path, word, "allow", "project", ()), word))
    if not ours:
        raise MisuseError(rule.why or "has no meaning here")
    yield from ours
