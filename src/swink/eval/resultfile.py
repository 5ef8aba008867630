"""The result file: results.jsonl, one line for each attempt, as a hash chain that only grows.

    {"prev": hash of the line before, "seq": 0, "time": …, "case_id": "oslo", …, "hash": …}

A line that a crash cut short is dropped when the run is resumed. Of two lines about the same attempt the
later one counts. Beside it, run.json says what the run is about, and results.head how many lines there are.
"""

import hashlib
import hmac
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, overload

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.errors import AgentError, MisuseError
from swink.eval.result import CaseResult, ErrorSource, Manifest
from swink.messages.jsondata import decode_with, encode
from swink.policies.chain import START, Head, head_of, sealed, write_all
from swink.system import filelock
from swink.system.files import write_whole

log = logging.getLogger("swink.eval")
T = TypeVar("T")

RESULTS, MANIFEST, HEAD = "results.jsonl", "run.json", "results.head"
Attempt = tuple[str, int]
"""The id of a case, and the number of the repeat."""


class BadResults(AgentError):
    """A result file cannot be read or continued; what is there stays as it is."""

    kind = "misuse"


class OtherRun(BadResults, MisuseError):
    """The directory has the results of another run."""


class ResultLine(Struct, frozen=True):
    """Where the line of an attempt is, and what of it is needed again and again."""

    case_id: str
    repeat: int = 0
    passed: bool = False
    error_source: ErrorSource | None = None
    error: str | None = None
    cost: float | None = None
    started: float = 0.0
    duration: float = 0.0
    offset: int = 0
    length: int = 0


class Results(Sequence[CaseResult]):
    """The results of a file, each read when it is asked for: transcripts of thousands of cases are large.

    `problems` names the lines that cannot be read.
    """

    def __init__(self, path: Path, entries: Sequence[ResultLine], problems: Sequence[str] = ()) -> None:
        self.path = path
        self.entries = tuple(entries)
        self.problems = tuple(problems)

    def in_order(self, key: Callable[[ResultLine], Any]) -> "Results":
        return Results(self.path, sorted(self.entries, key=key), self.problems)

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> "Results": ...
    def __getitem__(self, index: int | slice) -> "CaseResult | Results":
        if isinstance(index, slice):
            return Results(self.path, self.entries[index], self.problems)
        with self.path.open("rb") as file:
            return _read(file, self.entries[index])

    def __iter__(self) -> Iterator[CaseResult]:
        if not self.entries:
            return
        with self.path.open("rb") as file:
            for entry in self.entries:
                yield _read(file, entry)

    def __repr__(self) -> str:
        return f"Results({str(self.path)!r}, {len(self)} attempts)"


class ResultFile:
    """results.jsonl of a run that goes on: `append` adds a line; one writer at a time, which a lock ensures.

    Lines reach the operating system at once, so that they outlive the program, and the disk at `close`.
    """

    def __init__(self, directory: Path, *, resume: bool = False, key: bytes | None = None) -> None:
        self.directory = directory
        self.path = directory / RESULTS
        self._key = key
        directory.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, 0o600)
        self._file = os.fdopen(descriptor, "a+b")
        try:
            filelock.take_lock(descriptor, 0.0, str(self.path))
            if not resume and os.fstat(descriptor).st_size:
                raise OtherRun(f"{directory} has results already: resume that run, or name another directory")
            self.entries, self.problems, self.head, end = _scan(self._file, self.path)
            os.ftruncate(descriptor, end)
        except TimeoutError as error:
            self._file.close()
            text = f"another run writes to {directory}: wait for it, or name another directory"
            raise BadResults(text) from error
        except BaseException:
            self._file.close()
            raise
        self._end = end
        self._keep_head()

    def append(self, result: CaseResult) -> None:
        """Add a line; all of it is written, or nothing."""
        link = f'{{"prev":"{self.head.hash}","seq":{self.head.records},"time":{time.time()!r},'.encode()
        line, head = sealed(self.head, link + encode(result)[1:], self._key)
        write_all(self._file, line)
        entry = msgspec.convert(result, ResultLine, from_attributes=True)
        self.entries[result.case_id, result.repeat] = replace(entry, offset=self._end, length=len(line))
        self._end += len(line)
        self.head = replace(head, size=self._end)
        self._keep_head()

    def results(self, order: Sequence[Attempt] | None = None) -> Results:
        """What the file holds so far, in the order of those attempts."""
        order = tuple(self.entries) if order is None else order
        entries = [self.entries[attempt] for attempt in order if attempt in self.entries]
        return Results(self.path, entries, self.problems)

    def seal(self) -> dict[str, Any]:
        """The head, and what else `verify` wants to find in summary.json."""
        return seal(self.head, self.directory / MANIFEST, self._key)

    def _keep_head(self) -> None:
        """Say how many lines there are, for `verify`, as long as there is no summary that does."""
        kept = msgspec.to_builtins(self.head)
        if self._key is not None:
            kept["seal"] = signature(kept, self._key)
        write_whole(self.directory / HEAD, msgspec.json.encode(kept), durable=False)

    def close(self) -> None:
        """Bring everything to the disk, and free the lock."""
        if self._file.closed:
            return
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def __enter__(self) -> "ResultFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_results(directory: str | Path) -> Results:
    """The results of a run, in the order in which they were written; read one by one."""
    return load_results(directory)[0]


