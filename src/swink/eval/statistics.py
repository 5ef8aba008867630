"""Statistics of evaluation: intervals, pass@k, paired tests, and what a comparison could have noticed.

What is independent is the case, and never the attempt: attempts at one case are alike. So everything here
takes one value per case, such as the share of its attempts that passed. Whatever draws random numbers is
seeded: the same results give the same figures.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import compress
from math import atan2, comb, cos, fsum, pi, sin, sqrt
from random import Random
from statistics import NormalDist

from swink.errors import InvalidInput

CONFIDENCE = 0.95
POWER = 0.8
Interval = tuple[float, float]

_SEED = 20
_RESAMPLES = 2_000
_BOOTSTRAPPED = 300  # up to so many values; of more the mean is as good as normal
_ENUMERATED = 24
_FLIPPED = 2_000
_FLIPS = 9_999
_ODD = bytes(byte & 1 for byte in range(256))
_NORMAL = NormalDist()
_SUPPOSED = 2  # cases of each outcome that an interval supposes; with 1 it covers 93 % for some rates
_NEARLY_NORMAL = 200


def mean(values: Sequence[float]) -> float:
    """The mean; that of nothing is an error."""
    if not values:
        raise InvalidInput("there is no mean of no values")
    return fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return sqrt(fsum([(value - middle) ** 2 for value in values]) / (len(values) - 1))


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of values in [0, 1], one of each case; attempts at a case are one value.

    Student's, as if four more cases had been there of which two passed (Agresti and Coull's idea): so it
    has a width where all values are alike, and covers what it says it does for few cases and rates near 1.
    """
    cases = len(values) + 2 * _SUPPOSED
    middle = (fsum(values) + _SUPPOSED) / cases
    square = (fsum([value * value for value in values]) + _SUPPOSED) / cases
    half = student(cases - 1, confidence) * sqrt(max(0.0, square - middle * middle) / (cases - 1))
    # Where every value is at an end, the interval goes up to it.
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return (low if any(values) else 0.0, high if any(value < 1 for value in values) else 1.0)


@lru_cache(1024)
def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """How many standard errors to each side hold that share of Student's t, from 1 degree of freedom on."""
    z = _quantile(confidence)
    if freedom > _NEARLY_NORMAL:  # the series of Cornish and Fisher
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / freedom + second / freedom**2
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """The chance that Student's t is between -t and t: a finite sum for whole degrees of freedom."""
    angle = atan2(t, sqrt(freedom))
    term, total = (cos(angle), 0.0) if freedom % 2 else (1.0, 0.0)
    for number in range(1 + freedom % 2, freedom, 2):
        total += term
        term *= cos(angle) ** 2 * number / (number + 1)
    return (2 / pi) * (angle + sin(angle) * total) if freedom % 2 else sin(angle) * total


def bootstrap(values: Sequence[float], statistic: Callable[[Sequence[float]], float] = mean) -> Interval:
    """The percentile bootstrap of a statistic, over cases; the mean of more than 300 is taken as normal."""
    if len(values) > _BOOTSTRAPPED and statistic is mean:
        half = _quantile(CONFIDENCE) * deviation(values) / sqrt(len(values))
        return mean(values) - half, mean(values) + half
    if not values:
        raise InvalidInput("there is nothing to draw from")
    random, size = Random(_SEED), len(values)
    samples = (random.choices(values, k=size) for _ in range(_RESAMPLES))
    drawn = sorted(sum(sample) / size if statistic is mean else statistic(sample) for sample in samples)
    tail = (1 - CONFIDENCE) / 2
    return percentile(drawn, tail), percentile(drawn, 1 - tail)


def difference_interval(differences: Sequence[float]) -> Interval:
    """The interval of a mean difference of pass rates, one of each case.

    Bonett and Price's, by Student's t: two more cases that flipped, one in each direction, give it a width
    where nothing did.
    """
    size = len(differences) + 2
    middle = fsum(differences) / size
    variance = (fsum([value * value for value in differences]) + 2) / size - middle * middle
    half = student(size - 1) * sqrt(max(0.0, variance) / (size - 1))
    return max(-1.0, middle - half), min(1.0, middle + half)


def pass_at_k(attempts: int, passed: int, k: int) -> float:
    """The chance that at least one of k attempts passes, estimated without bias from more attempts."""
    _check_attempts(attempts, passed, k)
    return 1 - comb(attempts - passed, k) / comb(attempts, k)


