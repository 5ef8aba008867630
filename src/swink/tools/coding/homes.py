"""What commands may write in a workspace that is a home, or holds one: its visible files and folders.

No list of what programs obey in a home is complete, so all the rest of it is read-only: the home itself, in
which nothing new can be made, everything with a leading dot, tool chains, and what hidden links lead to.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from swink.system.writable import is_beneath
from swink.tools.coding.mounts import Mounts, list_around, list_tool_chains
from swink.tools.coding.secrets import find_homes

MAX_WRITABLE = 200
"""Places of a home that are writable, folders before files; each is a mount."""

_OF_TOOLS = (
    "sbin", "lib", "lib64", "libexec", "share", "include", "miniconda", "mambaforge", "micromamba",
    "anaconda", "node_modules", "perl5", "R", "snap", "Applications", "Library", "Android",
)  # fmt: skip
"""Visible folders that programs are found in, besides the tool chains that commands see."""
_MOVED = (
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "ZDOTDIR", "PYTHONUSERBASE",
    "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOBIN", "NVM_DIR", "PYENV_ROOT",
)  # fmt: skip
"""Variables that name what otherwise is a hidden folder or a tool chain."""
_DEEP = (".config", ".local")  # hidden folders whose folders have links, too


def explain_home(root: Path) -> str:
    """What a model is told about a workspace in which most is read-only; empty if it holds no home."""
    if not (homes := find_homes(root)):
        return ""
    what = "is" if str(root) in homes else "holds"
    return (
        f"the workspace {what} a home directory: of it commands write only in visible folders and files that "
        "exist; the home itself, hidden files and tool chains are read-only"
    )


def list_writable(mounts: Mounts) -> tuple[str, ...]:
    """The root, if it holds no home; otherwise what commands may write in it."""
    if not (homes := find_homes(mounts.root)):
        return (mounts.root,)
    closed = {path for home in homes for path in _list_closed(home)}
    found = sorted(list_around(mounts.root, closed), key=lambda path: (not os.path.isdir(path), path))
    return tuple(found[:MAX_WRITABLE])


def _list_closed(home: str) -> Iterator[str]:
    """The places inside a home that are not for commands, whether they exist or not."""
    hidden = [entry.path for entry in _scan(home) if entry.name.startswith(".")]
    tops = [*hidden, *list_tool_chains(home), *(os.path.join(home, name) for name in _OF_TOOLS)]
    places = [os.environ[name] for name in _MOVED if os.environ.get(name, "").startswith("/")]
    for path in (*tops, *map(os.path.realpath, [*tops, *places]), *_list_linked(tops)):
        if path != home and is_beneath(path, home):
            yield path


def _list_linked(directories: Iterable[str]) -> Iterator[str]:
    """Where the links in these directories lead; a shell that reads `.bashrc` may read `dotfiles/bashrc`."""
    for directory in directories:
        for entry in _scan(directory):
            if entry.is_symlink():
                yield os.path.realpath(entry.path)
            elif os.path.basename(directory) in _DEEP and entry.is_dir():
                yield from _list_linked([entry.path])


def _scan(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []
