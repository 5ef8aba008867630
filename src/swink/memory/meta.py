"""What is known of a session without reading it, how it grows with each append, and its stored version.

A session is stored as JSON objects with a "type": its metadata ("session") and its records. `MIGRATIONS[n]`
takes one object of version n and returns it as version n + 1 has it; objects go up step by step. To change a
stored form, raise `VERSION`, add the step, and keep an old file in tests/memory/files.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from types import NoneType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.agent.context.compaction import SUMMARY
from swink.errors import InvalidInput, SessionUnreadable
from swink.messages import AssistantMessage, CustomMessage, Text, UserMessage
from swink.messages.checks import check_type
from swink.messages.records import Compaction, CustomSaved, MessageSaved, ModelChange, Record
from swink.system.shorten import clip_end

VERSION = 1
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
_TITLE = 60
"""Characters of the first prompt that make a title."""
_BAD_IN_ID = re.compile(r"[\x00-\x1f\x7f/\\:]|\.\.")
_LONGEST_ID = 128
"""Bytes: an id is the name of a file."""


class SessionMeta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a list of sessions shows. `sequence` counts the appends.

    Args:
        id: its id
        title: what people call it
        created: when it was begun, in seconds since 1970
        updated: when it was written to last
        parent: the id of the session that it was forked from
        model: the model that was asked last
        messages: how many there are
    """

    id: str
    title: str = ""
    created: float
    updated: float
    version: int
    """Of the form in which it is stored."""
    sequence: int = 0
    parent: str | None = None
    forked_at: int | None = None
    """How many messages it shares with its parent."""
    directory: str | None = None
    """Where the conversation took place."""
    model: str | None = None
    messages: int = 0
    turns: int = 0
    """Prompts of the user."""
    cost: float = 0.0
    """Of its own replies and summaries: what a fork shares with its parent was paid there."""
    unpriced: bool = False
    """Whether some reply's cost is unknown, so that there is more than `cost`."""


def new_meta(
    title: str = "", *, id: str | None = None, directory: str | None = None, now: float | None = None
) -> SessionMeta:
    """The metadata of a new session."""
    check_type("title", title, str)
    check_type("directory", directory, (str, NoneType))
    now = time.time() if now is None else now
    return SessionMeta(
        id=new_id(now) if id is None else check_id(id),
        title=title,
        created=now,
        updated=now,
        version=VERSION,
        directory=directory,
    )


def new_id(now: float) -> str:
    """An id that no other session has: YYYYMMDD_HHMMSS_<32 hex>, UTC."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(16)}"


def check_id(id: str) -> str:
    """The id, refused unless it is a plain name."""
    if not isinstance(id, str):
        raise InvalidInput(f"a session id is a str, not {type(id).__name__}")
    if not id.strip() or _BAD_IN_ID.search(id) or not id.isprintable() or len(id.encode()) > _LONGEST_ID:
        raise InvalidInput(
            f"{id[:40]!r} is no session id: 1 to {_LONGEST_ID} bytes, no separators, '..', ':' "
            "or control characters"
        )
    return id


def grown(meta: SessionMeta, records: Iterable[Record], now: float | None = None) -> SessionMeta:
    """The metadata after one more append of these records."""
    title, model = meta.title, meta.model
    messages, turns, cost, unpriced = meta.messages, meta.turns, meta.cost, meta.unpriced
    shared = meta.forked_at or 0
    for record in records:
        match record:
            case MessageSaved() | CustomSaved():
                messages += 1
                message = record.message
                if isinstance(message, UserMessage):
                    turns += 1
                    title = title or title_of(_first_text(message))
                elif messages <= shared:
                    pass
                elif isinstance(message, AssistantMessage):
                    cost += 0.0 if message.cost is None else message.cost.total
                    unpriced = unpriced or (message.cost is None and bool(message.usage.total))
                elif isinstance(message, CustomMessage):
                    spent = _cost_of(message)
                    cost += spent or 0.0
                    unpriced = unpriced or spent is None
            case Compaction(cost=spent) if messages > shared:
                cost += 0.0 if spent is None else spent.total
                unpriced = unpriced or spent is None
            case ModelChange(changed):
                model = str(changed)
            case _:
                pass
    return replace(
        meta,
        title=title,
        model=model,
        messages=messages,
        turns=turns,
        cost=cost,
        unpriced=unpriced,
        version=VERSION,
        sequence=meta.sequence + 1,
        updated=time.time() if now is None else now,
    )


_MOST_COST = 1e12
"""What is more, negative or no number is no cost: an application may write such a message itself."""


def _cost_of(message: CustomMessage) -> float | None:
    """What a summary that was made in a run has cost; None: unknown."""
    match message:
        case CustomMessage(kind=kind, data={"cost": None}) if kind == SUMMARY:
            return None
        case CustomMessage(kind=kind, data={"cost": int() | float() as cost}) if kind == SUMMARY:
            return float(cost) if 0 <= cost < _MOST_COST else None
        case _:
            return 0.0


def _first_text(message: UserMessage) -> str:
    """What was said; texts after it are files that went along."""
    return next((block.text for block in message.content if isinstance(block, Text) and block.text), "")


def title_of(prompt: str) -> str:
    """The first words of a prompt."""
    words = "".join(character if character.isprintable() else " " for character in prompt[:1000]).split()
    text = ""
    for word in words:
        if text and len(text) + 1 + len(word) > _TITLE:
            return text + " …"
        text = f"{text} {word}".strip()
    return clip_end(text, _TITLE, " …")


def check_version(version: Any, where: str) -> int:
    """The version of what is stored, refused unless this release can read it."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise SessionUnreadable(f"{where} is no session of swink: its version is {version!r}")
    if version > VERSION:
        raise SessionUnreadable(
            f"{where} was written by a newer release of swink (version {version}; this one reads up to"
            f" {VERSION}): update swink to open it. Nothing was changed"
        )
    if any(step not in MIGRATIONS for step in range(version, VERSION)):
        raise SessionUnreadable(f"{where} has version {version}, which this release of swink cannot read")
    return version


def migrated(data: dict[str, Any], version: int) -> dict[str, Any]:
    """An object as this release has it."""
    for step in range(version, VERSION):
        data = MIGRATIONS[step](data)
    return data
