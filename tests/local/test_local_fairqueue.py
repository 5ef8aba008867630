"""Fair turns: nobody is starved, nothing is lost to a cancellation."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from swink.local.fairqueue import FairQueue


async def test_whoever_asks_for_much_does_not_starve_the_others():
    turns, served = FairQueue(1), list[str]()

    async def request(key: str) -> None:
        await turns.take_place(key)
        served.append(key)
        await asyncio.sleep(0)
        turns.give_back()

    await turns.take_place("first")
    tasks = [asyncio.create_task(request(key)) for key in ["a"] * 4 + ["b"] * 2 + ["c"]]
    await asyncio.sleep(0)
    turns.give_back()
    await asyncio.gather(*tasks)
    assert served == ["a", "b", "c", "a", "b", "a", "a"]


async def test_a_request_that_is_cancelled_leaves_the_line():
    turns = FairQueue(1)
    await turns.take_place("a")
    waiting = [asyncio.create_task(turns.take_place(key)) for key in "bc"]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    turns.give_back()
    await waiting[1]
    assert waiting[0].cancelled()


async def test_a_place_that_comes_with_a_cancellation_goes_to_the_next():
    turns = FairQueue(1)
    await turns.take_place("a")
    waiting = [asyncio.create_task(turns.take_place(key)) for key in "bc"]
    await asyncio.sleep(0)
    turns.give_back()
    waiting[0].cancel()
    await asyncio.wait_for(waiting[1], 20)
    turns.give_back()
    await asyncio.wait_for(turns.take_place("d"), 20)


async def test_someone_in_a_closed_event_loop_is_passed_over():
    turns = FairQueue(1)
    await turns.take_place("a")
    abandoned = turns.take_place("b")
    await asyncio.to_thread(_begin_and_close, abandoned)
    waiting = asyncio.create_task(turns.take_place("c"))
    await asyncio.sleep(0)
    turns.give_back()
    await asyncio.wait_for(waiting, 20)
    abandoned.close()


def _begin_and_close(waiting: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.new_event_loop()
    loop.call_soon(waiting.send, None)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
