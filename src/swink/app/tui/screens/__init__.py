"""Screens that cover the conversation for a while."""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

T = TypeVar("T")


class AnswerScreen(ModalScreen[T]):
    """A screen that is left once: a key pressed twice does not leave the screen below it, too."""

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Leave with a result, unless it is left already."""
        return super().dismiss(result) if self.is_active else AwaitComplete.nothing()
