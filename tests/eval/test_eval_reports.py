"""Reports: files and lines about a run that are right, safe to show, without secrets, and no larger than useful."""

import asyncio
import json
import os
import re
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import left_to_more, tried
from tests.eval.report_runs import attempt, manifest_of, run, summary_of
from tests.export_pages import INJECTIONS

from swink import Agent
from swink.eval import Case, CaseResult, ExpectedResponse, Metric, evaluate
from swink.eval.case import SourceLine
from swink.eval.reports import annotations, console_table, write_reports
from swink.eval.reports.outcomes import dollars, outcomes_of, percent, seconds
from swink.eval.reports.transcriptrows import conversation
from swink.messages import AssistantMessage, Text, ToolCall, ToolResultMessage, UserMessage
from swink.testing import ScriptedModel

SECRET = "sk-ant-api03-" + "aB3dE5gH7jK9" * 8


def written(
    tmp_path: Path, results: list[CaseResult], baseline: list[CaseResult] | None = None
) -> dict[str, str]:
    write_reports(tmp_path, summary_of(results), results, manifest_of(results), baseline)
    return {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}


def details_of(page: str) -> list[dict[str, Any]]:
    """What the page's script unpacks, case by case."""
    chunks = re.findall(r'<script type="text/plain" class="chunk">([^<]*)</script>', page)
    return [details for chunk in chunks for details in json.loads(zlib.decompress(b64decode(chunk)))]


def rows_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def test_four_files_are_written_and_nothing_else_is_left(tmp_path: Path):
    files = written(tmp_path, [attempt("oslo"), attempt("lima", passed=False)])
    assert sorted(files) == ["junit.xml", "report.html", "report.md", "summary.json"]
    summary = json.loads(files["summary.json"])
    assert (summary["cases"], summary["passed"], summary["failed"], summary["errors"]) == (2, 1, 1, 0)
    assert summary["pass_rate"] == 0.5
    written(tmp_path, [attempt("oslo")])
    assert json.loads((tmp_path / "summary.json").read_text())["cases"] == 1


def test_a_run_without_results_is_reported_as_one_that_did_not_pass(tmp_path: Path):
    files = written(tmp_path, [])
    assert "There are no results" in files["report.md"]
    assert "There are no results" in files["report.html"]
    assert ElementTree.fromstring(files["junit.xml"]).get("tests") == "0"
    assert "0 cases" in console_table(summary_of([]), [])
    assert annotations([]) == []


async def test_the_reports_of_a_real_run_have_its_cases_with_file_line_and_conversation(tmp_path: Path):
    def factory(case: Case) -> Agent:
        return Agent("test:m", stream_fn=ScriptedModel(["hello"]))

    place = SourceLine("cases.yaml", 3)
    good, bad = (ExpectedResponse(contains=text) for text in ("hello", "jacket"))
    cases = [
        Case(id="a", user_messages=("hi",), expected_response=good, place=place),
        Case(id="b", user_messages=("hi",), expected_response=bad, place=place),
    ]
    done = await evaluate(factory, cases, output=tmp_path / "run")
    await asyncio.to_thread(done.save, tmp_path / "run")
    root = ElementTree.fromstring((tmp_path / "run" / "junit.xml").read_text("utf-8"))
    assert [case.get("line") for case in root.iter("testcase")] == ["3", "3"]
    assert len(root.findall(".//failure")) == 1
    talk = details_of((tmp_path / "run" / "report.html").read_text("utf-8"))[0]["attempts"][0]["talk"]
    assert ["prompt", "hi"] in talk
    assert ["reply", "hello"] in talk
    assert annotations(done.cases, tmp_path)[0].startswith("::error file=cases.yaml,line=3,title=b failed::")


def test_of_an_attempt_that_was_made_twice_the_newer_counts():
    first, second = attempt("oslo", passed=False), attempt("oslo")
    (outcome,) = outcomes_of([first, second])
    assert (outcome.state, len(outcome.attempts)) == ("passed", 1)


def test_attempts_are_put_together_by_case_in_their_order():
    results = [attempt("a", repeat=1, passed=False), attempt("b"), attempt("a", repeat=0)]
    one, other = outcomes_of(results)
    assert [result.repeat for result in one.attempts] == [0, 1]
    assert (one.state, one.passed, one.score, other.state) == ("failed", 1, 0.5, "passed")


def test_a_case_whose_cost_is_unknown_has_none_instead_of_a_part_of_it():
    judged = Metric("helpfulness", 1.0, 0.5, True, cost=None)
    (outcome,) = outcomes_of([attempt(repeat=0), attempt(repeat=1, metrics=(judged,))])
    assert outcome.cost is None


