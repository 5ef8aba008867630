"""Statistics, held against scipy's."""

import random
from math import comb

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import cell_of_more, left_to_more, tried
from tests.later import Later

from swink.errors import InvalidInput
from swink.eval.statistics import (
    bootstrap,
    detectable,
    detectable_mean,
    deviation,
    holm,
    interval,
    mcnemar,
    mean,
    pass_at_k,
    pass_hat_k,
    permutation,
    student,
)

stats = Later("scipy.stats")


@tried(30, 1000)
@given(st.integers(1, 300) | st.integers(1, 20_000), st.sampled_from([0.8, 0.95, 0.99]))
def test_students_quantile_is_scipys(freedom: int, confidence: float):
    assert student(freedom, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, freedom), rel=1e-6)


@tried(30, 1000)
@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_binomial_test_of_the_flips(broke: int, fixed: int):
    known = stats.binomtest(broke, broke + fixed).pvalue if broke + fixed else 1.0
    assert mcnemar(broke, fixed) == pytest.approx(known, rel=1e-9)


def test_mcnemar_of_ten_thousand_flips_does_not_overflow():
    assert mcnemar(5200, 4800) == pytest.approx(stats.binomtest(4800, 10_000).pvalue, rel=1e-9)


@tried(10, 200)
@given(st.lists(st.integers(-1000, 1000).map(lambda number: number / 1000), min_size=2, max_size=9))
def test_a_permutation_of_a_few_differences_is_scipys_exact_one(differences: list[float]):
    known = stats.permutation_test(
        (numpy.array(differences),), numpy.sum, permutation_type="samples", n_resamples=numpy.inf
    ).pvalue
    assert permutation(differences) == pytest.approx(known, abs=1e-9)


def test_a_permutation_of_binary_differences_is_mcnemars_test():
    assert permutation([-1.0] * 9 + [1.0] * 2 + [0.0] * 50) == mcnemar(9, 2)
    assert permutation([]) == permutation([0.0] * 9) == 1.0


@pytest.mark.parametrize("size", [40, 120, 3000])
def test_a_permutation_of_many_differences_is_near_the_t_test(size: int):
    draw = random.Random(size)
    differences = [draw.gauss(2 / size**0.5, 1) for _ in range(size)]
    assert permutation(differences) == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.015)
    assert permutation(differences) == permutation(differences)


def test_rounding_does_not_hide_an_extreme_sum():
    # Only the signs as they are, and all of them turned, reach the sum; its digits depend on the order.
    assert permutation([0.1, 0.2, 0.3, 0.7, 0.1]) == pytest.approx(2 / 32)


@tried(5, 50)
@given(st.lists(st.floats(0, 1), min_size=12, max_size=40), st.integers(0, 5))
def test_the_bootstrap_is_scipys_percentile_one(values: list[float], seed: int):
    known = stats.bootstrap(
        (values,), numpy.mean, method="percentile", n_resamples=2000, rng=numpy.random.default_rng(seed)
    ).confidence_interval
    spread = deviation(values) / len(values) ** 0.5
    assert bootstrap(values) == pytest.approx((known.low, known.high), abs=0.35 * spread + 1e-12)
    assert bootstrap(values) == bootstrap(values)


def test_the_bootstrap_of_many_values_is_the_normal_interval():
    draw = random.Random(1)
    values = [draw.expovariate(1) for _ in range(301)]
    known = stats.norm.interval(0.95, mean(values), stats.sem(values))
    assert bootstrap(values) == pytest.approx(known, rel=1e-9)


def test_an_interval_is_students_with_four_cases_more_of_which_two_passed():
    supposed = [1, 1, 1, 0, 1, 1, 1, 0, 0]
    known = stats.t.interval(0.95, 8, mean(supposed), stats.sem(supposed))
    assert interval([1, 1, 1, 0, 1]) == pytest.approx((known[0], min(1, known[1])))


def test_where_all_passed_or_failed_the_interval_has_a_width_and_goes_to_the_end():
    assert interval([1] * 20) == (pytest.approx(0.8, abs=0.01), 1.0)
    assert interval([0] * 20) == (0.0, pytest.approx(0.2, abs=0.01))


def test_cases_that_are_alike_narrow_the_interval():
    low, high = interval([0.5] * 20)
    apart = interval([0.0, 1.0] * 10)
    assert high - low < (apart[1] - apart[0]) / 2


def test_of_no_values_there_is_no_interval_nor_a_mean():
    with pytest.raises(InvalidInput):
        mean([])


@tried(50, 1000)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 10))
def test_an_interval_holds_the_mean_and_stays_within_bounds(values: list[float], repeat: int):
    low, high = interval(values)
    assert 0 <= low <= mean(values) + 1e-9
    assert mean(values) - 1e-9 <= high <= 1
    assert interval(values * repeat)[0] >= low - 1e-9


@pytest.mark.parametrize(
    "cases", [10, 55, cell_of_more(20), cell_of_more(31), cell_of_more(48), cell_of_more(100)]
)
def test_without_repeats_an_interval_covers_every_rate_in_94_of_100_runs(cases: int):
    """Exactly, by the chance of each number of cases that pass."""
    rates = numpy.linspace(0.5, 0.999, 100)
    bounds = numpy.array([interval([1.0] * n + [0.0] * (cases - n)) for n in range(cases + 1)])
    passed = numpy.arange(cases + 1)[:, None]
    ways = numpy.array([[float(comb(cases, n))] for n in range(cases + 1)])
    chances = ways * rates**passed * (1 - rates) ** (cases - passed)
    covers = (bounds[:, :1] <= rates) & (rates <= bounds[:, 1:])
    assert (chances * covers).sum(axis=0).min() >= 0.94


