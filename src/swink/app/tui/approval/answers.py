"""Answers: which a question has, when a key counts as one, and what a person may write instead of a call.

A key counts only if whoever pressed it could have seen the question: not in the first moment after it
appeared, and never while the editor has the focus.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.pending import Once, Question
from swink.messages.redact import MARK
from swink.tools.schema import Shape

GRACE = 0.3
"""Seconds after a question appears in which no key is an answer."""
IDLE = 1.0
"""Seconds without a key in the editor after which a question may take the focus."""
_QUOTED = 2_000


class KeyGuard:
    """When a key counts as an answer, and when a question may take the focus."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown = float("-inf")
        self._typed = float("-inf")

    def hide(self) -> None:
        """A question is about to appear: nobody can have seen it yet."""
        self._shown = float("inf")

    def show(self) -> None:
        """A question is on the screen, or has been given the focus."""
        self._shown = self._clock()

    @property
    def is_shown(self) -> bool:
        return self._shown != float("inf")

    def type(self) -> None:
        """Somebody has typed in the editor."""
        self._typed = self._clock()

    def rest(self) -> None:
        """What was typed has been sent: nobody is in the middle of it."""
        self._typed = float("-inf")

    @property
    def counts(self) -> bool:
        """Whether a key pressed now is an answer."""
        return self._clock() - self._shown >= GRACE

    @property
    def is_idle(self) -> bool:
        """Whether nobody is typing in the editor."""
        return self._clock() - self._typed >= IDLE


class AnswerOption(Struct, frozen=True):
    """An answer: its letter, the answer in a word, and the whole of what it means."""

    key: str
    word: str
    text: str


def choices(question: Question) -> list[AnswerOption]:
    """What a question can be answered with."""
    found = [
        AnswerOption("y", "once", "Yes, this once"),
        AnswerOption("a", "always", f"Always in this session: {question.always}"),
    ]
    if question.suggested:
        rules = " and ".join(map(str, question.suggested))
        found.append(AnswerOption("p", "rule", f"Yes, and save a rule: {rules}"))
    if question.preview is not None and question.preview.can_review:
        count = len(question.preview.diff.hunks) if question.preview.diff else 0
        found.append(AnswerOption("d", "review", f"Review the change part by part ({count})"))
    elif question.preview is not None and question.preview.diff is not None:
        found.append(AnswerOption("d", "diff", "The diff, or the arguments themselves"))
    return [
        *found,
        AnswerOption("e", "edit", "Edit it before it runs"),
        AnswerOption("n", "no", "No"),
        AnswerOption("r", "no, because", "No, and tell the model why"),
    ]


def first_choice(question: Question) -> str:
    """The letter that Enter stands for at first: no where something may be destroyed."""
    return "n" if question.is_destructive else "y"


def editable(request: ApprovalRequest) -> str:
    """What a person edits: the command line, or the arguments as JSON."""
    command = request.shown.get("command")
    if isinstance(command, str):
        return command
    return msgspec.json.format(msgspec.json.encode(request.shown), indent=2).decode()


def edited(request: ApprovalRequest, text: str) -> Once:
    """The call as a person has edited it; raises `ValueError` with what is wrong."""
    shown: dict[str, Any]
    if isinstance(request.shown.get("command"), str):
        shown = {**request.shown, "command": text}
    else:
        try:
            shown = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise ValueError(f"this is no JSON object: {error}") from None
    names = dict(zip(request.shown, request.arguments, strict=True))
    arguments: dict[str, Any] = {}
    for key, value in shown.items():
        # What was shown without its secrets and was left alone runs as it was.
        name = names.get(key, key)
        arguments[name] = request.arguments[name] if value == request.shown.get(key) else value
        if value != request.shown.get(key) and _marks(value) > _marks(request.arguments.get(name)):
            raise ValueError(f"{key}: a part of it is hidden; write the whole of it, or leave it as it was")
    if arguments == request.arguments:
        return Once()
    if problems := _violations(request, arguments):
        raise ValueError("; ".join(problems))
    ran = msgspec.json.encode({key: value for key, value in shown.items() if value != request.shown.get(key)})
    quoted = ran.decode()[:_QUOTED]
    return Once(arguments, f"The user changed this call before it ran. What is different: {quoted}")


def _marks(value: Any) -> int:
    return msgspec.json.encode(value).decode().count(MARK)


def _violations(request: ApprovalRequest, arguments: dict[str, Any]) -> list[str]:
    spec = next((tool for tool in request.context.tools if tool.name == request.name), None)
    return [] if spec is None else Shape(spec.parameters_schema).violations(arguments)
