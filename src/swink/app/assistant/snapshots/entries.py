"""Entries: what a snapshot says of each path."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """What is at a path.

    `content` is the hash of a file, the target of a link (a character per byte), the hash of a stored
    directory, or of a file whose content is not kept ("unsaved") its size and time.
    """

    kind: Literal["file", "link", "directory", "unsaved"]
    mode: int
    content: str = ""


Tree = Mapping[str, Entry]
"""Everything in a directory, at any depth, by its path from there; directories have no content here."""


class Change(Struct, frozen=True):
    """What happened to a path; None: nothing was there, or is."""

    path: str
    before: Entry | None
    after: Entry | None


class Snapshot(Struct, frozen=True):
    """A directory at one moment; one that is not `complete` has only the files that tools named."""

    id: str
    tree: Tree
    complete: bool = True

    @property
    def unsaved(self) -> int:
        """How many files are there whose content is not kept."""
        return sum(entry.kind == "unsaved" for entry in self.tree.values())