def test_junit_counts_cases_and_tells_failures_from_errors(tmp_path: Path):
    broken = attempt("lima", passed=False, error="server is down", error_source="provider", metrics=())
    place = SourceLine("evals/cases.yaml", 7)
    results = [attempt("oslo"), attempt("bergen", passed=False, place=place), broken]
    root = ElementTree.fromstring(written(tmp_path, results)["junit.xml"])
    (suite,) = root
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "0"]
    oslo, bergen, lima = suite.findall("testcase")
    assert [child.tag for child in oslo] == ["system-out"]
    assert (bergen.get("file"), bergen.get("line"), bergen.get("classname")) == (
        "evals/cases.yaml",
        "7",
        "clothes",
    )
    failure, error = bergen.find("failure"), lima.find("error")
    assert failure is not None
    assert failure.get("type") == "response"
    assert 'contain "jacket"' in (failure.text or "")
    assert error is not None
    assert error.get("type") == "provider"
    assert error.get("message") == "error: server is down"


def test_junit_is_xml_whatever_was_said(tmp_path: Path):
    odd = "\x00\x0b\x1b[31m ]]> & < \ud7ff \ufffe 🙂"
    results = [attempt(f"c{odd}", passed=False, error=odd), attempt("d", transcript=(AssistantMessage(odd),))]
    root = ElementTree.fromstring(written(tmp_path, results)["junit.xml"])
    assert "🙂" in (root.findtext(".//error") or "")


def test_annotations_stand_on_the_line_of_the_case_from_the_root_of_the_repository(tmp_path: Path):
    place = SourceLine(str(tmp_path / "evals" / "a,b:c.yaml"), 12)
    (line,) = annotations([attempt("oslo"), attempt("50%: lima", passed=False, place=place)], tmp_path)
    assert line == (
        "::error file=evals/a%2Cb%3Ac.yaml,line=12,title=50%25%3A lima failed"
        '::response 0.00 < 1.00: the response does not contain "jacket"'
    )


def test_an_annotation_is_one_line_and_no_text_ends_it_or_adds_another():
    evil = "first\r\n::error file=x::second\n::set-output name=a::b"
    (line,) = annotations([attempt("lima", passed=False, error=evil)])
    assert "\n" not in line
    assert "\r" not in line
    assert "%0D%0A::error" in line


def test_no_more_annotations_than_github_shows_and_the_last_counts_the_rest():
    lines = annotations([attempt(f"c{number}", passed=False) for number in range(25)])
    assert len(lines) == 10
    assert lines[-1].endswith("16 more cases failed; see the report.")
    assert len(annotations([attempt(f"c{number}", passed=False) for number in range(10)])) == 10


def test_the_console_table_lists_few_cases_all_and_of_many_only_those_that_failed():
    few = console_table(summary_of(run(8)), run(8), columns=100)
    assert few.count("✓") + few.count("✗") == 8
    many = run(600)
    table = console_table(summary_of(many), many, columns=100)
    assert "✓" not in table
    assert table.count("✗") + table.count("\n!") == 40
    assert "more that have not passed" in table


def test_the_console_table_keeps_to_its_width_and_shows_no_control_character():
    wide = attempt("x" * 300, passed=False, error="\x1b]0;title\x07" + "very long " * 60)
    table = console_table(summary_of([wide]), [wide], columns=80)
    assert max(map(len, table.splitlines())) <= 80
    assert "\x1b" not in table
    assert "\x07" not in table


def test_the_console_table_shows_the_whole_of_an_error_in_as_many_lines_as_it_takes():
    told = (
        "no API key for openai: set OPENAI_API_KEY, or run: swink keys set openai; then run the cases again"
    )
    diff = "this request was not recorded:\n@@ -1 +1 @@\n   {\n-  gpt-5-mini\n+  gpt-5"
    bad = [attempt("a", passed=False, error=told), attempt("b", passed=False, error=diff)]
    table = console_table(summary_of(bad), bad, columns=70)
    assert told in " ".join(table.split())
    assert "\n       {\n    -  gpt-5-mini\n    +  gpt-5\n" in table
    assert max(map(len, table.splitlines())) <= 70


def test_the_console_table_has_colours_only_where_they_are_asked_for():
    results = [attempt(), attempt("b", passed=False)]
    assert "\x1b[31m" in console_table(summary_of(results), results, colour=True)
    assert "\x1b" not in console_table(summary_of(results), results)


def test_markdown_shows_marks_in_names_as_they_are(tmp_path: Path):
    id = "a|b`c <img src=x> *d* [e](f)"
    text = written(tmp_path, [attempt(id, passed=False, name=id, tags=("x|y",))])["report.md"]
    (row,) = [line for line in text.splitlines() if line.startswith("| ❌")]
    assert row.count("|") - row.count("\\|") == 8, "six cells and one for the mark"
    assert "<img" not in text


