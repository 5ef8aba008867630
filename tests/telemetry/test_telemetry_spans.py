"""Every run, turn, request and tool call is a span below what caused it, and ends in every outcome."""

import asyncio
import gc
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from tests.telemetry.seen import Seen

from swink import Agent, StreamOptions, ToolCall, ToolError, tool
from swink.agent.retry import ExponentialBackoff
from swink.errors import ModelThrottled
from swink.events import MessageUpdate
from swink.policies import AuditLogger
from swink.stream import Done, Start, TextDelta, TextEnd, TextStart
from swink.teams import agent_tool, parallel
from swink.telemetry import span, uninstrument
from swink.testing import Pause, ScriptedModel

RUN = "invoke_agent"
TURN = f"{RUN} > turn"
CHAT = f"{TURN} > chat model"


def call(name: str, id: str = "c1", /, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)


def agent_of(*script: Any, **options: Any) -> Agent:
    return Agent("test:model", stream_fn=ScriptedModel([*script]), **options)


@tool
async def greet(name: str) -> str:
    """Greets."""
    return f"hello {name}"


async def test_a_run_is_turns_of_requests_and_tool_calls(seen: Seen):
    await agent_of([call("greet", name="Ann")], "done", tools=[greet]).run("hi")
    assert seen.paths == sorted([RUN, TURN, TURN, CHAT, CHAT, f"{TURN} > execute_tool greet"])
    chat = [span for span in seen.spans if span.name == "chat model"][-1]
    assert chat.kind is trace.SpanKind.CLIENT
    assert chat.attributes is not None
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.provider.name"] == "test"
    assert chat.attributes["gen_ai.request.model"] == "model"
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert chat.attributes["gen_ai.usage.output_tokens"] == 1
    assert "gen_ai.response.time_to_first_chunk" in chat.attributes
    run = seen.one(RUN)
    assert run.attributes is not None
    assert (run.attributes["swink.turns"], run.attributes["swink.stop_reason"]) == (2, "stop")
    assert run.attributes["gen_ai.usage.input_tokens"] == 2


async def test_the_tokens_and_durations_are_metrics(seen: Seen):
    await agent_of([call("greet", name="Ann")], "done", tools=[greet]).run("hi")
    tokens = seen.metric("gen_ai.client.token.usage")
    assert {dict(labels)["gen_ai.token.type"]: point.sum for labels, point in tokens.items()} == {
        "input": 2,
        "output": 2,
    }
    for name in ("gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk"):
        assert [point.count for point in seen.metric(name).values()] == [2]
    [(labels, point)] = seen.metric("gen_ai.execute_tool.duration").items()
    assert dict(labels)["gen_ai.tool.name"] == "greet"
    assert point.count == 1
    assert len(seen.metric("gen_ai.invoke_agent.duration")) == 1


async def test_content_is_left_out_unless_it_is_asked_for(seen: Seen):
    await agent_of(
        [call("greet", name="Ann")], "a secret answer", tools=[greet], system_prompt="Be brief."
    ).run("hi there")
    told = str([span.to_json() for span in seen.spans])
    assert not [word for word in ("Ann", "secret answer", "hi there", "Be brief") if word in told]


async def test_content_that_is_asked_for_has_no_secrets(seen: Seen):
    seen.instrument(content=True)
    key = "sk-ant-api03-" + "a1B2" * 20
    await agent_of([call("greet", name=key)], "answer", tools=[greet], system_prompt="Be brief.").run("hi")
    told = str([span.to_json() for span in seen.spans])
    assert key not in told
    for word in ("Be brief.", "answer", "[redacted]", "gen_ai.tool.call.arguments", "gen_ai.input.messages"):
        assert word in told


async def test_a_users_span_in_a_tool_is_below_the_tool_in_threads_too(seen: Seen):
    @tool
    def sync(text: str) -> str:
        """Sync."""
        with seen.tracer.start_as_current_span("own sync"):
            return text

    @tool
    async def other(text: str) -> str:
        """Async."""
        with seen.tracer.start_as_current_span("own async"):
            await asyncio.sleep(0)
            return text

    script = [[call("sync", "1", text="a"), call("other", "2", text="b")], "done"]
    await agent_of(*script, tools=[sync, other]).run("hi")
    assert f"{TURN} > execute_tool sync > own sync" in seen.paths
    assert f"{TURN} > execute_tool other > own async" in seen.paths


