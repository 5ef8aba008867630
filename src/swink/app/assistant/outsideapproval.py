"""Asking the person whether a command that the sandbox made fail may run once outside.

no trust      never offered: the folder's files are nobody's word
a denial      a rule that denies the command or its host, and the mode deny, hold here too
nobody        no, and it is said
otherwise     one question, that no mode, no rule and no "always" answers
"""

from collections.abc import Callable

from swink.agent.policy import ApprovalRequest, PolicyContext
from swink.app.assistant.networkrules import find_denial
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Question, Refuse
from swink.app.assistant.rules import BASH
from swink.messages import ModelSpec, Usage
from swink.messages.redact import redact_text
from swink.messages.redact.shown import show_arguments
from swink.tools.coding.outside import RefusedRun

TITLE = "Run it once outside the sandbox?"
_UNTRUSTED = "the folder is not trusted, so no command leaves the sandbox in it"
_ASKED_BEFORE = "the user was asked about this command before and said no"
_NO_CONTEXT = PolicyContext(0, ModelSpec("", ""), "", (), (), Usage(), None, {})


class OutsideApproval:
    """Asks about one command at a time, and about the same one no second time after a no."""

    def __init__(self, permissions: Permissions, is_trusted: Callable[[], bool]) -> None:
        self._permissions = permissions
        self._is_trusted = is_trusted
        self._refused: set[tuple[str, str]] = set()

    async def __call__(self, run: RefusedRun) -> str | None:
        """None if it may run, else why not."""
        if not self._is_trusted():
            return _UNTRUSTED
        if (run.command, run.directory) in self._refused:
            return _ASKED_BEFORE
        if denial := self._find_denial(run):
            return denial
        why_not = await self._permissions.ask_once(make_question(run))
        if why_not is not None and why_not.startswith(Refuse().by):
            self._refused.add((run.command, run.directory))
        return why_not or self._find_denial(run) or None

    def _find_denial(self, run: RefusedRun) -> str:
        return "" if run.host is None else find_denial(self._permissions, run.host)


def make_question(run: RefusedRun) -> Question:
    """What the person is asked."""
    arguments = {"command": run.command, "directory": run.directory}
    request = ApprovalRequest(run.call_id, BASH, arguments, show_arguments(arguments), True, _NO_CONTEXT)
    inside = f"The sandbox made this command fail: {run.why}." if run.was_tried else f"{run.why}."
    notice = f"{inside} Outside, with your own rights, it may {run.may}. This answer is for this once"
    notice = redact_text(f"{notice}, and the command begins anew." if run.was_tried else f"{notice}.")
    return Question(request, title=TITLE, notice=notice, is_once=True)
