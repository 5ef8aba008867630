"""The prompt that is being written."""

from swink.app.tui.editor.completer import Commands as Commands
from swink.app.tui.editor.editor import Editor as Editor
from swink.app.tui.editor.offers import CommandWord as CommandWord
from swink.app.tui.editor.pane import EditorPane as EditorPane
from swink.app.tui.editor.pane import QueueList as QueueList
from swink.app.tui.editor.submitted import Submitted as Submitted
from swink.app.tui.editor.submitted import TakeBack as TakeBack
from swink.app.tui.editor.submitted import kind_of as kind_of
from swink.app.tui.editor.typed import Typed as Typed
