"""Retry (R1, acceptance 14): what is tried again, how often, and after how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swink import errors
from swink.agent.retry import ExponentialBackoff, RetryStrategy, wait_before
from swink.errors import AgentError, AuthError, ModelError, ModelThrottled, NetworkError

KINDS = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, ModelError)
]


@pytest.mark.parametrize("cls", KINDS)
def test_only_retryable_errors_are_tried_again(cls):
    assert ExponentialBackoff().should_retry(cls("x"), 1) == (cls in (ModelThrottled, NetworkError))


def test_an_error_of_another_kind_is_not_tried_again():
    assert not ExponentialBackoff().should_retry(AgentError("x"), 1)


@pytest.mark.parametrize("attempts", [1, 2, 3, 7])
def test_there_are_as_many_attempts_as_allowed(attempts):
    strategy = ExponentialBackoff(max_attempts=attempts)
    made = 1
    while strategy.should_retry(NetworkError("x"), made):
        made += 1
    assert made == attempts


def test_the_defaults_are_three_attempts_one_second_doubled_up_to_sixty():
    assert ExponentialBackoff() == ExponentialBackoff(
        max_attempts=3, base_delay=1.0, max_delay=60.0, jitter=True
    )
    plain = ExponentialBackoff(jitter=False)
    assert [plain.delay(attempt) for attempt in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


@given(st.integers(1, 10_000), st.floats(0, 100), st.floats(0, 1_000))
def test_the_delay_lies_between_half_and_one_and_a_half_and_never_above_the_cap(attempt, base, cap):
    exact = base * 2.0 ** min(attempt - 1, 64)
    delay = ExponentialBackoff(base_delay=base, max_delay=cap).delay(attempt)
    assert min(exact * 0.5, cap) <= delay <= min(exact * 1.5, cap)


def test_the_jitter_spreads_over_the_whole_range():
    delays = [ExponentialBackoff().delay(1) for _ in range(2_000)]
    assert min(delays) < 0.55
    assert max(delays) > 1.45
    assert 0.95 < sum(delays) / len(delays) < 1.05


def test_the_cap_is_applied_after_the_jitter():
    assert max(ExponentialBackoff(max_delay=60.0).delay(7) for _ in range(500)) == 60.0


def test_a_retry_after_that_is_longer_is_respected_up_to_the_cap():
    strategy = ExponentialBackoff(jitter=False)
    assert wait_before(strategy, ModelThrottled("x"), 2) == 2
    assert wait_before(strategy, ModelThrottled("x", retry_after=7.5), 2) == 7.5
    assert wait_before(strategy, ModelThrottled("x", retry_after=0.1), 2) == 2, (
        "never sooner than the back-off"
    )
    assert wait_before(strategy, ModelThrottled("x", retry_after=-5), 2) == 2, "a date that is past"
    assert wait_before(strategy, ModelThrottled("x", retry_after=3_600), 2) == 60


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": 2.5},
        {"max_attempts": True},
        {"max_attempts": "3"},
        {"base_delay": -1},
        {"base_delay": float("nan")},
        {"base_delay": None},
        {"max_delay": float("inf")},
        {"max_delay": "60"},
        {"jitter": 0.5},
    ],
)
def test_a_back_off_that_cannot_work_is_refused_with_what_to_pass(options):
    (name,) = options
    with pytest.raises(errors.InvalidInput, match=f"{name} is .*; pass "):
        ExponentialBackoff(**options)


def test_a_back_off_may_be_without_delay():
    assert ExponentialBackoff(base_delay=0, max_delay=0).delay(3) == 0


def test_any_object_of_that_shape_is_a_strategy():
    class Stubborn:
        def should_retry(self, error: AgentError, attempt: int) -> bool:
            return isinstance(error, AuthError)

        def delay(self, attempt: int) -> float:
            return 0.5

    strategy: RetryStrategy = Stubborn()
    assert strategy.should_retry(AuthError("x"), 9)
    assert wait_before(strategy, ModelThrottled("x", retry_after=600), 1) == 60, "a cap holds for it too"
    assert wait_before(strategy, AgentError("x"), 1) == 0.5
