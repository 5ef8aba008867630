"""Questions about tool calls: a list that a person answers one by one.

Permissions.ask → Question joins `waiting` → somebody calls `answer` → the call runs or not
                                           → the run ends: the question is withdrawn
"""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.previews import Preview
from swink.app.assistant.questions import Form
from swink.app.assistant.rulebook import Scope
from swink.app.assistant.rules import Rule


class Once(Struct, frozen=True):
    """Run it this time, with other arguments if given; the note is for the model."""

    arguments: dict[str, Any] | None = None
    note: str = ""


class Always(Struct, frozen=True):
    """Run it now and for the rest of the session: the tool, or of bash this very command."""


class ByRule(Struct, frozen=True):
    """Run it and save rules for the calls to come."""

    rules: tuple[Rule, ...]
    scope: Scope = "project"


class Refuse(Struct, frozen=True):
    """Do not run it; the reason is for the model, and so is who or what refused."""

    reason: str = ""
    by: str = "the user said no"


class Reconsider(Struct, frozen=True):
    """Something else has decided meanwhile: a rule, or another mode."""


Reply = Once | Always | ByRule | Refuse | Reconsider


class Question:
    """A call that waits for a person, and what it would do."""

    def __init__(
        self,
        request: ApprovalRequest,
        *,
        preview: Preview | None = None,
        is_destructive: bool = False,
        always: str = "",
        suggested: tuple[Rule, ...] = (),
        notice: str = "",
        leads_to: str = "",
    ) -> None:
        self.request = request
        self.preview = preview
        self.is_destructive = is_destructive
        self.always = always
        """What `Always` covers, in words."""
        self.suggested = suggested
        """The rules that `ByRule` would save; empty where none is advisable."""
        self.notice = notice
        """Why it is asked again."""
        self.leads_to = leads_to
        """The file itself, where the path of the call leads to it through a link."""
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()


R = TypeVar("R")


class Asked(Protocol):
    """Something with a reply to come."""

    @property
    def reply(self) -> "asyncio.Future[Any]": ...


T = TypeVar("T", bound=Asked)


class Waiting(Generic[T, R]):
    """What waits for a person's answer, in the order it came."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.changed = changed
        self._waiting: list[T] = []

    @property
    def waiting(self) -> tuple[T, ...]:
        """What nobody has answered; the first is the one to show."""
        return tuple(self._waiting)

    async def ask(self, asked: T) -> R:
        """Wait for the answer; if whoever asks is cancelled, the question is withdrawn."""
        self._waiting.append(asked)
        self.changed()
        try:
            return await asked.reply
        finally:
            self._remove(asked)

    def answer(self, asked: T, reply: R) -> bool:
        """Answer once; False if it has been answered or withdrawn."""
        if asked not in self._waiting or asked.reply.done():
            return False
        asked.reply.set_result(reply)
        self._remove(asked)
        return True

    def _remove(self, asked: T) -> None:
        if asked in self._waiting:
            self._waiting.remove(asked)
            self.changed()


Questions = Waiting[Question, Reply]
"""Calls that wait for a person."""
Forms = Waiting[Form, list[str] | None]
"""Questions of the agent that wait for a person."""
