"""What changed between two runs, and whether it could be chance."""

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import left_to_more, tried
from tests.eval.runs import outcomes, result, save

from swink.eval import CaseResult, Metric
from swink.eval.compare import Comparison, _tested, compare, compare_results
from swink.eval.comparisontable import comparison_table
from swink.eval.resultfile import BadResults
from swink.eval.statistics import mcnemar
from swink.eval.summary import by_case
from swink.messages import Usage


def test_flipped_cases_are_named_with_their_direction():
    found = compare_results(outcomes("+ + - -"), outcomes("+ - + -"))
    assert [flip.case_id for flip in found.regressions] == ["c1"]
    assert [flip.case_id for flip in found.improvements] == ["c2"]
    assert (found.regressions[0].before, found.regressions[0].after) == ("passed", "failed")


def test_the_pass_rate_is_tested_as_mcnemar_does():
    found = compare_results(outcomes("+ " * 30), outcomes("- " * 8 + "+ " * 22))
    assert found.pass_rate.p == pytest.approx(mcnemar(8, 0))
    assert found.pass_rate.significant
    assert found.pass_rate.difference == pytest.approx(-8 / 30)


def test_five_flips_in_one_direction_may_be_chance():
    found = compare_results(outcomes("+ " * 5), outcomes("- " * 5))
    assert len(found.regressions) == 5
    assert not found.pass_rate.significant
    assert found.pass_rate.p == pytest.approx(0.0625)
    assert found.pass_rate.detectable is None


def test_equal_runs_leave_room_for_a_difference_that_was_not_seen():
    found = compare_results(outcomes("+ " * 20), outcomes("+ " * 20))
    assert found.pass_rate.interval is not None
    low, high = found.pass_rate.interval
    assert low < -0.05
    assert high > 0.05
    assert found.pass_rate.p == 1.0


def test_cases_of_one_run_only_are_listed_and_not_compared():
    found = compare_results([result("a"), result("old", False)], [result("a"), result("new", False)])
    assert (found.only_before, found.only_after, found.cases) == (("old",), ("new",), 1)
    assert found.pass_rate.difference == 0.0


def test_runs_without_a_common_case_say_so():
    found = compare_results([result("a")], [result("b")])
    assert found.pass_rate.before is None
    assert found.pass_rate.p is None
    assert "no case in common" in found.notes[0]


def test_attempts_at_one_case_are_not_taken_for_independent():
    # 10 attempts at each of 3 cases: one case broke. Ten flips would be significant, one is not.
    found = compare_results(outcomes(f"{'+' * 10} " * 3), outcomes(f"{'-' * 10} {'+' * 10} {'+' * 10}"))
    assert found.pass_rate.p == 1.0
    assert found.pass_rate.cases == 3


def test_a_case_that_a_provider_failed_is_in_no_test_but_flips():
    offline = result("c1", False, error="offline", error_source="provider", metrics=())
    found = compare_results(outcomes("+ +"), [*outcomes("+"), offline])
    assert found.troubled == ("c1",)
    assert found.pass_rate.cases == 1
    assert [(flip.case_id, flip.after) for flip in found.regressions] == [("c1", "error")]


def test_a_case_whose_agent_raised_or_took_too_long_counts_as_failed():
    for source in ("agent", "timeout", "factory"):
        failed = result("c1", False, error="no", error_source=source, metrics=())
        found = compare_results(outcomes("+ +"), [*outcomes("+"), failed])
        assert found.troubled == ()
        assert found.pass_rate.difference == -0.5


def test_an_unknown_cost_is_left_out_and_never_nothing():
    before = [result("a", cost=1.0), result("b", cost=None)]
    found = compare_results(before, [result("a", cost=1.5), result("b", cost=3.0)])
    assert (found.cost.cases, found.cost.difference) == (1, 0.5)
    unknown = compare_results([result("a", cost=None)], [result("a", cost=1.0)])
    assert (unknown.cost.cases, unknown.cost.before, unknown.cost.difference) == (0, None, None)
    assert "unknown" in comparison_table(unknown)


