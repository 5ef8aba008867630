"""Scorers without judges: what each of them says of an attempt, and what becomes of one that fails."""

import asyncio
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import MORE, tried
from tests.scripted import Unspeakable

from swink.errors import InvalidInput, MisuseError
from swink.eval import (
    Case,
    CaseBudget,
    Environment,
    Evaluator,
    ExpectedCall,
    ExpectedResponse,
    Metric,
    Score,
    TakenCall,
    Trajectory,
    scorer,
)
from swink.eval.scorers import embeddings, find_scorer, patterns, problem_of, registry, score, scorer_names
from swink.eval.scorers.registry import scorers_kept
from swink.eval.scorers.responses import edit_distance
from swink.eval.scorers.values import contains, equal, fenced_blocks, likeness, read_json
from swink.eval.trajectory import TakenTurn
from swink.messages import Usage

WEATHER = ExpectedCall("weather")
OSLO = ExpectedCall("weather", {"city": "Oslo"})
BERGEN = ExpectedCall("weather", {"city": "Bergen"})


@pytest.fixture(autouse=True)
def forget_scorers():
    with scorers_kept():
        yield


def calls(*cities: str, **options: Any) -> tuple[TakenCall, ...]:
    return tuple(TakenCall(str(n), "weather", {"city": city}, **options) for n, city in enumerate(cities))


async def only(case: Case, trajectory: Trajectory = Trajectory(), **options: Any) -> Metric:
    (metric,) = await score(case, trajectory, **options)
    return metric


async def by_trajectory(expected: Any, made: Any, mode: Any = "in_order", **options: Any) -> Metric:
    evaluators = (Evaluator("trajectory", options=options),)
    case = Case(id="a", expected_trajectory=tuple(expected), mode=mode, evaluators=evaluators)
    return await only(case, Trajectory(calls=tuple(made)))


async def by_response(text: str, **expected: Any) -> Metric:
    return await only(Case(id="a", expected_response=ExpectedResponse(**expected)), Trajectory(response=text))


async def by(name: str, text: str = "", *, reference: str | None = None, **options: Any) -> Metric:
    case = Case(id="a", reference=reference, evaluators=(Evaluator(name, options=options),))
    return await only(case, Trajectory(response=text))


# What is applied


async def test_a_case_without_evaluators_gets_all_that_apply():
    case = Case(
        id="a",
        expected_trajectory=(),
        expected_response=ExpectedResponse(contains="x"),
        budget=CaseBudget(max_turns=1),
        expected_environment_state=Environment(state={"a": 1}),
    )
    metrics = await score(case, Trajectory(response="x", state={"a": 1}))
    assert sorted(metric.name for metric in metrics) == [
        "budget",
        "environment_state",
        "response",
        "trajectory",
    ]
    assert all(metric.passed for metric in metrics)


async def test_evaluators_of_a_case_are_all_there_is():
    case = Case(
        id="a", expected_response=ExpectedResponse(contains="x"), evaluators=(Evaluator("efficiency"),)
    )
    assert (await only(case)).name == "efficiency"


async def test_a_case_to_which_nothing_applies_fails_and_says_so():
    metric = await only(Case(id="a"))
    assert not metric.passed
    assert metric.error is not None
    assert "no scorer applies" in metric.why


async def test_given_scorers_are_used_besides():
    case = Case(id="a", expected_response=ExpectedResponse(contains="x"))
    metrics = await score(
        case, Trajectory(response="x"), scorers=["response", "efficiency", lambda c, t: True]
    )
    assert [metric.name for metric in metrics] == ["response", "efficiency", "<lambda>"]


async def test_a_scorer_used_twice_gives_two_metrics():
    twice = (
        Evaluator("exact_match", options={"expected": "a"}),
        Evaluator("exact_match", options={"expected": "b"}),
    )
    metrics = await score(Case(id="a", evaluators=twice), Trajectory(response="b"))
    assert [(metric.name, metric.passed) for metric in metrics] == [
        ("exact_match", False),
        ("exact_match 2", True),
    ]


@pytest.mark.parametrize(
    ("value", "threshold", "passed"), [(0.5, 0.5, True), (0.5, 0.51, False), (0.0, 0.0, True)]
)
async def test_a_metric_passes_if_its_value_reaches_the_threshold(
    value: float, threshold: float, passed: bool
):
    scorer("it", threshold=0.9)(lambda case, trajectory: value)
    metric = await only(Case(id="a", evaluators=(Evaluator("it", threshold),)))
    assert (metric.value, metric.threshold, metric.passed) == (value, threshold, passed)


