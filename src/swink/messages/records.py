"""Records: what a session holds, and the conversation that they add up to.

A session is a list of records. Messages are among them only when their turn is complete, so that the history
is sound at every moment; what happens in between is a journal, which the turn's messages then replace:

    message(prompt) turn_opened call_started call_ended …    →    message(reply) message(result) …
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, cast

import msgspec
from msgspec import Struct, field

from swink.errors import InvalidInput
from swink.messages.blocks import Text, ToolCall
from swink.messages.jsondata import digest, encode, encode_lines, read
from swink.messages.message import (
    AssistantMessage,
    CustomMessage,
    LlmMessage,
    Message,
    ToolResult,
    ToolResultMessage,
)
from swink.messages.modelspec import Cost, ModelSpec, ThinkingLevel, Usage

UNKNOWN = (
    "outcome unknown: the program ended while this call was running, so it may have taken effect or not; "
    "look before you call again"
)
NOT_RUN = "tool call not run: the program ended before it began"
NOT_APPROVED = "tool call not run: instead of an approval the user sent a new message"


GIVEN_UP = (
    "stopped: a call inside waited for an approval, and instead of it the user sent a new message; "
    "the calls before it have taken effect"
)


class _Record(Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Common ground: one that is not durable survives the end of the process, but not that of the machine."""

    durable: ClassVar[bool] = True


class MessageSaved(_Record, frozen=True, tag="message"):
    """A message of a turn that is complete, and its number in the session, counted from 0."""

    message: LlmMessage
    number: int = -1


class CustomSaved(_Record, frozen=True, tag="custom_message"):
    """A message of the application's own, and its number in the session."""

    message: CustomMessage
    number: int = -1


class StateChange(_Record, frozen=True, tag="state"):
    """The session state from here on, whole."""

    state: dict[str, Any]


class ModelChange(_Record, frozen=True, tag="model_change"):
    """The model that is asked from here on."""

    model: ModelSpec


class ThinkingLevelChange(_Record, frozen=True, tag="thinking_level_change"):
    """How hard it thinks from here on."""

    level: ThinkingLevel


class PromptChange(_Record, frozen=True, tag="system_prompt_change"):
    """The system prompt from here on."""

    text: str


class QueueChange(_Record, frozen=True, tag="queue"):
    """What waits in the queues from here on, whole."""

    steering: list[Message] = field(default_factory=list[Message])
    follow_up: list[Message] = field(default_factory=list[Message])


class Compaction(_Record, frozen=True, tag="compaction"):
    """The context from here on: messages of the session by their number, and new ones.

    What is left out stays in the session. `reason` is "compacted", or "replaced" if the history was set.
    `usage` and `cost` are those of a summary; None: unknown.
    """

    kept: list[int | Message]
    reason: str = "compacted"
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage = Usage()
    cost: Cost | None = Cost()


class Label(_Record, frozen=True, tag="label"):
    """A name for a place: after that many messages."""

    text: str
    at: int


class TurnOpened(_Record, frozen=True, tag="turn_opened"):
    """A reply whose tools are about to run; its messages follow when all of them have ended."""

    reply: AssistantMessage


class TurnDropped(_Record, frozen=True, tag="turn_dropped"):
    """The turn that was open is given up, with its reply: the history was set."""


class CallStarted(_Record, frozen=True, tag="call_started"):
    """A call begins to run: from here on its outcome is unknown, until it has ended."""

    call_id: str
    made: str = ""
    """Of a call inside another one: its fingerprint."""


class CallEnded(_Record, frozen=True, tag="call_ended"):
    """A call has its result."""

    durable: ClassVar[bool] = False
    call_id: str
    result: ToolResult
    made: str = ""
    """Of a call inside another one: its fingerprint."""


