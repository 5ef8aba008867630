"""A trace file: spans in Chrome's trace event format, which Perfetto and chrome://tracing open.

A span is drawn in the lane of the one around it; what runs concurrently gets a lane of its own, since spans
of one lane must nest. The array is written as spans end: one that was cut off still opens.
"""

import logging
import os
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from swink.errors import MisuseError
from swink.messages.codec import plain
from swink.system.files import open_private
from swink.system.threads import Serial
from swink.telemetry.conventions import TOKEN_TYPE, TOKENS, Attributes, Kind
from swink.telemetry.recorder import Measurement
from swink.telemetry.spans import add_exporter, remove_exporter

log = logging.getLogger("swink.telemetry")

_AT_ONCE = 64
_AT_LEAST_EVERY = 1.0
"""Events that are written together, and seconds after which fewer are."""

_encoder = msgspec.json.Encoder(enc_hook=plain)


@contextmanager
def tracing(path: str | Path, *, content: bool = False) -> Generator[None]:
    """Write a trace of all that agents of this process do in this block to `path`; open it at
    ui.perfetto.dev.

    What is still under way at its end is written as unfinished. `content=True` adds what messages, arguments
    and results say.

    >>> with tracing("trace.json"):
    ...     agent.run_sync("What should I wear in Oslo?")
    """
    file = TraceFile(path, content)
    add_exporter(file)
    try:
        yield
    finally:
        remove_exporter(file)
        file.close()


class TraceFile:
    """Takes spans and writes them to a file; from any thread."""

    def __init__(self, path: str | Path, content: bool = False) -> None:
        self.content = content
        self._path = Path(path)
        try:
            file = open(self._path, "wb", opener=open_private)  # noqa: SIM115 - closed by close()
            self._file: BinaryIO | None = file
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise MisuseError(f"the trace file {self._path} cannot be written: {reason}") from error
        self._began = time.perf_counter()
        self._lock = threading.RLock()  # a span may end in a destructor
        self._writing = threading.Lock()
        self._serial = Serial()
        self._lanes: list[list[FileSpan]] = []
        self._spans = 0
        self._tokens = {"input": 0, "output": 0}
        self._waiting: list[bytes] = []
        self._head = b"[\n"
        self._written = self._began
        began = {"name": "swink", "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        self._put({"ph": "M", "name": "process_name", "args": began})

    def is_idle(self) -> bool:
        return False

    def begin_span(self, name: str, kind: Kind, attributes: Attributes, parent: Any) -> "FileSpan":
        """Begin a span, in a lane where it nests."""
        with self._lock:
            self._spans += 1
            span = FileSpan(self, self._spans, name, self._now(), dict(attributes), parent)
            is_inside = isinstance(parent, FileSpan) and not parent.ended
            if is_inside and self._lanes[parent.lane][-1] is parent:
                span.lane = parent.lane
            else:
                free = [number for number, lane in enumerate(self._lanes) if not lane]
                span.lane = free[0] if free else self._add_lane([])
            self._lanes[span.lane].append(span)
        return span

    def end_span(self, span: "FileSpan") -> None:
        """Write a span; what goes on above it in its lane, such as a run that outlives its call, moves."""
        with self._lock:
            if span.ended or self._file is None:
                return
            span.ended = True
            lane = self._lanes[span.lane]
            place = next(number for number, other in enumerate(lane) if other is span)
            above = lane[place + 1 :]
            del lane[place:]
            if above:
                number = self._add_lane(above)
                for other in above:
                    other.lane = number
            took = round(self._now() - span.began, 3)
            at = {"ts": span.began, "dur": took, "tid": span.lane + 1}
            self._put({"ph": "X", "name": span.name, "cat": "swink", **at, "args": span.arguments()})

    def mark(self, span: "FileSpan", name: str, attributes: Attributes) -> None:
        """Write that something happened inside a span."""
        with self._lock:
            if not span.ended:
                at = {"ts": self._now(), "tid": span.lane + 1}
                self._put({"ph": "i", "name": name, "cat": "swink", "s": "t", **at, "args": attributes})

    def measure(self, measured: Sequence[Measurement]) -> None:
        """Draw the tokens so far as a curve; durations are seen anyway."""
        tokens = [(labels[TOKEN_TYPE], int(value)) for name, value, labels in measured if name == TOKENS]
        if tokens:
            with self._lock:
                for kind, count in tokens:
                    self._tokens[kind] += count
                self._put({"ph": "C", "name": "tokens", "ts": self._now(), "args": dict(self._tokens)})

    def close(self) -> None:
        """Write what is still under way as unfinished, and end the file."""
        with self._lock:
            for lane in self._lanes:
                for span in [*reversed(lane)]:
                    span.note({"swink.unfinished": True})
                    self.end_span(span)
            self._write()
            with self._writing:
                file, self._file = self._file, None
                if file is not None:
                    try:
                        file.write(b"\n]\n")
                        file.close()
                    except OSError as error:
                        self._give_up(error)

    def _now(self) -> float:
        return round((time.perf_counter() - self._began) * 1e6, 3)

    def _add_lane(self, spans: "list[FileSpan]") -> int:
        self._lanes.append(spans)
        number = len(self._lanes)
        name = "agents" if number == 1 else f"concurrent {number}"
        self._put({"ph": "M", "name": "thread_name", "tid": number, "args": {"name": name}})
        return number - 1

    def _put(self, event: dict[str, Any]) -> None:
        with self._lock:
            if self._file is None:
                return
            event = {"tid": 0, **event, "pid": os.getpid()}
            try:
                data = _encoder.encode(event)
            except (TypeError, ValueError, RecursionError, NotImplementedError):
                data = _encoder.encode({**event, "args": {}})  # attributes of the application's own
            self._waiting.append(self._head + data)
            self._head = b",\n"
            now = time.perf_counter()
            if len(self._waiting) >= _AT_ONCE or now - self._written > _AT_LEAST_EVERY:
                self._written = now
                self._serial.start(self._write)

    def _write(self) -> None:
        """Write what waits, in a thread: a disk may be slow."""
        with self._writing:
            waiting, self._waiting = self._waiting, []
            if self._file is None or not waiting:
                return
            try:
                self._file.write(b"".join(waiting))
                self._file.flush()
            except OSError as error:
                self._give_up(error)
                self._file = None

    def _give_up(self, error: OSError) -> None:
        log.warning("the trace file %s is not complete: %s", self._path, error.strerror)


class FileSpan:
    """A span on its way to a file."""

    __slots__ = ("_attributes", "_file", "_number", "_parent", "began", "ended", "lane", "name")
    wants_more = True

    def __init__(
        self, file: TraceFile, number: int, name: str, began: float, attributes: Attributes, parent: Any
    ) -> None:
        self.name = name
        self.began = began
        self.lane = 0
        self.ended = False
        self._file = file
        self._number = number
        self._attributes = attributes
        self._parent = parent._number if isinstance(parent, FileSpan) else None

    def arguments(self) -> dict[str, Any]:
        parent = {} if self._parent is None else {"parent": self._parent}
        return {"span": self._number, **parent, **self._attributes}

    def enter(self) -> None:
        """The recorder knows which one is current."""

    def leave(self) -> None:
        """The recorder knows which one is current."""

    def headers(self) -> Mapping[str, str]:
        """There is nobody to tell."""
        return {}

    def note(self, attributes: Attributes) -> None:
        self._attributes |= attributes

    def event(self, name: str, attributes: Attributes) -> None:
        self._file.mark(self, name, attributes)

    def end(self, failure: str | None) -> None:
        if failure is not None:
            self._attributes["failure"] = failure
        self._file.end_span(self)
