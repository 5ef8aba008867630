"""The prompt that is being written."""

from swink.tui.editor.attaching import attached_name, said_text
from swink.tui.editor.completer import Commands
from swink.tui.editor.completion import CommandWord
from swink.tui.editor.editor import Editor
from swink.tui.editor.pane import EditorPane
from swink.tui.editor.places import state_dir
from swink.tui.editor.queuelist import QueueList
from swink.tui.editor.submitted import Submitted, TakeBack, kind_of
from swink.tui.editor.typed import Typed

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
    "state_dir",
]