async def test_thresholds_are_those_of_the_case_then_of_the_score_then_of_the_scorer():
    scorer("own", threshold=0.2)(lambda case, trajectory: 0.4)
    scorer("said", threshold=0.2)(lambda case, trajectory: Score(0.4, threshold=0.5))
    uses = Evaluator("own"), Evaluator("said"), Evaluator("said", 0.3)
    metrics = await score(Case(id="a", evaluators=uses), Trajectory())
    assert [metric.threshold for metric in metrics] == [0.2, 0.5, 0.3]


# What fails


class Strange:
    def __le__(self, other: object) -> bool:
        raise ZeroDivisionError

    __ge__ = __le__

    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        math.nan,
        math.inf,
        -0.1,
        2,
        1.0000001,
        "1",
        b"1",
        [],
        1j,
        Strange(),
        Score(math.nan),
        Score(1, threshold=2),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_nonsense_is_an_error_of_the_metric_and_never_a_pass(nonsense: Any):
    scorer("odd", threshold=0.0)(lambda case, trajectory: nonsense)
    metric = await only(Case(id="a", evaluators=(Evaluator("odd"),)))
    assert not metric.passed
    assert metric.value == 0
    assert metric.error


@pytest.mark.parametrize(
    "error", [ValueError("no"), Unspeakable(), SystemExit(3), KeyboardInterrupt(), StopIteration()]
)
@pytest.mark.parametrize("threshold", [0.0, 1.0])
async def test_a_scorer_that_raises_fails_its_metric_alone(error: BaseException, threshold: float):
    @scorer("broken", threshold=threshold)
    def broken(case: Case, trajectory: Trajectory) -> bool:
        raise error

    good = ExpectedResponse(contains="x")
    case = Case(id="a", expected_response=good, evaluators=(Evaluator("broken"), Evaluator("response")))
    first, second = await score(case, Trajectory(response="x"))
    assert not first.passed
    assert first.error is not None
    assert type(error).__name__ in first.error
    assert second.passed


async def test_a_scorer_that_cannot_say_whether_it_applies_is_an_error_of_its_metric():
    scorer("confused", applies=lambda case: case.metadata["missing"])(lambda case, trajectory: True)
    confused, good = sorted(
        await score(Case(id="a", expected_response=ExpectedResponse(contains="x")), Trajectory(response="x")),
        key=lambda metric: metric.name,
    )
    assert (confused.passed, confused.error, good.passed) == (False, "KeyError: 'missing'", True)


@pytest.mark.parametrize("threshold", [math.nan, 2.0, "high"])
async def test_a_threshold_that_is_none_is_an_error_of_the_metric(threshold: Any):
    metric = await only(Case(id="a", evaluators=(Evaluator("efficiency", threshold),)))
    assert (metric.passed, metric.threshold) == (False, 1.0)
    assert metric.error is not None


async def test_an_async_scorer_that_raises_a_cancellation_of_its_own_fails_its_metric():
    @scorer("broken")
    async def broken(case: Case, trajectory: Trajectory) -> bool:
        raise asyncio.CancelledError

    metric = await only(Case(id="a", evaluators=(Evaluator("broken"),)))
    assert metric.error is not None
    assert "CancelledError" in metric.error


async def test_a_scorer_that_hangs_is_given_up():
    @scorer("stuck")
    async def stuck(case: Case, trajectory: Trajectory) -> bool:
        await asyncio.sleep(3600)
        return True

    metric = await only(Case(id="a", evaluators=(Evaluator("stuck"),)), timeout=0.01)
    assert metric.error is not None
    assert "longer than 0.01 s" in metric.error


