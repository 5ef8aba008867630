"""Workplaces: in which directories an agent gets file tools and a shell, and why not in others.

the home directory itself     no, unless the person says yes: everything they ever made is there
the root of the disk          no
no permission to write        no
any other                     yes, an empty one too: it is where projects begin
"""

import os
from pathlib import Path

from swink.app.assistant.prompts import find_git

_REMEDY = "swink -C DIR works in another directory"
_HOME = (
    f"to have them here, /permissions home on for this session, or home = true in [sandbox] of config.toml; "
    f"{_REMEDY}"
)


def why_no_tools(directory: Path, *, in_home: bool = False) -> str | None:
    """Why an agent has no file tools and no shell in a real path, and what to do; None if it has them.

    `in_home` says that the person wants them in the home directory itself.
    """
    if directory == Path(directory.anchor):
        return f"no file tools and no shell: {directory} is the whole disk; {_REMEDY}"
    if is_home(directory) and not in_home:
        return f"no file tools and no shell: {directory} is your home directory; {_HOME}"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"no file tools and no shell: you may not write in {directory}; {_REMEDY}"
    return None


def is_home(directory: Path) -> bool:
    """Whether a real path is the user's home directory itself."""
    return directory == Path(os.path.realpath(os.path.expanduser("~")))


def has_work(directory: Path) -> bool:
    """Whether something is there already: a git repository, or any file that is not hidden."""
    if find_git(directory) is not None:
        return True
    try:
        with os.scandir(directory) as entries:
            return any(not entry.name.startswith(".") for entry in entries)
    except OSError:
        return False
