"""The prompt that is being written."""

from swink.tui.editor.editor import Editor, Submitted

__all__ = ["Editor", "Submitted"]
