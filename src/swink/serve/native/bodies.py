"""Bodies of the native door: what programs send and get, as types; `/openapi.json` is made from them."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from swink.errors import MisuseError
from swink.memory import SessionMeta
from swink.messages import Base64Source, Document, Image, Input, Message, Text
from swink.messages.records import PendingApproval
from swink.serve.hosting import Conversation
from swink.serve.hosting.hostedrun import LONGEST_RULE, MOST_RULES
from swink.serve.wire import Refused

ShortText = Annotated[str, Meta(max_length=1_000)]


class _Body(Struct, frozen=True, forbid_unknown_fields=True):
    """What a program sends; fields that are not known are refused."""


class InputText(_Body, frozen=True, tag="text", tag_field="type"):
    """A part of an input: text."""

    text: str


class InputImage(_Body, frozen=True, tag="image", tag_field="type"):
    """A part of an input: an image, in base64."""

    data: str
    media_type: str = "image/png"


class InputDocument(_Body, frozen=True, tag="document", tag_field="type"):
    """A part of an input: a document, in base64."""

    data: str
    media_type: str = "application/pdf"
    title: ShortText | None = None


InputParts = list[InputText | InputImage | InputDocument]


class NewConversation(_Body, frozen=True):
    """What may be said of a new conversation."""

    title: ShortText = ""
    id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """An id of the client's own; without one it is made up."""


class NewRun(_Body, frozen=True):
    """What a run is to do; without `input` it goes on with what is there."""

    input: str | InputParts | None = None
    when_busy: Literal["queue", "refuse"] = "refuse"


class Remark(_Body, frozen=True):
    """Something that is said to a run while it works."""

    message: str | InputParts


class Approval(_Body, frozen=True):
    """The answer to a call that waits for approval."""

    call_id: str
    approved: bool
    reason: ShortText | None = None
    """Why, for the model; of an approved call a note on what of it was refused."""
    arguments: dict[str, Any] | None = None
    """Other arguments to run the call with, if it is approved."""
    rules: Annotated[list[Annotated[str, Meta(max_length=LONGEST_RULE)]], Meta(max_length=MOST_RULES)] = []
    """Rules to keep for the calls to come, if it is approved and the event `approval_rules` offered some."""


class NewFork(_Body, frozen=True):
    """Where a fork begins: after so many messages, or after all of them."""

    at: Annotated[int, Meta(ge=0)] | None = None


class Created(Struct, frozen=True):
    """The id of a conversation that was made."""

    id: str


class StartedRun(Struct, frozen=True):
    """The id of a run."""

    run_id: str


class ListedConversation(Struct, frozen=True):
    """A conversation in a list; times are seconds since 1970."""

    id: str
    title: str
    created: float
    updated: float
    messages: int
    cost: float
    parent: str | None = None
    forked_at: int | None = None

    @classmethod
    def of(cls, meta: SessionMeta) -> "ListedConversation":
        """What a list shows of a session."""
        return cls(
            *(meta.id, meta.title, meta.created, meta.updated),
            *(meta.messages, meta.cost, meta.parent, meta.forked_at),
        )


class ConversationList(Struct, frozen=True):
    """The conversations of a caller, the last updated first."""

    conversations: list[ListedConversation]


class WaitingCall(Struct, frozen=True):
    """A call that waits for an approval."""

    call_id: str
    name: str
    shown: dict[str, Any]

    @classmethod
    def of(cls, call: PendingApproval) -> "WaitingCall":
        """What people see of a call."""
        return cls(call.call_id, call.name, call.shown)


class ShownConversation(Struct, frozen=True):
    """A conversation as it is: what is committed, which run is under way, what waits for an approval."""

    id: str
    title: str
    messages: list[Any]
    running: str | None
    pending: list[WaitingCall]
    interrupted: str | None = None
    """A run that its process left unfinished, and that goes on as soon as its events are asked for."""

    @classmethod
    def of(
        cls,
        conversation: Conversation,
        messages: list[Any],
        unended: str | None = None,
        *,
        is_interrupted: bool = False,
    ) -> "ShownConversation":
        """A conversation with its messages in the form of JSON, and the run of it that has not ended."""
        if unended is None and conversation.running is not None and not conversation.running.is_over:
            unended = conversation.running.id
        running, interrupted = (None, unended) if is_interrupted else (unended, None)
        pending = [WaitingCall.of(call) for call in conversation.pending]
        return cls(conversation.id, conversation.meta.title, messages, running, pending, interrupted)


def as_input(given: str | InputParts) -> Input:
    """An input as an agent takes it; `Refused` if a part of it cannot be."""
    if isinstance(given, str):
        return given
    try:
        return [_block(part) for part in given]
    except MisuseError as error:
        raise Refused(400, str(error)) from None


def _block(part: InputText | InputImage | InputDocument) -> Message | Text | Image | Document:
    match part:
        case InputText(text):
            return Text(text)
        case InputImage(data, media_type):
            return Image(Base64Source(data, media_type))
        case InputDocument(data, media_type, title):
            return Document(Base64Source(data, media_type), title)
