"""The conversation on the screen."""

from swink.tui.view.transcriptview import TranscriptView

__all__ = ["TranscriptView"]
