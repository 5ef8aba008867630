"""The gate of `rate_limited`: first come, first served, and nobody's place is lost."""

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import Agent, ExponentialBackoff
from swink.stream import StreamOptions
from swink.stream.wrappers import cached, fallback, rate_limited, recorded
from swink.stream.wrappers.ratelimit import RateLimiter
from swink.testing import Pause, ScriptedModel

ONCE = ExponentialBackoff(max_attempts=1)


def agent_on(stream_fn: Any, timeout: float = 60) -> Agent:
    return Agent("test:model", stream_fn=stream_fn, retry=ONCE, options=StreamOptions(timeout=timeout))


WRAPPED: list[Any] = [
    lambda inner, folder: rate_limited(inner, concurrent=1),
    lambda inner, folder: recorded(rate_limited(inner, concurrent=1), folder / "r"),
    lambda inner, folder: cached(rate_limited(inner, concurrent=1), folder / "c"),
    lambda inner, folder: fallback(rate_limited(inner, concurrent=1), ScriptedModel([])),
    lambda inner, folder: rate_limited(rate_limited(inner, concurrent=1), concurrent=9),
]


async def test_waiting_for_ones_turn_is_not_a_stuck_stream(tmp_path: Path) -> None:
    async def wait(wrap: Any) -> list[str]:
        entered, busy = asyncio.Event(), asyncio.Event()

        async def slow(*call: Any) -> Any:
            entered.set()
            await busy.wait()
            async for event in ScriptedModel(["done"])(*call):
                yield event

        stream_fn = wrap(slow, tmp_path)
        first = asyncio.create_task(agent_on(stream_fn).run("one"))
        await entered.wait()
        second = asyncio.create_task(agent_on(stream_fn, timeout=1.5).run("two"))
        await asyncio.sleep(3)
        busy.set()
        return [(await task).text for task in (first, second)]

    assert await asyncio.gather(*map(wait, WRAPPED)) == [["done", "done"]] * len(WRAPPED)


async def test_once_it_is_inside_the_limit_of_a_stream_counts_again() -> None:
    stream_fn = rate_limited(ScriptedModel([[Pause(0.1), "one"], [Pause(60), "two"]]), concurrent=1)
    first = asyncio.create_task(agent_on(stream_fn).run("one"))
    await asyncio.sleep(0)
    second = await agent_on(stream_fn, timeout=0.05).run("two")
    assert (await first).text == "one"
    assert "no content for 0.05 s" in (second.error or "")


async def test_those_who_wait_are_served_in_the_order_in_which_they_came() -> None:
    gate, served = RateLimiter(1, 0.0), []

    async def visit(number: int) -> None:
        async with gate.inside():
            served.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*[visit(number) for number in range(20)])
    assert served == list(range(20))


async def test_a_cancelled_waiter_does_not_use_up_its_minute() -> None:
    gate = RateLimiter(float("inf"), 0.2)

    async def visit() -> None:
        async with gate.inside():
            pass

    await visit()
    waiting = [asyncio.create_task(visit()) for _ in range(3_000)]  # ten minutes of them
    await asyncio.sleep(0.01)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await visit()


@tried(20, 500)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=12), st.integers(1, 3))
def test_whoever_is_cancelled_at_any_moment_gives_the_place_back(
    visits: list[tuple[int, int]], concurrent: int
) -> None:
    async def main() -> None:
        gate, inside = RateLimiter(concurrent, 0.0), 0

        async def visit(ticks: int) -> None:
            nonlocal inside
            async with gate.inside():
                inside += 1
                try:
                    assert inside <= concurrent
                    for _ in range(ticks):
                        await asyncio.sleep(0)
                finally:
                    inside -= 1

        async def cut(task: "asyncio.Task[None]", after: int) -> None:
            for _ in range(after):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        await asyncio.gather(*[cut(asyncio.create_task(visit(stay)), after) for after, stay in visits])
        async with asyncio.timeout(30):
            await asyncio.gather(*[visit(2) for _ in range(concurrent + 1)])

    asyncio.run(main())


def test_event_loops_of_several_threads_share_a_gate() -> None:
    gate, inside, most, visits = RateLimiter(2, 0.0), [], [], []

    async def visit() -> None:
        async with gate.inside():
            inside.append(None)
            most.append(len(inside))
            await asyncio.sleep(0.001)
            inside.pop()
        visits.append(None)

    async def main() -> None:
        await asyncio.gather(*[visit() for _ in range(10)])

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(visits) == 40
    assert max(most) <= 2


def test_a_waiter_whose_event_loop_is_closed_holds_up_nobody() -> None:
    gate = RateLimiter(1, 0.0)
    loop = asyncio.new_event_loop()

    async def visit() -> str:
        async with gate.inside():
            return "inside"

    async def main() -> str:
        async with gate.inside():
            waiting = loop.create_task(visit())
            thread = threading.Thread(target=loop.run_until_complete, args=(asyncio.sleep(0.01, loop),))
            thread.start()
            await asyncio.to_thread(thread.join)
            loop.close()
            setattr(waiting, "_log_destroy_pending", False)  # noqa: B010
        async with asyncio.timeout(30):
            return await visit()

    assert asyncio.run(main()) == "inside"