@left_to_more
def test_markdown_fits_into_the_summary_of_a_step_on_github(tmp_path: Path):
    results = [attempt(f"case-{number}", passed=False, error="long ``` " * 1_000) for number in range(600)]
    text = written(tmp_path, results)["report.md"]
    assert len(text.encode()) < 1024 * 1024
    assert "And 500 more" in text


def test_no_report_has_a_secret_of_a_model_a_tool_an_error_or_a_scorer(tmp_path: Path):
    said = (
        UserMessage(f"my key is {SECRET}"),
        AssistantMessage(
            (Text(f"{SECRET[:30]}"), Text(SECRET[30:]), ToolCall("1", "login", {"password": "hunter2xyz"}))
        ),
        ToolResultMessage("1", "login", f"token={SECRET}"),
    )
    metric = Metric("response", 0.0, 1.0, False, f"no {SECRET}", f"ValueError: {SECRET}")
    leaky = attempt("a", passed=False, transcript=said, metrics=(metric,), error=SECRET, reason=SECRET, system_prompt=SECRET, name=SECRET)  # fmt: skip
    files = written(tmp_path, [leaky], [leaky])
    shown = [*files.values(), json.dumps(details_of(files["report.html"]))]
    shown += [console_table(summary_of([leaky]), [leaky], columns=400), *annotations([leaky])]
    for text in shown:
        assert SECRET not in text
        assert SECRET[30:] not in text
        assert "hunter2xyz" not in text


def test_the_page_has_every_case_and_all_that_was_said(tmp_path: Path):
    results = run(30, repeat=2)
    page = written(tmp_path, results)["report.html"]
    rows, details = rows_of(page)["rows"], details_of(page)
    assert [row[0] for row in rows] == list(dict.fromkeys(result.case_id for result in results))
    assert all(len(item["attempts"]) == 2 for item in details)
    kinds = [row[0] for row in details[0]["attempts"][0]["talk"]]
    assert kinds[:4] == ["system", "prompt", "reply", "tool"]


def test_no_text_ends_the_element_that_holds_the_data(tmp_path: Path):
    evil = "</script><script>alert(1)</script><!-- <script>"
    results = [attempt(evil, passed=False, name=evil, tags=(evil,), error=evil)]
    page = written(tmp_path, results)["report.html"]
    assert "alert(1)</script>" not in page
    assert rows_of(page)["rows"][0][0] == evil


def test_a_long_conversation_is_cut_and_says_where_the_whole_is():
    long = attempt(transcript=(UserMessage("short"), ToolResultMessage("1", "read", "x" * 3_000_000)))
    rows = conversation(long, 20_000)
    assert rows[0] == ["prompt", "short"]
    assert "the whole text is in results.jsonl" in json.dumps(rows)
    assert len(json.dumps(rows)) < 21_000


def test_of_a_conversation_with_many_steps_the_first_and_the_last_are_kept():
    said = [UserMessage(f"message {number} " + "x" * 500) for number in range(1_000)]
    rows = conversation(attempt(transcript=tuple(said)), 10_000)
    assert rows[0][1].startswith("message 0 ")
    assert rows[-1][1].startswith("message 999 ")
    assert any("more steps are left out here" in row[1] for row in rows)
    assert len(json.dumps(rows)) < 14_000


@pytest.mark.parametrize("shift", range(0, 60, 4))
def test_no_half_of_a_secret_stays_where_a_text_is_cut(shift: int):
    text = "word " * 1_000
    at = 4_000 * 2 // 3 - shift
    rows = conversation(attempt(transcript=(UserMessage(f"{text[:at]} {SECRET} {text}"),)), 4_000)
    assert SECRET[:14] not in rows[0][1]


def test_the_page_stays_within_bounds_however_long_the_conversations_are(tmp_path: Path):
    noise = [os.urandom(40_000).hex() for _ in range(2)]
    said = tuple(UserMessage(text) for text in noise)
    results = [attempt(f"c{number}", transcript=said) for number in range(20)]
    page = written(tmp_path, results)["report.html"]
    assert len(page) < 20 * 30_000


def test_a_comparison_names_flipped_new_and_missing_cases(tmp_path: Path):
    before = [attempt("kept"), attempt("breaks"), attempt("mends", passed=False), attempt("gone")]
    now = [attempt("kept"), attempt("breaks", passed=False), attempt("mends"), attempt("added")]
    files = written(tmp_path, now, before)
    text = files["report.md"]
    assert "**Newly failing** (1): <code>breaks</code>" in text
    assert "**Newly passing** (1): <code>mends</code>" in text
    assert "1 case is new" in text
    assert "1 case of the baseline is missing" in text
    assert "may well be chance" in text
    page = files["report.html"]
    befores = {row[0]: row[13] and row[13][0] for row in rows_of(page)["rows"]}
    assert befores == {"kept": 0, "breaks": 0, "mends": 1, "added": None}
    assert "Compared with the baseline" in page


