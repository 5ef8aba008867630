"""Chain: an append-only file of JSON records whose hashes show any change.

Each line is a JSON object that begins with the hash of the line before and ends in its own: SHA-256, or
HMAC-SHA-256 with a key, over every byte before it. The head (number, hash and end of the newest record) is
kept in memory and, with an anchor, in a file: lines or a file that are gone are missed at the next append,
and a record that says so is the next link. Records written beside an anchor say so: it is missed, too.
"""

import hashlib
import hmac
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.system.filelock import is_at, locked
from swink.system.files import write_whole

GENESIS = "0" * 64
_TAIL = re.compile(rb',"hash":"([0-9a-f]{64})"\}')
_TAIL_LENGTH = len(b',"hash":"') + 64 + len(b'"}')
LOCKED_WITHIN = 5.0
"""Seconds to wait for a lock; a process that holds it longer hangs."""
_ATTEMPTS = 3
_BROKEN = b'"event":"broken"'
_ANCHORED = re.compile(rb'\{"prev":"[0-9a-f]{64}","seq":\d+,"time":[\d.eE+-]+,"anchored":true[,}]')


class Head(Struct, frozen=True):
    """The newest record: its number, its hash, and the size of the log up to its end (0: unknown).

    Args:
        records: how many there are
    """

    records: int
    hash: str
    size: int = 0

    def is_also(self, other: "Head") -> bool:
        """Whether both, this and the `other`, are of the same record."""
        return (self.records, self.hash) == (other.records, other.hash)


START = Head(0, GENESIS)


class Verification(Struct, frozen=True):
    """What reading a log came to; `ok` if nothing in it was changed.

    Args:
        records: how many lines were read
        problems: each place that is not as it was written
        head: the newest record
    """

    records: int
    problems: tuple[str, ...]
    head: Head

    @property
    def ok(self) -> bool:
        """Whether the log is as it was written."""
        return not self.problems


class Chain(Struct, eq=False):
    """One file, which several threads and processes may append to."""

    path: Path
    key: bytes | None = None
    anchor: Path | Callable[[Head], None] | None = None
    known: Head | None = None

    def append(self, record: dict[str, Any], stamp: dict[str, Any]) -> tuple[Head, str | None]:
        """Add a record, under a lock that other processes respect; also says what is wrong before it."""
        for _ in range(_ATTEMPTS):
            with _open(self.path) as file, locked(file, LOCKED_WITHIN):
                if is_at(file, self.path) and (kept := self._append(file, record, stamp)) is not None:
                    return kept
        raise OSError(f"{self.path} is being deleted again and again")

    def _append(
        self, file: BinaryIO, record: dict[str, Any], stamp: dict[str, Any]
    ) -> tuple[Head, str | None] | None:
        torn = next(_backwards(file))  # what a crash left after the last line break
        head, newest = next(_records(file), (START, b""))
        lines, size = b"", os.fstat(file.fileno()).st_size
        if torn and (whole := self._whole(torn)) is not None:
            lines, head, newest, torn = b"\n", replace(whole, size=size + 1), torn, b""
        problem = self._problem(file, head, newest)
        if torn:
            # A crash cut the newest line short: end it, and record the hash of what is left of it.
            recovered = {"event": "recovered", "torn_sha256": hashlib.sha256(torn).hexdigest()}
            line, head = self._line(head, stamp | recovered)
            lines += b"\n" + line
        if problem is not None:
            line, head = self._line(head, stamp | {"event": "broken", "problem": problem})
            lines += line
        line, head = self._line(head, stamp | record)
        head = replace(head, size=size + len(lines) + len(line))
        write_all(file, lines + line, durable=True)
        if not is_at(file, self.path):
            return None  # the file was deleted meanwhile, and with it the new record
        self.known = head
        self._keep(head)
        return head, problem

    def _problem(self, file: BinaryIO, head: Head, newest: bytes) -> str | None:
        """What is wrong with the records that were there before."""
        problems = [] if self.known is None else _missing(file, head, self.known, "were written")
        if isinstance(self.anchor, Path):
            try:
                anchored = read_head(self.anchor)
            except FileNotFoundError:
                if self.known is not None or _ANCHORED.match(newest):
                    problems.append("the anchor file is gone")
                else:
                    self._keep(head)  # the first record that relies on the anchor follows
            except (OSError, msgspec.DecodeError):
                problems.append("the anchor file cannot be read")
            else:
                problems += _missing(file, head, anchored, "are in the anchor file")
        return problems[0] if problems else None

    def _line(self, head: Head, record: dict[str, Any]) -> tuple[bytes, Head]:
        link = {"prev": head.hash, "seq": head.records, "time": time.time()}
        link |= {"anchored": True} if isinstance(self.anchor, Path) else {}
        # The link comes first, and wins over keys of the record.
        return sealed(head, msgspec.json.encode(link | record | link), self.key)

    def _whole(self, line: bytes) -> Head | None:
        """The head that a line makes, if only its line break is missing."""
        found = _TAIL.fullmatch(line[-_TAIL_LENGTH:])
        if found is None or _digest(line[:-_TAIL_LENGTH], self.key) != found.group(1).decode():
            return None
        return _head(line)

    def _keep(self, head: Head) -> None:
        if isinstance(self.anchor, Path):
            write_whole(self.anchor, msgspec.json.encode(head), make_parents=True)
        elif self.anchor is not None:
            self.anchor(head)


