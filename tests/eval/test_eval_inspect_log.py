"""A run in the log format of inspect_ai."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.counts import MORE
from tests.eval.runs import result, save

from swink.errors import AgentError
from swink.eval import CaseResult, Metric
from swink.eval.inspectlog import write_inspect_log
from swink.messages import (
    AssistantMessage,
    Audio,
    CustomMessage,
    Document,
    Extension,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)

HERE = Path(__file__).parent
INSPECT = HERE.parents[1] / ".venv" / "inspect" / "bin" / "python"
"""Made by .ci/run: inspect_ai wants other versions of packages than we do."""

TALK: list[Message] = [
    UserMessage(["What should I wear?", Image.from_url("data:image/png;base64,iVBORw0KGgo=")]),
    AssistantMessage(
        [Thinking("hm", "sig"), Text("Let me look."), ToolCall("a", "weather", {"city": "Oslo"})],
        "anthropic",
        "claude",
        stop_reason="tool_use",
    ),
    ToolResultMessage("a", "weather", "no such city", is_error=True),
    CustomMessage("note", {"x": 1}),
    UserMessage(
        [Document.from_bytes(b"%PDF-1.4 x"), Audio.from_bytes(b"RIFF....WAVEfmt "), Extension("x", 1, "y")]
    ),
    AssistantMessage("A jacket.", "anthropic", "claude"),
]


def attempts() -> list[CaseResult]:
    failed = Metric("judge", 0.0, 0.5, False, error="ValueError: no verdict")
    return [
        result("oslo", transcript=TALK, model="anthropic:claude", system_prompt="Be brief.", tags=("smoke",)),
        result(
            "oslo", False, 1, metrics=(failed,), usage=Usage(input=3, output=4), cost=None, transcript=TALK
        ),
        result("rome", False, error="RuntimeError: boom", error_source="agent", metrics=(), transcript=()),
        result(
            "rome", True, 1, stop_reason="length", transcript=[UserMessage("Hi"), AssistantMessage("Hello")]
        ),
    ]


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads((HERE / "inspect_log.schema.json").read_text()))


def read(path: Path) -> dict[str, Any]:
    log = json.loads(path.read_text())
    problems = [f"{error.json_path}: {error.message[:200]}" for error in validator().iter_errors(log)]
    assert problems == []
    return log


def test_the_log_is_as_inspect_ai_describes_it(tmp_path: Path):
    path = write_inspect_log(save(tmp_path / "run", attempts()), tmp_path / "logs")
    log = read(path)
    assert log["status"] == "success"
    assert path.name.startswith("1970-01-01T00-16-40-00-00_suite_")
    assert [(sample["id"], sample["epoch"]) for sample in log["samples"]] == [
        ("oslo", 1),
        ("oslo", 2),
        ("rome", 1),
        ("rome", 2),
    ]
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.5


def test_a_conversation_keeps_its_calls_results_and_thinking(tmp_path: Path):
    log = read(write_inspect_log(save(tmp_path, attempts()), tmp_path / "log.json"))
    messages = log["samples"][0]["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert messages[2]["content"][0]["reasoning"] == "hm"
    assert messages[2]["tool_calls"][0]["arguments"] == {"city": "Oslo"}
    assert messages[3]["error"]["message"] == "no such city"
    assert log["samples"][0]["output"]["completion"] == "A jacket."


def test_a_scorer_that_failed_has_no_score_and_its_error_is_kept(tmp_path: Path):
    log = read(write_inspect_log(save(tmp_path, attempts())))
    assert list(log["samples"][1]["scores"]) == ["case_passed"]
    assert log["samples"][1]["metadata"]["scorer_errors"] == {"judge": "ValueError: no verdict"}


def test_an_unknown_cost_stays_unknown(tmp_path: Path):
    log = read(write_inspect_log(save(tmp_path, attempts())))
    assert log["samples"][1]["output"]["usage"]["total_cost"] is None
    assert log["stats"]["model_usage"]["anthropic:claude"]["total_cost"] is None


def test_a_run_that_is_not_complete_is_cancelled_and_an_empty_one_too(tmp_path: Path):
    partial = save(tmp_path / "partial", attempts(), case_ids=["oslo", "rome", "bern"])
    assert read(write_inspect_log(partial))["status"] == "cancelled"
    empty = read(write_inspect_log(save(tmp_path / "empty", [])))
    assert (empty["status"], empty["samples"]) == ("cancelled", [])


def test_a_run_that_is_not_there_writes_nothing(tmp_path: Path):
    with pytest.raises(AgentError):
        write_inspect_log(tmp_path / "nowhere", tmp_path / "logs")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="make test-more runs it")
@pytest.mark.skipif(not INSPECT.exists(), reason=".ci/run could not install inspect_ai")
def test_inspect_ai_reads_the_log(tmp_path: Path):
    path = write_inspect_log(save(tmp_path / "run", attempts()), tmp_path / "logs")
    command = [str(INSPECT), str(HERE / "read_inspect_log.py"), str(path), str(path.parent)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout.splitlines()[-1])
    assert (found["listed"], found["status"], found["task"], found["accuracy"]) == (
        1,
        "success",
        "suite",
        0.5,
    )
    assert found["samples"] == [["oslo", 1, "C"], ["oslo", 2, "I"], ["rome", 1, "I"], ["rome", 2, "C"]]
    assert found["roles"][0] == ["system", "user", "assistant", "tool", "user", "assistant"]
    assert found["calls"] == [["weather", {"city": "Oslo"}]] * 2
    assert found["completions"] == ["A jacket.", "A jacket.", "", "Hello"]
    assert found["errors"] == [None, None, "RuntimeError: boom", None]
    assert found["summaries"] == 4
