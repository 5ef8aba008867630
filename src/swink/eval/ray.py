"""Async work on a Ray cluster: items out in batches, results back one by one, in any order.

    driver ── batch ──▶ worker (an async actor on a node) ── results ──▶ driver ── keep(result)

A worker that dies with its node gives its batches back, and they are done again elsewhere: work may be done
twice, but each result is kept once. The function and what it is given must pickle; what is kept stays here.
"""

import asyncio
import importlib
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from swink.errors import AgentError, MisuseError
from swink.system.aio import wait_through_cancel
from swink.system.extras import install_command
from swink.system.threads import in_thread

T = TypeVar("T")
R = TypeVar("R")

LARGEST_BATCH = 32
_WORKERS = 4  # on one node, at most
_LANES = 2  # batches that a worker has at once, so that it never waits for the next
_TRIES = 3  # how often in a row all workers may be lost before it is given up


class WorkersLost(AgentError):
    """The workers of the cluster died again and again."""


async def spread(
    work: Callable[[T], Awaitable[R]],
    items: Iterator[T],
    keep: Callable[[R], Awaitable[None]],
    *,
    concurrency: int,
) -> None:
    """Do the work for every item on the nodes of the cluster, so many at once; each result goes to `keep`.

    `ray.init()` decides which cluster; without one, a cluster of this machine alone is started for it.
    """
    async with Cluster() as cluster:
        await _Spread(cluster.ray, work, items, keep, concurrency).run()


class Cluster:
    """The cluster that this program is connected to, or one of its own while the block lasts."""

    def __init__(self) -> None:
        try:
            self.ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise MisuseError(f"Ray is not installed: {install_command('ray')}") from error
        self._thread: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> "Cluster":
        if not self.ray.is_initialized():
            # Ray's processes end with the thread that started them, so it is one that stays.
            self._thread = ThreadPoolExecutor(1, "swink-ray")
            quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "error"}
            start = partial(self.ray.init, **quiet)
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, start)
            except BaseException:
                self._thread.submit(self.ray.shutdown)
                self._thread.shutdown(wait=False)
                raise
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._thread is not None:
            ended = self._thread.submit(self.ray.shutdown)
            self._thread.shutdown(wait=False)
            await wait_through_cancel(asyncio.wrap_future(ended))

    def service(self, kind: type, *arguments: Any) -> Any:
        """An object on this node that the workers may ask: `await service.method.remote(...)`."""
        node = self.ray.get_runtime_context().get_node_id()
        return _on(self.ray, node, kind).remote(*arguments)


class _Batch(Struct, Generic[T]):
    items: Sequence[T]
    tries: int = 0


class _Spread(Struct, Generic[T, R]):
    """One spreading, while it goes on."""

    ray: Any
    work: Callable[[T], Awaitable[R]]
    items: Iterator[T]
    keep: Callable[[R], Awaitable[None]]
    concurrency: int
    lost: deque[_Batch[T]] = field(default_factory=deque[_Batch[T]])
    size: int = 1

    async def run(self) -> None:
        """Work until nothing is left; workers that are gone are replaced on the nodes that are there."""
        first = self._next_batch()
        while first is not None:
            self.lost.appendleft(first)
            await self._work_on(await self._nodes())
            first = self._next_batch()

    async def _nodes(self) -> list[str]:
        """The nodes that are there; raises `WorkersLost` where none is."""
        try:
            nodes = [node["NodeID"] for node in await in_thread(self.ray.nodes) if node["Alive"]]
        except (self.ray.exceptions.RayError, ConnectionError) as error:
            raise WorkersLost(f"the cluster does not answer: {error}") from error
        if not nodes:
            raise WorkersLost("no node of the cluster is left")
        return nodes

    async def _work_on(self, nodes: Sequence[str]) -> None:
        each = min(_WORKERS, math.ceil(self.concurrency / len(nodes)))
        share = math.ceil(self.concurrency / (each * len(nodes)))
        self.size = min(LARGEST_BATCH, share)
        shared = await in_thread(self.ray.put, (self.work, share))
        workers = [_on(self.ray, node, _Worker).remote(shared) for node in nodes for _ in range(each)]
        try:
            async with asyncio.TaskGroup() as group:
                for worker in workers:
                    for _ in range(_LANES):
                        group.create_task(self._serve(worker))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            for worker in workers:
                with suppress(self.ray.exceptions.RayError):  # it is gone already
                    self.ray.kill(worker)

    async def _serve(self, worker: Any) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                results: list[R] = await worker.run.remote(batch.items)
            except self.ray.exceptions.RayActorError as error:
                batch.tries += 1
                self.lost.append(batch)
                if batch.tries >= _TRIES:
                    text = f"{batch.tries} workers died with the same work; the last one: {error}"
                    raise WorkersLost(text) from error
                return
            for result in results:
                await self.keep(result)

    def _next_batch(self) -> "_Batch[T] | None":
        if self.lost:
            return self.lost.popleft()
        items = tuple(islice(self.items, self.size))
        return _Batch(items) if items else None


class _Worker:
    """Works on a node; it is an async actor there."""

    def __init__(self, shared: tuple[Callable[[Any], Awaitable[Any]], int]) -> None:
        self._work, concurrency = shared
        self._places = asyncio.Semaphore(concurrency)

    async def run(self, items: Sequence[Any]) -> list[Any]:
        """The results for those items."""

        async def one(item: Any) -> Any:
            async with self._places:
                return await self._work(item)

        return await asyncio.gather(*map(one, items))


def _on(ray: Any, node: str, kind: type) -> Any:
    """An actor class whose actors are on that node, whatever else runs there: they wait most of the time."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    place = strategies.NodeAffinitySchedulingStrategy(node, False)
    return ray.remote(kind).options(num_cpus=0, scheduling_strategy=place)
