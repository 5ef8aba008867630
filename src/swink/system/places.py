r"""Places: the directories of a user for settings, data, caches and state, all absolute.

                  Linux and others       macOS                                Windows
    config_dir    ~/.config/swink        ~/Library/Application Support/swink  %APPDATA%\swink
    data_dir      ~/.local/share/swink   ~/Library/Application Support/swink  %LOCALAPPDATA%\swink
    state_dir     ~/.local/state/swink   ~/Library/Application Support/swink  %LOCALAPPDATA%\swink
    cache_dir     ~/.cache/swink         ~/Library/Caches/swink               %LOCALAPPDATA%\swink\Cache

On every system XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME and XDG_CACHE_HOME come first, and before the
last one SWINK_CACHE_DIR, which names the directory itself.
"""

import os
import sys
from pathlib import Path

from swink.errors import AgentError

_MAC = "Library/Application Support"
_WINDOWS = ("LOCALAPPDATA", "AppData/Local")


class NoHome(AgentError):
    """The user has no home directory, and no variable says where else to keep files."""


def config_dir() -> Path:
    """Where settings, keys and rules are kept."""
    return _place("XDG_CONFIG_HOME", ".config", windows=("APPDATA", ".config"))


def data_dir() -> Path:
    """Where conversations and the user's own list of models are kept."""
    return _place("XDG_DATA_HOME", ".local/share")


def state_dir() -> Path:
    """Where the history and the drafts of the editor are kept."""
    return _place("XDG_STATE_HOME", ".local/state")


def cache_dir() -> Path:
    """Where downloaded models are kept: SWINK_CACHE_DIR, else the platform's place for caches."""
    if chosen := os.environ.get("SWINK_CACHE_DIR"):
        return expand(chosen)
    place = _place("XDG_CACHE_HOME", ".cache", mac="Library/Caches", windows=("LOCALAPPDATA", ".cache"))
    is_shared = sys.platform == "win32" and place == Path(os.environ.get("LOCALAPPDATA", ""), "swink")
    return place / "Cache" if is_shared else place


def home_dir() -> Path:
    """The home of the user: what HOME says or, where that is empty or missing, the password database."""
    try:
        if sys.platform != "win32" and os.environ.get("HOME") == "":
            import pwd

            home = Path(pwd.getpwuid(os.getuid()).pw_dir)
        else:
            home = Path.home()
    except (RuntimeError, KeyError) as error:
        raise NoHome("there is no home directory; set HOME") from error
    return home.absolute()


def expand(path: str) -> Path:
    """A path that a user has written, absolute; `~` is their home."""
    first, *rest = Path(path).parts or ("",)
    if first == "~":
        return home_dir().joinpath(*rest)
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise NoHome(f"{path}: there is no user of that name") from error


def _place(variable: str, usual: str, *, mac: str = _MAC, windows: tuple[str, str] = _WINDOWS) -> Path:
    """What a variable of the environment says, else the directory that is usual on the platform."""
    if chosen := os.environ.get(variable):
        return expand(chosen) / "swink"
    if sys.platform == "win32":
        named, usual = windows
        if chosen := os.environ.get(named):
            return expand(chosen) / "swink"
    elif sys.platform == "darwin":
        usual = mac
    try:
        return home_dir() / usual / "swink"
    except NoHome as error:
        raise NoHome(f"there is no home directory; set HOME or {variable}") from error
