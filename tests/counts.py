"""How often a property is tried: enough for every day in `make test`, far more in `make test-more`.

The examples are the same in every run, so that a run answers for the change and not for its luck.
`SWINK_TEST_RANDOM=1 make test-more` looks for new ones.
"""

import os
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

MORE = bool(os.environ.get("SWINK_TEST_MORE"))
RANDOM = bool(os.environ.get("SWINK_TEST_RANDOM"))

settings.register_profile("swink", derandomize=not RANDOM, deadline=None, max_examples=100 if MORE else 20)
settings.load_profile("swink")  # conftest imports this before any test makes settings of its own
# Constants of the source would change the examples with every change of it, and take seconds to collect.
providers._get_local_constants = lambda: providers._local_constants


def tried(once: int, more: int) -> Any:
    """Mark a property so that it is tried `once` times in `make test` and `more` times in `make test-more`."""
    limits = settings(
        max_examples=more if MORE else once,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )

    def mark(test: Any) -> Any:
        return pytest.mark.more(limits(test))

    return mark


def left_to_more(test: Any) -> Any:
    """Leave a test that takes long, and whose behaviour another one shows too, to `make test-more`."""
    return pytest.mark.more(pytest.mark.skipif(not MORE, reason="make test-more runs it")(test))


def cell_of_more(*values: Any) -> Any:
    """Parameters of a test that only `make test-more` tries: other cells of the table show the behaviour too."""
    return pytest.param(
        *values, marks=(pytest.mark.more, pytest.mark.skipif(not MORE, reason="make test-more runs it"))
    )


def in_cells(names: Any, cells: Iterable[Any], *, every: int, ids: Any = None) -> Any:
    """Parametrize a test that shows one behaviour in many places: each day in every so manieth, and else in all."""
    step = 1 if MORE else every
    if ids is not None and not callable(ids):
        ids = [*ids][::step]
    parametrized = pytest.mark.parametrize(names, [*cells][::step], ids=ids)
    return lambda test: pytest.mark.more(parametrized(test))


def crossed(**axes: Mapping[str, Any] | Iterable[Any]) -> Any:
    """Parametrize a test whose axes have nothing to do with each other: each day every value of each once.

    `make test-more` tries all of them with all. A mapping names its values; others are named by what they are.
    """
    named = [
        [*axis.items()] if isinstance(axis, Mapping) else [(str(v), v) for v in axis]
        for axis in axes.values()
    ]
    most = max(map(len, named))
    day = [[axis[number % len(axis)] for axis in named] for number in range(most)]
    cells = [
        pytest.param(*(value for _, value in cell), id="-".join(name for name, _ in cell))
        for cell in (product(*named) if MORE else day)
    ]
    return lambda test: pytest.mark.more(pytest.mark.parametrize(",".join(axes), cells)(test))
