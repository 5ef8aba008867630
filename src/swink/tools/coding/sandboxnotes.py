"""Notes for a model on what the sandbox kept from a command, and what to do instead."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from swink.system.writable import is_beneath
from swink.tools.coding.homes import explain_home
from swink.tools.coding.mounts import Mounts
from swink.tools.coding.obeyed import INSTEAD
from swink.tools.coding.runtime import REMEDY, list_runtime
from swink.tools.coding.sandboxplan import SandboxPlan

MAX_NAMED = 5
"""Files that one note names."""

_IS_BUSY = re.compile(r"resource busy|EBUSY", re.IGNORECASE)
_IS_READ_ONLY = re.compile(r"read-only file ?system|EROFS", re.IGNORECASE)
_IS_DENIED = re.compile(r"permission denied|EACCES", re.IGNORECASE)
"""What programs say of a file that Landlock refuses; with mounts they say that it is read-only, or busy."""


def explain_refusals(plan: SandboxPlan, backend: str, text: str) -> Iterator[str]:
    """Notes on what a command and its output name and the command could not read or change."""
    if hidden := _list_hidden(plan.mounts, text)[:MAX_NAMED]:
        yield (
            "[hidden, as they may hold credentials; to allow them, "
            f"the program names them: readable={hidden}]"
        )
    is_read_only = _IS_READ_ONLY.search(text)
    if is_read_only or _IS_BUSY.search(text):
        yield from _explain_mounts(plan, text)
    is_refused = is_read_only or (backend == "landlock" and _IS_DENIED.search(text))
    if is_refused and (why := explain_home(Path(plan.mounts.root))):
        yield f"[{why}; to work on a project, start in the directory of that project]"


def _list_hidden(mounts: Mounts, text: str) -> list[str]:
    """The files with credentials that a text names, those in the workspace relative to the root."""
    inside = [path for path in mounts.credentials if is_beneath(path, mounts.root)]
    outside = [path for path in mounts.credentials if not is_beneath(path, mounts.root)]
    return [
        *(name for name in _list_relative(inside, mounts.root) if os.path.basename(name) in text),
        # Of a tool chain by more than the name: every project has a `config.toml`.
        *(path for path in outside if "/".join(path.split("/")[-2:]) in text),
    ]


def _explain_mounts(plan: SandboxPlan, text: str) -> Iterator[str]:
    root = plan.mounts.root
    if own := _find_named(_list_relative(list_runtime(root), root), text):
        yield (
            f"[read-only for commands, because swink itself runs from it: {', '.join(own)}. "
            f"Tell the user the remedy: {REMEDY}]"
        )
    elif obeyed := _find_named(_list_relative(plan.guard.read_only, root), text):
        yield f"[read-only for commands, because other programs obey it: {', '.join(obeyed)}. {INSTEAD}]"


def _list_relative(paths: Sequence[str], root: str) -> list[str]:
    return [os.path.relpath(path, root) for path in paths]


def _find_named(paths: Sequence[str], text: str) -> list[str]:
    """The paths that a text names; else those that keep a directory it names from being moved or removed."""
    found = [one for one in paths if one in text or ("." in (name := os.path.basename(one)) and name in text)]
    if not found and _IS_BUSY.search(text):
        found = [path for path in paths if any(part in text for part in path.split("/")[:-1])]
    return found[:MAX_NAMED]
