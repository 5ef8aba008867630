"""The runner: cases × repeats → attempts on an engine → results, as they come, in a file."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

import swink
from swink.checks import check_list, check_positive, check_word
from swink.config import Model
from swink.engine.waiting import call_to_end
from swink.errors import InvalidInput
from swink.eval.attempt import Factory, Plan
from swink.eval.case import Case, Suite
from swink.eval.engines import run_local
from swink.eval.evalrun import EvalRun
from swink.eval.factories import suite_factory
from swink.eval.limits import RunBudget
from swink.eval.progress import Progress, Tally
from swink.eval.rates import local_rates
from swink.eval.result import CaseResult, Manifest
from swink.eval.resultfile import BadResults, ResultFile, read_manifest, write_manifest
from swink.jsondata import encode
from swink.redact import redact_value
from swink.retry import ExponentialBackoff, RetryStrategy
from swink.threads import Serial, in_thread

EngineName = Literal["local", "ray"]


async def evaluate(
    factory: Factory | None,
    cases: Suite | Sequence[Case],
    *,
    scorers: Sequence[Any] | None = None,
    concurrency: int = 8,
    repeat: int = 1,
    engine: EngineName = "local",
    model: Model | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    cache: str | Path | None = None,
    budget: float | None = None,
    timeout: float | None = None,
    rate_limit: float | None = None,
    progress: Callable[[Progress], object] | None = None,
    judges: Sequence[Model] = (),
    retry: RetryStrategy = ExponentialBackoff(),
    key: str | bytes | None = None,
    name: str = "",
    agent: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> EvalRun:
    """Try every case `repeat` times with agents of the factory, and score what they did.

    `output` is a directory: each result is written there as it comes, and `resume` makes only the attempts
    that are missing. `budget` (dollars) ends the whole run, `timeout` (seconds) each attempt that has none of
    its own, `rate_limit` bounds the requests a minute to each provider. `retry` is for attempts that failed
    for their provider. `cache` is a directory of results of the same case, agent and code. With a `key` the
    chain of results cannot be written anew by who does not have it. `name`, `agent` and `arguments` are noted
    in run.json.
    """
    suite = cases if isinstance(cases, Suite) else None
    listed = tuple(suite.cases if suite is not None else check_list("cases", cases, "cases"))  # type: ignore
    _check(listed, repeat, concurrency, budget, timeout, rate_limit)
    raise NotImplementedError