async def test_a_sub_agent_is_named_and_below_its_call(seen: Seen):
    helper = Agent("test:small", stream_fn=ScriptedModel(["helped"]))
    script = [[call("research", task="x")], "done"]
    await agent_of(*script, tools=[agent_tool(helper, "research", "Finds.")]).run("hi")
    assert f"{TURN} > execute_tool research > invoke_agent research > turn > chat small" in seen.paths
    assert seen.one("invoke_agent research").attributes["gen_ai.agent.name"] == "research"


async def test_members_of_a_pipeline_have_their_names(seen: Seen):
    await parallel({"law": agent_of("no"), "money": agent_of("yes")}).run("May we?")
    assert {path for path in seen.paths if ">" not in path} == {"invoke_agent law", "invoke_agent money"}


async def test_a_run_is_below_the_span_of_its_caller(seen: Seen):
    with seen.tracer.start_as_current_span("request"):
        await agent_of("done").run("hi")
        assert trace.get_current_span().get_span_context() != trace.INVALID_SPAN_CONTEXT
    with span("report") as report:
        await agent_of("done").run("hi")
        report.event("written", {"pages": 2})
    assert f"request > {RUN}" in seen.paths
    assert f"report > {RUN}" in seen.paths
    assert [event.name for event in seen.one("report").events] == ["written"]


async def test_an_exception_in_a_span_of_ones_own_is_told_and_goes_on(seen: Seen):
    with pytest.raises(ZeroDivisionError), span("report"):
        raise ZeroDivisionError("no")
    assert seen.one("report").status.status_code is StatusCode.ERROR
    assert seen.one("report").attributes["error.type"] == "ZeroDivisionError"


async def test_each_retry_is_a_span_with_its_error(seen: Seen):
    model = ScriptedModel([ModelThrottled("slow down"), "done"])
    await Agent("test:model", stream_fn=model, retry=ExponentialBackoff(base_delay=0.001)).run("hi")
    first, second = [span for span in seen.spans if span.name == "chat model"]
    assert first.attributes["error.type"] == "ModelThrottled"
    assert first.status.status_code is StatusCode.ERROR
    assert "slow down" in (first.status.description or "")
    assert second.status.status_code is StatusCode.UNSET
    assert seen.one(RUN).status.status_code is StatusCode.UNSET


async def test_a_failed_run_is_an_error(seen: Seen):
    result = await agent_of(ValueError("broken")).run("hi")
    assert result.stop_reason == "error"
    assert seen.one(RUN).status.status_code is StatusCode.ERROR
    assert seen.one("chat model").attributes["swink.stop_reason"] == "error"


async def test_a_failed_tool_is_an_error_without_its_text(seen: Seen):
    @tool
    async def fail() -> str:
        """Fails."""
        raise ToolError("the text of a file")

    await agent_of([call("fail")], "done", tools=[fail]).run("hi")
    failed = seen.one("execute_tool fail")
    assert failed.attributes["error.type"] == "ToolError"
    assert failed.status.description == "ToolError"


async def test_a_tool_that_times_out_says_so(seen: Seen):
    @tool(timeout=0.01)
    async def slow() -> str:
        """Slow."""
        await asyncio.sleep(60)
        return ""

    await agent_of([call("slow")], "done", tools=[slow]).run("hi")
    assert seen.one("execute_tool slow").attributes["error.type"] == "timeout"


async def test_an_abort_ends_every_span_and_is_no_error(seen: Seen):
    agent = agent_of(["par", Pause(60), "is"])
    async with agent.stream("hi") as run:
        async for event in run:
            if isinstance(event, MessageUpdate):
                agent.abort()
    assert seen.paths == sorted([RUN, TURN, CHAT])
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}
    assert seen.one(RUN).attributes["swink.stop_reason"] == "aborted"