class PendingApproval(_Record, frozen=True, tag="approval"):
    """A call that waits for an approval: `arguments` are what will run, `shown` is what people see.

    Args:
        call_id: the id of the call
        name: its tool
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    shown: dict[str, Any]

    def __repr__(self) -> str:
        return f"PendingApproval({self.call_id!r}, {self.name!r}, shown={self.shown!r})"


class FilesChanged(_Record, frozen=True, tag="files_changed"):
    """What was done to the files of a directory: the snapshot before it, and the one after it once it ended.

    `at` is how many messages there were; `certain` is False if others may have changed files meanwhile.
    """

    durable: ClassVar[bool] = False
    at: int
    directory: str
    before: str
    after: str | None = None
    reason: Literal["tools", "rewound", "redone"] = "tools"
    certain: bool = True


class RunStarted(_Record, frozen=True, tag="run_started"):
    """A run that a server accepted from a client; `key` and `asked` tell a request that is sent again.

    `terms` are what it was asked beside its input, such as instructions and the schema of its answer.
    """

    run: str
    caller: str
    input: list[Message] = field(default_factory=list[Message])
    key: str | None = None
    asked: str = ""
    client_tools: list[str] = field(default_factory=list[str])
    terms: dict[str, Any] = field(default_factory=dict[str, Any])


class RunEvents(_Record, frozen=True, tag="run_events"):
    """What a served run has said from its event number `first` on, and whether that was all."""

    durable: ClassVar[bool] = False
    run: str
    first: int
    events: list[Any] = field(default_factory=list[Any])
    ended: bool = False


class UnknownRecord(Struct, frozen=True):
    """A record of a type that this release does not know: kept as it is, and otherwise skipped."""

    durable: ClassVar[bool] = True
    type: str
    data: dict[str, Any]


KnownRecord = (
    MessageSaved
    | CustomSaved
    | StateChange
    | ModelChange
    | ThinkingLevelChange
    | PromptChange
    | QueueChange
    | Compaction
    | Label
    | TurnOpened
    | TurnDropped
    | CallStarted
    | CallEnded
    | PendingApproval
    | FilesChanged
    | RunStarted
    | RunEvents
)
Record = KnownRecord | UnknownRecord

_decoder: "msgspec.json.Decoder[KnownRecord]" = msgspec.json.Decoder(KnownRecord)
_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in cast(Any, KnownRecord).__args__)


def saved(message: Message, number: int) -> MessageSaved | CustomSaved:
    """The record of a message."""
    if isinstance(message, CustomMessage):
        return CustomSaved(message, number)
    return MessageSaved(message, number)


def all_saved(messages: Iterable[Message], first: int) -> list[MessageSaved | CustomSaved]:
    """The records of messages that follow each other, from this number on."""
    records: list[MessageSaved | CustomSaved] = []
    for number, message in enumerate(messages, first):
        if isinstance(message, CustomMessage):
            records.append(CustomSaved(message, number))
        else:
            records.append(MessageSaved(message, number))
    return records


def encode_record(record: Record) -> bytes:
    """A record as one line of JSON, without its end."""
    if isinstance(record, UnknownRecord):
        return encode(record.data)
    return encode(record, nulls=nulls_in((record,)))


def encode_records(records: Sequence[Record]) -> bytes:
    """Records as lines of JSON."""
    lines = None
    if UnknownRecord not in map(type, records):
        lines = encode_lines(records, nulls_in(records))
    return b"".join([encode_record(record) + b"\n" for record in records]) if lines is None else lines


def nulls_in(records: Iterable[Record]) -> int:
    """How many records have that are no numbers."""
    nulls = 0
    for record in records:
        if type(record) is MessageSaved:
            message = record.message
            if type(message) is AssistantMessage:
                nulls += (
                    (message.cost is None) + (message.error_message is None) + (message.error_kind is None)
                )
            elif type(message) is ToolResultMessage:
                nulls += message.details is None
    return nulls


def decode_record(line: bytes | str) -> Record:
    """The record in a line; raises `InvalidInput` if there is none in it."""
    try:
        return read(_decoder, line, "a record")
    except InvalidInput as error:
        if not isinstance(error.__cause__, msgspec.ValidationError):
            raise
        data = msgspec.json.decode(line)
        kind = cast("dict[str, Any]", data).get("type") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind in _TYPES:
            raise
        return UnknownRecord(kind, cast("dict[str, Any]", data))


def decode_records(lines: bytes) -> list[Record]:
    """The records in several lines."""
    if b"$" not in lines or b"$number" not in lines:  # one byte is found far sooner
        try:
            return list(_decoder.decode_lines(lines))
        except msgspec.ValidationError:
            pass  # a type that this release does not know
    return [decode_record(line) for line in lines.split(b"\n") if line]


def type_of(record: Record) -> str:
    """The name of a record's type."""
    return record.type if isinstance(record, UnknownRecord) else str(record.__struct_config__.tag)


