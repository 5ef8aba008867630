"""Keys: what each does, in tables. The app binds from them, the help and the pages show them."""

import unicodedata
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from string import ascii_letters, digits, punctuation
from types import SimpleNamespace

from msgspec import Struct
from textual.binding import Binding
from textual.keys import KEY_NAME_REPLACEMENTS, Keys


class Key(Struct, frozen=True):
    """Keys, by the name that settings call them, what they do in a few words, and the app's action.

    The action is a command of the table of commands, or else a method of the app, which is called as the key
    is if nothing else is said.
    """

    name: str
    keys: str
    help: str
    action: str = ""

    def binding(self) -> Binding:
        """The binding of the app. It works wherever the focus is, except those that others need first."""
        action = f"obey({self.action!r})" if self.action.startswith("/") else self.action or self.name
        first = self.name != "stop"  # whatever has the focus sees Esc first, and closes what is open there
        return Binding(self.keys, action, self.help, show=False, priority=first, id=self.name)


_MODIFIERS = {"ctrl", "alt", "shift", "super", "hyper", "meta"}
_MARKS = {unicodedata.name(mark).lower().replace("-", "_").replace(" ", "_") for mark in punctuation}
_WRITING = {*ascii_letters, *digits, *punctuation, *_MARKS, *KEY_NAME_REPLACEMENTS.values(), "space"}
_NAMES = {key.value.rpartition("+")[2] for key in Keys}

GROUPS: Mapping[str, tuple[Key, ...]] = {
    "the reply": (
        Key("stop", "escape", "stop the reply, take queued messages back; twice when idle: rewind"),
        Key("interrupt", "ctrl+c", "copy the selection, else stop, else clear the editor; twice: leave"),
        Key("plan", "shift+tab", "plan without changing anything, or carry out", "/plan"),
        Key("next_approval", "f7", "the next approval mode: on, smart, edits, sandboxed", "/approve next"),
        Key("next_thinking", "f4", "the next thinking level"),
        Key("model", "f5", "choose another model", "/model"),
        Key("background", "ctrl+b", "send the running command to the background", "/background"),
        Key("answer", "alt+a", "go to the question that waits"),
    ),
    "the conversation": (
        Key("toggle_fold", "f2", "open or fold the selected tool block"),
        Key("block_before", "shift+left", "select the tool block before", "select_block(-1)"),
        Key("block_after", "shift+right", "select the tool block after", "select_block(1)"),
        Key("toggle_thoughts", "f3", "hide, fold or show what the model thinks"),
        Key("whole", "ctrl+o", "the whole conversation unfolded, with search"),
        Key("page_up", "pageup", "a page up", "scroll_page(-1)"),
        Key("page_down", "pagedown", "a page down", "scroll_page(1)"),
        Key("scroll_to_end", "ctrl+end", "to the end, and follow it"),
        Key("toggle_todo", "ctrl+t", "show or hide the agent's list of tasks"),
        Key("release_mouse", "f6", "leave the mouse to the terminal, or take it back"),
    ),
    "the editor": (Key("edit_outside", "ctrl+g", "go on writing in your own editor"),),
    "the program": (
        Key("help", "f1", "this help; so does ? in an empty editor", "/help"),
        Key("command_palette", "ctrl+p", "everything by name"),
        Key("sessions", "ctrl+s", "choose another conversation", "/sessions"),
        Key("suspend", "ctrl+z", "to the shell; fg comes back"),
        Key("leave", "ctrl+q", "leave"),
    ),
}
KEYS: tuple[Key, ...] = tuple([key for keys in GROUPS.values() for key in keys])


def keymap(chosen: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """A keymap of the user's own, and what is wrong with the rest of what was chosen, by its name."""
    known = [key.name for key in KEYS]
    taken: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for name, keys in chosen.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            wrong[name] = f"[keys] names {name}, which is no key of ours; {hint}"
        elif not all(map(_is_key, keys.split(","))):
            wrong[name] = f"[keys] {name} = {keys!r} is no key that can be bound; write it as in ctrl+x or f9"
        else:
            taken[name] = keys
    return taken, wrong


def _is_key(key: str) -> bool:
    """Whether a terminal may send it, and it is not needed to write."""
    *modifiers, name = key.strip().split("+")
    if not _MODIFIERS.issuperset(modifiers):
        return False
    return bool({"ctrl", "alt"} & set(modifiers)) if name in _WRITING else name in _NAMES


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

SPELLINGS: Mapping[str, str] = {
    "shift+\r": "shift+enter",
    "alt+\r": "alt+enter",
    "ctrl+\r": "ctrl+enter",
    "alt+shift+\r": "alt+enter",
    "newline": "ctrl+j",
}
"""Names that Textual gives to keys of terminals that encode them in xterm's way."""


def teach_keys() -> None:
    """Let Textual know Alt+Enter as most terminals send it; otherwise it takes it for Enter, which sends."""
    sequences = import_module("textual._ansi_sequences").ANSI_SEQUENCES_KEYS
    for sequence in ("\x1b\r", "\x1b\n"):
        sequences[sequence] = (SimpleNamespace(value="alt+enter"),)