@pytest.mark.parametrize("way", ["closed", "dropped", "other task"])
async def test_a_stream_that_is_left_early_ends_every_span_and_logs_nothing(
    seen: Seen, way: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    before = otel_context.get_current()
    stream = agent_of(["par", Pause(60), "is"]).stream("hi")
    async for event in stream:
        if isinstance(event, MessageUpdate):
            break
    assert otel_context.get_current() is before
    match way:
        case "closed":
            await stream.aclose()
        case "other task":
            await asyncio.create_task(stream.aclose())
        case _:
            del stream
            gc.collect()
            while len(seen.spans) < 3:
                await asyncio.sleep(0.001)
    assert seen.paths == sorted([RUN, TURN, CHAT])
    assert not [
        record for record in caplog.records if "detach" in record.message or "Context" in record.message
    ]


def test_a_closed_event_loop_ends_every_span_and_leaves_the_current_one_alone(seen: Seen):
    loop = asyncio.new_event_loop()
    agent = agent_of([call("slow")], tools=[_slow])
    task = loop.create_task(agent.run("hi"))

    async def until_running() -> None:
        while not _started:
            await asyncio.sleep(0.001)

    _started.clear()
    loop.run_until_complete(until_running())
    with seen.tracer.start_as_current_span("mine") as mine:
        setattr(task, "_log_destroy_pending", False)  # noqa: B010
        for other in asyncio.all_tasks(loop):
            setattr(other, "_log_destroy_pending", False)  # noqa: B010
        loop.close()
        del task, other
        gc.collect()
        agent.abort()
        gc.collect()
        assert trace.get_current_span() is mine
    assert f"{TURN} > execute_tool slow" in seen.paths
    assert RUN in seen.paths


_started: list[int] = []


@tool(name="slow")
async def _slow() -> str:
    """Slow."""
    _started.append(1)
    await asyncio.sleep(60)
    return ""


async def test_a_stream_function_that_swallows_its_cancellation_is_ended_for_the_observer(seen: Seen):
    release = asyncio.Event()

    async def stuck(model: Any, context: Any, options: Any):
        yield Start()
        yield TextStart(0)
        yield TextDelta(0, "a")
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                pass
        yield TextEnd(0)
        yield Done()

    agent = Agent("test:model", stream_fn=stuck)
    async with agent.stream("hi") as run:
        async for event in run:
            if isinstance(event, MessageUpdate):
                agent.abort()
    assert seen.paths == sorted([RUN, TURN, CHAT])
    release.set()
    await asyncio.sleep(0)


async def test_what_is_under_way_ends_after_telemetry_is_switched_off(seen: Seen):
    @tool
    async def off() -> str:
        """Switches it off."""
        uninstrument()
        return ""

    await agent_of([call("off")], "done", tools=[off]).run("hi")
    assert seen.paths == sorted([RUN, TURN, CHAT, f"{TURN} > execute_tool off"])


async def test_a_span_processor_that_raises_fails_no_run(seen: Seen, caplog: pytest.LogCaptureFixture):
    class Broken:
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            raise RuntimeError("broken processor 17")

        def _on_ending(self, span: Any) -> None: ...
        def on_end(self, span: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self, timeout_millis: int = 0) -> bool:
            return True

    seen.tracers.add_span_processor(Broken())  # type: ignore[arg-type]
    result = await agent_of([call("greet", name="Ann")], "done", tools=[greet]).run("hi")
    assert result.text == "done"
    assert [record.message for record in caplog.records].count(
        "telemetry failed: RuntimeError: broken processor 17"
    ) == 1


async def test_requests_carry_the_trace_context_in_their_headers(seen: Seen):
    sent: list[StreamOptions] = []
    scripted = ScriptedModel(["one", "two", "three"])

    def asked(model: Any, context: Any, options: StreamOptions) -> Any:
        sent.append(options)
        return scripted(model, context, options)

    agent = Agent("test:model", stream_fn=asked, options=StreamOptions(headers={"x-mine": "1"}))
    await agent.run("hi")
    chat = seen.one("chat model").get_span_context()
    assert sent[0].headers["traceparent"][:52] == f"00-{chat.trace_id:032x}-{chat.span_id:016x}"
    assert sent[0].headers["x-mine"] == "1"
    seen.instrument(propagate=False)
    await agent.run("hi")
    assert "traceparent" not in sent[1].headers
    uninstrument()
    await agent.run("hi")
    assert dict(sent[2].headers) == {"x-mine": "1"}


async def test_nobody_is_told_once_it_is_switched_off(seen: Seen):
    uninstrument()
    await agent_of("done").run("hi")
    assert seen.spans == []


async def test_the_audit_log_names_sub_agents_while_they_are_watched(seen: Seen, tmp_path: Path):
    log = AuditLogger(tmp_path / "audit.jsonl")
    other = Agent("test:m", stream_fn=ScriptedModel(["inside"]), policies=[log])

    @tool
    async def nested() -> str:
        """Runs an agent that has no name."""
        return (await other.run("Hi")).text

    script = ScriptedModel([ToolCall("1", "nested", {}), "report"])
    inner = Agent("test:m", stream_fn=script, tools=[nested], policies=[log])
    call = ToolCall("2", "digger", {"task": "dig"})
    outer = Agent("test:m", stream_fn=ScriptedModel([call, "done"]), policies=[log])
    outer.tools = [agent_tool(lambda: inner, "digger", "Digs.")]
    await outer.run("Hi")
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [record.get("agent") for record in records if record["event"] == "end"] == [None, "digger", None]
    assert len([span for span in seen.spans if span.name == "invoke_agent"]) == 2
