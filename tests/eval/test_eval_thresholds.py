"""Whether a run is good enough to go on."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.eval.runs import outcomes, result, save

from swink.errors import InvalidInput
from swink.eval.resultfile import BadResults
from swink.eval.thresholds import GateResult, gate


def failed(found: GateResult) -> list[str]:
    return [check.name for check in found.checks if not check.passed]


def test_no_cases_are_a_failure(tmp_path: Path):
    found = gate(save(tmp_path / "run", [], case_ids=[]), min_pass_rate=0.0)
    assert not found.passed
    assert failed(found) == ["complete", "pass rate"]
    assert "no case was run" in str(found)


def test_without_a_limit_every_case_must_pass(tmp_path: Path):
    assert gate(save(tmp_path / "good", outcomes("+ +"))).passed
    assert failed(gate(save(tmp_path / "bad", outcomes("+ -")))) == ["pass rate"]


def test_a_pass_rate_on_the_limit_passes(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("+ " * 9 + "-"))
    assert gate(run, min_pass_rate=0.9).passed
    assert failed(gate(run, min_pass_rate=0.91)) == ["pass rate"]


def test_rounding_does_not_fail_a_gate(tmp_path: Path):
    # The mean of three rates of thirds is 2/3 only up to rounding.
    assert gate(save(tmp_path / "run", outcomes("++- +++ +--")), min_pass_rate=2 / 3).passed


def test_errors_count_as_failed_and_are_named(tmp_path: Path):
    run = save(tmp_path / "run", [*outcomes("+"), result("x", False, error="boom", error_source="agent")])
    found = gate(run, min_pass_rate=0.9)
    assert not found.passed
    assert "1 of them errors" in str(found)


def test_missing_attempts_fail_the_gate_whatever_the_rest_says(tmp_path: Path):
    found = gate(save(tmp_path / "run", outcomes("+ +"), case_ids=["c0", "c1", "c2"]), min_pass_rate=0.5)
    assert failed(found) == ["complete"]
    assert "--resume" in str(found)


def test_a_line_cut_in_the_middle_fails_the_gate_even_without_a_manifest(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("+ + +"))
    (run / "run.json").unlink()
    os.truncate(run / "results.jsonl", (run / "results.jsonl").stat().st_size - 20)
    found = gate(run, min_pass_rate=0.5)
    assert failed(found) == ["complete"]
    assert "cut short" in str(found)


def test_a_cost_over_the_limit_fails(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("+ +", cost=0.1))
    assert gate(run, max_cost=0.2).passed
    assert failed(gate(run, max_cost=0.19)) == ["cost"]


def test_an_unknown_cost_fails_a_limit_of_cost(tmp_path: Path):
    found = gate(save(tmp_path / "run", [result("a"), result("b", cost=None)]), max_cost=100.0)
    assert failed(found) == ["cost"]
    assert "unknown for 1 of 2 attempts" in str(found)


def test_the_duration_is_that_on_the_clock(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("+ +", duration=50.0), duration=60.0)
    assert gate(run, max_duration=60).passed
    assert failed(gate(run, max_duration=59)) == ["duration"]


def test_without_a_summary_the_duration_is_from_the_first_attempt_to_the_last(tmp_path: Path):
    run = save(tmp_path / "run", [result("a", started=100.0), result("b", started=107.0, duration=3.0)])
    (run / "summary.json").unlink()
    assert gate(run, max_duration=10).passed
    assert failed(gate(run, max_duration=9.9)) == ["duration"]


def test_a_duration_that_nobody_knows_fails_its_limit(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("+", started=0.0), duration=0.0)
    assert failed(gate(run, max_duration=10)) == ["duration"]


def test_flipped_cases_are_counted(tmp_path: Path):
    before = save(tmp_path / "before", outcomes("+ + - -"))
    after = save(tmp_path / "after", outcomes("- - + +"))
    assert failed(gate(after, baseline=before)) == ["regressions"]
    assert failed(gate(after, baseline=before, max_regressions=1)) == ["regressions"]
    assert gate(after, baseline=before, max_regressions=2).passed
    assert "c0, c1" in str(gate(after, baseline=before, max_regressions=2))


def test_a_case_that_errs_now_is_a_regression(tmp_path: Path):
    before = save(tmp_path / "before", outcomes("+"))
    after = save(tmp_path / "after", [result("c0", False, error="offline", error_source="provider")])
    assert failed(gate(after, baseline=before)) == ["regressions"]
    assert failed(gate(after, baseline=before, significant=True)) == ["regressions"]


def test_significant_forgives_what_may_be_chance(tmp_path: Path):
    before = save(tmp_path / "before", outcomes("+ " * 20))
    few = save(tmp_path / "few", outcomes("- " * 3 + "+ " * 17))
    many = save(tmp_path / "many", outcomes("- " * 8 + "+ " * 12))
    assert not gate(few, baseline=before).passed
    forgiven = gate(few, baseline=before, significant=True)
    assert forgiven.passed
    assert "four times out of five" in str(forgiven)
    assert failed(gate(many, baseline=before, significant=True)) == ["regressions"]
    assert gate(many, baseline=before, significant=True, max_regressions=8).passed


def test_a_significant_rise_is_no_regression(tmp_path: Path):
    before = save(tmp_path / "before", outcomes("+ + " + "- " * 20))
    after = save(tmp_path / "after", outcomes("- + " + "+ " * 20))
    assert gate(after, baseline=before, significant=True).passed


def test_a_baseline_without_a_common_case_fails(tmp_path: Path):
    before = save(tmp_path / "before", [result("a")])
    after = save(tmp_path / "after", [result("b")])
    found = gate(after, baseline=before, max_regressions=5)
    assert failed(found) == ["regressions"]


def test_cases_that_left_the_suite_are_named(tmp_path: Path):
    before = save(tmp_path / "before", [result("a"), result("gone")])
    found = gate(save(tmp_path / "after", [result("a")]), baseline=before)
    assert found.passed
    assert "gone" in str(found)


@pytest.mark.parametrize(
    "limits",
    [
        {"min_pass_rate": 90},
        {"min_pass_rate": -0.1},
        {"min_pass_rate": float("nan")},
        {"max_cost": -1},
        {"max_duration": float("inf")},
        {"max_regressions": 1},
        {"significant": True},
    ],
)
def test_limits_that_cannot_be_meant_are_refused(tmp_path: Path, limits: dict[str, Any]):
    run = save(tmp_path / "run", outcomes("+"))
    with pytest.raises(InvalidInput):
        gate(run, **limits)


def test_a_run_or_baseline_that_is_not_there_is_refused(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("+"))
    with pytest.raises(BadResults):
        gate(tmp_path / "nowhere")
    with pytest.raises(BadResults):
        gate(run, baseline=tmp_path / "nowhere")


def test_a_damaged_summary_says_how_to_mend_it(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("+"))
    (run / "summary.json").write_text("{")
    with pytest.raises(BadResults, match="swink eval report"):
        gate(run)


def test_the_figures_are_of_the_results_and_not_of_the_summary(tmp_path: Path):
    run = save(tmp_path / "run", outcomes("-"))
    text = (run / "summary.json").read_text()
    (run / "summary.json").write_text(
        text.replace('"passed":0', '"passed":1').replace('"pass_rate":0.0', '"pass_rate":1.0')
    )
    assert not gate(run).passed


def test_a_limit_below_a_cent_is_written_as_costs_are(tmp_path: Path):
    run = save(tmp_path, outcomes("+ +", cost=0.0001))
    found = gate(run, max_cost=0.00001)
    assert not found.passed
    assert "FAILED cost: $0.00020, at most $0.000010 allowed" in str(found)
