"""What is allowed here and why, as entries for people: the mode, the shell, trust of the session, rules,
decisions.
"""

from typing import Literal

from msgspec import Struct

from swink.app.assistant.approvalmodes import MEANINGS
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.rulebook import SCOPES, SavedRule
from swink.app.assistant.skillpermissions import SkillGrant
from swink.app.assistant.toolcalls import SessionTrust

Kind = Literal["problem", "mode", "shell", "trust", "rule", "decision"]


class Allowance(Struct, frozen=True):
    """One line: what it is and a few words on it; rules and trust can be removed."""

    kind: Kind
    text: str
    about: str
    target: SessionTrust | SavedRule | SkillGrant | None = None


def entries(permissions: Permissions, now: float, *, most: int = 50) -> list[Allowance]:
    """Everything that decides about calls, then what was decided last. Reads the file of rules."""
    book = permissions.rules
    found = [Allowance("problem", problem, "") for problem in book.problems]
    found.append(Allowance("mode", permissions.word, MEANINGS[permissions.word]))
    for text, about in [] if permissions.shell is None else permissions.shell.lines():
        found.append(Allowance("shell", text, about))
    for trust in (*permissions.trusted, *permissions.trusted_hosts):
        found.append(Allowance("trust", f"always {trust}", "in this session", trust))
    for grant in [] if permissions.skills is None else permissions.skills.grants:
        rules = ", ".join(map(str, grant.rules))
        found.append(Allowance("trust", f"always {rules}", f"while the skill {grant.skill} is here", grant))
    for saved in book.saved():
        used = f"used {saved.hits}×, {ago(now, saved.last)}" if saved.last is not None else "not used yet"
        found.append(Allowance("rule", saved.rule.line, f"{SCOPES[saved.scope]} · {used}", saved))
    for decision in permissions.decisions[:most]:
        mark = "✓" if decision.allowed else "✗"
        about = f"{decision.why} · {ago(now, decision.at)}"
        found.append(Allowance("decision", f"{mark} {decision.call}", about))
    return found


def remove(permissions: Permissions, entry: Allowance) -> bool:
    """Remove a rule or trust; whether there was something to remove. Writes the file of rules."""
    match entry.target:
        case SessionTrust() as trust:
            permissions.forget(trust)
            return True
        case SkillGrant() as grant if permissions.skills is not None:
            permissions.skills.forget(grant)
            return True
        case SavedRule(rule, scope):
            return permissions.rules.remove(rule, scope)
        case _:
            return False


def ago(now: float, then: float) -> str:
    """How long ago something was, roughly."""
    seconds = max(0, now - then)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
