"""The keys of the editor: their names for the help and the pages, and those that Textual does not know."""

from importlib import import_module
from types import MappingProxyType, SimpleNamespace

EDITOR_KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "send; while the agent works: steer it"),
    ("Alt+Enter", "while the agent works: say it when it would stop; when idle: a new line"),
    ("Shift+Enter, Ctrl+J", "a new line; so does \\ at the end of a line"),
    ("↑ ↓", "at the first and last line: earlier prompts; ↑ in an empty editor: the last queued message"),
    ("Ctrl+R", "search earlier prompts, of all directories"),
    ("@", "mention a file: its content goes along"),
    ("/ #", "commands"),
    ("! !!", "run a shell command; after !! the model does not see its output"),
    ("Tab", "take the completion; on a folded paste: open it"),
    ("Ctrl+V", "insert the image in the clipboard (needs wl-paste, xclip or pngpaste)"),
    ("→", "take the grey suggestion"),
    ("Ctrl+A, Ctrl+E, Home, End", "start and end of the line"),
    ("Alt+B, Alt+F, Ctrl+←, Ctrl+→", "a word back and forth"),
    ("Ctrl+K, Ctrl+U, Ctrl+W, Alt+D", "cut to the end, to the start, the word before, the word after"),
    ("Ctrl+Y", "insert what was cut last"),
    ("Ctrl+_, Alt+U", "undo"),
    ("Alt+R", "redo"),
)

SPELLINGS = MappingProxyType(
    {
        "shift+\r": "shift+enter",
        "alt+\r": "alt+enter",
        "ctrl+\r": "ctrl+enter",
        "alt+shift+\r": "alt+enter",
        "newline": "ctrl+j",
    }
)
"""Names that Textual gives to keys of terminals that encode them in xterm's way."""


def teach_keys() -> None:
    """Let Textual know Alt+Enter as most terminals send it; otherwise it takes it for Enter, which sends."""
    sequences = import_module("textual._ansi_sequences").ANSI_SEQUENCES_KEYS
    for sequence in ("\x1b\r", "\x1b\n"):
        sequences[sequence] = (SimpleNamespace(value="alt+enter"),)
