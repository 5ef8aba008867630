"""`swink eval`: from a file of cases to results, reports, comparisons and gates, with their exit codes."""

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import Place
from tests.counts import MORE
from tests.patience import wait_until

from swink.app.cli import evaluating
from swink.app.cli.commands import parse_arguments

AGENTS = '''
import asyncio, os
from swink import Agent, tool
from swink.messages import ToolCall
from swink.testing import ScriptedModel

@tool(read_only=True)
def weather(city: str) -> str:
    """Current weather."""
    return f"4 degrees in {city}"

def right(case):
    return Agent("test:m", stream_fn=ScriptedModel([ToolCall("1", "weather", {"city": "Oslo"}), "Take a jacket."]), tools=[weather])

def wrong(case):
    return Agent("test:m", stream_fn=ScriptedModel(["No idea."]), tools=[weather])

def mixed(case):
    return right(case) if case.id == "oslo" else wrong(case)

def broken(case):
    raise RuntimeError("no database")

async def slow(case):
    with open("began.txt", "a") as file:
        file.write(case.id + "\\n")
    if case.id != "oslo" and not os.path.exists("go"):
        await asyncio.sleep(600)
    return right(case)
'''

CASES = """
name: clothes
cases:
  - id: oslo
    user_messages: ["What should I wear in Oslo?"]
    expected_trajectory: [{tool_name: weather, arguments: {city: Oslo}}]
    expected_response: {contains: jacket}
    budget: {max_turns: 4}
    tags: [smoke]
  - id: bergen
    user_messages: ["And in Bergen?"]
    expected_response: {contains: jacket}
"""


@pytest.fixture
def suite(place: Place) -> Place:
    place.write("agents.py", AGENTS)
    place.write("cases.yaml", CASES)
    return place


def run(place: Place, factory: str, *arguments: str, output: str = "out"):
    return place.swink(
        "eval", "run", "cases.yaml", "--agent", f"agents:{factory}", "--output", output, *arguments
    )


def lines(place: Place, output: str = "out") -> list[dict[str, object]]:
    return [json.loads(line) for line in (place.here / output / "results.jsonl").read_text().splitlines()]


def test_a_run_whose_cases_pass_ends_with_0_and_writes_every_result_file(suite: Place):
    ended = run(suite, "right", "--repeat", "2")
    assert ended.code == 0, ended
    assert "oslo" in ended.out
    assert "bergen" in ended.out
    found = lines(suite)
    assert sorted((line["case_id"], line["repeat"]) for line in found) == [
        ("bergen", 0),
        ("bergen", 1),
        ("oslo", 0),
        ("oslo", 1),
    ]
    pinned = [
        "case_id",
        "repeat",
        "passed",
        "metrics",
        "usage",
        "cost",
        "turns",
        "duration",
        "stop_reason",
        "error",
        "transcript",
    ]
    for line in found:
        assert set(pinned) <= set(line)
        assert line["metrics"]
        for metric in line["metrics"]:  # type: ignore[attr-defined]
            assert {"name", "value", "threshold", "passed", "why"} <= set(metric)
    summary = json.loads((suite.here / "out" / "summary.json").read_text())
    assert (summary["cases"], summary["passed"], summary["failed"], summary["errors"]) == (2, 2, 0, 0)
    assert summary["pass_rate"] == 1.0
    assert {"cost", "duration"} <= set(summary)
    for name in ("report.html", "report.md", "junit.xml", "run.json"):
        assert (suite.here / "out" / name).stat().st_size > 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_every_file_that_evaluation_writes_is_its_owners_alone(suite: Place):
    suite.write("rows.jsonl", json.dumps({"question": "1 + 1?", "answer": "It is 2.\n#### 2"}) + "\n")
    before = set(suite.here.rglob("*"))
    assert run(suite, "right", "--record", "tape.jsonl", "--trace", "trace.json", "--cache").code == 0
    assert suite.swink("eval", "report", "out").code == 0
    for format in "openai", "inspect":
        assert suite.swink("eval", "export", "out", "--format", format).code == 0
    assert suite.swink("eval", "import", "gsm8k", "rows.jsonl").code == 0
    made = [path for path in set(suite.here.rglob("*")) - before if path.is_file() and path.suffix != ".pyc"]
    assert {path.name for path in made} > {"results.jsonl", "report.html", "tape.jsonl", "trace.json"}
    assert [path.name for path in made if path.stat().st_mode & 0o077] == []


def test_rows_that_cannot_be_read_are_named_and_the_others_are_written(suite: Place):
    good = json.dumps({"question": "1 + 1?", "answer": "#### 2"})
    suite.write("rows.jsonl", "\n".join([good, "{", *["[]"] * 21]))
    ended = suite.swink("eval", "import", "gsm8k", "rows.jsonl")
    assert ended.code == 0
    assert "1 case written" in ended.err
    assert "22 rows could not be read and are left out" in ended.err
    assert "rows.jsonl:2: is no JSON object" in ended.err
    assert "and 2 more" in ended.err


