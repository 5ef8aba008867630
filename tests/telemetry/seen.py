"""An SDK of a test's own, and what it received."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from swink.telemetry import instrument


class Seen:
    """What an SDK in this process received."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer = self.tracers.get_tracer("test")

    def instrument(self, **options: Any) -> None:
        instrument(self.tracers, self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def one(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found

    @property
    def paths(self) -> list[str]:
        """The names of every span and those around it, sorted."""
        by_id = {span.get_span_context().span_id: span for span in self.spans}

        def path(span: ReadableSpan) -> str:
            above = "" if span.parent is None else path(by_id[span.parent.span_id]) + " > "
            return above + span.name

        return sorted(path(span) for span in self.spans)

    def metric(self, name: str) -> dict[tuple[tuple[str, Any], ...], Any]:
        """The points of a metric by their attributes."""
        data = self._reader.get_metrics_data()
        return {
            tuple(sorted(point.attributes.items())): point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        }

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()
