"""A browser for a person: opened only where it has a window of its own."""

import os
import subprocess
import sys
import threading

from swink.system.programs import NEUTRAL, environment, python_module


def open_browser(url: str) -> bool:
    """Begin to show a page; False where there is no browser but in this terminal, or none at all."""
    windowed = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if windowed:
        # A process of its own: some browsers write to the terminal, others end only with their window.
        threading.Thread(target=_show, args=(url,), name="swink-browser", daemon=True).start()
    return windowed


def _show(url: str) -> None:
    # It looks for browsers on the PATH, which has no place of the workspace here.
    python_module("webbrowser", "-t", url, cwd=NEUTRAL, env=environment()).run(stdout=subprocess.DEVNULL)
