"""AuditLogger: what an agent did, in an append-only file whose chain of hashes shows any change.

Each line is a JSON object that ends in its own hash: SHA-256, or HMAC-SHA-256 with a key, over every byte of the line
before it; the line begins with the hash of the line before. Cutting off the newest lines leaves a sound chain, so the
head (number and hash of the newest record) can be kept elsewhere too.
"""

import asyncio
import hashlib
import hmac
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from swink.codec import plain, to_builtins
from swink.filelock import locked
from swink.messages import ToolCall, ToolResultMessage
from swink.policy import Policy, PolicyContext, Turn
from swink.redact import redact_value

GENESIS = "0" * 64
_TAIL = re.compile(rb',"hash":"([0-9a-f]{64})"\}')
_TAIL_LENGTH = len(b',"hash":"') + 64 + len(b'"}')


class Head(Struct, frozen=True):
    """The newest record: how many there are, and its hash."""

    records: int
    hash: str


class Verification(Struct, frozen=True):
    """What reading a log came to; `ok` if nothing in it was changed."""

    records: int
    problems: tuple[str, ...]
    head: Head

    @property
    def ok(self) -> bool:
        """Whether the log is as it was written."""
        return not self.problems


class AuditLogger(Policy):
    """One line per turn and one per finished run: model, calls with arguments, results, usage, cost.

    Secrets are redacted, texts are cut to `max_text` characters. With a `key` only its holder can write lines that
    verify. `anchor` keeps the head: a file (better on another machine), or a function that sends it somewhere.
    Several threads and processes may share a file. A log that cannot be written is reported and the run goes on;
    `required=True` stops it instead. Turns that end in an error or an abort reach no policy and are not in it.

    >>> agent = Agent(model, policies=[AuditLogger("audit.jsonl", anchor="audit.head")])
    >>> AuditLogger.verify("audit.jsonl", head="audit.head").ok
    """

    def __init__(
        self,
        path: str | Path,
        *,
        key: str | bytes | None = None,
        anchor: str | Path | Callable[[Head], None] | None = None,
        max_text: int = 2_000,
        label: str = "",
        required: bool = False,
    ) -> None:
        self.path = Path(path)
        self.max_text = max_text
        self.label = label
        self.fail_closed = required  # pyright: ignore[reportAttributeAccessIssue]
        self._key = key.encode() if isinstance(key, str) else key
        self._anchor: Callable[[Head], None] | None = anchor if anchor is None or callable(anchor) else _anchor_file(Path(anchor))

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Write the turn down."""
        message = turn.message
        results = {result.tool_call_id: result for result in turn.tool_results}
        await self.write(
            {
                "event": "turn",
                "turn": ctx.turn,
                "reason": turn.reason,
                "model": f"{message.provider}:{message.model}",
                "input": [self._cut(item.text) for item in ctx.fresh if item.text],
                "text": self._cut(message.text),
                "calls": [self._call(call, results.get(call.id)) for call in message.tool_calls],
                "usage": to_builtins(message.usage),
                "cost": None if message.cost is None else message.cost.total,
            }
        )

    async def post_loop(self, ctx: PolicyContext) -> None:
        """Write down that the run is done, and what it came to."""
        cost = None if ctx.cost is None else ctx.cost.total
        await self.write({"event": "end", "turns": ctx.turn, "usage": to_builtins(ctx.usage), "cost": cost})

    async def write(self, record: dict[str, Any]) -> None:
        """Append a record of your own; secrets in it are redacted."""
        await asyncio.to_thread(self.append, redact_value(record))

    def append(self, record: dict[str, Any]) -> Head:
        """Append a record as it is, under a lock that other processes respect."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a+b") as file, locked(file):
            last, torn = _last_line(file)
            if torn and self._is_whole(torn):
                last, torn = torn, b""
                file.write(b"\n")
            number, previous = (0, GENESIS) if last is None else _position(last)
            if torn:
                # A crash cut the newest line short: end it, and vouch for what is left of it.
                line, previous = self._line(number, previous, {"event": "recovered", "torn_sha256": hashlib.sha256(torn).hexdigest()})
                file.write(b"\n" + line)
                number += 1
            line, digest = self._line(number, previous, record)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            head = Head(number + 1, digest)
            if self._anchor is not None:
                self._anchor(head)
        return head

    @staticmethod
    def verify(path: str | Path, *, key: str | bytes | None = None, head: Head | str | Path | None = None) -> Verification:
        """Read a log and report every place where it is not as it was written."""
        return verify(path, key=key, head=head)

    def _line(self, number: int, previous: str, record: dict[str, Any]) -> tuple[bytes, str]:
        stamp: dict[str, Any] = {"prev": previous, "seq": number, "time": time.time()}
        if self.label:
            stamp["label"] = self.label
        body = msgspec.json.encode(stamp | record, enc_hook=plain)[:-1]
        digest = _digest(body, self._key)
        return body + b',"hash":"' + digest.encode() + b'"}\n', digest

    def _is_whole(self, line: bytes) -> bool:
        found = _TAIL.fullmatch(line[-_TAIL_LENGTH:])
        return found is not None and _digest(line[:-_TAIL_LENGTH], self._key) == found.group(1).decode()

    def _call(self, call: ToolCall, result: ToolResultMessage | None) -> dict[str, Any]:
        outcome: dict[str, Any] = {} if result is None else {"is_error": result.is_error, "result": self._cut(result.text)}
        return {"id": call.id, "name": call.name, "arguments": call.arguments, **outcome}

    def _cut(self, text: str) -> str:
        return text if len(text) <= self.max_text else f"{text[: self.max_text]}[… {len(text) - self.max_text} more characters]"