def test_slower_attempts_are_a_significant_change():
    before = [result(f"c{number}", duration=1.0 + number / 50) for number in range(12)]
    after = [result(f"c{number}", duration=1.5 + number / 40) for number in range(12)]
    found = compare_results(before, after)
    assert found.duration.significant
    assert found.duration.interval is not None
    assert found.duration.interval[0] > 0


def test_scores_are_compared_by_scorer_and_corrected_for_their_number():
    def scored(shift: float):
        return [
            result(
                f"c{number}",
                metrics=tuple(
                    Metric(name, 0.1 + shift * ((number + place) % 3), 0.0, True)
                    for place, name in enumerate(("one", "two", "three"))
                ),
            )
            for number in range(9)
        ]

    found = compare_results(scored(0.1), scored(0.2))
    assert set(found.metrics) == {"one", "two", "three"}
    # Six of nine cases differ, all in one direction: 2/64 alone, three times that among three.
    assert found.metrics["one"].p == pytest.approx(3 * 2 / 64)
    assert not found.metrics["one"].significant


def test_figures_that_differ_alike_in_every_case_are_one_test():
    found = compare_results(outcomes("+ " * 9), outcomes("- " * 6 + "+ " * 3))
    assert found.pass_rate.p == found.metrics["response"].p == pytest.approx(mcnemar(6, 0))
    halves = [result(f"c{number}", number > 5, cost=0.005 if number < 6 else 0.01) for number in range(9)]
    assert compare_results(outcomes("+ " * 9), halves).cost.p == pytest.approx(mcnemar(6, 0))


def test_every_figure_is_tested_as_one_of_all():
    before = [result(f"c{number}", duration=1.0, usage=Usage(input=100)) for number in range(9)]
    after = [
        result(
            f"c{number}",
            cost=0.01 + 0.001 * (number + 1),
            duration=1.0 + (number + 1) ** 2,
            usage=Usage(input=100 + 2**number),
        )
        for number in range(9)
    ]
    found = compare_results(before, after)
    # Nothing failed in either, so that cost, duration and tokens are three tests.
    assert [change.p for change in (found.cost, found.duration, found.tokens)] == [
        pytest.approx(3 * 2 / 512)
    ] * 3
    assert found.pass_rate.p == 1.0
    table = comparison_table(found)
    assert "agent tokens" in table
    assert table.count("*") == 4


def alike(draw: random.Random, cases: int, repeat: int) -> list[CaseResult]:
    """A run of an agent whose figures are all drawn anew: nothing ever changes but by chance."""
    made: list[CaseResult] = []
    for case in range(cases):
        hardness = random.Random(case).betavariate(2, 1)
        for number in range(repeat):
            scores = [min(1.0, max(0.0, draw.gauss(hardness, 0.2))) for _ in range(3)]
            metrics = [Metric(name, score, 0.5, True) for name, score in zip("abc", scores, strict=True)]
            made.append(
                result(
                    f"c{case}",
                    draw.random() < hardness,
                    number,
                    metrics=tuple(metrics),
                    cost=draw.lognormvariate(-5, 0.5),
                    duration=draw.lognormvariate(1, 0.6),
                    usage=Usage(input=round(draw.lognormvariate(7, 0.4))),
                )
            )
    return made


def false_alarms(pairs: int, cases: int, repeat: int, seed: int) -> int:
    draw, alarms = random.Random(seed), 0
    for _ in range(pairs):
        before, after = (by_case(alike(draw, cases, repeat)) for _ in range(2))
        figures = _tested({case: (before[case], after[case]) for case in before})
        alarms += any(change.significant for change, _, _ in figures)
    return alarms


def test_equal_agents_seldom_differ_significantly():
    assert false_alarms(40, cases=8, repeat=1, seed=2) <= 3


@left_to_more
@pytest.mark.parametrize(("cases", "repeat"), [(20, 1), (20, 5)])
def test_in_a_thousand_pairs_of_equal_agents_at_most_five_percent_differ_significantly(
    cases: int, repeat: int
):
    assert false_alarms(1000, cases, repeat, seed=31) <= 50


