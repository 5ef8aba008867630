"""A saved conversation: its session, whose failures never end a chat.

nothing said yet             nothing is written; what was chosen meanwhile waits for the first words
the first prompt             written before a model is asked
continued elsewhere          a fork takes over, except in the middle of a turn that both took up
it cannot be written         said once; what is missing is written as soon as that works again
"""

import threading
from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from swink.app.assistant.sessionfacts import short_ids, working_directory
from swink.app.assistant.titles import command_title
from swink.errors import SessionConflict, SessionError, SessionNotFound
from swink.memory.backend import Backend, Stored
from swink.memory.meta import SessionMeta, grown, new_meta
from swink.memory.session import Session
from swink.memory.store import SyncStore
from swink.messages.records import (
    CallStarted,
    CustomSaved,
    FilesChanged,
    MessageSaved,
    QueueChange,
    Record,
)


def open_store() -> SyncStore:
    """Where the sessions of the command line are."""
    from swink.memory.jsonl import JsonlStore, sessions_dir

    return JsonlStore(sessions_dir()).sync


class SavedConversation:
    """The storage of one conversation; gives `session` to an agent.

    It refuses an append only if another process may be running the tool that it would start: the call waits.
    """

    def __init__(
        self, store: SyncStore, stored: Stored | None = None, *, directory: str | None = None
    ) -> None:
        self._store = store
        self._directory = directory or working_directory()
        self._backend: Backend = store.backend
        self._is_stored = self.is_resumed = stored is not None
        stored = stored or Stored(new_meta(directory=self._directory), ())
        self._known: list[Record] = list(stored.records)
        self._waiting: list[Record] = []
        self._sequence = stored.meta.sequence
        self._first = self._meta = stored.meta
        self._notices: list[str] = []
        self._lock = threading.Lock()
        # All that a session asks of its backend is to append.
        self.session = Session(cast("Backend", self), stored)
        self.session.saves_prompts_first = True
        turn = self.session.conversation.open
        self._taken_up = () if turn is None else tuple([call.id for call in turn.reply.tool_calls])

    @property
    def is_complete(self) -> bool:
        """Whether nothing that was said waits to be written."""
        return not any(map(_is_said, self._waiting))

    @property
    def meta(self) -> SessionMeta:
        """What a list of sessions shows of it now."""
        return self._meta

    def saved_id(self) -> str | None:
        """The id of the session, once there is something in it that can be resumed."""
        return self._meta.id if self._is_stored else None

    def begin_another(self) -> "SavedConversation":
        """Another conversation in the same place."""
        return SavedConversation(self._store, directory=self._directory)

    def rename(self, title: str) -> None:
        """Give the session another title."""
        self._meta = self._backend.rename(self._meta.id, title)

    def short_id(self) -> str:
        """A part of the session's id that no other one has."""
        try:
            ids = [meta.id for meta in self._store.list()]
        except (SessionError, OSError):
            ids = []
        return short_ids([*{*ids, self._meta.id}])[self._meta.id]

    def take_notices(self) -> list[str]:
        """What people have to know, each once."""
        notices, self._notices = self._notices, []
        return notices

    def note(self, record: Record) -> None:
        """Add a record that is none of the agent's own, such as what was done to files; it may block."""
        self._keep([record], record.durable)
        self.session.conversation.take(record)

    def append(self, id: str, after: int, records: Sequence[Record], *, durable: bool = True) -> SessionMeta:
        """Write what is new and what is still missing, or keep it until that works."""
        # The session counts its appends, wherever they went: it tells by the count whether one was taken.
        return replace(self._keep(records, durable), sequence=after + 1)

    def _keep(self, records: Sequence[Record], durable: bool) -> SessionMeta:
        with self._lock:
            missing = [*self._waiting, *records]
            if not (self._is_stored or any(map(_is_said, missing))):
                self._waiting, self._meta = missing, grown(self._meta, records)
                return self._meta
            is_late = not self.is_complete
            try:
                meta = self._write(missing, durable)
            except SessionConflict:
                raise
            except (SessionError, OSError) as error:
                if not is_late:
                    why = error.strerror if isinstance(error, OSError) and error.strerror else error
                    self._notices.append(f"this conversation is not being saved: {why}; it goes on unsaved")
                self._waiting = missing
                self._meta = grown(self._meta, records)
                return self._meta
            if is_late:
                self._notices.append("this conversation is being saved again, nothing is missing")
            self._waiting = []
            self._known += missing
            self._is_stored = True
            self._sequence, self._meta = meta.sequence, meta
            return meta

    def _write(self, records: Sequence[Record], durable: bool) -> SessionMeta:
        if not self._is_stored:
            title = self._first.title or command_title(records)
            try:
                return self._backend.create(replace(self._first, title=title), records)
            except SessionConflict:  # an attempt that failed left it behind
                return self._backend.create(new_meta(title, directory=self._first.directory), records)
        try:
            return self._backend.append(self._meta.id, self._sequence, records, durable=durable)
        except SessionConflict:
            started = [record.call_id for record in records if isinstance(record, CallStarted)]
            if any(id in self._taken_up for id in started):
                raise
            return self._take_over(records, "was continued elsewhere", forked=True)
        except SessionNotFound:
            return self._take_over(records, "was deleted", forked=False)

    def _take_over(self, records: Sequence[Record], why: str, *, forked: bool) -> SessionMeta:
        """Another session with everything that this conversation has."""
        before = self._meta
        fresh = new_meta(before.title, directory=self._directory or before.directory)
        if forked:
            shared = sum(isinstance(record, MessageSaved | CustomSaved) for record in self._known)
            fresh = replace(fresh, parent=before.id, forked_at=shared)
        made = self._backend.create(fresh, [*self._known, *records])
        kind = "a fork of it" if forked else "a new one"
        self._notices.append(f"the session {why}; this conversation goes on as {kind}: {made.id}")
        return made


def _is_said(record: Record) -> bool:
    """Whether a record is of something that was said or done, and no mere choice of a model or prompt."""
    if isinstance(record, QueueChange):
        return bool(record.steering or record.follow_up)
    return isinstance(record, MessageSaved | CustomSaved | FilesChanged)
