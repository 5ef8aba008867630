"""The JSONL form of a session: what is written, and what can be read of it whatever happened to it.

    {"type":"session","version":1,"id":…,"title":…}                the metadata at the beginning
    {"type":"begin","tx":"5f3a91c2"}
    {"type":"message","message":{"role":"user",…},"number":0}      the records of one append
    {"type":"commit","tx":"5f3a91c2","meta":{…},"crc":"8c6f0d1e"}  the metadata from here on

A transaction counts if its begin and its commit are there and nothing between them was changed: `crc` is the
CRC-32 of its bytes from the begin up to the comma before "crc". One without it was edited by hand and counts.
"""

import secrets
import zlib
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from swink.errors import AgentError, SessionUnreadable
from swink.jsondata import decode, decode_with, encode
from swink.memory.meta import VERSION, SessionMeta
from swink.memory.migrations import check_version, migrated
from swink.records import Record, decode_record, encode_record

SESSION, BEGIN, COMMIT = b'{"type":"session",', b'{"type":"begin",', b'{"type":"commit",'
_OWN = (SESSION, BEGIN, COMMIT)
_CRC, _CRC_LENGTH = b',"crc":"', 18
_BAD_LINE = (msgspec.DecodeError, ValueError, RecursionError, AgentError)
"""What a line that was not written like that raises: no JSON, no UTF-8, or a value that we refuse."""


class Loss(Struct, frozen=True):
    """A part of a stored session that cannot be used: where it is, how much, and why."""

    line: int
    """The number of its first line, counted from 1."""
    offset: int
    bytes: int
    problem: str
    transaction: str = ""


class Contents(Struct):
    """What is in a file."""

    meta: SessionMeta
    records: list[Record]
    losses: list[Loss]
    sound: list[tuple[int, int]]
    """Where the transactions that count begin and end."""


class _Commit(Struct):
    tx: str
    meta: SessionMeta


_commits: "msgspec.json.Decoder[_Commit]" = msgspec.json.Decoder(_Commit)


def header(meta: SessionMeta) -> bytes:
    """The first line."""
    return SESSION + encode(meta)[1:] + b"\n"


def transaction(meta: SessionMeta, records: Sequence[Record]) -> bytes:
    """The lines of one append, after which the session has this metadata."""
    tx = secrets.token_hex(4).encode()
    lines = [BEGIN, b'"tx":"', tx, b'"}\n']
    for record in records:
        line = encode_record(record)
        if line.startswith(_OWN):
            line = b"{ " + line[1:]  # somebody's own record type has the name of a line of ours
        lines += line, b"\n"
    lines += COMMIT, b'"tx":"', tx, b'","meta":', encode(meta)
    body = b"".join(lines)
    return b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def last_meta(tail: bytes) -> SessionMeta | None:
    """The metadata in the last commit of the end of a file; None if that takes a closer look."""
    start = tail.rfind(b"\n" + COMMIT)
    end = tail.find(b"\n", start + 1)
    if start < 0 or end < 0:
        return None
    try:
        meta = decode_with(_commits, tail[start + 1 : end]).meta
    except _BAD_LINE:
        return None
    return meta if meta.version == VERSION else None


def scan(data: bytes, where: str) -> Contents:
    """Read a file; raises `SessionUnreadable` if there is no session in it, or that of a newer release."""
    return _Reader(data, where).read()


class _Damage(ValueError):
    """Why a transaction does not count."""


