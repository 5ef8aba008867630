"""Linked trees: directories that are git worktrees, whose repository lies elsewhere and knows them too."""

import os
from pathlib import Path

from msgspec import Struct

_MOST = 4_096


class LinkedTree(Struct, frozen=True):
    """A worktree: the repository (`.git` of the main tree, or a bare one) and its own folder in that."""

    common: Path
    own: Path

    @property
    def main(self) -> Path | None:
        """The main tree; None for a bare repository."""
        return self.common.parent if self.common.name == ".git" else None


def find_linked(directory: Path) -> LinkedTree | None:
    """The worktree that a directory is the root of; None if it is none, or if only it says so. Blocking."""
    try:
        said = _read(directory / ".git")
        if not said.startswith("gitdir:"):
            return None
        own = Path(os.path.realpath(directory / said.removeprefix("gitdir:").strip()))
        common = Path(os.path.realpath(own / _read(own / "commondir").strip()))
        back = os.path.realpath(own / _read(own / "gitdir").strip())
    except (OSError, ValueError):
        return None
    is_known = own.parent == common / "worktrees" and back == os.path.realpath(directory / ".git")
    return LinkedTree(common, own) if is_known else None


def _read(path: Path) -> str:
    if not path.is_file() or path.is_symlink():
        raise OSError("it is not a file")
    with path.open("rb") as file:
        return os.fsdecode(file.read(_MOST))
