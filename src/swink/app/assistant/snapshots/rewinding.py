"""Rewinding: which files undoing some changes would alter, and which of them a person has changed since."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from swink.app.assistant.snapshots.filehashes import FileHashes
from swink.app.assistant.snapshots.scan import DirectoryScan
from swink.app.assistant.snapshots.trees import FileEntry, PathChange
from swink.app.assistant.snapshots.vault import Damaged, Vault
from swink.events.transcript import Diff, diff
from swink.messages.records import FilesChanged

_SAMPLE = 8_000
"""Bytes that are looked at to tell a binary file."""

SINCE = "changed since, not by a tool"
BETWEEN = "changed in between, not by a tool"
INTERRUPTED = "changed while the program was interrupted"
UNSAVED = "its content is in no snapshot"


class FileChange(Struct, frozen=True):
    """What rewinding does to a path: `now` is what is there, `then` what will be.

    With a `conflict` it is left as it is unless a person confirms it; what is not `possible` is always left.
    """

    path: str
    now: FileEntry | None
    then: FileEntry | None
    conflict: str = ""
    possible: bool = True

    @property
    def kind(self) -> str:
        """In a word: what happens to it."""
        if self.then is None:
            return "deleted"
        if self.now is None:
            return "created"
        return "changed" if self.now.content != self.then.content else "mode"


def plan(vault: Vault, root: str, changes: Sequence[FilesChanged]) -> list[FileChange]:
    """What undoing these changes does to the files, in the order of paths; `Damaged` if one is not kept."""
    touched: dict[str, list[tuple[PathChange, bool]]] = {}
    for change in changes:
        if change.after is not None and change.directory == root:
            for found in vault.compare(change.before, change.after):
                touched.setdefault(found.path, []).append((found, change.certain))
    with vault.holding():
        scan = DirectoryScan(root, FileHashes(), vault)
        scan.look(touched)
    present = scan.tree
    planned = [_planned(path, history, present.get(path)) for path, history in sorted(touched.items())]
    return [change for change in planned if change.now != change.then]


def _planned(path: str, history: Sequence[tuple[PathChange, bool]], now: FileEntry | None) -> FileChange:
    steps = [change for change, _ in history]
    then, expected = steps[0].before, steps[-1].after
    if any(entry is not None and entry.kind == "unsaved" for entry in (then, expected, now)):
        return FileChange(path, now, then, UNSAVED, possible=False)
    if now != expected:
        return FileChange(path, now, then, SINCE)
    if any(former.after != later.before for former, later in pairwise(steps)):
        return FileChange(path, now, then, BETWEEN)
    return FileChange(path, now, then, "" if all(certain for _, certain in history) else INTERRUPTED)


def redoable(changes: Sequence[FilesChanged]) -> FilesChanged | None:
    """The last rewind that was not redone, if tools have changed nothing since."""
    redone = 0
    for change in reversed(changes):
        match change.reason:
            case "tools":
                return None
            case "redone":
                redone += 1
            case "rewound" if redone:
                redone -= 1
            case "rewound":
                return change
    return None


def difference(vault: Vault, path: str, before: FileEntry | None, after: FileEntry | None) -> Diff | None:
    """What is different in a text; None for a binary file, a link, a directory, or a mode alone."""
    try:
        old, new = _text(vault, before), _text(vault, after)
    except (Damaged, UnicodeDecodeError, IsADirectoryError):
        return None
    return None if old == new else diff(path, old, new)


def _text(vault: Vault, entry: FileEntry | None) -> str | None:
    if entry is None:
        return None
    if entry.kind != "file":
        raise IsADirectoryError
    data = vault.get(entry.content)
    if b"\0" in data[:_SAMPLE]:
        raise UnicodeDecodeError("utf-8", data[:1], 0, 1, "it is binary")
    return data.decode()