class _Reader:
    def __init__(self, data: bytes, where: str) -> None:
        self._view = memoryview(data)
        self._where = where
        self._meta: SessionMeta | None = None
        self._refusal: SessionUnreadable | None = None
        self._records: list[Record] = []
        self._losses: list[Loss] = []
        self._sound: list[tuple[int, int]] = []
        self._line = 0
        self._held: list[bytes] = []
        """The lines of the transaction that is being read, or lines that stand outside of any."""
        self._first = 0, 0
        """Where they begin: number of the line, and offset."""

    def read(self) -> Contents:
        start = 0
        for line in bytes(self._view).split(b"\n"):
            self._line += 1
            end = start + len(line) + 1
            if line.startswith((SESSION, COMMIT)) and (inside := line.find(BEGIN)) > 0:
                # The end of the line before a begin was overwritten.
                self._take(line[: inside - 1], start)
                line, start = line[inside:], start + inside
            if line:
                self._take(line, start)
            start = end
        self._lose(len(self._view), "it has no commit: whoever wrote it was interrupted")
        if self._meta is None:
            raise self._refusal or SessionUnreadable(
                f"{self._where} is no session of swink, or nothing of it is left; move it somewhere else"
            )
        return Contents(self._meta, self._records, self._losses, self._sound)

    def _take(self, line: bytes, start: int) -> None:
        if line.startswith(SESSION) and self._line == 1 and self._opens(line):
            return
        if line.startswith(BEGIN):
            self._lose(start, "it has no commit: whoever wrote it was interrupted, or the line is damaged")
        if not self._held:
            self._first = self._line, start
        self._held.append(line)
        if line.startswith(COMMIT):
            self._close(start + len(line))

    def _opens(self, line: bytes) -> bool:
        """Take the first line; whether it is as it was written."""
        try:
            data = msgspec.json.decode(line)
            version = check_version(data.get("version"), self._where)
            self._meta = decode(encode(migrated(data, version)), SessionMeta)
        except SessionUnreadable as error:
            self._refusal = error  # unless a transaction is of a version that can be read
        except _BAD_LINE:
            return False
        return True

    def _close(self, end: int) -> None:
        """The end of a transaction: it counts, or it is lost."""
        try:
            meta, records = self._transaction(end)
        except SessionUnreadable:
            raise
        except _Damage as damage:
            self._lose(end, str(damage))
        except _BAD_LINE as error:
            self._lose(end, f"it cannot be read by this release: {error}")
        else:
            self._meta = meta
            self._records += records
            self._sound.append((self._first[1], end))
            self._held = []

    def _transaction(self, end: int) -> tuple[SessionMeta, list[Record]]:
        begin, *lines, last = self._held
        if not begin.startswith(BEGIN):
            raise _Damage("it has no begin: the line is damaged")
        if last[-_CRC_LENGTH:].startswith(_CRC):
            found = zlib.crc32(self._view[self._first[1] : end - _CRC_LENGTH])
            if last[-10:-2] != b"%08x" % found:
                raise _Damage(
                    'it is not as it was written; to use it as it is now, remove "crc" from its commit'
                )
        elif b'"crc"' in last:
            raise _Damage("its commit is damaged")
        tx, meta, version = _commit(last, self._where)
        if decode(begin).get("tx") != tx:
            raise _Damage("its begin and its commit are not those of one transaction")
        if version != VERSION:
            lines = [encode(migrated(msgspec.json.decode(line), version)) for line in lines]
        return meta, [decode_record(line) for line in lines]

    def _lose(self, end: int, problem: str) -> None:
        """What is held does not count."""
        if not self._held:
            return
        line, start = self._first
        tx = ""
        if self._held[0].startswith(BEGIN):
            tx = self._held[0][len(BEGIN) :].decode("utf-8", "replace").strip('"tx:}')
        else:
            problem = f"{problem if self._held[-1].startswith(COMMIT) else 'it is part of no transaction'}"
        self._losses.append(Loss(line, start, end - start, problem, tx))
        self._held = []


def _commit(line: bytes, where: str) -> tuple[str, SessionMeta, int]:
    """The transaction's id, the metadata, and the version in which the transaction was written."""
    try:
        commit = decode_with(_commits, line)
        if commit.meta.version == VERSION:
            return commit.tx, commit.meta, VERSION
    except msgspec.ValidationError:
        pass
    data = msgspec.json.decode(line)
    version = check_version(data["meta"].get("version"), where)
    commit = decode(encode(migrated(data, version)), _Commit)
    return commit.tx, commit.meta, version