def pass_hat_k(attempts: int, passed: int, k: int) -> float:
    """The chance that all of k attempts pass (pass^k), estimated without bias from more attempts."""
    _check_attempts(attempts, passed, k)
    return comb(passed, k) / comb(attempts, k)


def mcnemar(broke: int, fixed: int) -> float:
    """How likely flips as one-sided as these are by chance: McNemar's exact test, two-sided."""
    flips, fewer = broke + fixed, min(broke, fixed)
    term = tail = 1
    for number in range(fewer):
        term = term * (flips - number) // (number + 1)
        tail += term
    return min(1.0, 2 * tail / 2**flips)  # whole numbers: no rounding before the division


def permutation(differences: Sequence[float]) -> float:
    """How likely a mean difference this far from 0 is by chance, two-sided: each sign could be the other one.

    Exact for up to 24 cases that differ, and where all differ by the same amount (McNemar's test). For up to
    2,000 random signs decide, above that the sum is taken as normal.
    """
    moved = [value for value in differences if value]
    if not moved:
        return 1.0
    if len({abs(value) for value in moved}) == 1:
        return mcnemar(sum(value < 0 for value in moved), sum(value > 0 for value in moved))
    # Sums of the same values in another order differ in their last digits.
    total = abs(fsum(moved)) - 1e-9 * fsum(map(abs, moved))
    if len(moved) <= _ENUMERATED:
        return _enumerated(moved, total)
    if len(moved) > _FLIPPED:
        return 2 * _NORMAL.cdf(-abs(fsum(moved)) / sqrt(fsum([value * value for value in moved])))
    random, everything, size = Random(_SEED), fsum(moved), len(moved)
    signs = (random.randbytes(size).translate(_ODD) for _ in range(_FLIPS))
    reached = sum(abs(2 * sum(compress(moved, chosen)) - everything) >= total for chosen in signs)
    return (reached + 1) / (_FLIPS + 1)


def holm(chances: Sequence[float]) -> list[float]:
    """The same p-values as if each knew that the others were asked too (Holm's correction)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted, most = [0.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        most = max(most, min(1.0, chances[place] * (len(chances) - rank)))
        adjusted[place] = most
    return adjusted


def detectable(
    cases: int, square: float, confidence: float = CONFIDENCE, power: float = POWER
) -> float | None:
    """The smallest difference in pass rate that a paired comparison would notice; None: not even the largest.

    `square` is the mean square of the differences seen, which is the share of cases that flipped (Connor's
    formula for McNemar's test). A difference of 10 points flips at least 10 % of the cases, seen or not; and
    a few flips, fewer than six at 95 %, are not significant however one-sided.
    """
    fewest = next(flips for flips in range(1, 100) if mcnemar(flips, 0) < 1 - confidence)
    if cases < fewest:
        return None
    alpha, beta = _quantile(confidence), _NORMAL.inv_cdf(power)

    def is_noticed(difference: float) -> bool:
        flipped = max(square, difference)
        needed = alpha * sqrt(flipped) + beta * sqrt(flipped - difference * difference)
        return difference * sqrt(cases) >= needed

    low, high = fewest / cases, 1.0
    if not is_noticed(high):
        return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if is_noticed(middle) else (middle, high)
    return high


def detectable_mean(differences: Sequence[float], confidence: float = CONFIDENCE) -> float | None:
    """The smallest mean difference that a paired comparison of so many, that spread so, would notice."""
    if len(differences) < 2 or not (spread := deviation(differences)):
        return None
    return (_quantile(confidence) + _NORMAL.inv_cdf(POWER)) * spread / sqrt(len(differences))


def _quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence is between 0 and 1, such as 0.95, not {confidence}")
    return _NORMAL.inv_cdf((1 + confidence) / 2)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which that share of ordered values lies, interpolated between two of them."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _check_attempts(attempts: int, passed: int, k: int) -> None:
    if not 0 <= passed <= attempts or not 1 <= k <= attempts:
        raise InvalidInput(f"k is from 1 to the number of attempts, not {k} of {attempts} ({passed} passed)")


def _enumerated(moved: Sequence[float], total: float) -> float:
    """The share of all choices of signs that reach the total, counted half by half."""
    half = len(moved) // 2
    ones, others = _sums(moved[:half]), sorted(_sums(moved[half:]))
    above = sum(len(others) - bisect_left(others, total - one) for one in ones)
    return min(1.0, 2 * above / (len(ones) * len(others)))


def _sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [part + value for part in sums] + [part - value for part in sums]
    return sums