def test_failed_cases_end_with_1_and_a_factory_that_raises_with_3_and_nothing_is_lost(suite: Place):
    assert run(suite, "mixed").code == 1
    assert {line["case_id"]: line["passed"] for line in lines(suite)} == {"oslo": True, "bergen": False}
    ended = run(suite, "broken", output="broken")
    assert ended.code == 3, ended
    assert all("no database" in str(line["error"]) for line in lines(suite, "broken"))
    assert "no database" in ended.out + ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.yaml",), "missing.yaml"),
        (("cases.yaml", "--agent", "nowhere:factory"), "nowhere"),
        (("cases.yaml", "--agent", "agents:nothing"), "nothing"),
        (("cases.yaml", "--agent", "agents:right", "--tag", "smok"), "smok"),
        (("cases.yaml", "--agent", "agents:right", "--case", "paris"), "paris"),
        (("cases.yaml", "--agent", "agents:right", "--case", "osl"), "did you mean 'oslo'?"),
        (("cases.yaml", "--agent", "agents:right", "--replay", "no.jsonl"), "no.jsonl"),
        (("cases.yaml", "--agent", "agents:right", "--record", "."), "directory"),
        (("cases.yaml", "--agent", "agents:right", "--output", "bad.yaml"), "name a directory"),
        (("bad.yaml", "--agent", "agents:right"), "bad.yaml:3"),
        (("rows.jsonl", "--format", "gsm8k", "--agent", "agents:right"), "rows.jsonl:1"),
        (("empty.yaml", "--agent", "agents:right"), "empty.yaml"),
    ],
)
def test_bad_configuration_ends_with_2_and_says_what_is_wrong(
    suite: Place, arguments: tuple[str, ...], said: str
):
    suite.write("bad.yaml", "name: x\ncases:\n  - user_messages: [hi]\n  - {id: a, surprise: 1}\n")
    suite.write("rows.jsonl", '{"question": "x"}')
    suite.write("empty.yaml", "name: x\ncases: []\n")
    ended = suite.swink("eval", "run", "--output", "out", *arguments)
    assert ended.code == 2, ended
    assert said in ended.err
    assert not (suite.here / "out").exists()


def test_a_new_run_where_results_are_is_refused_as_bad_configuration(suite: Place):
    assert run(suite, "right").code == 0
    ended = run(suite, "right")
    assert ended.code == 2, ended
    assert "has results already" in ended.err
    ended = run(suite, "wrong", "--resume")
    assert ended.code == 2, ended
    assert "is a run of agents:right" in ended.err


def test_runs_that_begin_in_the_same_second_have_directories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluating.time, "strftime", lambda _: "2026-01-01T00-00-00")
    arguments = parse_arguments(["eval", "run", "cases.yaml"])
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(evaluating._directory, [arguments] * 8))
    names = {"2026-01-01T00-00-00", *(f"2026-01-01T00-00-00-{number}" for number in range(2, 9))}
    assert {path.name for path in made} == names


def test_a_recording_that_is_resumed_keeps_what_was_recorded_before(suite: Place):
    assert run(suite, "right", "--record", "tape.jsonl").code == 0
    results = suite.here / "out" / "results.jsonl"
    results.write_bytes(results.read_bytes().splitlines(keepends=True)[0])
    assert run(suite, "right", "--record", "tape.jsonl", "--resume").code == 0
    ended = run(suite, "right", "--replay", "tape.jsonl", output="replayed")
    assert ended.code == 0, ended


def test_one_can_choose_cases_by_tag_and_by_id(suite: Place):
    assert run(suite, "right", "--tag", "smoke").code == 0
    assert [line["case_id"] for line in lines(suite)] == ["oslo"]
    assert run(suite, "right", "--case", "bergen", output="other").code == 0
    assert [line["case_id"] for line in lines(suite, "other")] == ["bergen"]


def test_two_runs_are_compared_and_gated_and_a_changed_line_is_found(suite: Place):
    assert run(suite, "right", output="before").code == 0
    assert run(suite, "mixed", output="after").code == 1
    compared = suite.swink("eval", "compare", "before", "after")
    assert compared.code == 0, compared
    assert "bergen" in compared.out
    assert json.loads(suite.swink("eval", "compare", "before", "after", "--json").out)["regressions"]
    assert suite.swink("eval", "gate", "before", "--min-pass-rate", "0.9").code == 0
    assert suite.swink("eval", "gate", "after", "--min-pass-rate", "0.9").code == 1
    assert suite.swink("eval", "gate", "after", "--baseline", "before", "--max-regressions", "1").code == 0
    assert suite.swink("eval", "gate", "after", "--baseline", "before", "--max-regressions", "0").code == 1
    assert suite.swink("eval", "gate", "after", "--max-regressions", "0").code == 2
    assert suite.swink("eval", "gate", "nowhere").code == 2
    assert suite.swink("eval", "verify", "before").code == 0
    results = suite.here / "before" / "results.jsonl"
    results.write_text(results.read_text().replace("Take a jacket", "Take a bucket", 1))
    changed = suite.swink("eval", "verify", "before")
    assert changed.code == 1, changed
    assert "line" in changed.err


