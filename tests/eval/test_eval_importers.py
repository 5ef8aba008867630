"""Rows of published benchmarks become cases, and are scored as published; the rows here are our own."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swink import Agent
from swink.errors import InvalidInput
from swink.eval.case import Case, Suite
from swink.eval.casefile import load_suite
from swink.eval.importers import FORMATS, BadRows, import_cases, write_cases
from swink.eval.importers.callcheck import wrong_call
from swink.eval.importers.codetasks import called_function, find_code
from swink.eval.importers.ifevalchecks import INSTRUCTIONS, count_sentences
from swink.eval.importers.languages import language_of
from swink.eval.importers.literals import JAVA, JAVASCRIPT, read_java, read_javascript
from swink.eval.result import Metric
from swink.eval.runner import evaluate
from swink.eval.scorers import problem_of, score
from swink.eval.scorers.coderun import run_python
from swink.eval.trajectory import TakenCall, Trajectory
from swink.messages import AssistantMessage, ToolCall
from swink.testing import ScriptedModel
from swink.tools.coding.sandbox import SandboxUnavailable


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


async def metric(case: Case, response: str = "", calls: Any = (), **options: Any) -> Metric:
    (evaluator,) = case.evaluators
    trajectory = Trajectory(
        response=response,
        messages=(AssistantMessage(response),) if response else (),
        calls=tuple(TakenCall(str(n), name, arguments) for n, (name, arguments) in enumerate(calls)),
    )
    if options:
        from msgspec.structs import replace

        case = replace(case, evaluators=(replace(evaluator, options=options),))
    (given,) = await score(case, trajectory)
    assert given.error is None, given.error
    return given


# Reading


def test_an_unknown_format_or_a_limit_below_one_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="agentdojo, bfcl, gsm8k, humaneval, ifeval, mbpp, tau"):
        import_cases("gsm9k", tmp_path)
    with pytest.raises(InvalidInput, match="above 0"):
        import_cases("gsm8k", tmp_path, limit=0)


def test_every_broken_line_is_named(tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"question": \n[]\n"x"\n', "utf-8")
    with pytest.raises(BadRows) as caught:
        import_cases("gsm8k", file)
    assert [line.rpartition("rows.jsonl:")[2][0] for line in str(caught.value).split("\n")] == ["1", "2", "3"]


def test_wrong_rows_are_left_out_and_named_and_the_good_ones_stay(tmp_path: Path):
    wrong = {"question": "?", "answer": "many"}
    file = write(tmp_path / "rows.jsonl", GSM8K, wrong, 7, GSM8K, wrong)
    suite = import_cases("gsm8k", file)
    assert [case.id for case in suite.cases] == ["gsm8k-0", "gsm8k-3"]
    assert [line.partition("rows.jsonl:")[2][0] for line in suite.skipped] == ["2", "3", "5"]
    assert "####" in suite.skipped[0]


def test_a_limit_is_of_good_rows_and_nothing_is_said_of_those_behind_it(tmp_path: Path):
    wrong = {"question": "?", "answer": "many"}
    suite = import_cases("gsm8k", write(tmp_path / "rows.jsonl", wrong, GSM8K, GSM8K, wrong), limit=2)
    assert (len(suite.cases), len(suite.skipped)) == (2, 1)


def test_where_no_row_is_good_the_first_fifty_are_named(tmp_path: Path):
    with pytest.raises(BadRows) as caught:
        import_cases("gsm8k", write(tmp_path / "rows.jsonl", *[{"question": "?", "answer": "many"}] * 60))
    assert str(caught.value).count("####") == 50


def test_ids_that_stand_twice_are_named_with_both_places(tmp_path: Path):
    rows = [IFEVAL, {**IFEVAL, "key": 1}, IFEVAL, IFEVAL]
    suite = import_cases("ifeval", write(tmp_path / "rows.jsonl", *rows))
    assert len(suite.cases) == 2
    first, second = suite.skipped
    assert "rows.jsonl:3" in first
    assert "rows.jsonl:4" in second
    assert "rows.jsonl:1 already" in second


def test_a_file_that_cannot_be_read_comes_after_the_wrong_rows_before_it(tmp_path: Path):
    write(tmp_path / "BFCL_v4_irrelevance.json", question("irrelevance_0", {"name": 1}))
    (tmp_path / "BFCL_v4_multiple.json").write_bytes(b"\xff")
    with pytest.raises(BadRows, match=r"irrelevance\.json:1.*\n.*multiple\.json: cannot be read"):
        import_cases("bfcl", tmp_path)


def test_a_file_that_cannot_be_read_does_not_stop_the_files_behind_it(tmp_path: Path):
    (tmp_path / "BFCL_v4_irrelevance.json").write_bytes(b"\xff")
    write(tmp_path / "BFCL_v4_live_irrelevance.json", question("live_irrelevance_0", TRIANGLE))
    suite = import_cases("bfcl", tmp_path)
    assert [case.id for case in suite.cases] == ["live_irrelevance_0"]
    assert "BFCL_v4_irrelevance.json: cannot be read" in suite.skipped[0]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"[]"])
def test_no_rows_are_an_error(tmp_path: Path, data: bytes):
    (tmp_path / "rows.jsonl").write_bytes(data)
    with pytest.raises(BadRows, match="holds no rows"):
        import_cases("gsm8k", tmp_path / "rows.jsonl")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 100_000, b'[{"a"', b"[1]"])
@pytest.mark.parametrize("format", sorted(set(FORMATS) - {"tau"}))
def test_data_of_another_kind_is_a_clear_error(tmp_path: Path, data: bytes, format: str):
    (tmp_path / "rows.jsonl").write_bytes(data)
    with pytest.raises(BadRows, match=r"rows\.jsonl"):
        import_cases(format, tmp_path / "rows.jsonl")


def test_a_missing_file_and_a_torn_archive_are_named(tmp_path: Path):
    with pytest.raises(BadRows, match="cannot be read"):
        import_cases("gsm8k", tmp_path / "none.jsonl")
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with pytest.raises(BadRows, match="cannot be read"):
        import_cases("gsm8k", tmp_path / "torn.jsonl.gz")


def test_the_scorers_of_benchmarks_are_known_by_name():
    assert all(problem_of(name) is None for name in FORMATS)


def test_a_suite_written_as_a_case_file_is_read_back_the_same(tmp_path: Path):
    suites = [
        import_cases("bfcl", bfcl_files(tmp_path)),
        import_cases("ifeval", write(tmp_path / "ifeval.jsonl", IFEVAL)),
        import_cases("humaneval", write(tmp_path / "humaneval.jsonl", HUMANEVAL)),
    ]
    for suite in suites:
        write_cases(suite, tmp_path / "cases.json")
        again = load_suite(tmp_path / "cases.json")
        assert [_bare(case) for case in again.cases] == [_bare(case) for case in suite.cases]


def _bare(case: Case) -> Case:
    from msgspec.structs import replace

    return replace(case, place=None)


# GSM8K

GSM8K = {"question": "Ann has 1,000 apples and eats 2. How many are left?", "answer": "1000-2=998\n#### 998"}


@pytest.mark.parametrize(
    ("response", "strict", "flexible"),
    [
        ("1000 - 2 = 998\n#### 998", 1, 1),
        ("#### $998.00", 1, 1),
        ("##### 998 ####", 1, 1),
        ("#### 12\nno, wait\n#### 998", 1, 1),
        ("That leaves 998 apples.", 0, 1),
        ("She has **998**.", 0, 1),
        ("998 of 1,000", 0, 0),
        ("#### -998", 0, 0),
        ("none", 0, 0),
        ("", 0, 0),
        ("#### .", 0, 0),
    ],
)
async def test_gsm8k_compares_the_final_number(tmp_path: Path, response: str, strict: int, flexible: int):
    (case,) = import_cases("gsm8k", write(tmp_path / "test.jsonl", GSM8K)).cases
    assert case.reference == "998"
    assert (await metric(case, response)).value == flexible
    assert (await metric(case, response, match="strict")).value == strict


def test_a_gsm8k_answer_without_a_number_is_refused(tmp_path: Path):
    with pytest.raises(BadRows, match=r"test\.jsonl:1.*####"):
        import_cases("gsm8k", write(tmp_path / "test.jsonl", {"question": "?", "answer": "many"}))


def test_only_the_first_rows_are_read_with_a_limit(tmp_path: Path):
    file = write(tmp_path / "test.jsonl", GSM8K, {"question": "?", "answer": "many"})
    assert len(import_cases("gsm8k", file, limit=1).cases) == 1


# HumanEval and MBPP

HUMANEVAL = {
    "task_id": "HumanEval/7",
    "prompt": 'from typing import List\n\n\ndef half(n: List[int]) -> int:\n    """Half of the sum."""\n',
    "canonical_solution": "    return sum(n) // 2\n",
    "test": "def check(candidate):\n    assert candidate([4]) == 2\n",
    "entry_point": "half",
}
MBPP = {
    "task_id": 2,
    "text": "Write a function to double a number.",
    "code": "",
    "test_list": ["assert double(2) == 4", "assert double(0) == 0"],
    "test_setup_code": "import math",
    "challenge_test_list": ["assert double(1.5) == 4"],
}


@pytest.mark.parametrize(
    ("response", "passes"),
    [
        (
            "```python\ndef half(n: List[int]) -> int:\n    return sum(n) // 2\n```\nTry it:\n```\nhalf([1])\n```",
            True,
        ),
        ("    return sum(n) // 2\n", True),
        ("```python\ndef half(n):\n    return 3\n```", False),
        ("```python\nraise SystemExit(0)\n```", False),
        ("```python\ndef half(n):\n    import sys; sys.exit(0)\n```", False),
        ("I cannot.", False),
        ("", False),
    ],
)
async def test_humaneval_runs_the_tests_on_the_function(tmp_path: Path, response: str, passes: bool):
    with gzip.open(tmp_path / "HumanEval.jsonl.gz", "wt") as file:
        file.write(json.dumps(HUMANEVAL))
    (case,) = import_cases("humaneval", tmp_path / "HumanEval.jsonl.gz").cases
    assert case.id == "humaneval-7"
    assert (await metric(case, response, sandbox="none")).passed is passes


async def test_humaneval_runs_in_the_sandbox_unless_told_otherwise(tmp_path: Path):
    (case,) = import_cases("humaneval", write(tmp_path / "humaneval.jsonl", HUMANEVAL)).cases
    outside = tmp_path / "outside.txt"
    try:
        await run_python("")
    except SandboxUnavailable:
        pytest.skip("no sandbox works here; install bubblewrap")
    assert (await metric(case, "    return sum(n) // 2\n")).passed
    assert not (
        await metric(case, f"    open({str(outside)!r}, 'w').close()\n    return sum(n) // 2\n")
    ).passed
    assert not outside.exists()


@pytest.mark.parametrize(
    ("test", "function"),
    [
        ("assert double(2) == 4", "double"),
        ("assert not is_odd(2)", "is_odd"),
        ("assert set(both((1, 2), (2,))) == set((2,))", "both"),
        ("assert math.isclose(area(2), 3.1, rel_tol=0.1)", "area"),
        ("assert x == 1", None),
    ],
)
def test_the_tested_function_is_the_first_that_is_called_and_not_built_in(test: str, function: str | None):
    assert called_function([test]) == function


async def test_mbpp_runs_every_test_of_the_list(tmp_path: Path):
    (case,) = import_cases("mbpp", write(tmp_path / "mbpp.jsonl", MBPP)).cases
    good = "[BEGIN]\ndef double(n):\n    return math.floor(n) * 2\n[DONE]"
    assert (await metric(case, good, sandbox="none")).passed
    assert not (await metric(case, good, sandbox="none", challenge=True)).passed
    assert not (await metric(case, "```\ndef double(n): return 4\n```", sandbox="none")).passed


def test_code_is_the_last_block_that_defines_the_function():
    text = "```python\ndef f(): return 1\n```\n```python\ndef f(): return 2\n```\n```\nf() # a long example of use\n```"
    assert "return 2" in find_code(text, "f")
    assert "long example" in find_code(text, "g")


# IFEval

IFEVAL = {
    "key": 1000,
    "prompt": "Write without commas, at least 3 words.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{"num_words": None}, {"relation": "at least", "num_words": 3, "language": None}],
}

FOLLOWED: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords:existence", {"keywords": ["sea", "sun"]}, "The SEA and the sun", "The sea"),
    ("keywords:frequency", {"keyword": "a", "relation": "at least", "frequency": 2}, "a A", "a b"),
    ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "rocks are fine", "a Rock here"),
    ("keywords:letter_frequency", {"letter": "!", "let_relation": "less than", "let_frequency": 2}, "a!", "a!!"),
    ("language:response_language", {"language": "de"}, "Das ist nicht die Antwort und auch nicht der Weg.", "This is the answer of the day."),
    ("length_constraints:number_sentences", {"relation": "less than", "num_sentences": 3}, "Dr. No came at 3.5. He left!", "A. B? C!"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo\n***", "one\n***\n***\ntwo"),
    ("length_constraints:number_words", {"relation": "at least", "num_words": 3}, "one two-three", "one two"),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Sun"}, 'one\n\n"sun, is', "one\n\nmoon"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] at [city]", "[name]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye\np. s. more", "Bye"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye\nP. P.S: more", "Bye\nP.S. more"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n - two", "* one\n** two"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "*\n* one\n* two", "*\n* one"),
    ("detectable_format:constrained_response", {}, "My answer is no.", "No."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and *two*", "*one* and * *"),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}, "Section 1 a Section 2 b", "Section 1"),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{'a': 1}"),
    ("detectable_format:title", {}, "<<A poem>>\nx", "<< >>"),
    ("combination:two_responses", {}, "one******two", "one******one"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "say hi. hi", "hi. Say hi."),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, 'So. any questions?"', "Any questions? No"),
    ("startend:quotation", {}, '"all of it"', '"'),
    ("change_case:capital_word_frequency", {"capital_relation": "at least", "capital_frequency": 2}, "NASA and TOP-SECRET things", "NASA and things"),
    ("change_case:english_capital", {}, "THIS IS THE ANSWER", "THIS is THE ANSWER"),
    ("change_case:english_lowercase", {}, "this is the answer", "das ist nicht die antwort"),
    ("punctuation:no_comma", {}, "no comma", "a, comma"),
]  # fmt: skip


def test_all_25_kinds_of_instructions_are_there():
    assert {name for name, *_ in FOLLOWED} == set(INSTRUCTIONS)
    assert len(INSTRUCTIONS) == 25


@pytest.mark.parametrize(("name", "arguments", "good", "bad"), FOLLOWED, ids=[item[0] for item in FOLLOWED])
async def test_an_instruction_is_verified(
    tmp_path: Path, name: str, arguments: dict[str, Any], good: str, bad: str
):
    row = {"key": 1, "prompt": "?", "instruction_id_list": [name], "kwargs": [arguments]}
    (case,) = import_cases("ifeval", write(tmp_path / "input_data.jsonl", row)).cases
    assert (await metric(case, good)).passed
    assert not (await metric(case, bad)).passed
    assert not (await metric(case, "  ")).passed


async def test_ifeval_gives_the_part_that_is_followed_and_loose_forgives_what_stands_around(tmp_path: Path):
    (case,) = import_cases("ifeval", write(tmp_path / "input_data.jsonl", IFEVAL)).cases
    response = "Sure, here you are:\none two three"
    strict = await metric(case, response)
    assert (strict.value, strict.passed) == (0.5, False)
    assert "punctuation:no_comma" in strict.why
    assert (await metric(case, response, match="loose")).value == 1


def test_an_unknown_instruction_and_one_without_its_arguments_are_refused(tmp_path: Path):
    with pytest.raises(BadRows, match="no instruction 'a:b'"):
        import_cases(
            "ifeval", write(tmp_path / "a", {**IFEVAL, "instruction_id_list": ["a:b"], "kwargs": [{}]})
        )
    with pytest.raises(BadRows, match="needs relation, num_words"):
        import_cases("ifeval", write(tmp_path / "a", {**IFEVAL, "kwargs": [{}, {}]}))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "What is the best way to get to the station from here?"),
        ("fr", "Quel est le meilleur chemin pour aller dans la ville avec vous ?"),
        ("es", "El mejor camino para ir a la ciudad es por el río con los amigos."),
        ("pt", "O melhor caminho para a cidade é pelo rio, mas não com os amigos."),
        ("it", "La strada per la città non è più sicura, ma il treno sono io."),
        ("ru", "Это лучший способ добраться до города, но мы не знаем."),
        ("uk", "Це найкращий шлях до міста, але ми не знаємо, що є далі."),
        ("bg", "Това е най-добрият път към града, но не се знае за кого."),
        ("ar", "هذا هو أفضل طريق إلى المدينة من هنا"),
        ("ur", "یہ شہر تک جانے کا سب سے بہتر راستہ ہے اور یہ اچھا ہے"),
        ("fa", "این بهترین راه برای رفتن به شهر است که می‌شود"),
        ("hi", "यह शहर तक जाने का सबसे अच्छा रास्ता है और यह ठीक है"),
        ("mr", "हा शहराकडे जाण्याचा मार्ग आहे आणि तो चांगला आहे"),
        ("ne", "यो शहर जाने बाटो हो र यो राम्रो छ"),
        ("ja", "これは東京へ行く一番良い道です。"),
        ("ko", "이것은 도시로 가는 가장 좋은 길입니다"),
        ("vi", "Đây là con đường tốt nhất để đi đến thành phố"),
        ("fi", "Tämä on paras tie kaupunkiin, mutta se ei ole helppo."),
        ("sw", "Hii ni njia bora ya kwenda katika mji na watu wa hapa"),
        ("pl", "To jest najlepsza droga do miasta, ale nie dla wszystkich."),
        ("kn", "ಇದು ನಗರಕ್ಕೆ ಹೋಗುವ ದಾರಿ"),
        (None, "12 + 3!"),
    ],
)
def test_languages_are_told_apart(language: str | None, text: str):
    assert language_of(text) == language


def test_sentences_are_counted_without_abbreviations_and_decimals():
    assert count_sentences('Mr. Smith paid $3.50, e.g. for tea. "Really?" he asked... Yes!') == 4
    assert count_sentences("") == 0


# BFCL

TRIANGLE = {
    "name": "geometry.area",
    "description": "The area.",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "float", "description": "Base."},
            "unit": {"type": "string", "description": "Unit."},
        },
        "required": ["base"],
    },
}


def question(name: str, *functions: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "question": [[{"role": "user", "content": "Do it"}]],
        "function": list(functions),
        **more,
    }


def bfcl_files(root: Path) -> Path:
    write(root / "bfcl" / "BFCL_v4_simple_python.json", question("simple_python_0", TRIANGLE))
    write(root / "bfcl" / "BFCL_v4_irrelevance.json", question("irrelevance_0", TRIANGLE))
    write(root / "bfcl" / "BFCL_v4_multi_turn_base.json", {"id": "multi_turn_base_0"})
    write(
        root / "bfcl" / "possible_answer" / "BFCL_v4_simple_python.json",
        {"id": "simple_python_0", "ground_truth": [{"geometry.area": {"base": [10], "unit": ["sq cm", ""]}}]},
    )
    return root / "bfcl"


async def test_bfcl_compares_the_calls_of_the_first_reply_with_the_allowed_ones(tmp_path: Path):
    irrelevant, simple = import_cases("bfcl", bfcl_files(tmp_path)).cases
    assert simple.simulated_tools[0].name == "geometry_area"
    assert simple.simulated_tools[0].parameters["properties"]["base"]["type"] == "number"
    for arguments, fits in [
        ({"base": 10}, True),
        ({"base": 10.0, "unit": "Sq-Cm."}, True),
        ({"base": "10"}, False),
        ({"base": True}, False),
        ({"base": 11}, False),
        ({"unit": "sq cm"}, False),
        ({"base": 10, "unit": "m"}, False),
        ({"base": 10, "colour": "red"}, False),
    ]:
        assert (await metric(simple, calls=[("geometry_area", arguments)])).passed is fits, arguments
    assert not (await metric(simple)).passed
    assert not (await metric(simple, calls=[("geometry_area", {"base": 10})] * 2)).passed
    assert not (await metric(simple, calls=[("other", {"base": 10})])).passed
    assert (await metric(irrelevant)).passed
    assert not (await metric(irrelevant, calls=[("geometry_area", {"base": 1})])).passed


async def test_parallel_calls_may_come_in_any_order(tmp_path: Path):
    answers = [{"geometry.area": {"base": [1], "unit": [""]}}, {"geometry.area": {"base": [2], "unit": [""]}}]
    row = question("live_parallel_3-1-0", TRIANGLE, ground_truth=answers)
    (case,) = import_cases("bfcl", write(tmp_path / "BFCL_v4_live_parallel.json", row)).cases
    calls = [("geometry_area", {"base": 2}), ("geometry_area", {"base": 1})]
    assert (await metric(case, calls=calls)).passed
    assert not (await metric(case, calls=[calls[0], calls[0]])).passed


@pytest.mark.parametrize(
    ("details", "allowed", "value", "fits"),
    [
        ({"type": "array", "items": {"type": "float"}}, [[1.0, 2.0]], [1.0, 2.0], True),
        ({"type": "array", "items": {"type": "float"}}, [[1.0, 2.0]], [1, 2], False),
        ({"type": "array", "items": {"type": "string"}}, [["New York"]], ["new-york"], True),
        ({"type": "array", "items": {"type": "string"}}, [["a", "b"]], ["b", "a"], False),
        ({"type": "array", "items": {"type": "string"}}, ["", ["a"]], [], True),
        ({"type": "float"}, [10.0], 10, True),
        ({"type": "integer"}, [10], 10.0, False),
        ({"type": "integer"}, ["n"], "n", True),
        ({"type": "integer"}, ["n"], 3, False),
        ({"type": "boolean"}, [True], 1, False),
        ({"type": "boolean"}, [True], True, True),
        ({"type": "dict"}, [{"a": ["x"], "b": [1, ""]}], {"a": "X"}, True),
        ({"type": "dict"}, [{"a": ["x"], "b": [1]}], {"a": "x"}, False),
        ({"type": "dict"}, [{"a": ["x"]}], {"a": "x", "c": 1}, False),
        ({"type": "array", "items": {"type": "dict"}}, [[{"a": [1]}]], [{"a": 1}], True),
        ({"type": "array", "items": {"type": "dict"}}, [[{"a": [1]}]], [{"a": 1}, {"a": 1}], False),
        ({"type": "array", "items": {"type": "string"}}, [["a"], 5], ["b"], False),
        ({"type": "string"}, ["April 1, 2024"], "april 1 2024", True),
        ({"type": "string"}, ["a['b']"], 'A["b"]', True),
    ],
)
def test_values_are_compared_by_the_published_rules(details: Any, allowed: Any, value: Any, fits: bool):
    described = {"name": "f", "parameters": {"properties": {"x": details}, "required": []}}
    assert (wrong_call(described, {"x": allowed}, ("f", {"x": value}), "f") is None) is fits


@pytest.mark.parametrize(
    ("text", "kind", "inner", "value"),
    [
        ("12", "integer", None, 12),
        ("12.5", "integer", None, "12.5"),
        ("12L", "long", None, 12),
        ("1.5f", "float", None, 1.5),
        ("true", "boolean", None, True),
        ("new int[]{1, 2}", "Array", "integer", [1, 2]),
        ('new ArrayList<String>(Arrays.asList("a", "b"))', "ArrayList", "String", ["a", "b"]),
        ("new ArrayList<>() {{ add(1); add(2); }}", "ArrayList", "integer", [1, 2]),
        ("new ArrayList<>()", "ArrayList", None, []),
        ("new ArrayList<>(Arrays.asList(1, 2L, 3f, x))", "ArrayList", None, [1, 2, 3.0, "x"]),
        (
            "List<Integer> rows = new ArrayList<>(other)",
            "ArrayList",
            None,
            "List<Integer> rows = new ArrayList<>(other)",
        ),
        ("new int[]{\n1}", "Array", "integer", "new int[]{\n1}"),
        ("1" * 5000, "integer", None, "1" * 5000),
        (
            'new HashMap<String, Object>() {{ put("k", 1); put("m", true); }}',
            "HashMap",
            None,
            {"k": 1, "m": True},
        ),
        ("new HashMap<>()", "HashMap", None, {}),
        ("anything", "any", None, "anything"),
        ("", "long", None, ""),
    ],
)
def test_values_written_in_java_are_read(text: str, kind: str, inner: str | None, value: Any):
    assert read_java(text, kind, inner) == value


@pytest.mark.parametrize(
    ("text", "kind", "inner", "value"),
    [
        ("'a'", "String", None, "a"),
        ("12n", "Bigint", None, 12),
        ("false", "Boolean", None, False),
        ("[1, 2]", "array", "integer", [1, 2]),
        ("new Array('a', 'b')", "array", "String", ["a", "b"]),
        ("[[1, 2], [3]]", "array", "array", [[1, 2], [3]]),
        ("{'a': 1, \"b\": ['x']}", "dict", None, {"a": 1, "b": ["x"]}),
        ("{a: 'x, y', b: 'http://z', c: 1.5}", "dict", None, {"a": "x, y", "b": "http://z", "c": 1.5}),
        ("[{a: 1}, {a: 2}]", "array", "dict", [{"a": 1}, {"a": 2}]),
        ("{a: [1,\n2],\nb: 3}", "dict", None, {"a": "[1,\n2]", "b": 3}),
        ("1e5", "float", None, "1e5"),
        ("{}", "dict", None, {}),
        ("myVariable", "dict", None, "myVariable"),
    ],
)
def test_values_written_in_javascript_are_read(text: str, kind: str, inner: str | None, value: Any):
    assert read_javascript(text, kind, inner) == value


def test_a_value_of_java_or_javascript_is_asked_for_as_source_code(tmp_path: Path):
    rows = [
        (
            "simple_java_1",
            {"type": "ArrayList", "items": {"type": "String"}, "description": "Names."},
            "Java 8",
        ),
        ("simple_javascript_2", {"type": "dict", "properties": {"depth": {"type": "integer"}}}, "JavaScript"),
    ]
    for name, details, language in rows:
        function = {"name": "f", "description": "Does it.", "parameters": {"properties": {"x": details}}}
        row = question(name, function, ground_truth=[{"f": {"x": ["y"]}}])
        (case,) = import_cases("bfcl", write(tmp_path / "BFCL_v4_x.json", row)).cases
        (tool,) = case.simulated_tools
        parameter = tool.parameters["properties"]["x"]
        assert parameter["type"] == "string"
        assert f"{language} source code" in parameter["description"]
        assert f"the type of the value is {details['type']}" in parameter["description"]
        assert ("String" if "items" in details else '"depth"') in parameter["description"]


def test_rows_that_are_not_single_turn_or_lack_answers_are_refused(tmp_path: Path):
    with pytest.raises(BadRows, match="not a single-turn row"):
        import_cases("bfcl", write(tmp_path / "a.json", question("multi_turn_base_0", TRIANGLE)))
    with pytest.raises(BadRows, match="no 'ground_truth'"):
        import_cases("bfcl", write(tmp_path / "b.json", question("multiple_0", TRIANGLE)))
    with pytest.raises(BadRows, match="no single-turn files"):
        import_cases("bfcl", tmp_path / "..")


async def test_an_imported_case_runs_to_its_score(tmp_path: Path):
    suite = import_cases("bfcl", bfcl_files(tmp_path))
    call = ToolCall("1", "geometry_area", {"base": 10})

    def factory(case: Case) -> Agent:
        return Agent("test:agent", stream_fn=ScriptedModel([call if "simple" in case.id else "No."]))

    run = await evaluate(factory, Suite(name="bfcl", cases=suite.cases))
    assert [result.error for result in run.cases] == [None, None]
    assert run.passed == 2


def test_a_keyword_that_is_no_pattern_is_taken_as_it_stands():
    check, _ = INSTRUCTIONS["keywords:existence"]
    assert check("It is still (Beta)", {"keywords": ["(beta"]})
    assert not check("It is Beta", {"keywords": ["(beta"]})


@given(
    text=st.text(max_size=80),
    kind=st.sampled_from([*JAVA, *JAVASCRIPT]),
    inner=st.sampled_from([None, "String", "integer"]),
)
def test_whatever_a_model_writes_as_a_value_is_read_without_an_error(text: str, kind: str, inner: str | None):
    for wrapped in (text, f"[{text}]", f"{{{text}}}", f"new ArrayList<>(Arrays.asList({text}))"):
        read_java(wrapped, kind, inner)
        read_javascript(wrapped, kind, inner)


@given(text=st.text(max_size=200))
def test_every_instruction_can_be_checked_on_any_response(text: str):
    for name, arguments, *_ in FOLLOWED:
        assert INSTRUCTIONS[name][0](text, arguments) in (True, False)
