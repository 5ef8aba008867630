"""The JSONL form of a session: what is written, and what can be read of it whatever happened to it.

    {"type":"session","version":1,"id":…,"title":…}                the metadata at the beginning
    {"type":"begin","tx":1}
    {"type":"message","message":{"role":"user",…},"number":0}      the records of one append
    {"type":"commit","tx":1,"meta":{…},"crc":"8c6f0d1e"}           the metadata from here on

`tx` is the session's sequence number after it. A transaction counts if its begin and its commit are there and
nothing between them was changed: `crc` is the CRC-32 of its bytes from the begin to the comma before "crc".
To edit one by hand, remove its crc.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from swink.errors import AgentError, SessionUnreadable
from swink.memory.backend import Loss
from swink.memory.meta import VERSION, SessionMeta, check_version, migrated
from swink.messages.jsondata import decode, decode_with, encode, encode_lines
from swink.messages.records import (
    Record,
    UnknownRecord,
    decode_record,
    decode_records,
    encode_record,
    nulls_in,
)

SESSION, BEGIN, COMMIT = b'{"type":"session",', b'{"type":"begin",', b'{"type":"commit",'
_OWN = (SESSION, BEGIN, COMMIT)
_CRC, _CRC_LENGTH = b',"crc":"', 18
_CURRENT = b',"version":%d,' % VERSION
BAD_LINE = (msgspec.DecodeError, ValueError, RecursionError, AgentError)
"""What a line that was not written like that raises: no JSON, no UTF-8, or a value that we refuse."""


Identity = tuple[int, int, int]
"""Of a file as it is at a moment: inode, size, time of the last change."""


class ScannedSession(Struct):
    """What is in a file."""

    meta: SessionMeta
    records: list[Record]
    losses: list[Loss]
    sound: list[tuple[int, int]]
    """From where to where the transactions go that count."""
    unread: list[tuple[int, int]]
    """And those that are as they were written, but by another release that knew more."""


class _Begin(Struct, gc=False, tag="begin"):
    tx: int


class _Commit(Struct, gc=False, tag="commit"):
    tx: int
    meta: SessionMeta


_commits: "msgspec.json.Decoder[_Commit]" = msgspec.json.Decoder(_Commit)


def header(meta: SessionMeta) -> bytes:
    """The first line of a session file, with the metadata at its beginning."""
    return SESSION + encode(meta)[1:] + b"\n"


def transaction(meta: SessionMeta, records: Sequence[Record]) -> bytes:
    """The lines of one append, after which the session has this metadata."""
    tx = meta.sequence
    lines = None
    if UnknownRecord not in map(type, records):
        lines = encode_lines((_Begin(tx), *records, _Commit(tx, meta)), nulls_in(records))
    body = _line_by_line(meta, records) if lines is None else lines[:-2]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def _line_by_line(meta: SessionMeta, records: Sequence[Record]) -> bytes:
    """The lines of one append up to the checksum, if one of them takes a closer look."""
    tx = b'"tx":%d' % meta.sequence
    lines = [_as_record(encode_record(record)) + b"\n" for record in records]
    return b"".join((BEGIN, tx, b"}\n", *lines, COMMIT, tx, b',"meta":', encode(meta)))


def _as_record(line: bytes) -> bytes:
    """The line of a record; an application's record type may have the name of a line of ours."""
    return b"{ " + line[1:] if line.startswith(_OWN) else line


def last_meta(tail: bytes) -> SessionMeta | None:
    """The metadata in the last commit of the end of a file; None if that takes a closer look."""
    start = tail.rfind(b"\n" + COMMIT)
    end = tail.find(b"\n", start + 1)
    if start < 0 or end < 0:
        return None
    try:
        meta = decode_with(_commits, tail[start + 1 : end]).meta
    except BAD_LINE:
        return None
    return meta if meta.version == VERSION else None


def scan(data: bytes, where: str) -> ScannedSession:
    """Read a file; raises `SessionUnreadable` if there is no session in it, or that of a newer release."""
    return _Reader(data, where).read()


def rewritten(data: bytes, contents: ScannedSession) -> bytes:
    """The file without what is damaged."""
    first = data[: data.find(b"\n") + 1]
    try:
        decode(first, SessionMeta)
    except BAD_LINE:
        first = header(contents.meta)
    spans = sorted([*contents.sound, *contents.unread])
    return first + b"".join(data[start:end] + b"\n" for start, end in spans)


