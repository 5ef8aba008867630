"""Store: sessions by their ids, through an async door and a synchronous one: same calls, same guarantees."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from difflib import get_close_matches
from types import NoneType

from msgspec.structs import replace

from swink.errors import InvalidInput, SessionNotFound, SessionUnreadable
from swink.memory.backend import Backend, Check, Hit, Repair, RepairableBackend, SearchQuery, Stored
from swink.memory.families import Branch, family
from swink.memory.heldkeys import text_without_keys
from swink.memory.leases import claimed, claimed_sync
from swink.memory.meta import SessionMeta, check_id, new_meta
from swink.memory.session import Session, SyncSession
from swink.messages import AssistantMessage, CustomMessage, ToolResultMessage
from swink.messages.checks import check_type, check_word
from swink.messages.records import CustomSaved, FilesChanged, Label, MessageSaved, Record, type_of
from swink.system.threads import in_thread, off_loop

_JOURNAL = frozenset({"turn_opened", "call_started", "call_ended", "approval", "run_started", "run_events"})
_ROLES = ("user", "assistant", "tool_result", "custom")


class SyncStore:
    """The synchronous door of a store, for programs without an event loop.

    Args:
        backend: where sessions are kept
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def create(self, title: str = "", *, id: str | None = None, directory: str | None = None) -> SyncSession:
        """A new session; without a `title` it gets its first words. An `id` is made up; a `directory` groups
        it.
        """
        return SyncSession(self.backend, self.begin(title, id=id, directory=directory))

    def open(self, id: str) -> SyncSession:
        """The session `id` as it was saved last."""
        return SyncSession(self.backend, self.read(id))

    def claim(self, id: str, *, seconds: float = 30.0) -> AbstractContextManager[SyncSession]:
        """The session `id`, which no other worker writes to inside the `with` block; `SessionBusy` if one
        does.

        The claim is renewed while the block lasts; that of a worker that died ends after so many seconds.
        """
        return claimed_sync(self.backend, check_id(id), seconds)

    def fork(self, id: str, at: int | None = None) -> SyncSession:
        """A new session that begins with the first `at` messages of the session `id`, or with all of them.

        A place between a tool call and its result is moved to before the call.
        """
        return SyncSession(self.backend, self.split(id, at))

    def load(
        self,
        id: str,
        *,
        last: int | None = None,
        after: float | None = None,
        types: Collection[str] | None = None,
    ) -> list[Record]:
        """The records of the session `id`: of some `types`, with a message later than `after`, the `last` so
        many.
        """
        records = [
            record
            for record in self.read(id).records
            if (types is None or type_of(record) in types) and (after is None or _time_of(record) > after)
        ]
        return records if last is None else records[-last:] if last > 0 else []

    def list(self, *, limit: int | None = None, directory: str | None = None) -> list[SessionMeta]:
        """The sessions, at most `limit`, of one `directory` or all, the last updated first."""
        check_type("limit", limit, (int, NoneType))
        check_type("directory", directory, (str, NoneType))
        return self.backend.metas(limit=limit if limit is None else max(0, limit), directory=directory)

    def search(
        self,
        text: str,
        *,
        limit: int = 20,
        after: float | None = None,
        before: float | None = None,
        session: str | None = None,
        role: str | None = None,
    ) -> "list[Hit]":
        """Messages with all these words, or with "a phrase" in quotes.

        Args:
            text: words that a message must have, or "a phrase" in quotes
            limit: hits at most
            after: not earlier than this, in seconds since 1970
            before: not later than this
            session: the id of the only session to search
            role: who must have spoken: "user", "assistant" or "tool_result"
        """
        check_type("search", text, str)
        check_type("limit", limit, int)
        for name, time in (("after", after), ("before", before)):
            if isinstance(time, bool) or not isinstance(time, int | float | None):
                raise InvalidInput(f"{name} is seconds since 1970 (datetime.timestamp()), not {time!r}")
        if role is not None:
            check_word("role", role, _ROLES)
        if not text.strip():
            raise InvalidInput("there is nothing to search for; give some words")
        if session is not None:
            check_id(session)
        at_most = max(0, limit)
        return self.backend.search(
            SearchQuery(text=text, limit=at_most, after=after, before=before, session=session, role=role)
        )

    def tree(self, id: str | None = None) -> "list[Branch]":
        """The sessions with their forks, or the whole family of the session `id`."""
        return family(self.backend.metas(), None if id is None else check_id(id))

    def check(self, id: str | None = None) -> "list[Check]":
        """What is damaged in the session `id`, or in any, also in those that `list` leaves out."""
        if id is not None:
            check_id(id)
        if isinstance(self.backend, RepairableBackend):
            return self.backend.check(id)
        return [self._checked(each) for each in ([id] if id else [meta.id for meta in self.backend.metas()])]

    def repair(self, id: str) -> Repair:
        """Take what is damaged out of the session `id`; the damaged one is kept beside it."""
        check_id(id)
        if isinstance(self.backend, RepairableBackend):
            return self.backend.repair(id)
        self.read(id)
        return Repair(id, (), None)

    def rename(self, id: str, title: str) -> SessionMeta:
        """Give the session `id` another `title`."""
        check_type("title", title, str)
        return self.backend.rename(check_id(id), text_without_keys(title))

    def delete(self, id: str) -> None:
        """Forget the session `id`; `SessionNotFound` if there is none."""
        self.backend.delete(check_id(id))

    def find(self, part: str) -> str:
        """The id that a part of it stands for, if only one session's id has that part."""
        check_id(part)
        ids = [meta.id for meta in self.backend.metas()]
        found = [part] if part in ids else [id for id in ids if part in id]
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(found[:3])
            raise InvalidInput(f"{part!r} is part of {len(found)} session ids; write more of one: {shown}")
        hint = f"the newest is {ids[0]}" if ids else "there are no sessions yet"
        for near in get_close_matches(part, ids, 1, 0.3):
            hint = f"the nearest is {near}"
        raise SessionNotFound(f"there is no session {part!r}; {hint}")

    def close(self) -> None:
        """Give back what the store holds."""
        self.backend.close()

    def begin(self, title: str = "", *, id: str | None = None, directory: str | None = None) -> Stored:
        """A new session as it is stored: its `title`, `id` and `directory` as in `create`."""
        meta = new_meta(title, id=id, directory=directory)
        return Stored(self.backend.create(replace(meta, title=text_without_keys(title))), ())

    def read(self, id: str) -> Stored:
        """The session `id` as it is stored."""
        return self.backend.read(check_id(id))

    def _checked(self, id: str) -> Check:
        try:
            return Check(id, messages=self.read(id).meta.messages)
        except SessionUnreadable as error:
            return Check(id, error=str(error))

    def split(self, id: str, at: int | None = None) -> Stored:
        """A fork of the session `id` as it is stored, with its first `at` messages."""
        source = self.read(id)
        check_type("at", at, (int, NoneType))
        if at is not None and not 0 <= at <= source.meta.messages:
            raise InvalidInput(f"at={at}: the session has {source.meta.messages} messages")
        records, shared = _first(source.records, at)
        fresh = new_meta(source.meta.title, directory=source.meta.directory)
        meta = replace(fresh, parent=source.meta.id, forked_at=shared)
        return Stored(self.backend.create(meta, records), records)


