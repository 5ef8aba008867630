"""Export: a session as JSON that can be read back, as Markdown, or as one HTML page; never with a secret."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar, get_args

from swink.errors import InvalidInput
from swink.events.transcript import Transcript
from swink.memory.backend import Stored
from swink.memory.exports.clean import clean_meta, clean_record
from swink.memory.exports.document import read_export as read_export
from swink.memory.exports.document import write_document
from swink.memory.exports.facts import facts_of
from swink.memory.exports.markdown import write_markdown
from swink.memory.exports.page import write_page
from swink.memory.meta import SessionMeta, grown, new_meta
from swink.memory.session import Session, SyncSession
from swink.messages.records import (
    CallEnded,
    CallStarted,
    Compaction,
    Conversation,
    CustomSaved,
    MessageSaved,
    ModelChange,
    PromptChange,
    QueueChange,
    Record,
    StateChange,
    TurnOpened,
    saved,
)

ExportFormat = Literal["json", "md", "html"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
Progress = Callable[[int, int], None]

T = TypeVar("T")


def export(
    session: Session | SyncSession | Stored | Iterable[Record],
    format: ExportFormat,
    *,
    progress: Progress | None = None,
) -> str:
    """A session as text in a `format` of `EXPORT_FORMATS`; secrets in it are redacted.

    A long session takes seconds: `progress(done, total)` is called meanwhile. `store.sync.read(id)` has
    everything in the order in which it happened; of a session that is open, it is what that adds up to.
    """
    if format not in EXPORT_FORMATS:
        raise InvalidInput(f"a session is exported as {', '.join(EXPORT_FORMATS)}, not {format!r}")
    meta, records = _parts(session)
    meta = clean_meta(meta)
    if format == "json":
        return write_document(meta, map(clean_record, with_progress(records, progress, 0, 100)))
    clean = [clean_record(record) for record in with_progress(records, progress, 0, 50)]
    transcript = Transcript.of(clean)
    blocks = with_progress(transcript.blocks, progress, 50, 100)
    prompts = [record.text for record in clean if isinstance(record, PromptChange)]
    facts = facts_of(meta, transcript.totals, transcript.blocks, prompts[-1] if prompts else "")
    return "".join((write_markdown if format == "md" else write_page)(facts, blocks))


def with_progress(items: Sequence[T], progress: Progress | None, start: int, end: int) -> Iterator[T]:
    """The items, and from time to time how many of a hundred parts of the work are done."""
    step = max(1, len(items) // 50)
    for index, item in enumerate(items):
        if progress is not None and index % step == 0:
            progress(start + (end - start) * index // len(items), 100)
        yield item
    if progress is not None:
        progress(end, 100)


def _parts(
    session: Session | SyncSession | Stored | Iterable[Record],
) -> tuple[SessionMeta, Sequence[Record]]:
    if isinstance(session, Session | SyncSession):
        return session.meta, list(_records_of(session.conversation))
    if isinstance(session, Stored):
        return session.meta, session.records
    records = list(session) if isinstance(session, Iterable) else [session]
    if not all(isinstance(record, Record) for record in records):
        raise InvalidInput(
            "export takes a session (`await store.open(id)`, or `store.sync.read(id)`), "
            f"not {type(session).__name__}"
        )
    times = [record.message.timestamp for record in records if isinstance(record, MessageSaved | CustomSaved)]
    meta = new_meta(id="exported", now=times[0] if times else 0.0)
    return grown(meta, records, now=times[-1] if times else 0.0), records


def _records_of(conversation: Conversation) -> Iterator[Record]:
    """The shortest list of records that adds up to a conversation."""
    if conversation.model is not None:
        yield ModelChange(conversation.model)
    if conversation.system_prompt is not None:
        yield PromptChange(conversation.system_prompt)
    if conversation.state:
        yield StateChange(conversation.state)
    for number, message in conversation.everything.items():
        yield saved(message, number)
    if conversation.messages != list(conversation.everything.values()):
        yield conversation.by_number(Compaction(list(conversation.messages)))
    yield from conversation.labels
    yield from conversation.files
    if conversation.steering or conversation.follow_up:
        yield QueueChange(list(conversation.steering), list(conversation.follow_up))
    if (turn := conversation.open) is not None:
        yield TurnOpened(turn.reply)
        yield from [CallStarted(call_id) for call_id in sorted(turn.started)]
        yield from turn.pending.values()
        yield from [CallEnded(call_id, result) for call_id, result in turn.results.items()]