def verify(
    path: str | Path, *, key: str | bytes | None = None, head: Head | str | Path | None = None
) -> Verification:
    """Read a log and report every place that was changed; with a `head` also lines missing at the end."""
    key = key.encode() if isinstance(key, str) else key
    data = Path(path).read_bytes()
    lines = data.split(b"\n")
    problems: list[str] = [] if lines.pop() == b"" else [f"line {len(lines) + 1}: does not end"]
    records, expected, previous, torn, size, position = 0, 0, GENESIS, b"", 0, 0
    for number, line in enumerate(lines, 1):
        position += len(line) + 1
        found = _TAIL.fullmatch(line[-_TAIL_LENGTH:])
        if found is None or not line.startswith(b'{"prev":"'):
            problems += [f"line {number}: is not a record"]
            torn = line
            continue
        digest = found.group(1).decode()
        body = line[:-_TAIL_LENGTH]
        if not hmac.compare_digest(_digest(body, key), digest):
            problems += [f"line {number}: was changed, or written with another key"]
        elif _head(line).records - 1 != expected or not body.startswith(b'{"prev":"%s"' % previous.encode()):
            moved = "does not follow the line before; lines were removed, added or moved"
            problems += [f"line {number}: {moved}"]
        elif torn and b'"torn_sha256":"%s"' % hashlib.sha256(torn).hexdigest().encode() in body:
            problems = [problem for problem in problems if problem != f"line {number - 1}: is not a record"]
        elif _BROKEN in body and (record := msgspec.json.decode(line)).get("event") == "broken":
            problems += [f"line {number}: the chain was broken before it: {record.get('problem')}"]
        records, expected, previous, torn, size = records + 1, _head(line).records, digest, b"", position
    end = Head(records, previous, size)
    problems += _compare(end, read_head(head) if isinstance(head, str | Path) else head)
    return Verification(records, tuple(problems), end)


def sealed(head: Head, record: bytes, key: bytes | None = None) -> tuple[bytes, Head]:
    """The line of a record, a JSON object that begins with its link, and the head it makes after `head`."""
    body = record[:-1]
    digest = _digest(body, key)
    return body + b',"hash":"' + digest.encode() + b'"}\n', Head(head.records + 1, digest)


def head_of(line: bytes) -> Head | None:
    """The head that a whole line makes, without its line break; None if it is no record."""
    is_record = line.startswith(b'{"prev":"') and _TAIL.fullmatch(line[-_TAIL_LENGTH:])
    return _head(line) if is_record else None


def read_head(path: str | Path) -> Head:
    """The head that an anchor file keeps."""
    return msgspec.json.decode(Path(path).read_bytes(), type=Head)


def _open(path: Path) -> BinaryIO:
    """The file, readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):  # not every system has each
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(f"{path} is not a regular file")
        if mode & 0o077 and hasattr(os, "fchmod"):
            with suppress(PermissionError):  # it belongs to another user
                os.fchmod(descriptor, 0o600)
        return os.fdopen(descriptor, "a+b")
    except BaseException:
        os.close(descriptor)
        raise


def write_all(file: BinaryIO, data: bytes, *, durable: bool = False) -> None:
    """Append everything, or nothing; if `durable`, it is on the disk then."""
    end = os.fstat(file.fileno()).st_size
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(file.fileno(), left) :]
        if durable:
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            os.ftruncate(file.fileno(), end)
        raise


def _missing(file: BinaryIO, newest: Head, known: Head, where: str) -> list[str]:
    """What is wrong if the last known record is not in its place; newer ones may follow it."""
    if newest.records < known.records:
        return [f"{known.records} records {where}, {newest.records} are left"]
    if known.records == 0:
        return []
    older = (head for head, _ in _records(file) if head.records <= known.records)
    found = newest if newest.is_also(known) else next(older, None)
    if found is None or not found.is_also(known):
        return [f"record {known.records} is not the one that was written"]
    if known.size and found.size != known.size:
        return [f"{known.size} bytes up to record {known.records} {where}, there are {found.size}"]
    return []


def _records(file: BinaryIO) -> Iterator[tuple[Head, bytes]]:
    """The whole records from the last to the first, each with its line."""
    lines = _backwards(file)
    end = os.fstat(file.fileno()).st_size - len(next(lines))
    for line in lines:
        if _TAIL.fullmatch(line[-_TAIL_LENGTH:]):
            yield replace(_head(line), size=end), line
        end -= len(line) + 1


def _backwards(file: BinaryIO) -> Iterator[bytes]:
    """The lines from the last to the first; the last is empty if the file ends in a line break."""
    position, step, rest = file.seek(0, os.SEEK_END), 65_536, b""
    while position > 0:
        start = max(0, position - step)
        file.seek(start)
        rest, *lines = (file.read(position - start) + rest).split(b"\n")
        yield from reversed(lines)
        position, step = start, 2 * step  # a long line is read in linear time
    yield rest


def _head(line: bytes) -> Head:
    """The head that a record makes."""
    found = re.match(rb'\{"prev":"[0-9a-f]{64}","seq":(\d{1,18}),', line)
    tail = _TAIL.fullmatch(line[-_TAIL_LENGTH:])
    return Head(int(found.group(1)) + 1 if found else 0, tail.group(1).decode() if tail else GENESIS)


def _digest(body: bytes, key: bytes | None) -> str:
    return (hashlib.sha256(body) if key is None else hmac.new(key, body, hashlib.sha256)).hexdigest()


def _compare(end: Head, head: Head | None) -> list[str]:
    if head is None or head.is_also(end):
        return []
    if head.records != end.records:
        return [f"there are {end.records} records, but the head says {head.records}"]
    return ["the newest record is not the one the head names"]