class OpenTurn(Struct):
    """A reply whose tools have not all ended: what is known of each call."""

    reply: AssistantMessage
    started: set[str] = field(default_factory=set[str])
    results: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    pending: dict[str, PendingApproval] = field(default_factory=dict[str, PendingApproval])
    made: dict[str, str] = field(default_factory=dict[str, str])
    """The fingerprints of calls inside others: who makes them again must make the same ones."""

    def is_of(self, message: Message) -> bool:
        """Whether a message is the reply of this turn, as it was or as a policy wanted it kept."""
        return isinstance(message, AssistantMessage) and [call.id for call in message.tool_calls] == [
            call.id for call in self.reply.tool_calls
        ]

    def outcome(self, call_id: str, may_repeat: bool) -> ToolResult | None:
        """What a call that is taken up again already came to; None if it may run."""
        if call_id in self.results or call_id not in self.started:
            return self.results.get(call_id)
        return None if may_repeat else ToolResult((Text(UNKNOWN),), is_error=True)

    def settled(self) -> list[Message]:
        """The messages of the turn if it is given up: what is known of each call, and nothing runs."""
        messages: list[Message] = [self.reply]
        for call in self.reply.tool_calls:
            id = call.id
            text = UNKNOWN if id in self.started else NOT_APPROVED if id in self.pending else NOT_RUN
            if any(known.startswith(f"{id}.") for known in (*self.made, *self.pending)):
                text = GIVEN_UP
            result = self.results.get(id) or ToolResult((Text(text),), is_error=True)
            messages.append(
                ToolResultMessage(id, call.resolved.name, result.content, result.is_error, result.details)
            )
        return messages


def fingerprint(call: ToolCall) -> str:
    """What tells calls apart by what they do."""
    return digest(encode([call.name, call.arguments]))[:32]


def pending_of(turn: OpenTurn | None) -> tuple[PendingApproval, ...]:
    """The calls of a turn that wait for an approval."""
    return () if turn is None else tuple(turn.pending.values())


class Conversation:
    """What the records of a session add up to; `take` them in their order."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.everything: dict[int, Message] = {}
        """All messages that were ever saved, by their number, also those that were compacted away."""
        self.messages: list[Message] = []
        """The context as it is now."""
        self.state: dict[str, Any] = {}
        self.model: ModelSpec | None = None
        self.system_prompt: str | None = None
        self.steering: Sequence[Message] = ()
        self.follow_up: Sequence[Message] = ()
        self.labels: list[Label] = []
        self.files: list[FilesChanged] = []
        """What was done to files; only the last one may not have ended."""
        self.open: OpenTurn | None = None
        for record in records:
            self.take(record)

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """The calls that wait for an approval."""
        return pending_of(self.open)

    def take(self, record: Record) -> None:
        """Add the record that comes next in the session."""
        match record:
            case MessageSaved() | CustomSaved():  # names in a pattern would make it slower
                message, number = record.message, record.number
                self.everything[number if number >= 0 else len(self.everything)] = message
                self.messages.append(message)
                if self.open is not None and self.open.is_of(message):
                    self.open = None
            case StateChange(state):
                self.state = state
            case ModelChange(model):
                self.model = model
            case ThinkingLevelChange(level):
                if self.model is not None:
                    self.model = msgspec.structs.replace(self.model, thinking_level=level)
            case PromptChange(text):
                self.system_prompt = text
            case QueueChange(steering, follow_up):
                self.steering, self.follow_up = tuple(steering), tuple(follow_up)
            case Compaction(kept):
                known = self.everything
                # A number that is not there was lost with its transaction.
                context = [known.get(item) if isinstance(item, int) else item for item in kept]
                self.messages = [message for message in context if message is not None]
            case Label():
                self.labels.append(record)
            case TurnOpened(reply):
                if self.open is None or not self.open.is_of(reply):
                    self.open = OpenTurn(reply)
            case TurnDropped():
                self.open = None
            case CallStarted() | CallEnded() | PendingApproval():
                self._journal(record)
            case FilesChanged():
                if self.files and self.files[-1].after is None:
                    self.files.pop()
                if record.after != record.before:
                    self.files.append(record)
            case UnknownRecord() | RunStarted() | RunEvents():
                pass

    def by_number(
        self, compaction: Compaction, added: Iterable[MessageSaved | CustomSaved] = ()
    ) -> Compaction:
        """The compaction with numbers instead of the messages that the session has, or gets with it."""
        numbers = {id(message): number for number, message in self.everything.items()}
        numbers.update((id(record.message), record.number) for record in added)
        kept = [item if isinstance(item, int) else numbers.get(id(item), item) for item in compaction.kept]
        return msgspec.structs.replace(compaction, kept=kept)

    def _journal(self, record: CallStarted | CallEnded | PendingApproval) -> None:
        turn = self.open
        if turn is None:
            return
        match record:
            case CallStarted(call_id, made):
                turn.started.add(call_id)
                turn.pending.pop(call_id, None)
            case CallEnded(call_id, result, made):
                turn.results[call_id] = result
                turn.pending.pop(call_id, None)
            case PendingApproval(call_id):
                turn.pending[call_id], made = record, ""
        if made:
            turn.made[call_id] = made
