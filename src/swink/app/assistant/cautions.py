"""Cautions: what a person has to know of a command before it runs, and why no mode or wide rule decides it.

    not sandboxed    no sandbox works on this machine, so the command has the person's own rights
    git's setup      what the command writes to the repository's configuration, outside the sandbox

A call with a caution is put to the person unless they always allow it in this session, a saved rule names the
whole of its command, or the mode asks for none.
"""

import os
from collections.abc import Callable
from pathlib import Path

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.rules import BASH
from swink.messages.redact import redact_text
from swink.tools.coding.gitcommands import describe_setups

NOT_SANDBOXED = "not sandboxed"


class Cautions:
    """Says what has to be known of a call; empty for most."""

    def __init__(
        self,
        directory: Path,
        trouble: Callable[[], str],
        scripts: Callable[[], frozenset[str]],
        is_trusted: Callable[[], bool],
    ) -> None:
        self._directory = str(directory)
        self._trouble = trouble
        """Why no sandbox works here; empty if one does."""
        self._scripts = scripts
        self._is_trusted = is_trusted

    def __call__(self, request: ApprovalRequest) -> str:
        if request.name != BASH and request.name not in self._scripts():
            return ""
        if trouble := self._trouble():
            return describe_rights(trouble)
        command, directory = request.arguments.get("command"), request.arguments.get("directory")
        if request.name != BASH or not isinstance(command, str) or not self._is_trusted():
            return ""
        here = os.path.join(self._directory, directory) if isinstance(directory, str) else self._directory
        written = describe_setups(command, here, self._directory)
        return f"outside the sandbox, swink itself {redact_text(written)}" if written else ""


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
