"""The conversation on the screen.

Changes ─→ TranscriptView ─→ LineWindow (blocks, heights, window) ─→ Painter ─→ strips
"""

from swink.app.tui.view.panels import ActiveTools, TodoPanel
from swink.app.tui.view.transcriptview import TranscriptView

__all__ = ["ActiveTools", "TodoPanel", "TranscriptView"]
