"""The beginning: the first look, and what an empty conversation shows."""

import os

from swink import __version__
from swink.app.assistant.settings import UserSettings
from swink.app.tui.look import LOOKS, Look


def first_look(settings: UserSettings | None) -> Look:
    """The look of the settings; without colours where the user wants none."""
    if os.environ.get("NO_COLOR"):
        return LOOKS["plain"]
    chosen = "auto" if settings is None else settings.theme
    return LOOKS[_fitting() if chosen == "auto" else chosen]


def _fitting() -> str:
    """The look for this terminal, as far as it tells about itself."""
    if "256color" not in os.environ.get("TERM", "") and not os.environ.get("COLORTERM"):
        return "ansi"
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"


def welcome(model: str) -> str:
    """What an empty conversation shows."""
    return f"""swink {__version__}
{model}  /model takes another
{_shortened(os.getcwd())}
? or /help shows keys and commands, @ names a file, ! runs a command, Shift+Tab plans"""


def _shortened(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path
