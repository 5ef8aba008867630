"""Asking a person about tool calls: what is asked, which answers there are, and what counts where none comes.

Permissions → Question → a reply: Once, Always, ByRule or Refuse    the call runs or not
NetworkRules → DomainQuestion → the same, or AlwaysIndex            the host is reached or not
                       → the run ends                               the question is withdrawn
                       → nobody is there                            `ABSENT`: the call is refused

The terminal interface shows the first of the `Questions` that wait, the plain chat reads typed lines; both
take the answers, their keys and the defaults from here. Forms are asked in the same way (`forms`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from swink.agent.policy import Answer, ApprovalRequest, Approved
from swink.app.assistant.forms import Form
from swink.app.assistant.previews import Preview
from swink.app.assistant.rulebook import Scope
from swink.app.assistant.rules import NET, CallRule
from swink.messages.redact.shown import show_arguments
from swink.tools.coding.wishes import Wish


class Once(Struct, frozen=True):
    """Run it this time, with other arguments if given; the note is for the model."""

    arguments: dict[str, Any] | None = None
    note: str = ""
    by: str = "you allowed it"
    """Who or what allowed it, where it was not this person just now."""


class Always(Struct, frozen=True):
    """Run it now and for the rest of the session: the tool, or of bash this very command."""


class AlwaysIndex(Struct, frozen=True):
    """Let commands reach every host of the package index for the rest of the session."""


class ByRule(Struct, frozen=True):
    """Run it and save rules for the calls to come."""

    rules: tuple[CallRule, ...]
    scope: Scope = "project"


class Refuse(Struct, frozen=True):
    """Do not run it; the reason is for the model, and so is who or what refused."""

    reason: str = ""
    by: str = "the user said no"


class Reconsider(Struct, frozen=True):
    """A rule or another mode has decided while the question waited, or a hook wants other arguments."""

    arguments: dict[str, Any] | None = None


Reply = Once | Always | AlwaysIndex | ByRule | Refuse | Reconsider

_YES, _ALWAYS, _NO = Once(), Always(), Refuse()
_TYPED = {"y": _YES, "yes": _YES, "a": _ALWAYS, "always": _ALWAYS, "": _NO, "n": _NO, "no": _NO}
ABSENT = "nobody is there to approve this call"
NOT_UNDERSTOOD = "the user gave no answer that is understood"
UNSHOWN = "the call could not be shown to the user, so nobody could approve it"
"""Who or what refused, where no answer came."""


async def judge_changed(
    judge: Callable[[ApprovalRequest], Awaitable[Answer]], request: ApprovalRequest, arguments: dict[str, Any]
) -> Answer:
    """What is said of a call with other arguments, as of any call: those are what runs then."""
    given = await judge(replace(request, arguments=arguments, shown=show_arguments(arguments)))
    match given:
        case True:
            return Approved(arguments)
        case Approved(None, note):
            return Approved(arguments, note)
        case _:
            return given


class Question(Struct, eq=False):
    """A call that waits for a person, and what it would do."""

    request: ApprovalRequest
    preview: Preview | None = None
    is_destructive: bool = False
    always: str = ""
    """What `Always` covers, in words."""
    suggested: tuple[CallRule, ...] = ()
    """The rules that `ByRule` would save; empty where none is advisable."""
    notice: str = ""
    """Why it is asked again."""
    leads_to: str = ""
    """The file itself, where the path of the call leads to it through a link."""
    title: str = ""
    """What is asked, where it is not whether to run the call."""
    is_once: bool = False
    """Whether only a yes for this once, and a no, answer it: no mode, rule or trust decides it."""
    offers: str = ""
    """What a yes allows, where it is no call that waits; a no then refuses nothing."""
    path: str | None = None
    """The file that the call is about, in the workspace."""
    reply: "asyncio.Future[Reply]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class DomainQuestion(Struct, eq=False):
    """A host that commands want to reach, which waits for a person."""

    wish: Wish
    commands: list[str]
    """As they run, redacted for people; one may come while the question waits."""
    index: tuple[str, ...] = ()
    """The hosts of the package index of this project, if the wish is one of them."""
    reply: "asyncio.Future[Reply]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def rules(self) -> tuple[CallRule, ...]:
        """The rules that `ByRule` would save."""
        others = [host for host in self.index if host != self.wish.host]
        return tuple(CallRule(NET, pattern) for pattern in (self.wish.pattern, *others))


class AnswerOption(Struct, frozen=True):
    """An answer: its letter, the answer in a word, and the whole of what it means."""

    key: str
    word: str
    text: str


def answer_options(question: Question) -> list[AnswerOption]:
    """What a question can be answered with."""
    if question.offers:
        return [
            AnswerOption("y", "yes", f"Yes, {question.offers}"),
            AnswerOption("n", "no", "No: ask each time"),
        ]
    found = [AnswerOption("y", "once", "Yes, this once")]
    refusing = [
        AnswerOption("n", "no", "No"),
        AnswerOption("r", "no, because", "No, and tell the model why"),
    ]
    preview, judging = question.preview, list[AnswerOption]()
    if preview is not None and preview.can_review:
        count = len(preview.diff.hunks) if preview.diff else 0
        judging.append(AnswerOption("d", "review", f"Review the change part by part ({count})"))
    elif preview is not None and preview.diff is not None:
        judging.append(AnswerOption("d", "diff", "The diff, or the arguments themselves"))
    if question.is_once:
        return [*found, *judging, *refusing]
    found.append(AnswerOption("a", "always", f"Always in this session: {question.always}"))
    if question.suggested:
        rules = " and ".join(map(str, question.suggested))
        found.append(AnswerOption("p", "rule", f"Yes, and save a rule: {rules}"))
    return [*found, *judging, AnswerOption("e", "edit", "Edit it before it runs"), *refusing]


def domain_options(question: DomainQuestion) -> list[AnswerOption]:
    """What a question about a host can be answered with."""
    found = [
        AnswerOption("y", "once", f"Yes, for {'this command' if len(question.commands) == 1 else 'these'}")
    ]
    found.append(AnswerOption("a", "session", f"Yes, in this session: {question.wish}"))
    rules = "its hosts" if question.index else str(question.rules[0])
    if question.index:
        found.append(AnswerOption("i", "index", "Yes, in this session: the package index"))
    return [
        *found,
        AnswerOption("p", "rule", f"Yes, and save a rule: {rules}"),
        AnswerOption("n", "no", "No"),
        AnswerOption("r", "no, because", "No, and tell the model why"),
    ]


def domain_reply(question: DomainQuestion, key: str, scope: Scope = "project") -> Reply:
    """The reply that a key means; raises `KeyError` for one that is none."""
    rule = ByRule(question.rules, scope)
    return {"y": _YES, "a": _ALWAYS, "i": AlwaysIndex(), "p": rule, "n": _NO}[key]


def default_key(question: Question) -> str:
    """The letter that Enter stands for at first: no where something may be destroyed, or the sandbox left."""
    return "n" if question.is_destructive or question.is_once else "y"


def parse_reply(typed: str) -> Once | Always | Refuse | None:
    """The reply that a typed line means; an empty one refuses, None is no answer."""
    return _TYPED.get(typed.strip().lower())


class _Asked(Protocol):
    @property
    def reply(self) -> "asyncio.Future[Any]": ...


R = TypeVar("R")
T = TypeVar("T", bound=_Asked)


class PendingAnswers(Generic[T, R]):
    """What waits for a person's answer, in the order it came."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.changed = changed
        self._waiting: list[T] = []

    @property
    def waiting(self) -> tuple[T, ...]:
        """What is not answered yet; the first is the one to show."""
        return tuple(self._waiting)

    async def ask(self, asked: T) -> R:
        """Wait for the answer; a caller that is cancelled withdraws the question."""
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


Questions = PendingAnswers[Question, Reply]
"""Calls that wait for a person."""
Domains = PendingAnswers[DomainQuestion, Reply]
"""Hosts that wait for a person."""
Forms = PendingAnswers[Form, list[str] | None]
"""Forms of the agent, or of an MCP server, that wait for a person."""
