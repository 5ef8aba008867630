"""OpenTelemetry: spans and metrics of agents for whatever the application has set up to take them.

The API package alone is needed; without an SDK that is set up, spans cost little and go nowhere.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from swink.errors import MisuseError
from swink.system import VERSION
from swink.system.extras import install_command
from swink.telemetry.conventions import METRICS, Attributes, Kind
from swink.telemetry.recorder import Measurement
from swink.telemetry.spans import add_exporter, remove_exporter

SCHEMA = "https://opentelemetry.io/schemas/1.41.0"

_instrumented: "OtelExporter | None" = None


def instrument(
    tracer_provider: Any = None,
    meter_provider: Any = None,
    *,
    content: bool = False,
    propagate: bool = True,
) -> None:
    """Make OpenTelemetry spans and metrics of all runs of this process from now on.

    The providers are the global ones unless given. `content=True` adds what messages, arguments and results
    say, without secrets. With `propagate` requests to models carry the trace context in their headers; MCP
    servers always get it. Called again, the new choice replaces the one before.

    Args:
        tracer_provider: who gets the spans
        meter_provider: who gets the metrics

    >>> swink.telemetry.instrument()
    """
    global _instrumented
    exporter = OtelExporter(tracer_provider, meter_provider, content, propagate)
    uninstrument()
    _instrumented = exporter
    add_exporter(exporter)


def uninstrument() -> None:
    """Make no more OpenTelemetry spans; what is under way is still ended."""
    global _instrumented
    if _instrumented is not None:
        remove_exporter(_instrumented)
        _instrumented = None


class OtelExporter:
    """Begins spans with a tracer, and records measurements with a meter."""

    def __init__(self, tracer_provider: Any, meter_provider: Any, content: bool, propagate: bool) -> None:
        try:
            self._context: Any = importlib.import_module("opentelemetry.context")
            self._trace: Any = importlib.import_module("opentelemetry.trace")
            metrics: Any = importlib.import_module("opentelemetry.metrics")
            self._baggage: Any = importlib.import_module("opentelemetry.baggage")
            propagation: Any = importlib.import_module("opentelemetry.trace.propagation.tracecontext")
        except ImportError as error:
            advice = f"install it with: {install_command('otel')}"
            raise MisuseError(f"OpenTelemetry is not installed ({error}); {advice}") from error
        self.content = content
        self.propagate = propagate
        # Not the global propagator: that passes on baggage too, which is the application's own.
        self._propagator: Any = propagation.TraceContextTextMapPropagator()
        self._invalid: Any = self._trace.INVALID_SPAN
        self._kinds = {"internal": self._trace.SpanKind.INTERNAL, "client": self._trace.SpanKind.CLIENT}
        self._metrics: Any = metrics
        self._providers = tracer_provider, meter_provider
        self._is_set_up = False
        self._tracer = self._trace.get_tracer("swink", VERSION, tracer_provider, SCHEMA)
        meter = metrics.get_meter("swink", VERSION, meter_provider, SCHEMA)
        self._histograms: dict[str, Any] = {}
        for name, (unit, told, bounds) in METRICS.items():
            made = meter.create_histogram(name, unit, told, explicit_bucket_boundaries_advisory=list(bounds))
            self._histograms[name] = made

    def is_idle(self) -> bool:
        """Whether no SDK is set up (it may be after `instrument`), nor a trace that is to be passed on."""
        if not self._is_set_up:
            tracers, meters = self._providers
            tracers = tracers or self._trace.get_tracer_provider()
            meters = meters or self._metrics.get_meter_provider()
            self._is_set_up = not (_does_nothing(tracers) and _does_nothing(meters))
        return not self._is_set_up and self._trace.get_current_span() is self._invalid

    def begin_span(self, name: str, kind: Kind, attributes: Attributes, parent: Any) -> "OtelSpan | None":
        """Begin a span below the one that is current for OpenTelemetry, which may be the application's."""
        around = self._context.get_current()
        span = self._tracer.start_span(name, around, self._kinds[kind], attributes)
        if span is self._invalid:
            return None  # no SDK is set up
        # Inside a request to others there is no baggage that an instrumented HTTP client could pass on.
        inner = self._baggage.clear(around) if kind == "client" else around
        return OtelSpan(self, span, around, self._trace.set_span_in_context(span, inner))

    def measure(self, measured: Sequence[Measurement]) -> None:
        for metric, value, attributes in measured:
            self._histograms[metric].record(value, attributes)

    def attach(self, context: Any) -> None:
        self._context.attach(context)

    def is_current(self, context: Any) -> bool:
        return self._context.get_current() is context

    def headers(self, context: Any) -> dict[str, str]:
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, context)
        return carrier

    def failed(self, description: str) -> Any:
        return self._trace.Status(self._trace.StatusCode.ERROR, description)


def _does_nothing(provider: object) -> bool:
    """Whether it is one of the API's own, which stand where no SDK is."""
    return type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


class OtelSpan:
    """A span of OpenTelemetry, with the contexts around it and inside it."""

    __slots__ = ("_around", "_exporter", "_inside", "_span", "wants_more")

    def __init__(self, exporter: OtelExporter, span: Any, around: Any, inside: Any) -> None:
        self._exporter = exporter
        self._span = span
        self._around = around
        self._inside = inside
        self.wants_more: bool = span.is_recording()

    def enter(self) -> None:
        """Make it current; the token is not kept, since it could be used in this very context only."""
        self._exporter.attach(self._inside)

    def leave(self) -> None:
        if self._exporter.is_current(self._inside):
            self._exporter.attach(self._around)

    def headers(self) -> Mapping[str, str]:
        return self._exporter.headers(self._inside) if self._exporter.propagate else {}

    def note(self, attributes: Attributes) -> None:
        if self.wants_more:
            self._span.set_attributes(attributes)

    def event(self, name: str, attributes: Attributes) -> None:
        self._span.add_event(name, attributes)

    def end(self, failure: str | None) -> None:
        if failure is not None:
            self._span.set_status(self._exporter.failed(failure))
        self._span.end()
