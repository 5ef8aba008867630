"""`swink sessions export`: a conversation as a document for other people and programs."""

import argparse
import os
import sys
from pathlib import Path

from swink.assistant.keeping import open_store
from swink.assistant.oneline import strip_controls
from swink.assistant.sessionfacts import title_line
from swink.cli.terminal import say, say_in_passing
from swink.errors import MisuseError, SessionError
from swink.interrupts import raise_interrupts


def export_command(arguments: argparse.Namespace) -> int:
    """A conversation as a document."""
    from swink.memory import EXPORT_FORMATS, export

    store = open_store()
    stored = store.read(store.find(arguments.id))
    if arguments.out is not None and not arguments.force and os.path.lexists(arguments.out):
        raise MisuseError(f"{arguments.out} is there already; --force overwrites it")
    raise_interrupts()

    def progress(done: int, total: int) -> None:
        say_in_passing(f"swink: {done * 100 // total} % written")

    ending = Path(arguments.out or "").suffix.lower().removeprefix(".")
    text = export(
        stored, arguments.format or (ending if ending in EXPORT_FORMATS else "md"), progress=progress
    )
    text = strip_controls(text)  # what a tool has read must not steer the terminal it is shown on
    say_in_passing("")
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    _write(Path(arguments.out), text)
    say(f"{title_line(stored.meta)}: {stored.meta.messages} messages written to {arguments.out}")
    return 0


def _write(path: Path, text: str) -> None:
    """The file, whole or not at all; it is for its owner alone."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_text(text, "utf-8", newline="\n")
            return
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text.encode("utf-8", "replace"))
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror or error}") from error
