"""The terminal interface (extra `tui`)."""

from swink.assistant.keeping import Keeper
from swink.tui.app import SwinkApp
from swink.tui.approval import Questions
from swink.tui.conductor import Conductor
from swink.tui.terminal import run_app

__all__ = ["Conductor", "Questions", "SwinkApp", "start"]


def start(conductor: Conductor, questions: Questions, keeper: Keeper | None = None) -> int:
    """Show a conversation until the user leaves; the exit code."""
    return run_app(SwinkApp(conductor, questions, keeper=keeper))
