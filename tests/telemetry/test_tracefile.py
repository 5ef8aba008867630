"""A trace file opens: spans of one lane nest, it is whole at the end, and readable before."""

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, ToolCall, tool
from swink.errors import MisuseError
from swink.stream import observer
from swink.telemetry import span, tracing
from swink.testing import Pause, ScriptedModel


@tool
async def wait(seconds: float) -> str:
    """Waits."""
    await asyncio.sleep(seconds)
    return "waited"


def agent_of(*script: Any, **options: Any) -> Agent:
    return Agent("test:model", stream_fn=ScriptedModel([*script]), **options)


def events_of(path: Path, phase: str = "X") -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text("utf-8")) if event["ph"] == phase]


def check_lanes(events: list[dict[str, Any]]) -> None:
    """Two spans of one lane are apart, or one is inside the other."""
    for one in events:
        for other in events:
            if one is not other and one["tid"] == other["tid"] and one["ts"] <= other["ts"]:
                end, inner = one["ts"] + one["dur"], other["ts"] + other["dur"]
                assert end <= other["ts"] + 0.002 or inner <= end + 0.002, (one, other)


async def test_concurrent_calls_get_lanes_of_their_own(tmp_path: Path):
    path = tmp_path / "trace.json"
    calls = [ToolCall(str(number), "wait", {"seconds": 0.001 * (3 - number)}) for number in range(3)]
    with tracing(path):
        await asyncio.gather(*(agent_of(calls, "done", tools=[wait]).run("hi") for _ in range(3)))
    events = events_of(path)
    assert len([event for event in events if event["name"] == "execute_tool wait"]) == 9
    assert len([event for event in events if event["name"] == "invoke_agent"]) == 3
    check_lanes(events)
    by_number = {event["args"]["span"]: event for event in events}
    for event in events:
        if event["name"] == "execute_tool wait":
            assert by_number[event["args"]["parent"]]["name"] == "turn"
    assert events_of(path, "C")[-1]["args"] == {"input": 6, "output": 6}
    named = {event["tid"] for event in events_of(path, "M") if event["name"] == "thread_name"}
    assert {event["tid"] for event in events} <= named


async def test_a_run_that_outlives_the_call_around_it_moves_to_another_lane(tmp_path: Path):
    path = tmp_path / "trace.json"
    inner = agent_of(["slow", Pause(0.05), "ly"])
    left: list[asyncio.Task[Any]] = []

    @tool(timeout=0.01)
    async def start() -> str:
        """Starts an agent."""
        left.append(asyncio.ensure_future(inner.run("go")))
        await asyncio.sleep(60)
        return ""

    with tracing(path):
        await agent_of([ToolCall("1", "start", {})], "done", tools=[start]).run("hi")
        await left[0]
    check_lanes(events_of(path))
    assert len([event for event in events_of(path) if event["name"] == "invoke_agent"]) == 2


async def test_what_is_under_way_at_the_end_is_written_as_unfinished(tmp_path: Path):
    path = tmp_path / "trace.json"
    with tracing(path):
        stream = agent_of(["par", Pause(60), "is"]).stream("hi")
        await anext(stream)
        while len(agent_running := [*asyncio.all_tasks()]) < 2:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
    del agent_running
    await stream.aclose()
    run = next(event for event in events_of(path) if event["name"] == "invoke_agent")
    assert run["args"]["swink.unfinished"] is True
    assert observer.current is None


def test_a_trace_has_no_content_unless_it_is_asked_for(tmp_path: Path):
    path = tmp_path / "trace.json"
    with tracing(path):
        agent_of("an answer").run_sync("a question")
    assert "an answer" not in path.read_text("utf-8")
    with tracing(path, content=True):
        agent_of("an answer").run_sync("a question")
    assert "an answer" in path.read_text("utf-8")


def test_a_span_of_ones_own_and_its_events_are_in_the_file_whatever_they_hold(tmp_path: Path):
    path = tmp_path / "trace.json"
    with tracing(path), span("mine", {"odd": object(), "cost": float("nan"), "text": "\ud800"}) as mine:
        mine.event("happened", {"x": 1})
    assert [event["name"] for event in events_of(path)] == ["mine"]
    assert [event["name"] for event in events_of(path, "i")] == ["happened"]


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path: Path):
    with pytest.raises(MisuseError, match=r"the trace file .* cannot be written: No such file"):
        with tracing(tmp_path / "missing" / "trace.json"):
            raise AssertionError
    assert observer.current is None


def test_a_program_that_is_killed_leaves_a_file_that_lacks_only_its_end(tmp_path: Path):
    code = """
        import asyncio, os, sys
        from swink import Agent
        from swink.telemetry import tracing
        from swink.testing import ScriptedModel
        with tracing("trace.json"):
            for _ in range(60):
                Agent("test:model", stream_fn=ScriptedModel(["x"])).run_sync("hi")
            while not os.path.getsize("trace.json"):
                pass
            print("ready", flush=True)
            sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        program.kill()
    text = (tmp_path / "trace.json").read_text("utf-8")
    assert len(json.loads(text + "]")) >= 50
