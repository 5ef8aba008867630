"""Checking: one case in a test of one's own, which fails with what the scorers say."""

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from swink.errors import InvalidInput
from swink.eval.attempt import Factory
from swink.eval.case import Case, Suite
from swink.eval.casefile import load_cases
from swink.eval.result import CaseResult
from swink.eval.runner import evaluate

_LONGEST = 2000


class CaseFailed(AssertionError):
    """An agent did not pass a case; the text says which metrics failed and why, `result` has all of it."""

    def __init__(self, text: str, result: CaseResult | None = None) -> None:
        super().__init__(text)
        self.result = result

    @property
    def is_judged(self) -> bool:
        """Whether the agent was tried to its end: then a recording of it is as good as that of any other."""
        return self.result is not None and self.result.error is None


async def check_case(factory: Factory, case: Case, **options: Any) -> CaseResult:
    """Try a case with an agent of the factory; raises `CaseFailed` unless it passes.

    `options` are those of `evaluate`.
    """
    return passed_or_raise((await evaluate(factory, [case], **options)).cases[0], case)


def passed_or_raise(result: CaseResult, case: Case) -> CaseResult:
    """The result, if the case passed."""
    if result.passed:
        return result
    where = f" ({case.place})" if case.place is not None else ""
    lines = [f"the case {case.id!r}{where} failed"]
    if result.error is not None:
        lines.append(f"  error ({result.error_source}): {result.error}")
    for metric in result.metrics:
        if not metric.passed:
            value = f"{metric.value:g} of {metric.threshold:g}"
            lines.append(f"  {metric.name}: {value}: {metric.error or metric.why}")
    lines += [f"  called {call.name}({call.arguments})" for call in result.calls]
    answers = [message for message in result.transcript if message.role == "assistant"]
    if answers:
        lines.append(f"  answered: {answers[-1].text[:_LONGEST]}")
    raise CaseFailed("\n".join(lines), result)


def pytest_cases(source: str | Path | Suite | Iterable[Case], *, tag: str | None = None) -> Any:
    """A decorator that runs a test once for each case of `source`, its argument `case`; paths are from its
    file.

    >>> @pytest_cases("cases.yaml", tag="smoke")
    ... async def test_clothes(case, replay):
    ...     with replay():
    ...         await check_case(make_agent, case)
    """
    import pytest

    if isinstance(source, str | Path):
        here = Path(inspect.stack(0)[1].filename).parent
        cases = load_cases(here / source)
    else:
        cases = source.cases if isinstance(source, Suite) else list(source)
    chosen = [case for case in cases if tag is None or tag in case.tags]
    if not chosen:  # which pytest would take for a skipped test
        raise InvalidInput("there are no cases" if tag is None else f"no case has the tag {tag!r}")
    return pytest.mark.parametrize("case", chosen, ids=[case.id for case in chosen])