def test_runs_without_a_common_case_are_compared_without_an_error(tmp_path: Path):
    assert "no case in common" in written(tmp_path, [attempt("a")], [attempt("b")])["report.html"]


def test_text_that_cannot_be_encoded_spoils_no_report(tmp_path: Path):
    odd = "a\ud800b"
    metric = Metric(odd, 0.5, 1.0, False, odd, odd)
    results = [attempt(odd, passed=False, name=odd, tags=(odd, odd), metrics=(metric,), error=odd)]
    files = written(tmp_path, results, results)
    assert "a\ufffdb" in files["report.md"]
    assert details_of(files["report.html"])
    console_table(summary_of(results), results).encode()
    "".join(annotations(results)).encode()


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.none() | st.floats(0, 1e12),
            st.floats(0, 1e12),
            st.sampled_from(INJECTIONS),
            st.booleans(),
        ),
        max_size=6,
    )
)
@tried(15, 600)
def test_any_figures_and_names_make_reports(tmp_path_factory: pytest.TempPathFactory, figures: list[Any]):
    results = [
        attempt(
            f"{text}{number}",
            passed=passed,
            cost=cost,
            duration=duration,
            tags=(text,),
            metrics=(Metric(text, value, 0.5, passed, text),),
        )
        for number, (value, cost, duration, text, passed) in enumerate(figures)
    ]
    folder = tmp_path_factory.mktemp("run")
    files = written(folder, results, results[1:])
    ElementTree.fromstring(files["junit.xml"])
    assert len(rows_of(files["report.html"])["rows"]) == len(results)
    assert "nan" not in files["report.html"].split("<script")[0].replace("lang=", "")
    console_table(summary_of(results), results, columns=80)


@pytest.mark.parametrize(
    ("share", "text"),
    [(1, "100 %"), (0, "0 %"), (0.9, "90 %"), (0.9234, "92.3 %"), (0.9999, "99.990 %"), (0.0001, "0.010 %")],
)
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, text: str):
    assert percent(share) == text


def test_figures_are_written_in_the_unit_that_suits_them():
    assert [seconds(value) for value in (0.0312, 1.5, 59.99, 312, 7260)] == ["31 ms", "1.5 s", "1 min 00 s", "5 min 12 s", "2 h 01 min"]  # fmt: skip
    assert [dollars(value) for value in (None, 0, 4.5e-06, 0.00001, 0.0123, 4.5, 1234)] == ["unknown", "$0", "$0.0000045", "$0.000010", "$0.0123", "$4.50", "$1,234"]  # fmt: skip


def test_an_error_that_fails_every_case_alike_is_told_once():
    broken = [
        attempt(f"c{number}", passed=False, error="MissingKey: no key", metrics=()) for number in range(30)
    ]
    table = console_table(summary_of(broken), broken, columns=100)
    assert table.count("no key") == 1
    assert "error: MissingKey: no key (30 cases)" in table
    assert table.count("! c") == 30


def test_the_table_says_how_much_of_it_is_from_the_cache():
    results = [attempt("a", cached=True), attempt("b")]
    assert "1 of 2 attempts from the cache" in console_table(summary_of(results), results)
    assert "cache" not in console_table(summary_of(results[1:]), results[1:])


def test_a_comparison_names_the_baseline_and_keeps_what_was_said_before(tmp_path: Path):
    now, before = [attempt(passed=False)], [attempt()]
    write_reports(tmp_path, summary_of(now), now, manifest_of(now), before, "Tuesday *1*")
    assert "## Compared with Tuesday \\*1\\*" in (tmp_path / "report.md").read_text("utf-8")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<h2>Compared with Tuesday *1*</h2>" in page
    (chunk,) = re.findall(r'class="chunk">([^<]+)<', page)
    (details,) = json.loads(zlib.decompress(b64decode(chunk)))
    assert details["earlier"][0]["talk"] == details["attempts"][0]["talk"]
    assert details["earlier"][0]["values"] == {"response": 1.0}


def test_a_secret_in_the_earlier_transcript_or_in_the_name_of_the_run_is_not_shown(tmp_path: Path):
    key = "sk-ant-api03-" + "a1B2c3D4" * 6
    before = [attempt(transcript=(UserMessage(f"My key is {key}"), AssistantMessage("Oh.")))]
    now = [attempt()]
    write_reports(tmp_path, summary_of(now), now, manifest_of(now), before, f"run {key}")
    page = (tmp_path / "report.html").read_text("utf-8")
    (chunk,) = re.findall(r'class="chunk">([^<]+)<', page)
    for text in (
        page,
        zlib.decompress(b64decode(chunk)).decode(),
        (tmp_path / "report.md").read_text("utf-8"),
    ):
        assert key not in text
