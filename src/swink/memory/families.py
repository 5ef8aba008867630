"""Families of sessions: which one was forked from which."""

from collections.abc import Iterable

from msgspec import Struct

from swink.errors import SessionNotFound
from swink.memory.meta import SessionMeta


class Branch(Struct, frozen=True):
    """A session and how deep it stands in its family; it follows its parent, or a sibling's branch.

    Args:
        depth: 0 for one that was not forked
        meta: the session
    """

    depth: int
    meta: SessionMeta


def family(metas: Iterable[SessionMeta], id: str | None = None) -> list[Branch]:
    """All sessions in the order of a tree, or the whole family of the session `id`.

    Families stand in the order of the metas, forks in the order in which they were made. One whose parent was
    deleted begins a family.
    """
    known = {meta.id: meta for meta in metas}
    forks: dict[str, list[SessionMeta]] = {}
    for meta in sorted(known.values(), key=lambda meta: meta.created):
        if meta.parent is not None:
            forks.setdefault(meta.parent, []).append(meta)
    if id is not None and id not in known:
        raise SessionNotFound(f"there is no session {id!r}")
    roots = dict.fromkeys([_root(known, each) for each in (known if id is None else [id])])
    branches: list[Branch] = []
    shown: set[str] = set()
    left = [Branch(0, known[root]) for root in reversed(roots)]
    while left:
        branch = left.pop()
        if branch.meta.id not in shown:
            shown.add(branch.meta.id)
            branches.append(branch)
            left += [Branch(branch.depth + 1, fork) for fork in reversed(forks.get(branch.meta.id, []))]
    return branches


def _root(known: dict[str, SessionMeta], id: str) -> str:
    """The oldest ancestor that is still there; an edited file may make a circle."""
    seen: set[str] = set()
    while (parent := known[id].parent) in known and parent not in seen:
        seen.add(id)
        id = parent
    return id
