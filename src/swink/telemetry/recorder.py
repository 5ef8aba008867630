"""Spans, as every exporter has them, and who the exporters are.

A span is begun below the one that is current in the context variables of its caller. One that encloses a task
gives the task a context of its own; one inside a task is current there until it ends. Nothing is reset by a
token, so a span may end in any thread, context or destructor.
"""

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, ParamSpec, Protocol, TypeVar

from swink.messages.redact import describe_error
from swink.telemetry.conventions import ERROR, Attributes, Kind

log = logging.getLogger("swink.telemetry")

P = ParamSpec("P")
T = TypeVar("T")


Measurement = tuple[str, float, Attributes]
"""A metric, its value and its attributes."""


class ExportedSpan(Protocol):
    """A span as one exporter has it."""

    @property
    def wants_more(self) -> bool:
        """Whether attributes are kept; if not, they need not be made."""
        ...

    def enter(self) -> None:
        """Make it current in the context variables of the caller."""

    def leave(self) -> None:
        """Make the one around it current again, if this one still is."""

    def headers(self) -> Mapping[str, str]:
        """What tells others that what they do belongs to it."""
        ...

    def note(self, attributes: Attributes) -> None: ...

    def event(self, name: str, attributes: Attributes) -> None: ...

    def end(self, failure: str | None) -> None:
        """End it; a failure says what went wrong."""


class Exporter(Protocol):
    """Takes the spans and measurements of runs."""

    @property
    def content(self) -> bool:
        """Whether it takes what messages say."""
        ...

    def is_idle(self) -> bool:
        """Whether nobody would see anything of a run that began now."""
        ...

    def begin_span(self, name: str, kind: Kind, attributes: Attributes, parent: Any) -> ExportedSpan | None:
        """Begin a span, if anybody takes it; `parent` is what it made of the one around it, if anything."""
        ...

    def measure(self, measured: Sequence[Measurement]) -> None: ...


exporters: tuple[Exporter, ...] = ()
"""Those who are told of spans that begin now."""


def use_exporters(chosen: tuple[Exporter, ...]) -> None:
    """Tell these of spans that begin from now on; a span that has begun is ended for those who know it."""
    global exporters
    exporters = chosen


class Span:
    """Something under way; it ends once."""

    __slots__ = ("_began", "_exported", "_exporters", "_parent", "agent", "ended", "session_id")

    def __init__(self, name: str, kind: Kind, attributes: Attributes) -> None:
        self._parent = parent = current.get()
        self.agent: str | None = None if parent is None else parent.agent
        self.session_id: str | None = None if parent is None else parent.session_id
        self.ended = False
        self._exported: list[tuple[Exporter, ExportedSpan]] = []
        self._began = time.perf_counter()
        self._exporters = exporters
        for exporter in exporters:
            above = None if parent is None else parent.made_by(exporter)
            made = _safely(exporter.begin_span, name, kind, attributes, above)
            if made is not None:
                self._exported.append((exporter, made))

    @property
    def wants_more(self) -> bool:
        return bool(self._exported) and any(made.wants_more for _, made in self._exported)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def wants_content(self) -> bool:
        """Whether anybody keeps what messages say."""
        return any(exporter.content and made.wants_more for exporter, made in self._exported)

    def enter(self) -> None:
        """Be current in the context variables of the caller, and of what it starts."""
        current.set(self)
        for _, made in self._exported:
            _safely(made.enter)

    def inside(self) -> Context:
        """A copy of the caller's context variables in which it is current."""
        context = copy_context()
        context.run(self.enter)
        return context

    def headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for _, made in self._exported:
            found |= _safely(made.headers) or {}
        return found

    def note(self, attributes: Attributes) -> None:
        if not self.ended:
            for _, made in self._exported:
                _safely(made.note, attributes)

    def note_content(self, attributes: Attributes) -> None:
        """Add attributes for those who take what messages say."""
        for exporter, made in self._exported:
            if exporter.content:
                _safely(made.note, attributes)

    def event(self, name: str, attributes: Attributes) -> None:
        if not self.ended:
            for _, made in self._exported:
                _safely(made.event, name, attributes)

    def finish(self, failure: str | None = None, measured: Sequence[Measurement] = ()) -> None:
        """End it, if it has not ended."""
        if self.ended:
            return
        self.ended = True
        if current.get() is self:
            current.set(self._parent)
        for _, made in self._exported:
            _safely(made.leave)
            _safely(made.end, failure)
        if measured:
            for exporter in self._exporters:
                _safely(exporter.measure, measured)

    def made_by(self, exporter: Exporter) -> ExportedSpan | None:
        """What an exporter made of it, or of the nearest one around it that it knows."""
        for other, made in self._exported:
            if other is exporter:
                return made
        return None if self._parent is None else self._parent.made_by(exporter)


class Unseen(Span):
    """A run, and all that it does, of which no exporter wants to know."""

    __slots__ = ()

    def __init__(self) -> None:
        self._parent = current.get()
        self.agent = self.session_id = None
        self.ended = False
        self._exported = []
        self._began = time.perf_counter()
        self._exporters = exporters

    @property
    def is_still(self) -> bool:
        """Whether the exporters are still the same."""
        return self._exporters is exporters


current: ContextVar[Span | None] = ContextVar("swink.telemetry.span", default=None)
"""The span around what is begun here."""


def is_unseen() -> bool:
    """Whether what begins here is part of a run of which no exporter wants to know."""
    around = current.get()
    return isinstance(around, Unseen) and around.is_still


def is_idle() -> bool:
    """Whether no exporter wants to know of a run that begins now."""
    return all(_safely(exporter.is_idle) for exporter in exporters)


@contextmanager
def span(name: str, attributes: Mapping[str, Any] | None = None) -> Generator[Span]:
    """A span of your own: runs that begin in this block are below it. Without telemetry it costs nothing.

    Not for generators: a block that is left by a `yield` is current wherever the generator is read.

    Args:
        name: what a trace calls it
        attributes: what is known at its beginning

    >>> with span("nightly report", {"report.date": today}) as report:
    ...     await agent.run("Write it.")
    """
    if not exporters or is_unseen():
        yield _NOTHING
        return
    made = Span(name, "internal", dict(attributes or {}))
    made.enter()
    failure: str | None = None
    try:
        yield made
    except Exception as error:
        made.note({ERROR: type(error).__name__})
        failure = describe_error(error)
        raise
    finally:
        made.finish(failure)


def _safely(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        # Exporters, span processors and samplers are the application's code; no run fails because of them.
        text = describe_error(error)
        if text not in _reported and len(_reported) < _MOST_REPORTED:
            _reported.add(text)
            log.warning("telemetry failed: %s", text)
        return None


_NOTHING = Unseen()
_NOTHING.ended = True
_reported: set[str] = set()
_MOST_REPORTED = 100
