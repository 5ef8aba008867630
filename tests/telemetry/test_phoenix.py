"""Phoenix, a program that shows traces, takes our spans and makes runs, tokens and money of them."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from tests.counts import left_to_more
from tests.patience import wait_until

from swink import Agent, ToolCall, Usage, tool
from swink.telemetry import instrument, uninstrument
from swink.testing import ScriptedModel

PHOENIX = Path(__file__).parents[2] / ".venv" / "phoenix" / "bin" / "phoenix"
_WITHIN = 500
_QUERY = """{ projects { edges { node { traceCount tokenCountTotal costSummary { total { cost } }
  spans(first: 20) { edges { node { name spanKind tokenCountPrompt tokenCountCompletion parentId
    costSummary { total { cost } } } } } } } } }"""


@tool
def weather(city: str) -> str:
    """Current weather."""
    return f"clear in {city}"


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture
def phoenix(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PHOENIX_"))},
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": port,
        "PHOENIX_GRPC_PORT": free_port(),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([str(PHOENIX), "serve"], env=env, stdout=log, stderr=log, cwd=tmp_path)
        try:
            url = f"http://127.0.0.1:{port}"
            log_of = (tmp_path / "log").read_text
            wait_until(lambda: answers(url) or process.poll() is not None, log_of, seconds=_WITHIN)
            assert process.poll() is None, log_of()
            yield url
        finally:
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/healthz", timeout=5) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


def projects(url: str) -> list[dict[str, Any]]:
    asked = Request(
        f"{url}/graphql", json.dumps({"query": _QUERY}).encode(), {"content-type": "application/json"}
    )
    with urlopen(asked, timeout=30) as answer:
        found = json.load(answer)
    return [edge["node"] for edge in found["data"]["projects"]["edges"]]


def is_priced(project: dict[str, Any]) -> bool:
    """Whether the spans of both requests have arrived, and are priced: each at its own time."""
    asked = [edge["node"] for edge in project["spans"]["edges"] if edge["node"]["spanKind"] == "llm"]
    return len(asked) == 2 and all(span["costSummary"]["total"]["cost"] for span in asked)


@left_to_more
@pytest.mark.skipif(not PHOENIX.exists(), reason=".ci/run could not install arize-phoenix")
def test_phoenix_shows_the_run_with_its_tokens_and_what_it_cost(phoenix: str):
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{phoenix}/v1/traces")))
    instrument(tracers, content=True)
    model = ScriptedModel(
        [ToolCall("1", "weather", {"city": "Oslo"}), "Take a jacket."], usage=Usage(1_000, 200)
    )
    try:
        agent = Agent("openai:gpt-5-mini", name="main", tools=[weather], stream_fn=model)
        result = agent.run_sync("What should I wear?")
    finally:
        uninstrument()
        tracers.shutdown()
    wait_until(lambda: any(map(is_priced, projects(phoenix))), lambda: projects(phoenix), seconds=_WITHIN)
    [project] = [one for one in projects(phoenix) if one["traceCount"]]
    assert (project["traceCount"], project["tokenCountTotal"]) == (1, 2_400)
    assert result.cost is not None
    assert project["costSummary"]["total"]["cost"] == pytest.approx(result.cost.total)
    spans = [edge["node"] for edge in project["spans"]["edges"]]
    kinds = {span["name"]: span["spanKind"] for span in spans}
    assert kinds["invoke_agent main"] == "agent"
    assert kinds["chat gpt-5-mini"] == "llm"
    assert kinds["execute_tool weather"] == "tool"
    asked = [span for span in spans if span["name"] == "chat gpt-5-mini"]
    assert [(span["tokenCountPrompt"], span["tokenCountCompletion"]) for span in asked] == [(1_000, 200)] * 2
    assert len([span for span in spans if span["parentId"] is None]) == 1
