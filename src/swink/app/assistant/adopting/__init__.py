"""Coming over: what another program has for its user, and what it becomes here.

find_theirs(program, places)    what there is of theirs, each with what it becomes or why it cannot
write_adopted(finding, places)  one of them, for good; nothing of theirs is changed

claude, codex, opencode         where each program keeps what, and how it is written there
foreignrules, foreignservers    their rules and servers in our terms; never more than they allow
"""

from swink.app.assistant.adopting.adopted import write_adopted
from swink.app.assistant.adopting.claude import find_claude
from swink.app.assistant.adopting.codex import find_codex
from swink.app.assistant.adopting.findings import Adoptable, Places
from swink.app.assistant.adopting.opencode import find_opencode

PROGRAMS = {"claude": find_claude, "codex": find_codex, "opencode": find_opencode}
"""The programs whose users may come over, and what finds what they have."""


def find_theirs(program: str, places: Places) -> list[Adoptable]:
    """All that there is of a program; a broken file of theirs is a finding, too. Blocking."""
    return list(PROGRAMS[program](places))


__all__ = ["PROGRAMS", "Adoptable", "Places", "find_theirs", "write_adopted"]