def lines_of(data: bytes, sound: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where the lines of the records in transactions that count begin, and how long they are."""
    for start, end in sound:
        for line in data[start:end].split(b"\n"):
            if line and not line.startswith(_OWN):
                yield start, len(line)
            start += len(line) + 1


class _Damage(ValueError):
    """Why a transaction does not count."""


class _Reader:
    """Goes from begin to commit; what is not a transaction is held line by line, until the next begin."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data = data
        self._view = memoryview(data)
        self._where = where
        self._meta: SessionMeta | None = None
        self._last: tuple[int, int] | None = None
        """Where the last commit is: it has the metadata."""
        self._refusal: SessionUnreadable | None = None
        self._records: list[Record] = []
        self._losses: list[Loss] = []
        self._sound: list[tuple[int, int]] = []
        self._unread: list[tuple[int, int]] = []
        self._held: int | None = None
        """From where on nothing counts."""

    def read(self) -> ScannedSession:
        data, position = self._data, self._header()
        while position < len(data):
            begins = data.startswith(BEGIN, position)
            if begins:
                self._lose_held(position)
            if begins and (end := self._transaction(position)) is not None:
                position = end
            else:
                if self._held is None and not data.startswith(b"\n", position):
                    self._held = position
                position = _line(data, position)[1]
        self._lose_held(len(data))
        meta = self._meta if self._last is None else decode_with(_commits, data[slice(*self._last)]).meta
        if meta is None:
            raise self._refusal or SessionUnreadable(
                f"{self._where} is no session of swink, or nothing of it is left; move it somewhere else"
            )
        return ScannedSession(meta, self._records, self._losses, self._sound, self._unread)

    def _header(self) -> int:
        """Take the first line, if it is as it was written; returns where the next one begins."""
        if not self._data.startswith(SESSION):
            return 0
        end, after = _line(self._data, 0)
        try:
            data = decode(self._data[:end])
            version = check_version(data.get("version"), self._where)
            self._meta = decode(encode(migrated(data, version)), SessionMeta)
        except SessionUnreadable as error:
            self._refusal = error  # unless a transaction can be read
        except BAD_LINE as error:
            self._lose(0, end, f"the first line is damaged: {error}")
        return after

    def _transaction(self, start: int) -> int | None:
        """Take what begins here; returns where the next line begins, or None if its commit is not there."""
        data = self._data
        at = first = data.find(b"\n", start)
        while at >= 0 and not data.startswith(_OWN, at + 1):
            at = data.find(b"\n", at + 1)
        at += 1
        tx = data[start + len(BEGIN) : first - 1]
        if not at or not data.startswith(COMMIT + tx + b",", at):
            return None
        end, after = _line(data, at)
        try:
            self._check(start, at, end)
            if data.find(_CURRENT, at, end) >= 0:
                records = decode_records(data[first + 1 : at])
                self._last = at, end
            else:
                records = self._old(data[first + 1 : at], data[at:end])
        except SessionUnreadable:
            raise
        except _Damage as damage:
            self._lose(start, end, str(damage))
        except BAD_LINE as error:
            self._lose(start, end, f"this release cannot read it: {error}")
            self._unread.append((start, end))
        else:
            self._records += records
            self._sound.append((start, end))
        return after

    def _check(self, start: int, commit: int, end: int) -> None:
        """Whether a transaction is as it was written."""
        crc = end - _CRC_LENGTH
        if self._data.startswith(_CRC, crc):
            if not self._data.startswith(_CRC + b'%08x"}' % zlib.crc32(self._view[start:crc]), crc):
                raise _Damage('it was changed; to use it as it is now, remove "crc" from its last line')
        elif not _is_whole(self._data[commit:end]):
            raise _Damage("its last line was changed, or cut off")

    def _old(self, lines: bytes, commit: bytes) -> list[Record]:
        """The records of a transaction that another release wrote."""
        meta = {"type": "session", **decode(commit)["meta"]}
        version = check_version(meta.get("version"), self._where)
        objects = [migrated(decode(line), version) for line in lines.split(b"\n") if line]
        records = [decode_record(encode(data)) for data in objects]
        self._meta, self._last = decode(encode(migrated(meta, version)), SessionMeta), None
        return records

    def _lose_held(self, end: int) -> None:
        if (start := self._held) is not None:
            self._held = None
            if self._data.startswith(BEGIN, start):
                problem = "it has no commit: whoever wrote it was interrupted, or that line is damaged"
            else:
                problem = "it has no begin: that line is damaged, or it is not by swink"
            self._lose(start, end, problem)

    def _lose(self, start: int, end: int, problem: str) -> None:
        line = self._data.count(b"\n", 0, start) + 1
        self._losses.append(Loss(line, start, end - start, problem))


def _is_whole(commit: bytes) -> bool:
    """Whether the checksum was removed by hand, and nothing else is wrong."""
    try:
        return "crc" not in decode(commit)
    except BAD_LINE:
        return False


def _line(data: bytes, start: int) -> tuple[int, int]:
    """Where a line ends, and the next one begins."""
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end
    inside = data.find(BEGIN, start + 1, end)
    # If the line's end was overwritten, the begin of a transaction is inside of it.
    return (end, end + 1) if inside < 0 else (inside - 1, inside)
