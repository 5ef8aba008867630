"""Keys that swink holds never enter a session: those in the environment, stored ones, and those it sent."""

import os
from collections.abc import Sequence
from functools import lru_cache

from swink.messages.jsondata import encode
from swink.messages.records import Record, decode_record, encode_record, encode_records
from swink.messages.redact import LONG_KEY, MARK, sent_keys
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.store import known_keys

_VARIABLES = sorted({name for account in ACCOUNTS.values() for name in account.variables})


def keys_named() -> tuple[str, ...]:
    """The keys in the environment, of all providers; a session looks for them once, for that takes time."""
    return tuple([os.environ[name].strip() for name in _VARIABLES if name in os.environ])


def without_keys(records: Sequence[Record], named: Sequence[str] = ()) -> Sequence[Record]:
    """The records with a mark in place of every key: those named, stored, and sent by this process."""
    keys = _as_json((*named, *known_keys(), *sent_keys()))
    if not keys:
        return records
    lines = encode_records(records)
    if not any(key in lines for key in keys):
        return records
    return [_without(keys, record, encode_record(record)) for record in records]


def text_without_keys(text: str) -> str:
    """A title with a mark in place of every key, as in `without_keys`."""
    keys = {key for key in (*keys_named(), *known_keys(), *sent_keys()) if len(key) >= LONG_KEY}
    for key in sorted(keys, key=len, reverse=True):
        text = text.replace(key, MARK)
    return text


@lru_cache(16)
def _as_json(keys: tuple[str, ...]) -> list[bytes]:
    """The keys as they stand in JSON, the longest first."""
    found = {encode(key)[1:-1] for key in keys if len(key) >= LONG_KEY}
    return sorted(found, key=len, reverse=True)


def _without(keys: Sequence[bytes], record: Record, line: bytes) -> Record:
    if not any(key in line for key in keys):
        return record
    for key in keys:
        line = line.replace(key, MARK.encode())
    return decode_record(line)
