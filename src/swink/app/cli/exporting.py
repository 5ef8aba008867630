"""`swink sessions export`: a conversation as a document for other people and programs."""

import argparse
import os
import sys
from pathlib import Path

from swink.app.assistant.keeping import open_store
from swink.app.assistant.sessionfacts import title_line
from swink.app.cli.terminal import say, say_in_passing
from swink.errors import MisuseError
from swink.system.interrupts import raise_interrupts
from swink.system.oneline import strip_controls


def export_command(arguments: argparse.Namespace) -> int:
    """A conversation as a document."""
    from swink.app.assistant.exporting import format_of, write_file
    from swink.memory import export

    store = open_store()
    stored = store.read(store.find(arguments.id))
    if arguments.out is not None and not arguments.force and os.path.lexists(arguments.out):
        raise MisuseError(f"{arguments.out} is there already; --force overwrites it")
    raise_interrupts()

    def progress(done: int, total: int) -> None:
        say_in_passing(f"swink: {done * 100 // total} % written")

    text = export(stored, format_of(arguments.out or "", arguments.format), progress=progress)
    text = strip_controls(text)  # what a tool has read must not steer the terminal it is shown on
    say_in_passing("")
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    write_file(Path(arguments.out), text)
    say(f"{title_line(stored.meta)}: {stored.meta.messages} messages written to {arguments.out}")
    return 0
