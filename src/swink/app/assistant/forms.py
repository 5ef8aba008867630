"""Forms: questions with choices and free text, which the agent (ask_user) or an MCP server puts to a person.

An interface gives a `FillIn`; it shows the items of a form and may keep the answers so far in a `Filling`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from swink.messages import Text
from swink.tools import Tool, ToolError, ToolResult, tool

ASK_USER = "ask_user"
NOBODY = "nobody is there to answer: decide for yourself, and say what you assumed"
CANCELLED = "the user did not want to answer; go on without it, or stop and say what you need"


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """One question to the user."""

    question: Annotated[str, Meta(min_length=1, max_length=2_000, description="The question, in a sentence.")]
    choices: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...],
        Meta(max_length=9, description="Short answers to choose from; the user may write another one."),
    ] = ()
    several: Annotated[bool, Meta(description="Whether several choices may be taken.")] = False

    def parse_typed(self, answer: str) -> str:
        """The choices that typed numbers stand for, as in 1,3; other words stay as they are."""
        numbers = [part.strip() for part in answer.split(",")]
        if not all(part.isdecimal() and 1 <= int(part) <= len(self.choices) for part in numbers):
            return answer
        if len(numbers) > 1 and not self.several:
            return answer
        return "; ".join(self.choices[int(part) - 1] for part in dict.fromkeys(numbers))


Items = Annotated[
    list[Item], Meta(min_length=1, max_length=10, description="What to ask; all of it is one form.")
]


class Form:
    """Questions that wait for the person; the reply has an answer for each, or is None."""

    def __init__(self, items: Sequence[Item], asker: str = "the agent") -> None:
        self.items = tuple(items)
        self.asker = asker
        self.reply: asyncio.Future[list[str] | None] = asyncio.get_running_loop().create_future()


FillIn = Callable[[Form], Awaitable[list[str] | None]]
"""Puts a form to the person; raises `ToolError` where nobody can be asked."""


def question_tools(fill_in: FillIn | None) -> list[Tool]:
    """ask_user; without anybody to ask it refuses."""

    @tool(name=ASK_USER, read_only=True, sequential=True)
    async def ask_user(questions: Items) -> ToolResult:
        """Ask the user what only they can decide: a preference, a choice between designs, missing facts.

        Do not ask what the files can tell, nor for permission to run a tool.

        Args:
            questions: What to ask.
        """
        if fill_in is None:
            raise ToolError(NOBODY)
        answers = await fill_in(Form(questions))
        if answers is None:
            raise ToolError(CANCELLED)
        pairs = list(zip(questions, answers, strict=True))
        text = "\n".join(f"{item.question}\n→ {answer or '(no answer)'}" for item, answer in pairs)
        details = {"answers": [{"question": item.question, "answer": answer} for item, answer in pairs]}
        return ToolResult((Text(text),), details)

    return [ask_user]


class Filling:
    """A form being filled in: where the person is, and what they have said so far."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.at = 0
        self.marked = 0
        self.answers: list[str | None] = [None] * len(items)
        self.taken: list[set[int]] = [set() for _ in items]

    @property
    def item(self) -> Item | None:
        """The question that is shown; None at the end, where the answers are looked over."""
        return self.items[self.at] if self.at < len(self.items) else None

    @property
    def is_complete(self) -> bool:
        """Whether every question has an answer."""
        return None not in self.answers

    def move(self, step: int) -> None:
        if self.item is not None and self.item.choices:
            self.marked = (self.marked + step) % len(self.item.choices)

    def turn(self, step: int) -> None:
        """To another question; to the end only if every one has an answer and there are several."""
        last = len(self.items) - (0 if self.is_complete and len(self.items) > 1 else 1)
        self.at = max(0, min(self.at + step, last))
        self.marked = 0

    def choose(self, number: int) -> bool:
        """Take a choice, or one more of several; whether the form is ready to be sent."""
        item = self.item
        if item is None or not 0 <= number < len(item.choices):
            return False
        self.marked = number
        if item.several:
            self.taken[self.at] ^= {number}
            return False
        self.taken[self.at] = {number}
        return self.write(item.choices[number])

    def confirm(self) -> bool:
        """Take what is marked, or the several that were taken; whether the form is ready to be sent."""
        item = self.item
        if item is None:
            return self.is_complete
        if item.several and self.taken[self.at]:
            return self.write("; ".join(item.choices[number] for number in sorted(self.taken[self.at])))
        if item.several and item.choices:
            self.taken[self.at] = {self.marked}
            return self.write(item.choices[self.marked])
        return self.choose(self.marked)

    def write(self, answer: str) -> bool:
        """Answer the question in these words; whether the form is ready to be sent."""
        self.answers[self.at] = answer
        if len(self.items) == 1:
            return True
        self.at = self.answers.index(None) if None in self.answers else len(self.items)
        self.marked = 0
        return False
