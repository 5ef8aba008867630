"""A session as one JSON document, which can be read back.

{"format": "swink-session", "version": 1,
 "session": {"id": …, "title": …, "created": …, "model": …, "turns": …, "cost": …},
 "records": [{"type": "message", "message": {"role": "user", …}, "number": 0}, …]}
"""

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from swink.errors import InvalidInput
from swink.memory.backend import Stored
from swink.memory.meta import SessionMeta
from swink.messages.checks import check_type
from swink.messages.jsondata import encode, object_of
from swink.messages.records import Record, decode_record, encode_record

FORMAT = "swink-session"
VERSION = 1


class _Document(Struct, frozen=True):
    format: str
    version: int
    session: SessionMeta
    records: list[Raw]


def write_document(meta: SessionMeta, records: Iterable[Record]) -> str:
    """The document: one record a line, so that it can be compared line by line."""
    lines = ",\n".join(encode_record(record).decode() for record in records)
    head = f'"format":"{FORMAT}","version":{VERSION},"session":{encode(meta).decode()}'
    return f'{{{head},"records":[\n{lines}\n]}}\n'


def read_export(text: str | bytes) -> Stored:
    """A session as its `text` was exported; `store.backend.create(stored.meta, stored.records)` keeps it."""
    check_type("read_export()", text, (str, bytes))
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidInput(f"this is no exported session: {error}") from None
    head = object_of(data)
    if head.get("format") != FORMAT:
        raise InvalidInput("this is no session that was exported as JSON; export one with format='json'")
    version = head.get("version")
    if version != VERSION:
        raise InvalidInput(
            f"this session was exported in version {version!r} of the format, and this release reads "
            f"{VERSION}; install a newer release"
        )
    try:
        document = msgspec.json.decode(text, type=_Document)
        return Stored(document.session, tuple(decode_record(bytes(raw)) for raw in document.records))
    except (msgspec.DecodeError, InvalidInput) as error:
        raise InvalidInput(f"this exported session is damaged: {error}") from None
