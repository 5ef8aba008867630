"""What all attempts of a run come to."""

import pytest
from tests.eval.runs import outcomes, result

from swink.eval import Metric
from swink.eval.result import Manifest
from swink.eval.statistics import interval
from swink.eval.summary import cost_of, state_of, summarise
from swink.messages import Usage
from swink.policies.chain import Head


def manifest(*case_ids: str, repeat: int = 1) -> Manifest:
    return Manifest(name="suite", started=0.0, version="1", case_ids=case_ids, repeat=repeat)


def test_a_run_without_cases_has_no_interval_and_a_rate_of_zero():
    summary = summarise([])
    assert (summary.cases, summary.pass_rate, summary.pass_rate_interval, summary.cost) == (0, 0.0, None, 0.0)
    assert summary.complete
    assert not summarise([], manifest("oslo")).complete


def test_cases_are_passed_failed_or_errors():
    summary = summarise([*outcomes("+ + -"), result("broken", False, error="boom", error_source="agent")])
    assert (summary.cases, summary.passed, summary.failed, summary.errors) == (4, 2, 1, 1)
    assert summary.pass_rate == 0.5
    assert summary.pass_rate_interval == pytest.approx(interval([1, 1, 0, 0]))


def test_a_case_passes_if_every_attempt_does():
    assert state_of(outcomes("++")) == "passed"
    assert state_of(outcomes("+-")) == "failed"
    assert state_of([result(), result(repeat=1, passed=False, error="boom")]) == "error"
    assert state_of([]) == "failed"


def test_each_case_weighs_the_same_however_often_it_was_tried():
    assert summarise(outcomes("++++ -")).pass_rate == 0.5


def test_the_interval_with_repeats_is_over_cases():
    summary = summarise(outcomes("+++ +++ --- +-+"))
    assert summary.attempts == 12
    assert summary.pass_rate_interval == pytest.approx(interval([1, 1, 0, 2 / 3]))
    assert summary.pass_rate_interval != pytest.approx(interval([1] * 8 + [0] * 4))


def test_an_attempt_that_was_made_again_counts_once():
    summary = summarise([result(passed=False, error="offline", error_source="provider"), result(passed=True)])
    assert (summary.attempts, summary.passed, summary.errors) == (1, 1, 0)


def test_pass_at_k_and_pass_hat_k_have_intervals():
    summary = summarise(outcomes("++- +++ ---"))
    assert list(summary.pass_at_k) == list(summary.pass_hat_k) == ["1", "2", "3"]
    assert summary.pass_at_k["1"] == pytest.approx(summary.pass_rate)
    assert summary.pass_hat_k["1"] == pytest.approx(summary.pass_rate)
    assert summary.pass_at_k["3"] == pytest.approx(2 / 3)
    assert summary.pass_hat_k["3"] == pytest.approx(1 / 3)
    for figures, intervals in (
        (summary.pass_at_k, summary.pass_at_k_intervals),
        (summary.pass_hat_k, summary.pass_hat_k_intervals),
    ):
        assert all(intervals[k][0] <= figures[k] <= intervals[k][1] for k in figures)


def test_k_goes_as_far_as_the_case_tried_least_often():
    assert list(summarise(outcomes("+++ ++")).pass_at_k) == ["1", "2"]
    assert list(summarise(outcomes("+" * 20)).pass_at_k) == ["1", "2", "4", "8", "16", "20"]


def test_a_cost_that_is_unknown_is_never_taken_for_nothing():
    summary = summarise([result("a", cost=0.5), result("b", cost=None)])
    assert summary.cost is None
    assert summary.unpriced == 1


def test_judges_are_part_of_the_cost():
    judged = (Metric("helpfulness", 1.0, 0.5, True, cost=0.25),)
    assert cost_of(result(cost=0.5, metrics=judged)) == 0.75
    unknown = (Metric("helpfulness", 1.0, 0.5, True, cost=None),)
    assert cost_of(result(cost=0.5, metrics=unknown)) is None


def test_a_scorer_that_failed_has_no_part_in_its_mean():
    failed = Metric("judge", 0.0, 0.5, False, error="ValueError: no verdict")
    summary = summarise(
        [result("a", metrics=(Metric("judge", 0.8, 0.5, True),)), result("b", False, metrics=(failed,))]
    )
    assert summary.metrics["judge"]["mean"] == pytest.approx(0.8)
    assert (summary.metrics["judge"]["count"], summary.metrics["judge"]["errors"]) == (1, 1)


def test_a_scorer_that_always_failed_has_no_mean():
    failed = Metric("judge", 0.0, 0.5, False, error="ValueError: no verdict")
    assert summarise([result(metrics=(failed,))]).metrics["judge"] == {"count": 0, "passed": 0, "errors": 1}


def test_scores_are_averaged_by_case_first():
    def scored(case: str, value: float, repeat: int):
        return result(case, repeat=repeat, metrics=(Metric("m", value, 0.0, True),))

    figures = summarise([scored("a", 1.0, 0), scored("a", 1.0, 1), scored("a", 1.0, 2), scored("b", 0.0, 0)])
    assert figures.metrics["m"]["mean"] == 0.5
    assert figures.metrics["m"]["deviation"] == pytest.approx(0.5)


def test_missing_attempts_make_a_run_incomplete():
    assert summarise(outcomes("++ ++"), manifest("c0", "c1", repeat=2)).complete
    assert not summarise(outcomes("++ +"), manifest("c0", "c1", repeat=2)).complete
    assert not summarise(outcomes("++"), manifest("c0", "c1", repeat=2)).complete


def test_tokens_are_added_up_and_the_head_is_kept():
    summary = summarise(
        [result("a", usage=Usage(input=3)), result("b", usage=Usage(output=4), cached=True)],
        head=Head(2, "ab", 100),
    )
    assert summary.usage == Usage(input=3, output=4)
    assert summary.cached == 1
    assert summary.head == {"records": 2, "hash": "ab", "size": 100}


def test_what_simulated_users_cost_is_part_of_the_cost():
    simulated = result(cost=1.0, metadata={"simulation_cost": 0.5})
    assert summarise([simulated]).cost == 1.5
    assert summarise([result(cost=1.0, metadata={"simulation_cost": None})]).cost is None
