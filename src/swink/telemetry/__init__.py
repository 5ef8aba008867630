"""Telemetry: what agents do as OpenTelemetry spans and metrics, or as a file that opens in Perfetto.

    instrument()               spans and metrics, by the GenAI semantic conventions
    tracing("trace.json")      a block whose runs are written to a trace file; needs no other package
    span("nightly report")     a span of your own around runs

Message content is left out unless it is asked for. No span is held across a `yield`, and every span ends
with what it stands for, however that ends.
"""

from swink.telemetry.otel import instrument, uninstrument
from swink.telemetry.recorder import span
from swink.telemetry.tracefile import tracing

__all__ = ["instrument", "span", "tracing", "uninstrument"]
