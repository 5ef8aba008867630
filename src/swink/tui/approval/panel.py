"""The panel that asks about a tool call."""

import asyncio
from collections.abc import Callable

from textual.widgets import Static

from swink.policy import Answer, ApprovalRequest, Rejected


class Question:
    """A call that waits for an answer."""

    def __init__(self, request: ApprovalRequest) -> None:
        self.request = request
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()


class Questions:
    """The approval callback: questions in the order they came, answered one by one."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.changed = changed
        self.word = "smart"
        self.waiting: list[Question] = []

    async def __call__(self, request: ApprovalRequest) -> Answer:
        if not request.requires_approval:
            return True
        question = Question(request)
        self.waiting.append(question)
        self.changed()
        try:
            return await question.answer
        finally:
            self.waiting.remove(question)
            self.changed()


class ApprovalPanel(Static, can_focus=True):
    """Shows the first question; its keys answer it."""

    DEFAULT_CSS = "ApprovalPanel { height: auto; display: none; border: round $warning; padding: 0 1; }"
    BINDINGS = [
        ("y", "answer(True)", "once"),
        ("a", "answer(True)", "always"),
        ("n", "answer(False)", "no"),
    ]

    def __init__(self, questions: Questions) -> None:
        super().__init__("", markup=False)
        self._questions = questions

    def update_questions(self) -> None:
        """Show the first question, or nothing."""
        waiting = self._questions.waiting
        self.display = bool(waiting)
        if waiting:
            request = waiting[0].request
            arguments = "\n".join(f"{key}: {value}" for key, value in request.shown.items())
            self.update(f"{request.name}\n{arguments}\n[y] once  [a] always  [n] no")
            self.focus()

    def action_answer(self, yes: bool) -> None:
        """Answer the first question."""
        if self._questions.waiting:
            question = self._questions.waiting[0]
            if not question.answer.done():
                question.answer.set_result(True if yes else Rejected("the user said no"))
