"""The approval modes of the coding agent: those of `Agent`, and three that its approval callback carries out:
edits, which it accepts, sandboxed, by which it also accepts commands that the sandbox confines, and deny, by
which it rejects what would ask.
"""

from typing import Literal, cast

from swink.agent.config import ApprovalMode
from swink.errors import MisuseError

ApprovalWord = Literal[ApprovalMode, "edits", "sandboxed", "deny"]
MEANINGS: dict[ApprovalWord, str] = {
    "on": "ask for every call",
    "smart": "ask for tools that require approval",
    "edits": "as smart, but edits of files in the workspace are not asked about",
    "sandboxed": "as edits, but commands in the sandbox are not asked about; the hosts they want are",
    "off": "ask for none",
    "deny": "refuse what would ask",
}
APPROVAL_WORDS: tuple[str, ...] = tuple(MEANINGS)
_OTHERS = {
    "ask": "smart",
    "never": "deny",
    "always": "off",
    "enabled": "on",
    "bypassed": "off",
    "yes": "off",
    "no": "deny",
    "accept-edits": "edits",
}
"""Words of earlier versions and of habit."""


def next_approval(word: ApprovalWord) -> ApprovalWord:
    """The mode that a key goes on to; those that ask nothing at all are taken by name."""
    words: list[ApprovalWord] = ["on", "smart", "edits", "sandboxed"]
    return words[(words.index(word) + 1) % len(words)] if word in words else "smart"


def parse_approval(text: str) -> ApprovalWord:
    """The mode that a user named; raises `MisuseError` that lists the modes and names the right one."""
    word = text.strip().lower()
    if word in APPROVAL_WORDS:
        return cast(ApprovalWord, word)
    meanings = ", ".join(f"{known} ({meaning})" for known, meaning in MEANINGS.items())
    instead = f"{text!r} is now {_OTHERS[word]!r}" if word in _OTHERS else f"{text!r} is not one of them"
    raise MisuseError(f"approvals are {meanings}; {instead}")