def coverage(cases: int, repeat: int, rate: float, alike: float, runs: int) -> float:
    """How often the interval holds the rate of all the cases there could be; `alike` are attempts at one case."""
    draw = numpy.random.default_rng([cases, repeat, round(100 * rate), round(100 * alike)])
    if alike in (0, 1):
        hardness = draw.random((runs, cases)) < rate if alike else numpy.full((runs, cases), rate)
    else:
        both = 1 / alike - 1
        hardness = draw.beta(rate * both, (1 - rate) * both, (runs, cases))
    found = draw.binomial(repeat, hardness) / repeat
    bounds = [interval(run.tolist()) for run in found]
    return sum(low <= rate + 1e-12 and rate <= high + 1e-12 for low, high in bounds) / runs


@pytest.mark.parametrize(("cases", "repeat", "rate", "alike"), [(10, 10, 0.9, 0.6), (20, 5, 0.95, 0.6)])
def test_with_repeats_an_interval_covers_the_rate_where_it_is_hardest(
    cases: int, repeat: int, rate: float, alike: float
):
    assert coverage(cases, repeat, rate, alike, 500) >= 0.94


@left_to_more
@pytest.mark.parametrize("cases", [10, 20, 50, 100])
@pytest.mark.parametrize("repeat", [1, 2, 3, 5, 10])
def test_with_any_spread_of_rates_an_interval_covers_the_rate_in_94_of_100_runs(cases: int, repeat: int):
    spreads = [(rate, alike) for rate in (0.5, 0.7, 0.9, 0.95, 0.98) for alike in (0, 0.1, 0.3, 0.6, 1)]
    found = {spread: coverage(cases, repeat, *spread, 2_000) for spread in spreads}
    # Of 2,000 runs the share itself is known to half a point.
    assert min(found.values()) >= 0.935, found
    assert sum(found.values()) / len(found) >= 0.95


@tried(30, 300)
@given(st.integers(1, 12), st.data())
def test_pass_at_k_and_pass_hat_k_are_the_mean_over_all_choices(attempts: int, data: st.DataObject):
    passed, k = data.draw(st.integers(0, attempts)), data.draw(st.integers(1, attempts))
    hypergeometric = stats.hypergeom(attempts, passed, k)
    assert pass_at_k(attempts, passed, k) == pytest.approx(1 - hypergeometric.pmf(0), abs=1e-9)
    assert pass_hat_k(attempts, passed, k) == pytest.approx(hypergeometric.pmf(k), abs=1e-9)


def test_pass_hat_k_is_not_the_rate_to_the_power_of_k():
    assert pass_hat_k(4, 2, 2) == 1 / comb(4, 2) != 0.25
    assert pass_at_k(4, 2, 2) == 1 - 1 / comb(4, 2) != 0.75


@pytest.mark.parametrize("numbers", [(3, 4, 1), (3, 1, 4), (3, 1, 0), (0, 0, 1)])
def test_k_beyond_the_attempts_is_refused(numbers: tuple[int, int, int]):
    with pytest.raises(InvalidInput):
        pass_at_k(*numbers)
    with pytest.raises(InvalidInput):
        pass_hat_k(*numbers)


def test_holms_correction_keeps_the_order_and_stays_below_one():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_detectable_difference_shrinks_with_cases_and_grows_with_flips():
    sizes = [detectable(cases, 0.2) for cases in (50, 200, 800)]
    assert sizes == sorted(sizes, key=lambda value: -(value or 1))
    assert (detectable(200, 0.1) or 1) < (detectable(200, 0.4) or 0)


def test_too_few_cases_detect_nothing():
    assert detectable(0, 0.0) is None
    assert detectable(3, 0.3) is None
    assert detectable_mean([0.5]) is None
    assert detectable_mean([0.0, 0.0]) is None


def test_without_a_flip_a_handful_of_one_sided_ones_would_be_noticed():
    # Six flips in one direction and none in the other are the fewest that McNemar's test calls significant.
    assert mcnemar(6, 0) < 0.05 < mcnemar(5, 0)
    least = detectable(100, 0.0) or 0
    assert 1 - stats.binom.cdf(5, 100, least) == pytest.approx(0.8, abs=0.1)


def test_a_difference_just_detectable_is_found_four_times_out_of_five():
    cases, flipped = 200, 0.2
    difference = detectable(cases, flipped) or 0
    draw, found = random.Random(3), 0
    for _ in range(400):
        flips = [draw.random() for _ in range(cases)]
        broke = sum(flip < (flipped + difference) / 2 for flip in flips)
        fixed = sum((flipped + difference) / 2 <= flip < flipped for flip in flips)
        found += mcnemar(broke, fixed) < 0.05
    assert 0.7 <= found / 400 <= 0.88


def test_a_detectable_mean_is_the_z_tests():
    values = [0.1, -0.2, 0.3, 0.05, -0.1, 0.2]
    known = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * numpy.std(values, ddof=1) / 6**0.5
    assert detectable_mean(values) == pytest.approx(known)