async def test_cancelling_ends_the_scorers():
    ended = asyncio.Event()

    @scorer("slow")
    async def slow(case: Case, trajectory: Trajectory) -> bool:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return True

    task = asyncio.ensure_future(score(Case(id="a", evaluators=(Evaluator("slow"),)), Trajectory()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_secrets_in_what_a_scorer_says_are_not_kept():
    key = "sk-ant-api03-" + "a1B2c3D4" * 8

    @scorer("leaky")
    def leaky(case: Case, trajectory: Trajectory) -> Score:
        raise ValueError(f"bad key {key}")

    scorer("chatty")(lambda case, trajectory: Score(1.0, f"used {key}"))
    uses = Evaluator("leaky"), Evaluator("chatty")
    for metric in await score(Case(id="a", evaluators=uses), Trajectory()):
        assert key not in repr(metric)


async def test_an_unknown_scorer_is_an_error_of_its_metric():
    metric = await only(Case(id="a", evaluators=(Evaluator("respnse"),)))
    assert metric.error == "no scorer 'respnse'; did you mean 'response'? (or write package.module:function)"


# The registry


def test_a_decorated_function_can_still_be_called():
    @scorer("mine")
    def mine(case: Case, trajectory: Trajectory) -> bool:
        return trajectory.response == "x"

    assert mine(Case(id="a"), Trajectory(response="x")) is True
    assert find_scorer("mine") is mine
    assert "mine" in scorer_names()


async def test_options_of_the_case_become_keywords():
    @scorer("long")
    async def long(case: Case, trajectory: Trajectory, *, least: int, most: int = 9) -> bool:
        return least <= len(trajectory.response) <= most

    assert (await by("long", "abc", least=2)).passed
    assert not (await by("long", "abc", least=2, most=2)).passed
    assert (
        problem_of("long", {"leest": 2}) == "the scorer 'long' has no option 'leest'; did you mean 'least'?"
    )
    assert problem_of("long", {"most": 2}) == "the scorer 'long' needs the option 'least'"
    assert problem_of("long", {"least": 2}) is None
    assert "least" in ((await by("long", "abc")).error or "")


@pytest.mark.parametrize("name", ["", "a:b", print, 3])
def test_a_scorer_needs_a_name(name: Any):
    with pytest.raises(InvalidInput, match="needs a name"):
        scorer(name)


def test_two_scorers_cannot_have_one_name():
    scorer("mine")(lambda case, trajectory: True)
    with pytest.raises(InvalidInput, match="there is a scorer 'mine' already"):

        @scorer("mine")
        def other(case: Case, trajectory: Trajectory) -> bool:
            return False

    for name in ("response", "code", "gsm8k"):
        with pytest.raises(InvalidInput, match=f"{name!r} already"):
            scorer(name)(lambda case, trajectory: True)


@pytest.mark.parametrize("threshold", [-1, 2, math.nan, True, "1"])
def test_a_threshold_is_a_number_from_0_to_1(threshold: Any):
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        scorer("mine", threshold=threshold)


def test_a_scorer_takes_a_case_and_a_trajectory():
    def lonely(case: Case) -> bool:
        return True

    with pytest.raises(InvalidInput, match="two arguments"):
        scorer("lonely")(lonely)


async def test_a_scorer_can_be_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = "def polite(case, trajectory):\n    return 'please' in trajectory.response\nnumber = 3\n"
    tmp_path.joinpath("scorers_by_path.py").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "scorers_by_path", raising=False)
    metric = await by("scorers_by_path:polite", "please")
    assert (metric.name, metric.passed) == ("scorers_by_path:polite", True)
    assert problem_of("scorers_by_path:polite") is None
    assert "did you mean 'polite'?" in (problem_of("scorers_by_path:polit") or "")
    assert "no scorer" in (problem_of("scorers_by_path:number") or "")
    assert "no module 'nowhere_at_all'" in (problem_of("nowhere_at_all:f") or "")


async def test_installed_packages_bring_scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tmp_path.joinpath("brought_scorers.py").write_text(
        "def kind(case, trajectory):\n    return True\n", "utf-8"
    )
    info = tmp_path / "brought_scorers-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        "Metadata-Version: 2.1\nName: brought-scorers\nVersion: 1.0\n", "utf-8"
    )
    info.joinpath("entry_points.txt").write_text(
        "[swink.scorers]\nkind = brought_scorers:kind\ngone = brought_scorers:gone\n", "utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._offered.cache_clear()
    try:
        assert (await by("kind")).passed
        assert problem_of("kind") is None
        assert "cannot be loaded" in (problem_of("gone") or "")
    finally:
        registry._offered.cache_clear()


def test_every_name_can_be_found_or_says_why_not():
    for name in (
        "trajectory",
        "response",
        "budget",
        "efficiency",
        "environment_state",
        "exact_match",
        "levenshtein",
    ):
        assert problem_of(name, {}) is None
    with pytest.raises(MisuseError, match="did you mean"):
        find_scorer("levenstein")


def test_scorers_that_need_much_are_imported_when_they_are_named():
    program = (
        "import sys, swink.eval.scorers as s; heavy = {'swink.local.embed'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules); "
        "assert all(s.problem_of(name) is None for name in s.scorer_names()); "
        "assert heavy <= set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Trajectories


@pytest.mark.parametrize(
    ("mode", "expected", "made", "value"),
    [
        ("exact", [], [], 1.0),
        ("exact", [], ["Oslo"], 0.0),
        ("exact", [OSLO, BERGEN], ["Oslo", "Bergen"], 1.0),
        ("exact", [OSLO, BERGEN], ["Bergen", "Oslo"], 1 / 3),
        ("exact", [OSLO], ["Oslo", "Oslo"], 0.5),
        ("in_order", [], ["Oslo"], 1.0),
        ("in_order", [OSLO, BERGEN], ["Oslo", "Rome", "Bergen"], 1.0),
        ("in_order", [OSLO, BERGEN], ["Bergen", "Oslo"], 0.5),
        ("in_order", [OSLO, OSLO], ["Oslo"], 0.5),
        ("in_order", [BERGEN, OSLO, WEATHER], ["Oslo", "Rome"], 2 / 3),
        ("any_order", [OSLO, BERGEN], ["Bergen", "Rome", "Oslo"], 1.0),
        ("any_order", [OSLO, OSLO], ["Oslo"], 0.5),
        ("any_order", [WEATHER, OSLO], ["Oslo", "Bergen"], 1.0),
        ("any_order", [WEATHER, WEATHER, OSLO], ["Oslo", "Oslo"], 2 / 3),
    ],
)
async def test_calls_are_held_against_the_golden_path(mode: str, expected: Any, made: Any, value: float):
    metric = await by_trajectory(expected, calls(*made), mode)
    assert metric.value == pytest.approx(value)
    assert metric.passed is (value == 1.0)


async def test_a_call_that_did_not_run_satisfies_nothing_and_is_no_golden_path():
    assert not (await by_trajectory([OSLO], calls("Oslo", ran=False))).passed
    assert not (await by_trajectory([], calls("Oslo", ran=False), "exact")).passed


async def test_arguments_are_compared_as_json():
    def made(value: Any) -> Any:
        return [TakenCall("1", "t", {"n": value, "more": 1})]

    wanted = [ExpectedCall("t", {"n": 1})]
    assert not (await by_trajectory(wanted, made(1))).passed
    assert (await by_trajectory(wanted, made(1.0), arguments="contain")).passed
    assert not (await by_trajectory(wanted, made(True), arguments="contain")).passed
    assert (await by_trajectory(wanted, made(1), arguments="some")).error


async def test_the_reason_names_what_is_missing_and_what_was_made():
    metric = await by_trajectory([OSLO], calls("Rome"))
    assert metric.why == 'missing: weather({"city":"Oslo"}) (in_order); made: weather({"city":"Rome"})'


@tried(40, 500)
@given(st.lists(st.sampled_from("abc*"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
async def test_as_many_expectations_are_met_as_can_be(expected: list[str], made: list[str]):
    wanted = [WEATHER if city == "*" else ExpectedCall("weather", {"city": city}) for city in expected]
    any_order = await by_trajectory(wanted, calls(*made), "any_order")

    def fit(city: str, place: int | None) -> bool:
        return place is not None and city in ("*", made[place])

    def best(index: int, used: frozenset[int]) -> int:
        if index == len(expected):
            return 0
        found = best(index + 1, used)
        for place in range(len(made)):
            if place not in used and fit(expected[index], place):
                found = max(found, 1 + best(index + 1, used | {place}))
        return found

    assert any_order.value == pytest.approx(best(0, frozenset()) / len(expected) if expected else 1.0)


@pytest.mark.parametrize(
    ("made", "expected", "options", "value"),
    [
        ([], None, {}, 1.0),
        (["a", "b"], None, {}, 1.0),
        (["a", "a"], None, {}, 0.6 * 0.5 + 0.4 * 0.5),
        (["a", "b", "b", "c"], [OSLO, OSLO], {}, 0.6 * 0.75 + 0.4 * 0.5),
        (["a", "b"], [OSLO], {"ideal": 4}, 1.0),
        (["a"], [], {}, 0.6),
    ],
)
async def test_efficiency_is_unique_calls_and_the_ideal_number(
    made: Any, expected: Any, options: Any, value: float
):
    path = None if expected is None else tuple(expected)
    case = Case(id="a", expected_trajectory=path, evaluators=(Evaluator("efficiency", options=options),))
    assert (await only(case, Trajectory(calls=calls(*made)))).value == pytest.approx(value)


# Responses


@pytest.mark.parametrize(
    ("text", "expected", "value"),
    [
        ("yes", {"exact": "yes\n"}, 1.0),
        ("yes!", {"exact": "yes"}, 0.0),
        ("take a jacket", {"contains": "jacket"}, 1.0),
        ("take a Jacket", {"contains": "jacket"}, 0.0),
        ("a b", {"contains": ("a", "b", "c")}, 2 / 3),
        ("It is 12 °C", {"regex": r"\d+ °C$"}, 1.0),
        ("cold", {"regex": r"\d"}, 0.0),
        ('{"a": 1.0}', {"json": {"a": 1}}, 1.0),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', {"json": {"a": 1}}, 1.0),
        ("```\n1\n```\n```\n1\n```", {"json": 1}, 0.0),
        ("null", {"json": None}, 1.0),
        ("none", {"json": None}, 0.0),
        ('{"a": "x"}', {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}, 0.0),
        ('{"a": 1}', {"schema": {"type": "object", "required": ["a"]}}, 1.0),
        ("jacket", {"contains": "jacket", "exact": "coat"}, 0.5),
    ],
)
async def test_a_response_is_what_is_expected(text: str, expected: Any, value: float):
    metric = await by_response(text, **expected)
    assert metric.value == pytest.approx(value)
    assert metric.passed is (value == 1.0)
    assert metric.error is None


@pytest.mark.parametrize("expected", [{}, {"regex": "("}, {"schema": {"type": "nonsense"}}])
async def test_an_expectation_that_cannot_be_checked_is_an_error(expected: Any):
    metric = await by_response("{}", **expected)
    assert metric.error


async def test_a_pattern_that_takes_forever_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(patterns, "PATIENCE", 0.2)
    with pytest.raises(patterns.PatternTooSlow, match="simplify it"):
        await patterns.search(r"(a+)+$", "a" * 60 + "b")


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="starts processes")
async def test_a_pattern_that_looks_slow_is_matched_elsewhere():
    assert await patterns.search(r"(ab)+$", "abab")
    assert not await patterns.search(r"(ab)+$", "aba")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "\ud800", "", "1e999999"])
async def test_odd_text_is_no_json_and_no_crash(text: str):
    metric = await by_response(text, json={"a": 1})
    assert not metric.passed


@pytest.mark.parametrize("line", ["```a\n", "```\n", "~~~~\n```x\n", "`" * 40 + "x\n"])
def test_blocks_are_found_in_linear_time(line: str):
    assert fenced_blocks(line * 50_000 + "x") is not None


@tried(60, 500)
@given(st.lists(st.tuples(st.sampled_from(["", "python", "json"]), st.text("ab \n", max_size=8)), max_size=4))
def test_fenced_blocks_are_those_that_were_written(blocks: list[tuple[str, str]]):
    written = [(language, f"{body}\n") for language, body in blocks]
    text = "".join(f"Look:\n````{language}\n{body}````\n" for language, body in written)
    assert fenced_blocks(text) == written


async def test_texts_that_are_too_long_are_an_error_and_no_wait():
    assert (await by("levenshtein", "a" * 50_001, reference="b")).error


async def test_references_are_compared_with():
    assert (await by("exact_match", " Oslo\n", reference="Oslo")).passed
    assert not (await by("exact_match", "oslo", reference="Oslo")).passed
    assert (await by("levenshtein", "kitten", reference="sitting")).value == pytest.approx(1 - 3 / 7)
    assert (await by("levenshtein", "", reference="")).value == 1.0
    assert (
        await by("json_match", '{"a": 1, "b": [1, 2]}', reference='{"a": 1, "b": [1, 3]}')
    ).value == pytest.approx(2 / 3)
    assert (await by("json_match", "{}", expected={})).passed
    assert (await by("json_match", "nothing", expected={})).value == 0
    assert (await by("json_schema", "3", schema={"type": "integer"})).passed
    for name in ("exact_match", "levenshtein", "json_match", "json_schema", "embedding_similarity"):
        assert (await by(name, "x")).error, name


class Letters:
    """Embeds a text as how often it has each letter."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        counts = [[float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        return [[count / (math.hypot(*row) or 1.0) for count in row] for row in counts]


async def test_the_likeness_of_meaning_is_that_of_an_embedding_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embeddings, "embedder", lambda model: Letters())
    assert (await by("embedding_similarity", "listen", reference="silent")).value == pytest.approx(1.0)
    assert (await by("embedding_similarity", "aaa", reference="bbb")).value == 0.0
    assert (await by("embedding_similarity", "", reference="bbb")).value == 0.0


async def test_a_local_model_that_cannot_be_loaded_is_an_error_of_the_metric(tmp_path: Path):
    metric = await by("embedding_similarity", "a", reference="b", model=str(tmp_path / "none.gguf"))
    assert metric.error


def slow_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for index, a in enumerate(one, 1):
        before, row = row, [index]
        for column, b in enumerate(other, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (a != b)))
    return row[-1]


@tried(100, 500)
@given(st.text("abc", max_size=12), st.text("abcd", max_size=12))
def test_the_edit_distance_is_that_of_the_textbook(one: str, other: str):
    assert edit_distance(one, other) == slow_distance(one, other) == edit_distance(other, one)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=5,
)


@tried(25, 500)
@given(json_values, json_values)
def test_values_are_like_themselves_and_likeness_is_1_only_if_they_are_equal(one: Any, other: Any):
    assert equal(one, one)
    assert contains(one, one)
    assert likeness(one, one) == 1.0
    assert 0.0 <= likeness(one, other) <= 1.0
    assert (likeness(one, other) == 1.0) is equal(one, other)
    assert equal(read_json(msgspec.json.encode(one).decode()), one)


# Budgets and environments


def spent(**limits: Any) -> Case:
    return Case(id="a", budget=CaseBudget(**limits))


@pytest.mark.parametrize(
    ("limits", "passed"),
    [
        ({"max_turns": 2}, True),
        ({"max_turns": 1}, False),
        ({"max_input": 10}, True),
        ({"max_input": 9}, False),
        ({"max_output": 5}, True),
        ({"max_output": 4}, False),
        ({"max_cost": 0.25}, True),
        ({"max_cost": 0.24}, False),
    ],
)
async def test_a_budget_is_kept_or_not(limits: Any, passed: bool):
    turns = (TakenTurn(1), TakenTurn(2))
    usage = Usage(input=4, output=5, cache_read=5, cache_write=1)
    metric = await only(spent(**limits), Trajectory(turns=turns, usage=usage, cost=0.25))
    assert metric.passed is passed


async def test_an_unknown_cost_keeps_no_limit():
    metric = await only(spent(max_cost=1.0), Trajectory(cost=None))
    assert not metric.passed
    assert "unknown" in metric.why


async def test_an_attempt_that_was_stopped_at_its_limit_has_not_kept_it():
    metric = await only(
        spent(max_turns=4), Trajectory(turns=(TakenTurn(1),), reason="budget: 4 of 4 turns taken")
    )
    assert metric.value == 0
    assert "4 of 4" in metric.why


def left(files: Any = None, state: Any = None) -> Case:
    return Case(id="a", expected_environment_state=Environment(files or {}, state or {}))


async def test_what_a_run_leaves_behind_is_checked():
    case = left(
        {"a.txt": "hello\n", "b.txt": None, "c.json": ExpectedResponse(json={"n": 1})}, {"done": True}
    )
    found = Trajectory(files={"a.txt": "hello", "b.txt": None, "c.json": '{"n": 1}'}, state={"done": True})
    assert (await only(case, found)).passed
    wrong = Trajectory(files={"a.txt": "hullo", "b.txt": "there", "c.json": "{}"}, state={"done": 1})
    metric = await only(case, wrong)
    assert metric.value == 0
    for name in ("a.txt", "b.txt is there", "c.json", "'done'"):
        assert name in metric.why


async def test_a_file_that_should_not_be_there_may_be_no_text(tmp_path: Path):
    tmp_path.joinpath("b.bin").write_bytes(b"\xff")
    case = msgspec.structs.replace(left({"b.bin": None}), workspace=tmp_path)
    assert not (await only(case, Trajectory(files={"b.bin": None}))).passed
