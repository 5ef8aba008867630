"""The terminal interface (extra `tui`)."""

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import UserSettings
from swink.app.tui.app import SwinkApp
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.sessionswitcher import SessionSwitcher
from swink.app.tui.terminal import run_app

__all__ = ["ConversationDriver", "SessionSwitcher", "SwinkApp", "start"]


def start(
    driver: ConversationDriver,
    permissions: Permissions,
    sessions: SessionSwitcher | None = None,
    *,
    workshop: AgentEnvironment | None = None,
    settings: UserSettings | None = None,
) -> int:
    """Show a conversation until the user leaves; the exit code."""
    return run_app(SwinkApp(driver, permissions, sessions=sessions, workshop=workshop, settings=settings))
