"""Keys: what each does, in one table. The app binds from it, the help and the pages show it."""

from collections.abc import Mapping

from msgspec import Struct
from textual.binding import Binding

from swink.errors import MisuseError


class Key(Struct, frozen=True):
    """An action of the app, the keys that do it, and what it does in a few words."""

    action: str
    keys: str
    help: str
    group: str
    priority: bool = False
    """Whether it works wherever the focus is, before what has the focus sees the key."""


KEYS: tuple[Key, ...] = (
    Key(
        "stop",
        "escape",
        "stop the reply; queued messages come back into the editor; twice when idle: rewind",
        "the reply",
    ),
    Key(
        "interrupt",
        "ctrl+c",
        "copy what is selected, else stop the reply, else clear the editor, else leave (twice)",
        "the reply",
        True,
    ),
    Key("toggle_plan", "shift+tab", "plan without changing anything, or carry out", "the reply", True),
    Key("next_thinking", "f4", "the next thinking level", "the reply", True),
    Key("choose_model", "f5", "choose another model", "the reply", True),
    Key("background", "ctrl+b", "send the running command to the background", "the reply", True),
    Key("toggle_fold", "f2", "open or fold the selected tool block", "the conversation", True),
    Key("select_block(-1)", "shift+left", "select the tool block before", "the conversation"),
    Key("select_block(1)", "shift+right", "select the tool block after", "the conversation"),
    Key("toggle_thoughts", "f3", "hide, fold or show what the model thinks", "the conversation", True),
    Key("whole", "ctrl+o", "the whole conversation unfolded, with search", "the conversation", True),
    Key("scroll_page(-1)", "pageup", "a page up", "the conversation", True),
    Key("scroll_page(1)", "pagedown", "a page down", "the conversation", True),
    Key("scroll_to_end", "ctrl+end", "to the end, and follow it", "the conversation", True),
    Key("release_mouse", "f6", "leave the mouse to the terminal, or take it back", "the conversation", True),
    Key("toggle_todo", "ctrl+t", "show or hide the agent's list of tasks", "the conversation", True),
    Key("answer", "alt+a", "go to the question that waits", "the conversation", True),
    Key("edit_outside", "ctrl+g", "write in your own editor", "the editor", True),
    Key("help", "f1,question_mark", "this help (? in an empty editor)", "the program"),
    Key("command_palette", "ctrl+p", "everything by name", "the program", True),
    Key("sessions", "ctrl+s", "choose another conversation", "the program", True),
    Key("suspend", "ctrl+z", "to the shell; fg comes back", "the program", True),
    Key("leave", "ctrl+q", "leave", "the program", True),
)


def bindings() -> list[Binding]:
    """The bindings of the app; their ids are the actions, which is how settings name them."""
    return [
        Binding(key.keys, key.action, key.help, show=False, priority=key.priority, id=name_of(key))
        for key in KEYS
    ]


def name_of(key: Key) -> str:
    """What settings call an action."""
    name, _, argument = key.action.partition("(")
    return f"{name}_{'back' if argument.startswith('-') else 'on'}" if argument else name


def keymap(chosen: Mapping[str, str]) -> dict[str, str]:
    """A keymap of the user's own; raises `MisuseError` with the names that there are."""
    known = {name_of(key) for key in KEYS}
    if unknown := sorted(set(chosen) - known):
        raise MisuseError(
            f"[keys] names {', '.join(unknown)}, which is no action; there are {', '.join(sorted(known))}"
        )
    return dict(chosen)
