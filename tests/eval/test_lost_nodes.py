"""A cluster whose last node is gone: the work ends with what is finished, and says why."""

from types import SimpleNamespace
from typing import Any

import pytest

from swink.errors import AgentError
from swink.eval.ray import WorkersLost, _Spread


class ClusterError(Exception):
    """What the library of the cluster raises."""


def cluster(nodes: Any) -> Any:
    """As much of a cluster as is asked before work is given out."""
    return SimpleNamespace(nodes=nodes, exceptions=SimpleNamespace(RayError=ClusterError))


async def work_on(ray: Any) -> None:
    async def work(item: int) -> int:
        return item

    async def keep(result: int) -> None: ...

    await _Spread(ray, work, iter(range(3)), keep, 2).run()


@pytest.mark.parametrize("nodes", [[], [{"NodeID": "one", "Alive": False}]])
async def test_without_a_node_nothing_is_divided_by_none(nodes: list[dict[str, Any]]):
    with pytest.raises(WorkersLost, match="no node of the cluster is left"):
        await work_on(cluster(lambda: nodes))


@pytest.mark.parametrize("error", [ClusterError("gone"), ConnectionError("gone")])
async def test_a_cluster_that_does_not_answer_is_lost(error: Exception):
    def nodes() -> list[Any]:
        raise error

    with pytest.raises(WorkersLost, match="does not answer: gone"):
        await work_on(cluster(nodes))


def test_lost_workers_are_trouble_of_the_run_and_no_misuse():
    assert issubclass(WorkersLost, AgentError)
    assert WorkersLost.kind != "misuse"
