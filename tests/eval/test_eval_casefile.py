"""Case files: everything that is wrong is said at once, with its line."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.eval.case import (
    Case,
    CaseBudget,
    Environment,
    Evaluator,
    ExpectedCall,
    ExpectedResponse,
    SimulatedTool,
    SimulatedUser,
    Suite,
)
from swink.eval.casefile import BadCases, load_cases, load_suite
from swink.eval.caseschema import case_schema, violations
from swink.eval.jsontext import read_json
from swink.eval.linenumbers import Unreadable
from swink.eval.scorers import scorer
from swink.eval.scorers.registry import scorers_kept
from swink.eval.yamltext import read_yaml

PINNED = """\
name: clothes
cases:
  - id: oslo
    user_messages: ["What should I wear in Oslo?"]
    expected_trajectory: [{tool_name: weather, arguments: {city: Oslo}}]   # mode: exact | in_order (default)
    expected_response: {contains: jacket}
    budget: {max_turns: 4, max_cost: 0.05}
    tags: [smoke]
"""


def problems(tmp_path: Path, text: str, name: str = "cases.yaml") -> list[str]:
    """What is said of a file, without its directory."""
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(BadCases) as raised:
        load_suite(file)
    assert str(raised.value) == "\n".join(raised.value.problems)
    return [problem.removeprefix(f"{file}:") for problem in raised.value.problems]


def test_the_pinned_file_is_read(tmp_path: Path):
    (tmp_path / "cases.yaml").write_text(PINNED)
    suite = load_suite(tmp_path / "cases.yaml")
    (case,) = suite.cases
    assert (suite.name, case.id, case.tags, case.mode) == ("clothes", "oslo", ("smoke",), "in_order")
    assert case.expected_trajectory == (ExpectedCall("weather", {"city": "Oslo"}),)
    assert case.expected_response == ExpectedResponse(contains="jacket")
    assert (case.budget.max_turns, case.budget.max_cost) == (4, 0.05)
    assert str(case.place) == f"{tmp_path / 'cases.yaml'}:3"


def test_yaml_json_and_python_say_the_same(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(PINNED)
    data = read_yaml(PINNED).data
    (tmp_path / "a.json").write_text(json.dumps(data, indent=2))
    (tmp_path / "a.py").write_text(f"name = 'clothes'\ndef cases():\n    return {data['cases']!r}\n")
    (tmp_path / "b.py").write_text(
        "from swink.eval import Case, Suite, ExpectedCall, ExpectedResponse, CaseBudget\n"
        "cases = Suite(name='clothes', cases=(Case(id='oslo', user_messages=('What should I wear in Oslo?',),\n"
        "    expected_trajectory=(ExpectedCall('weather', {'city': 'Oslo'}),), tags=('smoke',),\n"
        "    expected_response=ExpectedResponse(contains='jacket'), budget=CaseBudget(max_cost=0.05, max_turns=4)),))\n"
    )
    found = [load_suite(tmp_path / name) for name in ("a.yaml", "a.json", "a.py", "b.py")]

    def plain(case: Case) -> dict[str, Any]:
        return {name: getattr(case, name) for name in Case.__struct_fields__ if name != "place"}

    assert len({suite.name for suite in found}) == 1
    assert all(plain(suite.cases[0]) == plain(found[0].cases[0]) for suite in found)
    assert [suite.cases[0].place.line for suite in found if suite.cases[0].place] == [3, 4, 3, 2]


def test_every_problem_is_said_at_once_with_its_line(tmp_path: Path):
    said = problems(
        tmp_path,
        """\
nam: clothes
judges: ["opnai:x"]
tools: [weather]
cases:
  - id: oslo
    prompt: hi
    expected_trajectory: [{weather: {city: Oslo}}, y]
    expected_response: {contain: jacket, regex: "(", schema: {type: 5}}
    budget: {max_turns: 0, max_cost: x}
    evaluators: [respnse, {name: response, threshold: 1.5}]
  - id: oslo
    user_messages: []
    mode: inorder
    tools: [x:y]
    initial_files: {"../x": a, b: c, b/c: d}
    attachments: nothing.png
  - user_messages: hi
    expected_response: {}
  - id: 5
    simulated_user: {gol: x}
  - 7
