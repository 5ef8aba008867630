"""The terminal interface (extra `tui`)."""

from swink.assistant.permissions import Permissions
from swink.assistant.settings import UserSettings
from swink.assistant.workshop import Workshop
from swink.tui.app import SwinkApp
from swink.tui.conductor import Conductor
from swink.tui.conversations import Conversations
from swink.tui.terminal import run_app

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
