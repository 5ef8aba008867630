"""Finding a conversation by what it is called or by what was said in it."""

from msgspec import Struct

from swink.memory.meta import SessionMeta
from swink.memory.store import SyncStore

_HITS = 200
"""Messages that are looked at."""


class Found(Struct, frozen=True):
    """A conversation, and where in it the words were found, if not in its title."""

    meta: SessionMeta
    snippet: str = ""


def find_sessions(store: SyncStore, text: str = "", directory: str | None = None) -> list[Found]:
    """Conversations with all these words in the title, then those in which a message has them.

    The last word may be half typed: then it counts for titles alone. It reads from disk.
    """
    metas = store.list(directory=directory)
    words = text.lower().split()
    if not words:
        return [Found(meta) for meta in metas]
    titled = [Found(meta) for meta in metas if all(word in meta.title.lower() for word in words)]
    named = {found.meta.id for found in titled}
    snippets: dict[str, str] = {}
    hits = store.search(text, limit=_HITS)
    if not hits and len(words) > 1:
        hits = store.search(text.rstrip().rpartition(" ")[0], limit=_HITS)
    for hit in hits:
        snippets.setdefault(hit.session, hit.snippet)
    return titled + [
        Found(meta, snippets[meta.id]) for meta in metas if meta.id in snippets and meta.id not in named
    ]