def read_results(directory: str | Path) -> list[CaseResult]:
    """The results of the run in `directory`; lines that cannot be read are logged."""
    results = open_results(directory)
    for problem in results.problems:
        log.warning("%s", problem)
    return list(results)


def load_results(directory: str | Path) -> tuple[Results, Head]:
    """The results of a run, and the head of their chain."""
    path = Path(directory) / RESULTS
    try:
        with path.open("rb") as file:
            entries, problems, head, end = _scan(file, path)
            if file.seek(0, os.SEEK_END) > end:
                problems.append(f"{path}: the last line is cut short; its case counts as not run")
    except FileNotFoundError as error:
        raise BadResults(f"{directory} has no {RESULTS}: name the directory that a run wrote") from error
    except OSError as error:
        raise BadResults(f"{path} cannot be read: {error.strerror or error}") from error
    return Results(path, [*entries.values()], problems), head


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write run.json, whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / MANIFEST, msgspec.json.format(encode(manifest)) + b"\n", make_parents=True)


def read_manifest(directory: str | Path) -> Manifest | None:
    """What run.json says; None if there is none."""
    return read_beside(Path(directory) / MANIFEST, Manifest)


def read_beside(path: Path, kind: type[T], advice: str = "") -> T | None:
    """A value from a JSON file beside the results; None if there is no such file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadResults(f"{path} cannot be read: {error}{advice}") from error


def seal(head: Head, manifest: Path, key: str | bytes | None = None) -> dict[str, Any]:
    """What summary.json keeps of the files beside it."""
    kept = msgspec.to_builtins(head) | {"run": digest(manifest)}
    return kept if key is None else kept | {"seal": signature(kept, key)}


def digest(path: Path) -> str | None:
    """SHA-256 of a file; None if it is not there."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def signature(kept: dict[str, Any], key: str | bytes) -> str:
    """HMAC-SHA-256 over number and hash of the newest line and the digest of run.json."""
    key = key.encode() if isinstance(key, str) else key
    said = f"{kept.get('records')} {kept.get('hash')} {kept.get('run')}"
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()


def _scan(file: BinaryIO, path: Path) -> tuple[dict[Attempt, ResultLine], list[str], Head, int]:
    """The attempts of a file, lines that cannot be read, the newest head, and the end of the last line."""
    entries: dict[Attempt, ResultLine] = {}
    problems: list[str] = []
    head, end = START, 0
    file.seek(0)
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            break
        if (link := head_of(line[:-1])) is not None:
            head = replace(link, size=end + len(line))
        try:
            entry = _entries.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(f"{path}:{number}: is no result, so its case counts as not run ({error})")
        else:
            entries[entry.case_id, entry.repeat] = replace(entry, offset=end, length=len(line))
        end += len(line)
    return entries, problems, head, end


def _read(file: BinaryIO, entry: ResultLine) -> CaseResult:
    file.seek(entry.offset)
    try:
        return decode_with(_results, file.read(entry.length))
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadResults(f"the result of case {entry.case_id!r} cannot be read: {error}") from error


_entries = msgspec.json.Decoder(ResultLine)
_results: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(CaseResult)
