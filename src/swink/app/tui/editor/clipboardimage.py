"""An image in the clipboard: terminals paste text alone, so a program of the system is asked for it."""

import hashlib
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from swink.app.tui.editor.attaching import LARGEST_IMAGE
from swink.messages.mediafiles import media_type_of
from swink.system.files import write_whole
from swink.system.programs import NEUTRAL, Command, ProgramChanged, environment, find_program

SECONDS = 5.0
"""How long the program may take."""
DAYS = 7
"""How long an image is kept: as long as its prompt may wait in a draft or a queue."""


def save_clipboard_image(folder: Path) -> str | None:
    """The path of a file with the image of the clipboard; None if there is none, or no program to ask."""
    programs = (
        (os.environ.get("WAYLAND_DISPLAY"), ("wl-paste", "--no-newline", "--type", "image/png")),
        (os.environ.get("DISPLAY"), ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
        (sys.platform == "darwin", ("pngpaste", "-")),
    )
    for is_here, command in programs:
        data = _ask(command) if is_here else b""
        if media_type_of(data[:16]) is not None and len(data) <= LARGEST_IMAGE:
            return _save(folder, data)
    return None


def _ask(command: tuple[str, ...]) -> bytes:
    """What the program writes; nothing if it is not there or fails."""
    try:
        program = find_program(command[0])
        if program is None:
            return b""
        done = Command((program, *command[1:]), NEUTRAL, environment()).run(timeout=SECONDS)
    except (OSError, subprocess.SubprocessError, ProgramChanged):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _save(folder: Path, data: bytes) -> str | None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(folder)
        path = folder / f"clipboard-{hashlib.sha256(data).hexdigest()[:8]}.png"
        write_whole(path, data, durable=False)
    except OSError:
        return None
    return str(path)


def _remove_old(folder: Path) -> None:
    for path in folder.glob("clipboard-*.png"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > DAYS * 86_400:
                path.unlink()