class Store:
    """Sessions; every call runs off the event loop. `sync` is the same without one.

    Args:
        backend: where sessions are kept
    """

    def __init__(self, backend: Backend) -> None:
        self.sync = SyncStore(backend)
        self._backend = backend

    async def create(
        self, title: str = "", *, id: str | None = None, directory: str | None = None
    ) -> Session:
        """A new session; without a `title` it gets its first words. An `id` is made up; a `directory` groups
        it.
        """
        return Session(self._backend, await in_thread(self.sync.begin, title, id=id, directory=directory))

    async def open(self, id: str) -> Session:
        """The session `id` as it was saved last."""
        return Session(self._backend, await in_thread(self.sync.read, id))

    def claim(self, id: str, *, seconds: float = 30.0) -> AbstractAsyncContextManager[Session]:
        """The session `id`, which no other worker writes to inside the `async with` block; `seconds` as in
        `SyncStore`.
        """
        return claimed(self._backend, check_id(id), seconds)

    async def fork(self, id: str, at: int | None = None) -> Session:
        """A new session that begins with the first `at` messages of the session `id`, as `SyncStore.fork`."""
        return Session(self._backend, await in_thread(self.sync.split, id, at))

    load = off_loop(SyncStore.load)
    list = off_loop(SyncStore.list)
    search = off_loop(SyncStore.search)
    tree = off_loop(SyncStore.tree)
    check = off_loop(SyncStore.check)
    repair = off_loop(SyncStore.repair)
    rename = off_loop(SyncStore.rename)
    delete = off_loop(SyncStore.delete)
    find = off_loop(SyncStore.find)

    async def aclose(self) -> None:
        """Give back what the store holds."""
        await in_thread(self.sync.close)

    async def __aenter__(self) -> "Store":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _time_of(record: Record) -> float:
    return record.message.timestamp if isinstance(record, MessageSaved | CustomSaved) else 0.0


def _first(records: Sequence[Record], at: int | None) -> tuple[Sequence[Record], int]:
    """The records up to the first `at` messages, without a journal; and how many messages those are."""
    messages = [record for record in records if isinstance(record, MessageSaved | CustomSaved)]
    count = len(messages) if at is None else at
    following = (record.message for record in messages[count:] if isinstance(record, MessageSaved))
    if isinstance(next(following, None), ToolResultMessage):
        # The application's own messages may stand between the results of one reply.
        while count and isinstance(messages[count - 1].message, ToolResultMessage | CustomMessage):
            count -= 1
    if 0 < count < len(messages):
        last = messages[count - 1].message
        if isinstance(last, AssistantMessage) and last.tool_calls:
            count -= 1
    kept: list[Record] = []
    left = count
    for record in records:
        if isinstance(record, MessageSaved | CustomSaved):
            if not left:
                break
            left -= 1
        is_open = isinstance(record, FilesChanged) and record.after is None
        if type_of(record) not in _JOURNAL and not is_open:
            kept.append(record)
    kept += [
        record
        for record in records
        if isinstance(record, Label) and record.at <= count and record not in kept
    ]
    return kept, count
