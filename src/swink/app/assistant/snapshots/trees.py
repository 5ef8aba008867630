"""Trees: what a snapshot says of each path in a directory."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class FileEntry(Struct, frozen=True, array_like=True, gc=False):
    """What is at a path; `content` is the hash of a file or of a stored directory, the target of a link
    (a character per byte), or of a file whose content is not kept ("unsaved") its size and time."""

    kind: Literal["file", "link", "directory", "unsaved"]
    mode: int
    content: str = ""

    @property
    def without_content(self) -> "FileEntry":
        """The entry as it stands in a tree: a directory's hash is left out, since its entries are there."""
        return FileEntry("directory", self.mode) if self.kind == "directory" else self


Tree = Mapping[str, FileEntry]
"""Everything in a directory, at any depth, by its path from there; directories have no content here."""


class PathChange(Struct, frozen=True):
    """What happened to a path; None: nothing was there, or is."""

    path: str
    before: FileEntry | None
    after: FileEntry | None


class TreeSnapshot(Struct, frozen=True):
    """A directory at one moment; one that is not `complete` has only the files that tools named."""

    id: str
    tree: Tree
    complete: bool = True

    @property
    def unsaved(self) -> int:
        """How many files are there whose content is not kept."""
        return sum(entry.kind == "unsaved" for entry in self.tree.values())
