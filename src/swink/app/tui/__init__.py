"""The terminal interface (extra `tui`)."""

from swink.app.tui.app import SwinkApp
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.sessionswitcher import SessionSwitcher
from swink.app.tui.terminal import run_app

__all__ = ["ConversationDriver", "SessionSwitcher", "SwinkApp", "run_app"]
