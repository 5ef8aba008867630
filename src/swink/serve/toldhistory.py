"""The history that a client of a web protocol sends along, held against the one that is stored.

    told    user A · reply B · user C            stored    user A · reply B
            └──── is stored ───┘  └ new

The store owns the history. Of what a client sends, only new user messages and results of its own tools are
taken. A history that is empty, or a beginning of the stored one, does not contradict it; one with replies
that are not stored does.
"""

import logging
from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from swink.errors import InvalidInput
from swink.messages import (
    AssistantMessage,
    Audio,
    Document,
    Image,
    Media,
    Message,
    Text,
    ToolResult,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from swink.serve.wire import Refused
from swink.system.shorten import clip

log = logging.getLogger("swink.serve")

_MOST_NAMES = 200
"""Names of unknown fields that are remembered, so that a client cannot fill the log or the memory."""


class ToldUser(Struct, frozen=True):
    """A message of the user, and the id that the client gave it."""

    id: str
    content: tuple[Text | Media, ...]


class ToldReply(Struct, frozen=True):
    """A reply as the client has it: its text and the ids of its calls."""

    id: str
    text: str
    calls: tuple[str, ...] = ()


class ToldResult(Struct, frozen=True):
    """The result of a call, as the client has it."""

    call_id: str
    result: ToolResult


Told = ToldUser | ToldReply | ToldResult


class News(Struct, frozen=True):
    """What a request adds to the stored history."""

    messages: tuple[UserMessage, ...] = ()
    results: Mapping[str, ToolResult] = {}
    ids: Mapping[int, str] = {}
    """The client's ids of stored messages, by their position."""
    new_ids: tuple[str, ...] = ()
    """The client's ids of the new messages."""
    calls: frozenset[str] = frozenset()
    """The ids of all calls that the client has shown already."""
    is_whole: bool = True
    """Whether the client has all that is stored."""
    at: int = 0
    """With how many of the stored messages the client agrees."""


class Contradiction(Exception):
    """The client has a reply that is not stored; `news` says how far it agrees, and what comes after."""

    def __init__(self, news: News) -> None:
        super().__init__(
            "the history that was sent is not the one that is stored; send the new messages alone, or ask "
            "for a conversation of its own with ?on_conflict=fork"
        )
        self.news = news


def read_news(told: Sequence[Told], stored: Sequence[Message], waiting: Collection[str]) -> News:
    """What is new in a history; raises `Contradiction` if it is another one than the stored.

    `waiting` are the ids of calls that wait for an answer: their reply is not stored yet.
    """
    settled = {message.tool_call_id for message in stored if isinstance(message, ToolResultMessage)}
    results = {
        each.call_id: each.result
        for each in told
        if isinstance(each, ToldResult) and each.call_id not in settled
    }
    said = [each for each in told if not isinstance(each, ToldResult) and not _is_empty(each)]
    ours = [
        (index, each)
        for index, message in enumerate(stored)
        if (each := _as_told(message)) is not None and not _is_empty(each)
    ]
    same = _count_same(said, [each for _, each in ours])
    ids = {index: each.id for each, (index, _) in zip(said[:same], ours, strict=False) if each.id}
    rest = said[same:]
    calls = frozenset({id for each in said if isinstance(each, ToldReply) for id in each.calls})
    if not rest and same < len(ours) and isinstance(said[-1] if said else None, ToldUser):
        rest, same = said[-1:], same - 1  # asked again: what followed in the store is not known to the client
        ids.pop(ours[same][0], None)
    if rest and isinstance(rest[0], ToldReply) and {*waiting, *results} & {*rest[0].calls}:
        rest = rest[1:]
    users = [each for each in rest if isinstance(each, ToldUser)]
    is_whole = same == len(ours)
    at = len(stored) if is_whole else ours[same][0]
    new_ids = tuple([each.id for each in users])
    if len(users) == len(rest):
        return News(_messages(users), results, ids, new_ids, calls, is_whole, at)
    last = max(index for index, each in enumerate(rest) if isinstance(each, ToldReply))
    users = [each for each in rest[last + 1 :] if isinstance(each, ToldUser)]
    new_ids = tuple([each.id for each in users])
    raise Contradiction(News(_messages(users), {}, ids, new_ids, calls, False, at))


def media_of(url: str, kind: str, where: str, title: str | None = None) -> Media:
    """The image, sound or document at a URL, which may hold its data; `kind` is its media type."""
    made = {"image": Image, "audio": Audio}.get(kind.partition("/")[0], Document)
    try:
        if not url.startswith("data:"):
            if not url.startswith(("https://", "http://")):
                raise Refused(400, f"{where} has a file whose URL is neither a data URL nor http or https")
            return made.from_url(url)
        head, comma, data = url.partition(",")
        if not comma or not head.endswith(";base64"):
            raise Refused(400, f"{where} has a data URL that is not base64")
        content = b64decode(data, validate=True)
        media_type = kind if "/" in kind and not kind.endswith("/*") else None
        if made is Document:
            return Document.from_bytes(content, media_type, title=title)
        return made.from_bytes(content, media_type)
    except InvalidInput as error:
        raise Refused(400, f"{where}: {error}") from None
    except ValueError:
        raise Refused(400, f"{where} has data that is not base64") from None


class UnknownFields:
    """Tells the log once of each field that is ignored."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._told: set[str] = set()

    def tell(self, where: str, names: Iterable[str]) -> None:
        """The fields of these names are not taken."""
        for name in names:
            shown = f"{where}.{clip(name, 60)!r}"
            if shown not in self._told and len(self._told) < _MOST_NAMES:
                self._told.add(shown)
                log.warning("%s: a field that is not known here is ignored: %s", self._protocol, shown)


def _as_told(message: Message) -> ToldUser | ToldReply | None:
    match message:
        case UserMessage():
            content = [
                block for block in message.content if isinstance(block, Text | Image | Document | Audio)
            ]
            return ToldUser("", tuple(content))
        case AssistantMessage():
            return ToldReply("", message.text, tuple([call.id for call in message.tool_calls]))
        case _:
            return None


def _is_empty(told: ToldUser | ToldReply) -> bool:
    return isinstance(told, ToldReply) and not told.text.strip() and not told.calls


def _count_same(theirs: Sequence[ToldUser | ToldReply], ours: Sequence[ToldUser | ToldReply]) -> int:
    for index, (one, other) in enumerate(zip(theirs, ours, strict=False)):
        if _shape(one) != _shape(other):
            return index
    return min(len(theirs), len(ours))


def _shape(told: ToldUser | ToldReply) -> tuple[object, ...]:
    """What is compared: texts, calls, and how many files; blanks around a text do not count."""
    match told:
        case ToldUser(content=content):
            return "user", text_of(content).strip(), sum(not isinstance(block, Text) for block in content)
        case ToldReply(text=text, calls=calls):
            return "reply", text.strip(), calls


def _messages(users: Sequence[ToldUser]) -> tuple[UserMessage, ...]:
    return tuple([UserMessage(user.content) for user in users])
