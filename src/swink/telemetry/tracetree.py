"""Trees: the spans of a trace file as they were inside each other, with what they took, used and cost.

A file that was cut off by a kill is read as far as it goes: what had not ended is there as unfinished.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from swink.errors import MisuseError
from swink.system.oneline import shorten

MOST_SPANS = 200_000
_LONGEST_LINE = 64 * 2**20
_LONGEST_DATE, _LONGEST_ERROR = 40, 100
"""Columns that texts of the file may take; it may be anybody's."""
_MOST_TIME, _MOST = 1e15, 10**15
"""Microseconds, tokens and dollars below which a figure can be one."""
_MEANING = "swink run --trace FILE writes one"


class TraceNode(Struct):
    """A span of a trace and those inside it, in the order in which they began."""

    name: str
    began: float
    """Seconds after the beginning of the trace."""
    seconds: float
    input: int | None = None
    output: int | None = None
    cost: float | None = None
    error: str = ""
    """The type of the error that it ended with."""
    unfinished: bool = False
    requests: bool = False
    """Whether it is a request to a model."""
    inside: list["TraceNode"] = field(default_factory=list["TraceNode"])

    def walk(self) -> Iterator["TraceNode"]:
        """Itself and all below it."""
        waiting: list[TraceNode] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.inside))


class Trace(Struct):
    """What a trace file holds."""

    began: str
    """When, as the file says it; empty if it does not."""
    roots: list[TraceNode]
    problems: list[str]
    """What could not be read, in sentences."""

    @property
    def seconds(self) -> float:
        """From the first beginning to the last end."""
        ends = [node.began + node.seconds for node in self.roots]
        return max(ends) - min(node.began for node in self.roots)

    @property
    def requests(self) -> list[TraceNode]:
        """All requests to models, in the order of the tree."""
        return [node for root in self.roots for node in root.walk() if node.requests]


def read_trace(path: str | Path) -> Trace:
    """The tree of a trace file; raises a `MisuseError` for what is none of ours, or too large to show."""
    reader = _Reader(Path(path))
    try:
        with open(path, "rb") as file:
            reader.read(iter(lambda: file.readline(_LONGEST_LINE), b""))
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise MisuseError(f"the trace file {path} cannot be read: {reason}") from error
    return reader.trace()


class _Reader:
    """Takes the lines of a file: a JSON array with an event a line, or with all in one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began = ""
        self._nodes: dict[tuple[Any, int], TraceNode] = {}
        self._above: dict[tuple[Any, int], tuple[Any, int]] = {}
        self._foreign = self._unreadable = 0
        self._ended = False

    def read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = line.strip().removesuffix(b",")
            if text in (b"", b"[", b"]"):
                self._ended = text == b"]" or (self._ended and not text)
                continue
            self._ended = text.startswith((b"[", b"{")) and text.endswith((b"]", b"]}"))
            try:
                self._take_all(msgspec.json.decode(text))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._unreadable += 1
                if not self._nodes and self._unreadable > _TRIES and not self._began:
                    raise self._none_of_ours("it is no trace") from None

    def _take_all(self, found: Any) -> None:
        match found:
            case {"traceEvents": list()}:
                self._take_all(found["traceEvents"])
            case list():
                for event in cast("list[Any]", found):
                    self._take(event)
            case _:
                self._take(found)

    def _take(self, event: Any) -> None:
        match event:
            case {"ph": "M", "name": "process_name", "args": {"name": "swink", "began": str() as began}}:
                self._began = self._began or shorten(began, _LONGEST_DATE)
            case {
                "ph": "X",
                "cat": "swink",
                "name": str() as name,
                "ts": int() | float() as began,
                "dur": int() | float() as took,
                "args": {"span": int() as number, **about},
            } if _is_time(began) and _is_time(took):
                process = event.get("pid")
                process = process if isinstance(process, int | str) else None
                key = process, number
                self._nodes[key] = _node(name, began / 1e6, took / 1e6, about)
                if isinstance(parent := about.get("parent"), int) and parent < number:  # it began before
                    self._above[key] = process, parent
                if len(self._nodes) > MOST_SPANS:
                    what = f"{self._path} has more than {MOST_SPANS:,} spans, too many to show in a terminal"
                    raise MisuseError(f"{what}; open it at ui.perfetto.dev")
            case {"ph": "X", "cat": "swink", "args": {"span": int()}}:
                self._unreadable += 1
            case {"cat": "swink"} | {"ph": "C" | "M"}:
                pass  # marks, curves and the names of lanes
            case _:
                self._foreign += 1

    def trace(self) -> Trace:
        """The tree of what was read, or why there is none."""
        if not self._nodes:
            if self._began:
                raise MisuseError(f"{self._path} has no spans: nothing had ended when it was written")
            why = "it holds other events" if self._foreign else "it is empty"
            raise self._none_of_ours("it is no trace" if self._unreadable else why)
        problems: list[str] = []
        if not self._ended:
            problems.append("the file is cut off: what had not ended then is marked as unfinished")
            self._unreadable = max(self._unreadable - 1, 0)
        if self._unreadable:
            problems.append(f"lines that cannot be read: {self._unreadable:,}")
        return Trace(self._began, self._roots(), problems)

    def _roots(self) -> list[TraceNode]:
        roots: list[TraceNode] = []
        for key, node in sorted(self._nodes.items(), key=lambda item: item[1].began):
            if (above := self._above.get(key)) is None:
                roots.append(node)
                continue
            if above not in self._nodes:  # it had not ended when the file did
                self._nodes[above] = TraceNode("…", node.began, 0.0, unfinished=True)
                roots.append(self._nodes[above])
            around = self._nodes[above]
            around.inside.append(node)
            if around.name == "…":
                around.seconds = max(around.seconds, node.began + node.seconds - around.began)
        return roots

    def _none_of_ours(self, why: str) -> MisuseError:
        return MisuseError(f"{self._path} is no trace of swink's: {why} ({_MEANING})")


def _is_time(value: float) -> bool:
    """Whether it is a time in microseconds that people can be told."""
    return -_MOST_TIME < value < _MOST_TIME


def _node(name: str, began: float, seconds: float, about: Mapping[str, Any]) -> TraceNode:
    def whole(key: str) -> int | None:
        value = about.get(key)
        return value if type(value) is int and 0 <= value < _MOST else None

    cost, error = about.get("swink.cost"), about.get("error.type")
    which = about.get({"turn": "swink.turn", "eval case": "swink.eval.case"}.get(name, ""))
    return TraceNode(
        f"{name} {which}" if isinstance(which, int | str) else name,
        began,
        max(seconds, 0.0),
        whole("gen_ai.usage.input_tokens"),
        whole("gen_ai.usage.output_tokens"),
        cost if isinstance(cost, int | float) and 0 <= cost < _MOST else None,
        shorten(error, _LONGEST_ERROR) if isinstance(error, str) else "",
        bool(about.get("swink.unfinished")),
        about.get("gen_ai.operation.name") == "chat",
    )


_TRIES = 100
"""Lines that may be unreadable before a file is taken for something else."""
