"""Without an SDK that is set up, nothing is made of a run, and nothing is lost once there is one."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.trace import NonRecordingSpan, NoOpTracerProvider, SpanContext, TraceFlags
from tests.telemetry.seen import Seen

from swink import Agent, ToolCall, tool
from swink.telemetry import instrument, span, tracing, uninstrument
from swink.telemetry.recorder import current
from swink.testing import ScriptedModel


@pytest.fixture
def idle() -> Iterator[None]:
    instrument(NoOpTracerProvider(), NoOpMeterProvider())
    yield
    uninstrument()


def calling(*replies: Any, **options: Any) -> Agent:
    return Agent("test:model", stream_fn=ScriptedModel([[ToolCall("1", "look", {})], *replies]), **options)


async def test_a_run_that_nobody_would_see_is_as_any_other(idle: None):
    around: list[object] = []

    @tool
    async def look() -> str:
        """Looks."""
        with span("mine", {"a": 1}) as mine:
            mine.note({"b": 2})
            mine.event("seen", {})
            around.append((mine.wants_more, mine.seconds >= 0))
        return "seen"

    result = await calling("done", tools=[look]).run("hi")
    assert (result.text, around, current.get()) == ("done", [(False, True)], None)


async def test_a_trace_that_comes_from_elsewhere_is_passed_on_without_an_sdk(idle: None):
    model = ScriptedModel(["done"])
    remote = NonRecordingSpan(SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1)))
    token = otel_context.attach(trace.set_span_in_context(remote))
    try:
        await Agent("test:model", stream_fn=model).run("hi")
    finally:
        otel_context.detach(token)
    assert model.options[0].headers["traceparent"] == f"00-{0xABC:032x}-{0xDEF:016x}-01"


async def test_metrics_alone_are_recorded():
    seen = Seen()
    instrument(NoOpTracerProvider(), seen.meters)
    try:
        await Agent("test:model", stream_fn=ScriptedModel(["done"])).run("hi")
        assert len(seen.metric("gen_ai.client.token.usage")) == 2
    finally:
        uninstrument()
        seen.close()


async def test_a_trace_file_that_is_begun_inside_such_a_run_has_what_comes_next(idle: None, tmp_path: Path):
    file = tracing(tmp_path / "trace.json")

    @tool
    async def look() -> str:
        """Looks."""
        file.__enter__()
        return "seen"

    await calling("done", tools=[look]).run("hi")
    file.__exit__(None, None, None)
    text = (tmp_path / "trace.json").read_text()
    assert '"chat model"' in text
    assert '"turn"' in text


_LATE = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from swink import Agent
from swink.telemetry import instrument
from swink.testing import ScriptedModel

instrument()
agent = Agent("test:model", stream_fn=ScriptedModel(["one", "two"]))
agent.run_sync("hi")
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
agent.run_sync("hi")
print(*[span.name for span in exporter.get_finished_spans()], sep=", ")
"""


def test_an_sdk_that_is_set_up_after_instrument_gets_the_runs_from_then_on():
    done = subprocess.run([sys.executable, "-c", _LATE], capture_output=True, text=True, timeout=60)
    assert done.stdout == "chat model, turn, invoke_agent\n", done.stderr
