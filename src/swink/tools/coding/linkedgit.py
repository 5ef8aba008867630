"""The repository of a git worktree, as commands in it need it: commits work, nothing else is opened.

REPO/.git                       to read: configuration, hooks, other branches
    objects                     to read; new ones go to a place of the worktree's (`privateobjects`)
    refs/heads/swink, its log   the branch of the worktree; other branches beside it stay as they are
    worktrees/ID                index and HEAD; where it belongs to stays as it is
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from swink.tools.coding.bubblewrap import add_mounts
from swink.tools.coding.privateobjects import PrivateObjects
from swink.tools.coding.process import Launch

_MOST_BRANCHES = 50
"""Other branches beside that of the worktree that are kept by a mount each."""


class LinkedGit(Struct, frozen=True):
    """A worktree's part of a repository: the repository, the worktree's own folder in it, and its branch."""

    common: Path
    own: Path
    branch: str
    """Such as `swink/NAME`: all in `refs/heads/swink` is of worktrees."""

    def add_to(self, launch: Launch) -> Launch:
        """A launch in bubblewrap whose command may commit on the branch. Blocking."""
        if not (self.own / "HEAD").is_file():
            return launch  # the repository was moved or the worktree dropped: nothing to write in
        mounts = self._objects()
        for option, places in (("--bind", self._opened()), ("--ro-bind", self._kept())):
            for place in places:
                mounts += (option, place, place)
        return replace(add_mounts(launch, mounts), disks=(*launch.disks, str(self.common)))

    def _objects(self) -> list[str]:
        objects = PrivateObjects(self.common, os.path.basename(self.branch))
        if not _is_plain(self.common / "objects"):
            return []
        try:
            objects.prepare()
        except OSError:  # the repository cannot be written: nor can a command commit
            return []
        return objects.mounts

    def _opened(self) -> Iterator[str]:
        group = os.path.dirname(self.branch)
        for place in (f"refs/heads/{group}", f"logs/refs/heads/{group}"):
            with suppress(OSError):  # git removes them when the last branch is packed
                (self.common / place).mkdir(parents=True, exist_ok=True)
        for place in (f"refs/heads/{group}", f"logs/refs/heads/{group}"):
            if _is_plain(self.common / place):
                yield str(self.common / place)
        yield str(self.own)

    def _kept(self) -> Iterator[str]:
        """What is in those places and stays read-only: as a mount it can be neither renamed nor removed."""
        with suppress(OSError):
            (self.own / "config.worktree").touch()  # so that no command makes it
        group = os.path.dirname(self.branch)
        found = [self.own / name for name in ("commondir", "gitdir", "config.worktree", "locked", "modules")]
        for folder in (self.common / "refs/heads" / group, self.common / "logs/refs/heads" / group):
            others = [entry.path for entry in _scan(folder) if entry.name != os.path.basename(self.branch)]
            found += map(Path, others[:_MOST_BRANCHES])
        yield from (str(path) for path in found if path.exists() and not path.is_symlink())


def _is_plain(place: Path) -> bool:
    return place.is_dir() and os.path.realpath(place) == str(place)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.endswith(".lock")]
    except OSError:
        return []
