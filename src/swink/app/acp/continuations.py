"""Where sessions of editors went on: a rewind makes a fork, and editors know a session by one id for good.

A file for each session that was rewound, named by its id, says under which id it goes on: so several programs
can write at once. Without a place for them, an editor finds the session as it was before the rewind.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from swink.errors import InvalidInput
from swink.memory.meta import SessionMeta, check_id
from swink.system.files import write_whole
from swink.system.places import NoHome, state_dir


def went_on_as(id: str) -> str:
    """The saved session that an editor means by an id; blocking."""
    with suppress(NoHome, OSError, InvalidInput, UnicodeDecodeError):
        return check_id((_folder() / check_id(id)).read_text("utf-8"))
    return id


def note_continuation(id: str, saved: str) -> None:
    """From now on an editor's session is this saved one; blocking."""
    with suppress(NoHome, OSError, InvalidInput):
        path = _folder() / check_id(id)
        if saved == id:
            path.unlink(missing_ok=True)
        else:
            write_whole(path, saved.encode(), durable=False, make_parents=True)


def as_editors_know(metas: Sequence[SessionMeta]) -> list[SessionMeta]:
    """The sessions under the ids of editors: one that was rewound is there once, as it is now; blocking."""
    known = {meta.id: meta for meta in metas}
    origins = {now: id for id in _rewound() if id in known and (now := went_on_as(id)) in known}
    return [
        replace(meta, id=origins.get(meta.id, meta.id))
        for meta in metas
        if meta.id not in origins.values() or meta.id in origins
    ]


def _rewound() -> list[str]:
    with suppress(NoHome, OSError):
        return [path.name for path in _folder().iterdir()]
    return []


def _folder() -> Path:
    return state_dir() / "editor-sessions"
