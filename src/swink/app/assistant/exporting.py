"""Exporting a conversation to a file, which is there as a whole or not at all, for its owner alone."""

import os
from collections.abc import Sequence
from pathlib import Path

from swink.errors import MisuseError, SessionError
from swink.memory.backend import Stored
from swink.memory.exports import EXPORT_FORMATS, ExportFormat, export
from swink.memory.session import Session
from swink.messages.records import Record
from swink.system.files import write_whole

Source = Stored | Session | Sequence[Record]


def format_of(path: str | Path, format: str | None = None) -> ExportFormat:
    """The format that is asked for, else the one that the name ends with, else Markdown."""
    ending = Path(path).suffix.lower().removeprefix(".")
    wanted = format or {"htm": "html", "markdown": "md"}.get(ending, ending)
    for known in EXPORT_FORMATS:
        if known == wanted:
            return known
    if format is not None:
        raise MisuseError(f"a conversation is exported as {', '.join(EXPORT_FORMATS)}, not {format!r}")
    return "md"


def export_to(path: str | Path, source: Source, format: str | None = None) -> Path:
    """Write a conversation to a new file; an existing one is refused. Returns where it is."""
    place = Path(path).expanduser()
    text = export(source, format_of(place, format))
    if os.path.lexists(place):
        raise MisuseError(f"{place} is there already; choose another name")
    write_file(place, text)
    return place


def write_file(path: Path, text: str) -> None:
    """The file, whole or not at all."""
    try:
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_text(text, "utf-8", newline="\n")
        else:
            write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror or error}") from error
