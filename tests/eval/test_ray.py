"""Work on a Ray cluster of two nodes, one of which dies."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counts import MORE

from swink import Agent
from swink.errors import MisuseError
from swink.eval import Case, CaseResult, EvalRun, Trajectory, evaluate
from swink.eval.ray import spread
from swink.eval.verify import verify
from swink.stream.wrappers import through
from swink.testing import Pause, ScriptedModel

pytestmark = [
    pytest.mark.more,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not MORE, reason="a Ray cluster takes half a minute to start: make test-more"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


@pytest.fixture
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    # The workers cannot import a module of tests: what it holds is sent to them.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        ray.init(address=made.address, log_to_driver=False, logging_level="error")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def hello(case: Case, trajectory: Trajectory) -> bool:
    return trajectory.response == f"hello {case.id}"


def factory(case: Case) -> Agent:
    slow = [Pause(float(case.metadata["pause"]))] if case.metadata else []
    return Agent("test:m", stream_fn=ScriptedModel([[*slow, f"hello {case.id}"]]))


def facts(result: CaseResult) -> tuple[Any, ...]:
    """What does not depend on the clock."""
    return result.case_id, result.repeat, result.passed, result.transcript, result.usage, result.metrics


async def run_on_both(cluster: Any, output: Path) -> tuple[EvalRun, EvalRun]:
    second = cluster.add_node(num_cpus=1)
    cases = [Case(id=f"c{n}", user_messages=("hi",), metadata={"pause": 0.05}) for n in range(200)]
    killed: list[Any] = []

    def kill(progress: Any) -> None:
        if progress.done >= 40 and not killed:
            killed.append(asyncio.get_running_loop().run_in_executor(None, remove, second))

    def remove(node: Any) -> None:
        cluster.remove_node(node, allow_graceful=False)

    there = await evaluate(
        factory,
        cases,
        scorers=[hello],
        engine="ray",
        output=output,
        progress=kill,
        concurrency=8,
        rate_limit=60_000,
    )
    await killed[0]
    here = await evaluate(factory, cases, scorers=[hello], concurrency=64)
    return there, here


async def test_an_evaluation_whose_node_dies_ends_as_on_one_machine(cluster: Any, tmp_path: Path):
    there, here = await asyncio.wait_for(run_on_both(cluster, tmp_path), 300)
    assert (there.passed, there.summary.attempts) == (200, 200)
    assert [facts(result) for result in there.cases] == [facts(result) for result in here.cases]
    checked = verify(tmp_path)
    assert (checked.ok, checked.records) == (True, 200)
    with (
        through(lambda stream_fn: ScriptedModel(["recorded"])),
        pytest.raises(MisuseError, match="one machine"),
    ):
        await evaluate(factory, [Case(id="a", user_messages=("hi",))], engine="ray")
    await work_that_raises_is_raised_here()


async def test_without_a_cluster_one_is_started_that_lives_until_the_end(monkeypatch: pytest.MonkeyPatch):
    import ray

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # Longer than an idle thread lives: Ray's processes end with the thread that started them.
    slow = Case(id="slow", user_messages=("hi",), metadata={"pause": 7.0})
    run = await asyncio.wait_for(evaluate(factory, [slow], scorers=[hello], engine="ray"), 300)
    assert run.passed == 1
    assert not ray.is_initialized()


async def work_that_raises_is_raised_here() -> None:
    async def work(item: int) -> int:
        await asyncio.sleep(0)
        return os.getpid() // (item - 3)

    async def keep(result: int) -> None:
        assert result != os.getpid()

    with pytest.raises(ZeroDivisionError):
        await spread(work, iter(range(5)), keep, concurrency=2)