def test_results_can_be_signed_so_that_only_who_has_the_key_writes_lines_that_verify(suite: Place):
    key = {"SWINK_EVAL_KEY": "a long secret"}
    assert suite.swink("eval", "run", "--agent", "agents:right", "--output", "out", env=key).code == 0
    assert suite.swink("eval", "verify", "out", env=key).code == 0
    for other in [{"SWINK_EVAL_KEY": "another"}, {}]:
        ended = suite.swink("eval", "verify", "out", env=other)
        assert ended.code == 1
        assert "SWINK_EVAL_KEY must be what it was" in ended.err
    assert "a long secret" not in "".join(path.read_text() for path in (suite.here / "out").iterdir())


def test_conversations_that_passed_are_exported(suite: Place):
    assert run(suite, "mixed").code == 1
    ended = suite.swink("eval", "export", "out", "--format", "openai", "-o", "train.jsonl")
    assert ended.code == 0, ended
    chats = [json.loads(line) for line in (suite.here / "train.jsonl").read_text().splitlines()]
    assert [message["role"] for message in chats[0]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert len(chats) == 1
    assert suite.swink("eval", "export", "out", "-o", "train.jsonl").code == 2
    ended = suite.swink("eval", "export", "out", "--format", "inspect")
    assert ended.code == 0, ended
    (log,) = (suite.here / "out").glob("20*T*_*.json")  # the viewer finds logs by such names alone
    assert log.name in ended.err


def test_a_dry_run_says_what_would_run_and_runs_nothing(suite: Place):
    ended = run(suite, "broken", "--dry-run", "--repeat", "3")
    assert ended.code == 0, ended
    assert "6" in ended.out
    assert not (suite.here / "out").exists()


def test_in_github_failures_are_annotations_with_file_and_line(suite: Place):
    ended = suite.swink(
        "eval", "run", "--agent", "agents:mixed", "--output", "out", env={"GITHUB_ACTIONS": "true"}
    )
    assert "::error" in ended.out
    assert "cases.yaml,line=10" in ended.out.replace("./", ""), ended


def test_the_suite_that_init_writes_passes_without_a_key_and_its_model_can_be_changed(place: Place):
    written = place.swink("eval", "init")
    assert written.code == 0, written
    ended = place.swink("eval", "run")
    assert ended.code == 0, ended
    assert place.swink("eval", "init").code == 2  # nothing of the user's is overwritten
    schema = json.loads(place.swink("eval", "schema").out)
    assert schema["$schema"]
    [results] = Path(place.here, "eval-results").iterdir()
    assert place.swink("eval", "report", str(results)).code == 0
    assert place.swink("eval", "verify", str(results)).code == 0


def test_the_first_lines_of_help_name_every_command(place: Place):
    shown = place.swink("eval")
    assert shown.code == 0
    for name in [
        "init",
        "run",
        "report",
        "compare",
        "improve",
        "gate",
        "verify",
        "export",
        "import",
        "simulate",
    ]:
        assert name in shown.out


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="make test-more runs it")
def test_ctrl_c_keeps_what_is_finished_and_resume_makes_only_the_rest(suite: Place):
    process = suite.start("eval", "run", "--agent", "agents:slow", "--output", "out")
    results = suite.here / "out" / "results.jsonl"
    wait_until(lambda: results.exists() and b"oslo" in results.read_bytes())
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert [line["case_id"] for line in lines(suite)] == ["oslo"]
    suite.write("go", "")
    (suite.here / "began.txt").unlink()
    ended = suite.swink("eval", "run", "--agent", "agents:slow", "--output", "out", "--resume")
    assert ended.code == 0, ended
    assert (suite.here / "began.txt").read_text().split() == ["bergen"]
    assert suite.swink("eval", "verify", "out").code == 0


def test_a_report_mends_a_damaged_summary_but_never_the_head_of_results(suite: Place):
    assert run(suite, "right").code == 0
    lines = (suite.here / "out" / "results.jsonl").read_bytes().splitlines(keepends=True)
    (suite.here / "out" / "results.jsonl").write_bytes(b"".join(lines[:-1]))
    assert suite.swink("eval", "report", "out").code == 0
    assert suite.swink("eval", "verify", "out").code == 1
    (suite.here / "out" / "summary.json").write_text("{")
    assert suite.swink("eval", "gate", "out").code == 3
    assert suite.swink("eval", "report", "out").code == 0
    assert suite.swink("eval", "gate", "out").code == 1  # an attempt is missing
