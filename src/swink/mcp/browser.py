"""A browser for a person: opened only where it has a window of its own."""

import os
import sys


def open_browser(url: str) -> bool:
    """Show a page, blocking; False where there is no browser but in this terminal, or none at all."""
    windowed = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not windowed:
        return False
    import webbrowser  # most people have no servers that ask for one

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
