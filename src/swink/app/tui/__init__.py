"""The terminal interface (extra `tui`)."""

from swink.app.assistant.sessionswitcher import SessionSwitcher as SessionSwitcher
from swink.app.tui.app import SwinkApp as SwinkApp
from swink.app.tui.conversationdriver import ConversationDriver as ConversationDriver
from swink.app.tui.terminal import run_app as run_app