""",
    )
    wanted = [
        "1: unknown key 'nam'; did you mean 'name'?",
        "2: unknown provider 'opnai'",
        '3: tools is "weather"; write package.module:function',
        "6: unknown key 'prompt'; did you mean 'user_messages'?",
        '7: expected_trajectory must be a mapping, not "y"',
        '7: unknown key \'weather\'; write {tool_name: weather, arguments: {"city": "Oslo"}}',
        "8: '(' is no regular expression",
        "8: this is no JSON Schema",
        "8: unknown key 'contain'; did you mean 'contains'?",
        '9: budget.max_cost must be a number, not "x"',
        "9: budget.max_turns is 0; it must be at least 1",
        "10: evaluators.threshold is 1.5; it must be at most 1",
        "10: no scorer 'respnse'",
        "11: a case with the id 'oslo' is on line 5 already",
        "12: user_messages is empty",
        "13: mode is exact, in_order, any_order, not \"inorder\"; did you mean 'in_order'?",
        "14: unknown key 'tools'; it belongs to the suite",
        "15: '../x' is no path within the workspace",
        "15: 'b' is a file",
        "16: there is no file 'nothing.png'",
        "17: the case has no id",
        "18: expected_response is empty",
        '19: id must be a text; write it in quotes: "5"',
        "20: unknown key 'gol'; did you mean 'goal'?",
        "21: a case must be a mapping, not 7",
    ]
    for text in wanted:
        assert any(problem.startswith(text) for problem in said), (text, said)
    assert len(said) == len(wanted), said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: the file"),
        ("cases: []", "1: there are no cases"),
        ("name: x", "1: there are no cases"),
        ("- id: a\n  user_messages:\n\t- hi", "3: a tab; indent with spaces"),
        ("cases: [1, 2", "2: not YAML"),
        ("cases: a: b", '1: a second ": " here'),
        ("a: *x", "1: *x stands for nothing"),
        ("a: &x [*x]", "1: *x stands for nothing"),
        ("a: " + "[" * 200, "1: nested deeper than 100"),
        ("a: !!python/object:os.system x", "1: the tag !!python/object:os.system is not supported"),
        (
            "name: a\nname: b\ncases: [{id: a, user_messages: hi}]",
            "2: 'name' stands here twice, first on line 1",
        ),
        ("a: .nan", "1: .nan is no number"),
        ("--- {}\n--- {}", "2: a second document"),
        ("\x00", "1: a character that YAML does not allow"),
    ],
)
def test_yaml_that_cannot_be_used_is_explained(text: str, said: str, tmp_path: Path):
    assert any(problem.startswith(said) for problem in problems(tmp_path, text)), problems(tmp_path, text)


def test_an_alias_bomb_is_refused(tmp_path: Path):
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
    )
    assert "stand for too much" in problems(tmp_path, bomb)[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"cases": [],}', "1: a key"),
        ("{'cases': []}", "1: cannot read"),
        ('{"cases": [\n1 2]}', "2: ',' or ']' is missing before '2'"),
        ('{"cases" []}', "1: ':' after 'cases' is missing"),
        ("", "1: the file ends too early"),
        ("// x\n[]", "1: cannot read '/' here; JSON has no comments"),
        ("[NaN]", "1: NaN is no JSON value"),
        ("[" * 200, "1: nested deeper"),
        ('{"cases": [],\n"cases": []}', "2: 'cases' stands here twice"),
        ("[1e999]", "1: 1e999 is too large"),
        ('["\\ud800"]', "1: half of a character"),
    ],
)
def test_json_that_cannot_be_used_is_explained(text: str, said: str, tmp_path: Path):
    assert problems(tmp_path, text, "cases.json")[0].startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases = 5", "1: there are no cases"),
        ("import os\nraise ValueError('no')", "2: ValueError: no"),
        ("import sys\n\nsys.exit(3)", "3: SystemExit"),
        ("def cases(:", "1: not Python"),
        (
            "cases = [{'id': 'a', 'user_messages': 'hi', 'metadata': {'x': object()}}]",
            "1: a case holds what JSON cannot",
        ),
        ("async def cases():\n    return []", "1: cases() is async"),
        ("x = 1\ncases = [\n  {'id': 'a', 'user_message': 'hi'}]", "3: unknown key 'user_message'"),
    ],
)
def test_python_that_cannot_be_used_is_explained(text: str, said: str, tmp_path: Path):
    assert problems(tmp_path, text, "mycases.py")[0].startswith(said)


def test_the_line_of_a_failure_in_python_is_told_for_a_relative_path_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("mycases.py").write_text("import os\n\nraise ValueError('no')")
    with pytest.raises(BadCases, match=r"mycases\.py:3: ValueError: no"):
        load_suite("mycases.py")


def test_a_file_that_is_missing_not_utf8_or_no_file_is_explained(tmp_path: Path):
    (tmp_path / "a.yaml").write_bytes(b"name: a\ncases: \xff\n")
    (tmp_path / "a.txt").write_text("x")
    for name, said in [
        ("none.yaml", "none.yaml:1: there is no such file"),
        ("a.yaml", "a.yaml:2: not UTF-8"),
        ("a.txt", "a.txt:1: 'a.txt' is no case file"),
    ]:
        with pytest.raises(BadCases, match=said):
            load_suite(tmp_path / name)


def test_the_files_of_a_directory_are_one_suite_and_their_ids_differ(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("model: openai:gpt-5\ncases: [{id: a, user_messages: hi}]")
    (tmp_path / "b.json").write_text('[{"id": "b", "user_messages": ["hi"]}]')
    assert [case.id for case in load_cases(tmp_path)] == ["a", "b"]
    assert load_suite(tmp_path).model == "openai:gpt-5"
    (tmp_path / "c.yaml").write_text("\ncases: [{id: a, user_messages: hi}]")
    with pytest.raises(BadCases, match=r"c\.yaml:2: a case with the id 'a' is in .*a\.yaml:2 already"):
        load_suite(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadCases, match="no case files"):
        load_suite(tmp_path / "empty")


def test_yaml_means_what_json_and_editors_mean_by_it():
    found = read_yaml(
        "a: no\nb: 2026-11-17\nc: 1:30\nd: true\ne: 0x1f\nf: 1e3\ng: '5'\nh:\ni: &x {k: 1}\nj: {<<: *x, l: 2}"
    )
    assert found.data == {
        "a": "no", "b": "2026-11-17", "c": "1:30", "d": True, "e": 31, "f": 1000.0, "g": "5", "h": None,
        "i": {"k": 1}, "j": {"k": 1, "l": 2},
    }  # fmt: skip


def test_files_of_the_environment_may_be_texts_responses_or_absent(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(
        "- id: a\n  user_messages: hi\n  expected_environment_state: {files: {a: x, b: {regex: y}, c: null}}"
    )
    (case,) = load_cases(tmp_path / "a.yaml")
    assert case.expected_environment_state == Environment(
        files={"a": "x", "b": ExpectedResponse(regex="y"), "c": None}
    )


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)


@tried(30, 1000)
@given(VALUES, st.sampled_from([None, 1]))
def test_json_is_read_as_python_reads_it(value: Any, indent: int | None):
    text = json.dumps(value, indent=indent)
    assert read_json(text).data == value


@tried(30, 1000)
@given(st.text(alphabet='[]{},:"\\ntru0 e-.1', max_size=20))
def test_json_is_refused_where_python_refuses_it(text: str):
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = Unreadable
    try:
        found = read_json(text)
        assert found.data == wanted or found.problems
    except Unreadable:
        assert wanted is Unreadable


@tried(30, 1000)
@given(st.text(alphabet="[]{},:-\"'\n a&*!|>#?%@`~<", max_size=30))
def test_any_text_is_yaml_or_explained(text: str):
    line = 1
    try:
        read_yaml(text)
    except Unreadable as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 2


@tried(30, 1000)
@given(VALUES)
def test_any_data_is_a_case_file_or_explained(data: Any):
    for _, text in violations({"cases": [data]}):
        assert text
    for _, text in violations(data):
        assert text


FULL: dict[str, Any] = {
    "name": "s",
    "model": "openai:gpt-5-mini",
    "system_prompt": "x",
    "tools": ["a:b"],
    "agent": "a:b",
    "judges": ["openai:gpt-5"],
    "cassette": "c.jsonl",
    "cases": [
        {
            "id": "a",
            "name": "n",
            "system_prompt": "x",
            "history": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
            "user_messages": ["hi"],
            "expected_trajectory": [{"tool_name": "t", "arguments": {"x": 1}}],
            "mode": "exact",
            "expected_response": {
                "exact": "a",
                "contains": ["b"],
                "regex": "c",
                "json": 1,
                "schema": {"type": "object"},
            },
            "expected_assertion": "It is so.",
            "budget": {"max_cost": 1, "max_input": 1, "max_output": 1, "max_turns": 1},
            "evaluators": ["response", {"name": "levenshtein", "threshold": 0.5, "options": {}}],
            "initial_files": {"a": "b"},
            "session_state": {"a": 1},
            "expected_environment_state": {
                "files": {"a": "b", "c": {"exact": "d"}, "e": None},
                "state": {"a": 2},
            },
            "simulated_user": {"goal": "g", "persona": "p", "max_turns": 3, "model": "openai:gpt-5"},
            "simulated_tools": [
                {
                    "name": "t",
                    "description": "d",
                    "parameters": {"type": "object"},
                    "replies": [1],
                    "instructions": "i",
                }
            ],
            "metadata": {"a": [1]},
            "tags": ["x"],
            "attachments": [],
            "timeout": 5,
            "reference": "r",
        }
    ],
}


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places_in(item, (*path, key)))]


def test_the_schema_knows_every_field_and_is_one():
    case = case_schema()["$defs"]["case"]["properties"]
    assert set(case) == {*Case.__struct_fields__} - {"workspace", "place"} == set(FULL["cases"][0])
    assert set(case_schema()["properties"]) - {"$schema"} == {*Suite.__struct_fields__} - {"path", "skipped"}
    assert set(case["budget"]["properties"]) == set(CaseBudget.__struct_fields__)
    assert set(case["simulated_user"]["properties"]) == set(SimulatedUser.__struct_fields__)
    assert set(case["simulated_tools"]["items"]["properties"]) == set(SimulatedTool.__struct_fields__)
    assert set(case["evaluators"]["items"]["properties"]) == set(Evaluator.__struct_fields__)
    assert set(case_schema()["$defs"]["expected_response"]["properties"]) == set(
        ExpectedResponse.__struct_fields__
    )
    jsonschema.Draft202012Validator.check_schema(case_schema())
    assert not list(jsonschema.Draft202012Validator(case_schema()).iter_errors(FULL))


@tried(40, 1_000)
@given(st.sampled_from(places_in(FULL)[1:]), VALUES | st.just(4.0) | st.just(-1) | st.just([]) | st.just({}))
def test_whatever_stands_in_a_case_file_it_is_read_or_explained_with_a_line(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any
):
    data = json.loads(json.dumps(FULL))
    around = data
    for step in place[:-1]:
        around = around[step]
    around[place[-1]] = value
    file = tmp_path_factory.mktemp("fuzz") / "cases.json"
    file.write_text(json.dumps(data, indent=1))
    try:
        load_suite(file)
        refused = False
    except BadCases as error:
        refused = True
        for problem in error.problems:
            assert re.match(rf"{re.escape(str(file))}:\d+: \S", problem), problem
    by_schema = bool(list(jsonschema.Draft202012Validator(case_schema()).iter_errors(data)))
    assert refused or not by_schema, "what the schema refuses, the loader does"


def test_an_expected_response_that_expects_nothing_is_refused(tmp_path: Path):
    said = problems(tmp_path, "- id: a\n  user_messages: hi\n  expected_response:\n    contains:\n")
    assert said == ["3: nothing is expected here: every value is empty; give one, or remove it"]


def test_without_yaml_its_files_say_how_to_install_it_and_json_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (said,) = problems(tmp_path, "cases: []")
    assert said.startswith("1: case files in YAML need PyYAML; install it with: ")
    (tmp_path / "a.json").write_text('[{"id": "a", "user_messages": "hi"}]')
    assert load_cases(tmp_path / "a.json")[0].user_messages == ("hi",)


def test_a_scorer_that_is_registered_later_is_known_then(tmp_path: Path):
    text = "[{id: a, user_messages: hi, evaluators: [scorer_of_this_test]}]"
    assert "no scorer 'scorer_of_this_test'" in problems(tmp_path, text)[0]
    with scorers_kept():
        scorer("scorer_of_this_test")(lambda case, trajectory: True)
        assert load_cases(tmp_path / "cases.yaml")[0].evaluators == (Evaluator("scorer_of_this_test"),)


def test_scorers_of_modules_beside_the_case_file_are_found_and_no_directory_is_searched_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "a.yaml").write_text("[{id: a, user_messages: hi, evaluators: response}]")
    load_cases(tmp_path / "a.yaml")
    assert str(tmp_path) not in sys.path
    (tmp_path / "scorers_of_a_test.py").write_text("def polite(case, trajectory): return True\n")
    (tmp_path / "b.yaml").write_text('[{id: a, user_messages: hi, evaluators: "scorers_of_a_test:polite"}]')
    assert load_cases(tmp_path / "b.yaml")[0].evaluators == (Evaluator("scorers_of_a_test:polite"),)
