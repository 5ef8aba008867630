"""The prompt that is being written."""

from swink.app.tui.editor.attaching import attached_name, said_text
from swink.app.tui.editor.completer import Commands
from swink.app.tui.editor.editor import Editor
from swink.app.tui.editor.offers import CommandWord
from swink.app.tui.editor.pane import EditorPane, QueueList
from swink.app.tui.editor.submitted import Submitted, TakeBack, kind_of
from swink.app.tui.editor.typed import Typed

__all__ = [
    "CommandWord",
    "Commands",
    "Editor",
    "EditorPane",
    "QueueList",
    "Submitted",
    "TakeBack",
    "Typed",
    "attached_name",
    "kind_of",
    "said_text",
]
