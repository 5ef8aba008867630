"""The conversation on the screen.

Changes ─→ TranscriptView ─→ Roll (blocks, heights, window) ─→ Painter ─→ strips
"""

from swink.tui.view.actions import ConversationActions
from swink.tui.view.panels import ActiveTools, TodoPanel
from swink.tui.view.transcriptview import TranscriptView

__all__ = ["ActiveTools", "ConversationActions", "TodoPanel", "TranscriptView"]