def verify(path: str | Path, *, key: str | bytes | None = None, head: Head | str | Path | None = None) -> Verification:
    """Read a log and report every place where it is not as it was written, cut-off lines included if `head` is given."""
    key = key.encode() if isinstance(key, str) else key
    data = Path(path).read_bytes()
    lines = data.split(b"\n")
    problems: list[str] = [] if lines.pop() == b"" else [f"line {len(lines) + 1}: does not end"]
    records, previous, torn = 0, GENESIS, b""
    for number, line in enumerate(lines, 1):
        found = _TAIL.fullmatch(line[-_TAIL_LENGTH:])
        if found is None or not line.startswith(b'{"prev":"'):
            problems += [f"line {number}: is not a record"]
            torn = line
            continue
        digest = found.group(1).decode()
        body = line[:-_TAIL_LENGTH]
        if not hmac.compare_digest(_digest(body, key), digest):
            problems += [f"line {number}: was changed, or written with another key"]
        elif _position(line)[0] - 1 != records or not body.startswith(b'{"prev":"%s"' % previous.encode()):
            problems += [f"line {number}: does not follow the line before; lines were removed, added or moved"]
        elif torn and b'"torn_sha256":"%s"' % hashlib.sha256(torn).hexdigest().encode() in body:
            problems = [problem for problem in problems if problem != f"line {number - 1}: is not a record"]
        records, previous, torn = records + 1, digest, b""
    end = Head(records, previous)
    problems += _compare(end, _read_head(head))
    return Verification(records, tuple(problems), end)


def _digest(body: bytes, key: bytes | None) -> str:
    return hmac.new(key, body, hashlib.sha256).hexdigest() if key is not None else hashlib.sha256(body).hexdigest()


def _position(line: bytes) -> tuple[int, str]:
    """The number of the record after a line, and the hash it must name."""
    found = re.match(rb'\{"prev":"[0-9a-f]{64}","seq":(\d{1,18}),', line)
    tail = _TAIL.fullmatch(line[-_TAIL_LENGTH:])
    return (int(found.group(1)) + 1 if found else 0), (tail.group(1).decode() if tail else GENESIS)


def _last_line(file: BinaryIO) -> tuple[bytes | None, bytes]:
    """The newest whole record, and what follows the last line break: nothing, unless a crash cut a line short."""
    end = position = file.seek(0, os.SEEK_END)
    torn = b""
    while position > 0:
        position = max(0, position - 65_536)
        file.seek(position)
        *lines, torn = file.read(end - position).split(b"\n")
        whole = lines if position == 0 else lines[1:]
        found = next((line for line in reversed(whole) if _TAIL.fullmatch(line[-_TAIL_LENGTH:])), None)
        if found is not None:
            return found, torn
    return None, torn


def _anchor_file(path: Path) -> Callable[[Head], None]:
    def keep(head: Head) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        new.write_bytes(msgspec.json.encode(head))
        os.replace(new, path)

    return keep


def _read_head(head: Head | str | Path | None) -> Head | None:
    return msgspec.json.decode(Path(head).read_bytes(), type=Head) if isinstance(head, str | Path) else head


def _compare(end: Head, head: Head | None) -> list[str]:
    if head is None or head == end:
        return []
    if head.records != end.records:
        return [f"there are {end.records} records, but the head says {head.records}"]
    return ["the newest record is not the one the head names"]
