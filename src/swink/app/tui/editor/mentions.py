"""Mentions: `@path` in a prompt, and which files of a directory such a path may mean."""

import heapq
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from swink.app.tui.editor.fuzzy import Rank, positions, subsequence
from swink.errors import AgentError
from swink.system.threads import in_thread
from swink.tools.coding.credentials import suspect
from swink.tools.coding.walk import walk
from swink.tools.coding.workspace import Workspace

MOST = 200_000
"""Files and directories of an index."""
SECONDS = 20.0
"""How long a directory is read; what is known by then is the index."""
FRESH = 5.0
"""Seconds for which an index is used as it is; then it is used and read anew."""
_PIECE = 2_000  # paths that are searched in one go: others run between two pieces

_MENTION = re.compile(r"""(?<![^\s(\[{<"'`])@(?:"([^"\n]+)"|([^\s"'`<>]+))""")
_TYPING = re.compile(r"""(?:^|[\s(\[{<"'`])(@(?:"([^"\n]*)|([^\s"'`<>]*)))$""")
_AFTER_A_PATH = ".,;:!?)]}>"


def mentioned(text: str) -> Iterator[str]:
    """The paths that a text mentions, each as it may be meant: the punctuation after it left out last."""
    for found in _MENTION.finditer(text):
        yield found[1] or found[2]


def readings(path: str) -> Iterator[str]:
    """A mentioned path, then without the punctuation that may only follow it, sign by sign."""
    yield path
    while path and path[-1] in _AFTER_A_PATH:
        path = path[:-1]
        if path:
            yield path


def being_typed(line: str) -> tuple[int, str] | None:
    """The mention that ends where a line ends: the column of its `@`, and the path so far."""
    found = _TYPING.search(line)
    return None if found is None else (found.start(1), found[2] if found[2] is not None else found[3])


def spell(path: str) -> str:
    """A path as a mention."""
    return f'@"{path}"' if re.search(r"""[\s"'`<>]""", path) else f"@{path}"


class PathIndex:
    """The files and directories below a root, without what git ignores; directories end in a slash."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read_at = float("-inf")
        self._pieces: list[str] = []
        self._count = 0
        self._wanted = ""

    def __len__(self) -> int:
        return self._count

    @property
    def is_stale(self) -> bool:
        """Whether it is time to read the directory."""
        return time.monotonic() - self._read_at > FRESH

    async def refresh(self) -> None:
        self._read_at = time.monotonic()
        paths = await in_thread(list_paths, self._root)
        self._count = len(paths)
        self._pieces = ["\n".join(paths[at : at + _PIECE]) for at in range(0, len(paths), _PIECE)]
        self._read_at = time.monotonic()

    async def find(self, query: str, limit: int = 50) -> list[str]:
        """The paths that match best; nothing if something else is looked for meanwhile."""
        self._wanted = query
        return await in_thread(find_paths, self._pieces, query, limit, lambda: self._wanted == query)


def list_paths(root: Path) -> list[str]:
    """Every path below a root that may be mentioned; at most `MOST`, and what `SECONDS` suffice for."""
    end = time.monotonic() + SECONDS
    found: list[str] = []
    try:
        for entry in walk(Workspace(root)):
            if "\n" in entry.path or suspect(entry.path) == "sure":
                continue
            found.append(entry.path + "/" if entry.is_directory else entry.path)
            if len(found) >= MOST or time.monotonic() > end:
                break
    except (AgentError, OSError):
        pass  # what was found so far is better than nothing
    return found


def find_paths(
    pieces: list[str], query: str, limit: int, is_wanted: Callable[[], bool] = lambda: True
) -> list[str]:
    """The paths that match best: by their names first, the shorter the better."""
    query = query.removeprefix("./")
    if not query:
        top = (path for piece in pieces for path in piece.split("\n") if "/" not in path[:-1])
        return heapq.nsmallest(limit, top, key=lambda path: (not path.endswith("/"), path))
    folded = query.casefold()
    pattern = subsequence(folded)
    found: list[tuple[Rank, str]] = []
    for piece in pieces:
        if not is_wanted():
            return []
        lower = piece.lower()
        same = len(lower) == len(piece)  # for a few characters the lower case is longer
        hits = pattern.finditer(lower)
        paths = [piece[hit.start() : hit.end()] for hit in hits] if same else piece.split("\n")
        ranked = [(how, path) for path in paths if (how := _rank(folded, path)) is not None]
        found = heapq.nsmallest(limit, [*found, *ranked])
    return [path for _, path in found]


def _rank(query: str, path: str) -> Rank | None:
    lower = path.lower()
    body = lower.rstrip("/")
    name = body[body.rfind("/") + 1 :]
    if "/" in query:
        if lower.startswith(query):
            return 0, lower.count("/", len(query), len(lower) - 1), len(path)
    elif name.startswith(query):
        return (0 if len(name) == len(query) else 1), path.endswith("/"), len(path)
    elif query in name:
        return 2, name.find(query), len(path)
    if query in lower:
        return 3, 0, len(path)
    if (spots := positions(query, name)) is not None:
        return 4, spots[-1] - spots[0], len(path)
    spots = positions(query, lower)
    return None if spots is None else (5, spots[-1] - spots[0], len(path))
