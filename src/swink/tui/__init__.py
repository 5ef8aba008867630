"""The terminal interface (extra `tui`)."""

from swink.tui.app import SwinkApp
from swink.tui.approval import Questions
from swink.tui.conductor import Conductor

__all__ = ["Conductor", "Questions", "SwinkApp", "start"]


def start(conductor: Conductor, questions: Questions) -> int:
    """Show a conversation until the user leaves; the exit code."""
    app = SwinkApp(conductor, questions)
    app.run()
    return app.return_code or 0
