"""Session: one conversation in a store, with the messages, the state and everything else that was saved."""

import asyncio
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

from swink.agent.session.sessiondiff import SessionWriter
from swink.errors import InvalidInput
from swink.memory.backend import Backend, Stored
from swink.memory.heldkeys import keys_named, without_keys
from swink.memory.meta import SessionMeta
from swink.messages import AssistantMessage, CustomMessage, Message, ModelSpec, ToolResultMessage, UserMessage
from swink.messages.checks import check_list, check_type
from swink.messages.codec import encode_state
from swink.messages.jsondata import decode
from swink.messages.records import (
    Compaction,
    Conversation,
    Label,
    PendingApproval,
    Record,
    StateChange,
    all_saved,
)
from swink.system.aio import call_to_end
from swink.system.threads import Serial

_MESSAGES = (UserMessage, AssistantMessage, ToolResultMessage, CustomMessage)


class _Session:
    """What a session is, whichever door it was opened by."""

    def __init__(self, backend: Backend, stored: Stored) -> None:
        self._backend = backend
        self.meta: SessionMeta = stored.meta
        self.conversation = Conversation(stored.records)
        self.state: dict[str, Any] = dict(self.conversation.state)
        """The session's JSON state; saved with every append."""
        self._known_state = encode_state(self.state)
        self._keys = keys_named()
        self._serial = Serial()
        self.saves_prompts_first = False
        """Whether an agent stores a prompt before it asks a model, instead of soon after."""
        self.written = 0
        """How often an agent has written here, or somebody else messages: agents compare it."""

    @property
    def id(self) -> str:
        return self.meta.id

    @property
    def messages(self) -> Sequence[Message]:
        """The context: all messages, less what was compacted away."""
        return tuple(self.conversation.messages)

    @property
    def model(self) -> ModelSpec | None:
        """The model that was last asked."""
        return self.conversation.model

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """The calls that wait for approval; `agent.run(approvals={call_id: …})` answers them."""
        return self.conversation.pending

    @property
    def labels(self) -> tuple[Label, ...]:
        """The places that were given a name; `store.fork(id, at=label.at)` goes on from one."""
        return tuple(self.conversation.labels)

    def _labelled(self, text: str, at: int | None) -> Label:
        check_type("label", text, str)
        check_type("at", at, (int, NoneType))
        if not text.strip():
            raise InvalidInput("a label is some text that names the place")
        if at is not None and not 0 <= at <= self.meta.messages:
            raise InvalidInput(f"at={at}: the session has {self.meta.messages} messages")
        return Label(text, self.meta.messages if at is None else at)

    async def stored(self) -> None:
        """Wait until every append has ended, also one that was cancelled."""
        await self._serial.call(int)

    def _append(
        self,
        messages: Sequence[Message],
        state: dict[str, Any] | None,
        records: Sequence[Record],
        writer: SessionWriter | None = None,
    ) -> None:
        """One transaction; in memory it is there only when it is stored."""
        if writer is not None:
            writer.check(self)
        conversation, meta = self.conversation, self.meta
        added = all_saved(messages, meta.messages)
        written: list[Record] = [*added]
        if state is not None:
            self.state = state
        encoded = encode_state(self.state)
        if encoded != self._known_state:
            written.append(StateChange({key: decode(value) for key, value in encoded.items()}))
        for record in records:
            is_context = isinstance(record, Compaction)
            written.append(conversation.by_number(record, added) if is_context else record)
        if not written:
            return
        durable = False
        for record in written:
            durable = durable or record.durable
        clean = without_keys(written, self._keys)
        self.meta = self._backend.append(meta.id, meta.sequence, clean, durable=durable)
        self._known_state = encoded
        for record in written:
            conversation.take(record)
        if writer is not None:
            writer.at += 1  # first: who compares both must not find the session ahead
        if writer is not None or messages:
            self.written += 1

    def _start_append(
        self,
        done: Callable[[BaseException | None], None],
        messages: Sequence[Message],
        state: dict[str, Any] | None,
        records: Sequence[Record],
        writer: SessionWriter,
    ) -> None:
        """Append `messages`, `state`, `records` of a `writer`, then call `done` in this event loop.

        `done` gets what went wrong, if anything did. For the engine.
        """
        loop = asyncio.get_running_loop()

        def job() -> None:
            failure: BaseException | None = None
            try:
                self._append(messages, state, records, writer)
            except BaseException as error:
                failure = error  # the caller gets it
            try:  # noqa: SIM105 - every turn pays for it
                loop.call_soon_threadsafe(done, failure)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        self._serial.start(job)


class Session(_Session):
    """A session of a store; give it to `Agent(model, session=session)`.

    Args:
        backend: where it is kept
        stored: what is in it
    """

    start_append = _Session._start_append

    async def append(
        self,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        """Add messages, the state and records in one durable transaction."""
        # Cancelled, it waits for the disk all the same, so that `meta` is right for the caller.
        await call_to_end(self._serial, self._append, _checked(messages), state, records)

    async def label(self, text: str, at: int | None = None) -> None:
        """Give the name `text` to the place after the first `at` messages, or to the end."""
        await self.append([], records=[self._labelled(text, at)])

    async def aclose(self) -> None:
        """Wait until what was appended is stored."""
        await self.stored()

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class SyncSession(_Session):
    """A session for programs without an event loop.

    Args:
        backend: where it is kept
        stored: what is in it
    """

    start_append = _Session._start_append

    def append(
        self,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        records: Sequence[Record] = (),
    ) -> None:
        """Add messages, the state and records in one durable transaction."""
        self._append(_checked(messages), state, records)

    def label(self, text: str, at: int | None = None) -> None:
        """Give the name `text` to the place after the first `at` messages, or to the end."""
        self.append([], records=[self._labelled(text, at)])

    def close(self) -> None:
        """Nothing is to be given back: a file that stays open is the store's."""


def _checked(messages: Sequence[Message]) -> Sequence[Message]:
    checked = check_list("messages", messages, "messages")
    for message in checked:
        check_type("append()", message, _MESSAGES)
    return checked
