"""`swink trace show`: the tree of a trace file, and what is said of files that have none."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, ToolCall, tool
from swink.app.cli.commands import parse_arguments
from swink.app.cli.trace_command import show_command
from swink.errors import MisuseError
from swink.eval import CaseResult
from swink.eval.reports.timetree import time_tree
from swink.eval.trajectory import TakenCall, TakenTurn
from swink.messages import Usage
from swink.system.oneline import width_of
from swink.teams import agent_tool
from swink.telemetry import tracetree, tracing
from swink.telemetry.tracetree import read_trace
from swink.telemetry.traceview import clock, heads, lines_of, rows_of, summary_of
from swink.testing import ScriptedModel


@tool
async def broken() -> str:
    """Fails."""
    raise LookupError("nothing there")


def trace_at(path: Path) -> Path:
    helper = Agent("openai:gpt-5-mini", stream_fn=ScriptedModel(["helped"]))
    calls = [ToolCall("1", "broken", {}), ToolCall("2", "research", {"task": "x"})]
    tools = [broken, agent_tool(helper, "research", "Finds.")]
    agent = Agent("openai:gpt-5-mini", name="main", tools=tools, stream_fn=ScriptedModel([calls, "done"]))
    with tracing(path):
        agent.run_sync("hi")
    return path


def span(number: int, name: str, began: float, took: float, **about: Any) -> dict[str, Any]:
    args = {"span": number, **about}
    return {"ph": "X", "cat": "swink", "name": name, "ts": began, "dur": took, "pid": 1, "args": args}


def write(path: Path, *events: Any, end: str = "\n]\n") -> Path:
    path.write_text("[\n" + ",\n".join(json.dumps(event) for event in events) + end)
    return path


def shown(path: Path, width: int | None = None) -> list[str]:
    rows = [heads(), *rows_of(read_trace(path).roots)]
    return [f"{name}{figures}" for _, name, figures in lines_of(rows, width)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("# A page\n" * 3, "it is no trace"),
        ("words\n" * 200, "it is no trace"),
        ('{"traceEvents": [{"ph": "X", "name": "other", "ts": 1, "dur": 2}]}', "it holds other events"),
        ('[{"a": 1}]', "it holds other events"),
    ],
)
def test_a_file_of_something_else_is_refused_with_its_reason(tmp_path: Path, text: str, why: str):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(MisuseError, match=f"file is no trace of swink's: {why}"):
        read_trace(path)


def test_a_file_that_is_not_there_or_a_directory_says_so(tmp_path: Path):
    with pytest.raises(MisuseError, match="cannot be read: No such file"):
        read_trace(tmp_path / "missing")
    with pytest.raises(MisuseError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)


def test_a_trace_of_too_many_spans_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tracetree, "MOST_SPANS", 10)
    path = write(tmp_path / "t", *(span(number, "turn", number, 1) for number in range(1, 20)))
    with pytest.raises(MisuseError, match=r"more than 10 spans, .* open it at ui\.perfetto\.dev"):
        read_trace(path)


def test_a_trace_in_which_nothing_ended_says_so(tmp_path: Path):
    head = {"ph": "M", "name": "process_name", "args": {"name": "swink", "began": "2026-11-19T01:00:00Z"}}
    with pytest.raises(MisuseError, match="has no spans: nothing had ended"):
        read_trace(write(tmp_path / "t", head, end=""))


@pytest.mark.parametrize("end", ["", ",\n", ',\n{"tid":1,"ph":"X","na'])
def test_a_trace_that_was_cut_off_shows_what_had_ended_below_what_had_not(tmp_path: Path, end: str):
    path = write(tmp_path / "t", span(3, "chat m", 5, 10, parent=2), span(4, "x", 20, 5, parent=2), end=end)
    trace = read_trace(path)
    assert trace.problems == ["the file is cut off: what had not ended then is marked as unfinished"]
    assert [line.split("  ")[0] for line in shown(path)[1:]] == ["… · unfinished", "├ chat m", "└ x"]


def test_a_line_in_the_middle_that_cannot_be_read_is_counted(tmp_path: Path):
    path = write(tmp_path / "t", span(1, "turn", 0, 10), span(2, "chat m", 1, 2, parent=1))
    path.write_text(path.read_text().replace(",\n", ",\n{broken\n", 1))
    assert read_trace(path).problems == ["lines that cannot be read: 1"]


def test_spans_that_name_each_other_as_parents_end_somewhere(tmp_path: Path):
    path = write(
        tmp_path / "t",
        span(1, "a", 0, 1, parent=2),
        span(2, "b", 1, 1, parent=1),
        span(3, "c", 2, 1, parent=3),
    )
    assert [line.split()[0] for line in shown(path)[1:]] == ["a", "└", "c"]


def test_names_cannot_move_the_cursor_or_show_secrets(tmp_path: Path):
    key = "sk-ant-api03-" + "a1B2" * 20
    path = write(
        tmp_path / "t", span(1, f"\x1b[2Jwipe\n{key}", 0, 1, **{"swink.cost": "much", "error.type": 7})
    )
    [line] = shown(path)[1:]
    assert "\x1b" not in line
    assert key not in line


def test_no_text_of_the_file_moves_the_cursor(tmp_path: Path):
    date = {"ph": "M", "name": "process_name", "args": {"name": "swink", "began": "\x1b]0;x\x07now"}}
    evil = {"error.type": "bad\x1b[31m\n\nred", "swink.turn": {"\x1b[2J": 1}}
    path = write(tmp_path / "t.json", date, span(1, "turn", 0, 5, **evil))
    told = [*shown(path), summary_of(read_trace(path))]
    assert all(text.isprintable() for text in told), told


@pytest.mark.parametrize("time", [10**400, 1e308, -1e300])
def test_a_span_with_an_impossible_time_is_counted_as_unreadable(tmp_path: Path, time: float):
    path = write(tmp_path / "t.json", span(1, "turn", 0, 5), span(2, "turn", time, 5), span(3, "t", 0, time))
    assert read_trace(path).problems == ["lines that cannot be read: 2"]
    assert len(shown(path)) == 2


def test_figures_that_cannot_be_are_left_out(tmp_path: Path):
    about = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": -5, "swink.cost": 1.7e308}
    path = write(tmp_path / "t.json", span(1, "chat", 0, 5, **about), {**span(2, "x", 0, 5), "pid": [1]})
    assert [(node.input, node.cost) for node in read_trace(path).roots] == [(None, None)] * 2


def test_a_tree_of_any_depth_is_drawn_in_room_that_it_has(tmp_path: Path):
    deep = [span(number, "turn", number, 5, parent=number - 1) for number in range(1, 3_000)]
    assert max(len(row.branch) for row in rows_of(read_trace(write(tmp_path / "t.json", *deep)).roots)) < 300


def test_the_tree_has_times_tokens_and_money(tmp_path: Path):
    lines = shown(trace_at(tmp_path / "t"))
    end = lines[0].index("begins") - 2
    assert [line[:end].rstrip() for line in lines] == [
        "span",
        "invoke_agent main",
        "├ turn 1",
        "│ ├ chat gpt-5-mini",
        "│ ├ execute_tool broken · LookupError",
        "│ └ execute_tool research",
        "│   └ invoke_agent research",
        "│     └ turn 1",
        "│       └ chat gpt-5-mini",
        "└ turn 2",
        "  └ chat gpt-5-mini",
    ]
    assert lines[0].split() == ["span", "begins", "takes", "tokens", "cost"]
    assert lines[1].split()[-4:] == ["3", "→", "3", "<$0.0001"]


def test_attempts_are_named_by_their_cases(tmp_path: Path):
    path = write(tmp_path / "t", span(1, "eval case", 0, 9, **{"swink.eval.case": "oslo"}))
    assert shown(path)[1].startswith("eval case oslo ")


def test_the_line_above_sums_up_requests_tokens_and_money(tmp_path: Path):
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.usage.output_tokens": 3,
    }
    path = write(
        tmp_path / "t",
        span(1, "chat m", 0, 2_500_000, **asked, **{"swink.cost": 0.5}),
        span(2, "chat m", 0, 1, **asked),
    )
    said = summary_of(read_trace(path))
    assert said == "2.50 s · 2 requests · 2,400 tokens in, 6 out · $0.5000 and 1 without a price"
    assert summary_of(read_trace(path), 60).count("\n") == 1


@pytest.mark.parametrize("width", [80, 60, 40, 20])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int):
    spans = [
        span(n, f"execute_tool 日本語_{'long' * n}", n, 5, **({"parent": n - 1} if n > 1 else {}))
        for n in range(1, 40)
    ]
    path = write(tmp_path / "t", *spans)
    assert max(width_of(line) for line in shown(path, width)) <= width


def test_times_are_told_in_the_unit_that_suits_them():
    seconds = [0.0003, 0.0414, 1.239, 12.34, 59.99, 125, 3725]
    told = ["0.3 ms", "41 ms", "1.24 s", "12.3 s", "1:00 min", "2:05 min", "1:02:05 h"]
    assert [clock(number) for number in seconds] == told


def test_the_command_shows_a_tree_without_colours_where_nobody_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = trace_at(tmp_path / "t")
    assert show_command(parse_arguments(["trace", "show", str(path)])) == 0
    out = capsys.readouterr().out
    assert "invoke_agent main" in out
    assert "\x1b" not in out


def test_the_command_is_coloured_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    path = trace_at(tmp_path / "t")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    show_command(parse_arguments(["trace", "show", str(path)]))
    lines = capsys.readouterr().out.splitlines()
    assert any("\x1b[31m" in line and "LookupError" in line for line in lines)


def test_the_report_has_the_same_tree_of_an_attempt():
    turn = TakenTurn(turn=1, started=0.5, replied=1.5, ended=2.0, usage=Usage(10, 2), cost=0.01)
    call = TakenCall("1", "weather", {}, is_error=True, started=1.5, duration=0.25)
    result = CaseResult(
        case_id="a",
        passed=True,
        model="test:m",
        duration=2.0,
        timings=(turn,),
        calls=(call,),
        usage=Usage(10, 2),
    )
    lines = time_tree(result).splitlines()
    assert [line.split()[0] for line in lines] == ["span", "attempt", "└", "├", "└"]
    assert "10 → 2" in lines[3]
    assert "weather · error" in lines[4]
    assert time_tree(CaseResult(case_id="a", passed=True)) == ""
