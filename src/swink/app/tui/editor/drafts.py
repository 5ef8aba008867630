"""Drafts: a prompt that is half typed survives a crash.

One file for each directory and process, so that two programs in one directory do not mix their drafts:

    drafts/1f0c…-4711.json     written shortly after each change, removed when the prompt is sent
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from swink.app.tui.editor.prompthistory import without_secrets
from swink.app.tui.editor.typed import Typed
from swink.system.files import write_whole
from swink.system.threads import Serial, in_thread

LONGEST = 250_000
"""Characters of a draft with its pastes; beyond that a paste is lost in a crash, and the draft says so."""


class Drafts:
    """The draft of this process in a directory."""

    def __init__(self, folder: Path, directory: str) -> None:
        self._folder = folder
        self._place = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
        self._path = folder / f"{self._place}-{os.getpid()}.json"
        self._writer = Serial()
        self._newest: Typed | None = None
        self._written: Typed | None = None

    def save(self, typed: Typed) -> None:
        """Write the draft off the event loop; of many in a row only the newest is written."""
        self._newest = typed
        self._writer.start(self._write)

    async def settled(self) -> None:
        await self._writer.call(lambda: None)

    async def restore(self) -> Typed | None:
        """The newest draft that an ended process left, which is ours now; others wait for the next start."""
        return await in_thread(self._restore)

    def _write(self) -> None:
        typed = self._newest
        if typed is self._written:
            return
        self._written = typed
        with suppress(OSError):  # a draft that cannot be saved is no reason to disturb anybody
            kept = without_secrets(typed.trimmed().cut_to(LONGEST)) if typed else None
            if not kept:
                self._path.unlink(missing_ok=True)
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # It is written at every pause in typing, and need only survive the process.
            write_whole(self._path, msgspec.json.encode(kept), durable=False)

    def _restore(self) -> Typed | None:
        for path in sorted(self._left(), key=_modified, reverse=True):
            found = None
            with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
                found = msgspec.json.decode(path.read_bytes(), type=Typed)
            with suppress(OSError):
                path.unlink()
            if found:
                self.save(found)
                return found
        return None

    def _left(self) -> Iterator[Path]:
        with suppress(OSError):
            for path in self._folder.glob(f"{self._place}-*.json"):
                process = path.stem.rpartition("-")[2]
                if process.isdecimal() and is_left(int(process)):
                    yield path


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def is_left(process: int) -> bool:
    """Whether a process that left a file does not run any more; one of our own number is one before us."""
    if process == os.getpid():
        return True
    try:
        if sys.platform != "win32":  # there it would be ended
            os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False
