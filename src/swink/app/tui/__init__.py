"""The terminal interface (extra `tui`)."""

from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.workshop import Workshop
from swink.app.tui.app import SwinkApp
from swink.app.tui.conductor import Conductor
from swink.app.tui.conversations import Conversations
from swink.app.tui.terminal import run_app

__all__ = ["Conductor", "Conversations", "SwinkApp", "start"]


def start(
    conductor: Conductor,
    permissions: Permissions,
    conversations: Conversations | None = None,
    *,
    workshop: Workshop | None = None,
    settings: UserSettings | None = None,
) -> int:
    """Show a conversation until the user leaves; the exit code."""
    return run_app(
        SwinkApp(conductor, permissions, conversations=conversations, workshop=workshop, settings=settings)
    )
