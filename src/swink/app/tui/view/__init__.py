"""The conversation on the screen.

Changes ─→ TranscriptView ─→ LineWindow (blocks, heights, window) ─→ Painter ─→ strips
"""

from swink.app.tui.view.panels import ActiveTools as ActiveTools
from swink.app.tui.view.panels import TodoPanel as TodoPanel
from swink.app.tui.view.transcriptview import TranscriptView as TranscriptView
