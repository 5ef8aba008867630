"""The throttle: many touches, few flushes, none lost."""

import asyncio

from swink.app.tui.throttle import Throttle


async def test_touches_are_flushed_together_and_the_last_one_is_never_lost():
    seen, changes = [], 0

    def flush() -> None:
        seen.append(changes)
        throttle.flushed()

    throttle = Throttle(flush, interval=0.01)
    for _ in range(200):
        changes += 1
        throttle.touch()
        await asyncio.sleep(0)
    while not seen or seen[-1] != 200:
        await asyncio.sleep(0.005)
    assert len(seen) < 200


async def test_nothing_is_flushed_while_the_screen_is_still_busy_with_the_last_one():
    seen = []
    throttle = Throttle(lambda: seen.append(1), interval=0.0)
    throttle.touch()
    while not seen:
        await asyncio.sleep(0)
    for _ in range(10):
        throttle.touch()
        await asyncio.sleep(0.001)
    assert seen == [1]
    throttle.flushed()
    while len(seen) < 2:
        await asyncio.sleep(0)


async def test_a_closed_bridge_flushes_no_more():
    seen = []
    throttle = Throttle(lambda: seen.append(1), interval=0.0)
    throttle.touch()
    throttle.close()
    throttle.touch()
    await asyncio.sleep(0.02)
    assert seen == []
