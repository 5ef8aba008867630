"""Where what an editor remembers is kept."""

import os
import sys
from pathlib import Path


def state_dir() -> Path | None:
    """The user's place for state: XDG_STATE_HOME, else the platform's; None for a user without a home."""
    if chosen := os.environ.get("XDG_STATE_HOME"):
        return Path(chosen).expanduser() / "swink"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    match sys.platform:
        case "darwin":
            return home / "Library" / "Application Support" / "swink"
        case "win32":
            return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "swink"
        case _:
            return home / ".local" / "state" / "swink"