def test_a_few_cases_and_cases_that_agree_have_no_bootstrap_interval():
    few = [result(f"c{number}", duration=float(number)) for number in range(5)]
    slower = [result(f"c{number}", duration=number * 2.0) for number in range(5)]
    assert compare_results(few, slower).duration.interval is None
    same = outcomes("+ " * 30)
    assert compare_results(same, same).metrics["response"].interval is None


def test_a_scorer_that_failed_or_is_new_is_not_compared():
    failed = Metric("judge", 0.0, 0.5, False, error="ValueError: no verdict")
    found = compare_results(
        [result("a", metrics=(Metric("judge", 0.9, 0.5, True),))],
        [result("a", metrics=(failed, Metric("new", 1.0, 0.5, True)))],
    )
    assert found.metrics == {}


def test_unequal_repeats_are_pointed_out():
    assert any("equally often" in note for note in compare_results(outcomes("+"), outcomes("++")).notes)


def test_cached_attempts_are_pointed_out():
    assert any("cache" in note for note in compare_results([result()], [result(cached=True)]).notes)


def test_directories_are_compared_with_what_they_lack(tmp_path: Path):
    before = save(tmp_path / "before", outcomes("+ + +"), digest="x")
    after = save(tmp_path / "after", outcomes("+ -"), case_ids=["c0", "c1", "c2"], digest="y")
    found = compare(before, after)
    assert (found.before, found.after) == (str(before), str(after))
    assert any("not complete: 1 attempts" in note for note in found.notes)
    assert any("cases were changed" in note for note in found.notes)


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path):
    before, after = save(tmp_path / "before", outcomes("+ +")), save(tmp_path / "after", outcomes("+ +"))
    with (after / "results.jsonl").open("ab") as file:
        file.write(b'{"case_id": 3}\n')
    assert any("results.jsonl:3" in note for note in compare(before, after).notes)


def test_a_directory_without_results_is_refused(tmp_path: Path):
    with pytest.raises(BadResults, match=r"has no results\.jsonl"):
        compare(tmp_path, tmp_path)


def test_the_table_shows_figures_flips_and_notes():
    text = comparison_table(
        compare_results(
            outcomes("++ ++ ++ -- +"), [*outcomes("+- -- ++ ++"), result("x")], ("runs/one", "runs/two")
        )
    )
    assert "before  runs/one" in text
    assert "4 cases in both runs" in text
    assert "c4" in text.splitlines()[3]
    assert "c0: passed -> failed (100% -> 50% of attempts)" in text
    assert "c1: passed -> failed\n" in text
    assert "improvements: 1" in text
    assert "75.0 %" in text
    assert "-12.5 points" in text


def test_names_cannot_steer_the_terminal():
    text = comparison_table(compare_results([result("a\x1b[2J")], [result("a\x1b[2J", False)]))
    assert "\x1b" not in text


def test_a_long_list_of_flips_is_cut_in_the_table_and_whole_in_json():
    found = compare_results(outcomes("+ " * 30), outcomes("- " * 30))
    assert "and 10 more" in comparison_table(found)
    assert len(msgspec.json.decode(msgspec.json.encode(found))["regressions"]) == 30


marks = st.lists(st.text("+-", min_size=1, max_size=4), max_size=8).map(" ".join)


@tried(20, 500)
@given(marks, marks)
def test_a_comparison_turned_round_is_its_mirror(one: str, other: str):
    there, back = (
        compare_results(outcomes(one), outcomes(other)),
        compare_results(outcomes(other), outcomes(one)),
    )
    assert len(there.regressions) == len(back.improvements)
    assert there.pass_rate.p == pytest.approx(back.pass_rate.p)
    assert there.pass_rate.detectable == pytest.approx(back.pass_rate.detectable)
    if there.pass_rate.difference is not None:
        assert back.pass_rate.difference is not None
        assert there.pass_rate.difference == pytest.approx(-back.pass_rate.difference)
    assert msgspec.json.decode(msgspec.json.encode(there), type=Comparison) == there
    assert comparison_table(there)
