"""Cautions: what a person has to know of a command before it runs, and why no mode or wide rule decides it.

    not sandboxed    no sandbox works on this machine, so the command has the person's own rights

A call with a caution is put to the person unless they always allow it in this session, a saved rule names the
whole of its command, or the mode asks for none.
"""

from collections.abc import Callable

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.rules import BASH

NOT_SANDBOXED = "not sandboxed"


class Cautions:
    """Says what has to be known of a call; empty for most."""

    def __init__(self, trouble: Callable[[], str], scripts: Callable[[], frozenset[str]]) -> None:
        self._trouble = trouble
        """Why no sandbox works here; empty if one does."""
        self._scripts = scripts

    def __call__(self, request: ApprovalRequest) -> str:
        if request.name != BASH and request.name not in self._scripts():
            return ""
        return describe_rights(trouble) if (trouble := self._trouble()) else ""


def describe_rights(trouble: str) -> str:
    """What the question about a command says where there is no sandbox."""
    rights = "it can read and change all your files, and use the network and your keys"
    return f"{NOT_SANDBOXED}: {rights} ({trouble})"


def describe_machine(trouble: str, *, is_trusted: bool) -> str:
    """What is said once, at the start, where there is no sandbox."""
    if is_trusted:
        return f"commands are {NOT_SANDBOXED} on this machine, so every one of them asks ({trouble})"
    return (
        f"commands cannot be sandboxed on this machine ({trouble}), and they run without a sandbox only in a "
        "folder that you trust: /trust, or swink in that folder on a terminal, asks about it"
    )
