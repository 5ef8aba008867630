"""The idioms of asyncio that everything else rests on, each by itself."""

import asyncio
import contextvars
import gc
import random
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from tests.counts import MORE

from swink.system.aio import (
    Turnstile,
    call_later,
    close,
    closing,
    is_async,
    raise_soon,
    resolve,
    start_task,
    started,
    wait_through_cancel,
)

# resolve and is_async


async def test_resolve_gives_a_plain_value_as_it_is():
    for value in (None, 0, "text", [], object()):
        assert await resolve(value) is value


async def test_resolve_awaits_coroutines_futures_tasks_and_objects():
    async def later() -> str:
        await asyncio.sleep(0)
        return "later"

    class Awaitable:
        def __await__(self) -> Any:
            return later().__await__()

    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    done.set_result("future")
    assert await resolve(later()) == "later"
    assert await resolve(asyncio.create_task(later())) == "later"
    assert await resolve(done) == "future"
    assert await resolve(Awaitable()) == "later"


async def test_resolve_raises_what_the_awaitable_raises():
    async def fail() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await resolve(fail())


async def test_resolve_awaits_once_so_that_a_coroutine_in_a_coroutine_is_the_callers():
    async def inner() -> int:
        return 1

    async def outer() -> Any:
        return inner()

    left = await resolve(outer())
    assert await left == 1


async def test_a_plain_value_is_resolved_without_giving_way_to_others():
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "other")
    await resolve(5)
    assert turns == []


def test_async_functions_and_objects_that_act_like_them_are_told_from_sync_ones():
    async def plain() -> None: ...

    class Callable:
        async def __call__(self) -> None: ...

        async def method(self) -> None: ...

    class SyncCallable:
        def __call__(self) -> None: ...

    assert is_async(plain)
    assert is_async(Callable())
    assert is_async(Callable().method)
    assert is_async(partial(plain))
    for sync in (print, len, lambda: None, SyncCallable(), partial(print), str, Callable, 5, None):
        assert not is_async(sync), sync


# wait_through_cancel


async def test_outlasting_a_future_that_is_done_returns_at_once():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_result(1)
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "other")
    await wait_through_cancel(future)
    assert turns == []


async def test_a_future_that_fails_or_is_cancelled_is_done_and_its_error_is_the_owners():
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[int] = loop.create_future()
    loop.call_soon(failed.set_exception, LookupError("owner's"))
    await wait_through_cancel(failed)
    with pytest.raises(LookupError):
        failed.result()
    cancelled: asyncio.Future[int] = loop.create_future()
    loop.call_soon(cancelled.cancel)
    await wait_through_cancel(cancelled)
    assert cancelled.cancelled()


async def test_many_cancellations_are_outlasted_counted_and_the_last_is_raised():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    counted: list[int] = []
    waiter = asyncio.create_task(wait_through_cancel(future, cancelled=lambda: counted.append(1)))
    for number in range(5):
        await asyncio.sleep(0)
        waiter.cancel(f"number {number}")
    await asyncio.sleep(0)
    assert len(counted) == 5
    assert not waiter.done()
    assert not future.done(), "the future itself is never cancelled"
    future.set_result(1)
    with pytest.raises(asyncio.CancelledError, match="number 4"):
        await waiter
    assert waiter.cancelled()


async def test_a_cancellation_in_the_step_in_which_the_future_is_done_is_still_raised():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(wait_through_cancel(future))
    await asyncio.sleep(0)
    future.set_result(1)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter


async def test_a_cancellation_before_the_first_step_is_raised():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(wait_through_cancel(future))
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert not future.done()


async def test_a_timeout_ends_the_wait_quietly_and_leaves_the_future_alone():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    earlier: list[None] = []
    asyncio.get_running_loop().call_later(0.02, earlier.append, None)
    await wait_through_cancel(future, timeout=0.03)
    assert earlier
    assert not future.done()
    for none_left in (0, -1.0):
        await wait_through_cancel(future, timeout=none_left)


async def test_cancellations_do_not_make_the_timeout_longer():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(wait_through_cancel(future, timeout=0.1))
    while not waiter.done():
        await asyncio.sleep(0.01)
        waiter.cancel()
    assert waiter.cancelled()


async def test_what_the_cancellation_callback_does_may_end_the_wait():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(wait_through_cancel(future, cancelled=lambda: future.set_result(1)))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert future.result() == 1


async def test_an_outlasted_cancellation_works_inside_a_timeout_block():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.05, future.set_result, 1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await wait_through_cancel(future)
    assert future.done()


async def test_outlast_leaves_no_callback_on_the_future():
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    await wait_through_cancel(future, timeout=0.001)
    waiter = asyncio.create_task(wait_through_cancel(future, timeout=0.01))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait([waiter])
    assert not future._callbacks  # type: ignore[attr-defined]


# closing and close


class Closable:
    def __init__(self, fails: bool = False) -> None:
        self.closed = 0
        self.fails = fails

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1
        if self.fails:
            raise LookupError("cannot close")


async def test_a_stream_is_closed_at_the_end_of_its_block_also_on_an_error_and_a_cancellation():
    plain, failed, cancelled = Closable(), Closable(), Closable()
    async with closing(plain) as given:
        assert given is plain
        assert not plain.closed
    with pytest.raises(ValueError, match="inside"):
        async with closing(failed):
            raise ValueError("inside")

    async def wait() -> None:
        async with closing(cancelled):
            await asyncio.sleep(10)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (plain.closed, failed.closed, cancelled.closed) == (1, 1, 1)


async def test_what_cannot_be_closed_need_not_be():
    async with closing(iter([1])) as stream:
        assert next(stream) == 1
    await close(object())
    await close(None)


async def test_an_error_in_closing_is_raised_with_the_one_before_it():
    with pytest.raises(LookupError, match="cannot close") as caught:
        async with closing(Closable(fails=True)):
            raise ValueError("first")
    assert isinstance(caught.value.__context__, ValueError)


async def test_closing_a_generator_runs_its_finally():
    ended: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            ended.append("yes")

    async with closing(numbers()) as stream:
        async for _ in stream:
            break
    assert ended == ["yes"]
    await close(stream)
    assert ended == ["yes"], "closing twice does nothing"


# start_task and started


async def test_a_task_cancelled_before_its_first_step_is_already_inside_its_try():
    seen: list[str] = []

    async def body() -> None:
        seen.append("begun")
        try:
            await started()
            seen.append("went on")
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append("cleaned up")

    task = start_task(asyncio.get_running_loop(), body())
    assert seen == ["begun"]
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert seen == ["begun", "cancelled", "cleaned up"]


async def test_a_task_that_is_left_alone_goes_on_and_has_its_name():
    async def body() -> None:
        await started()
        names.append(asyncio.current_task().get_name())  # type: ignore[union-attr]

    names: list[str] = []
    await start_task(asyncio.get_running_loop(), body(), "a-name")
    assert names == ["a-name"]


async def test_a_body_that_fails_before_started_fails_where_the_task_is_made():
    async def body() -> None:
        raise LookupError("early")

    with pytest.raises(LookupError, match="early"):
        start_task(asyncio.get_running_loop(), body())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
async def test_a_task_of_an_eager_factory_is_inside_its_try_too():
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    seen: list[str] = []

    async def body() -> None:
        try:
            await started()
            seen.append("went on")
            await asyncio.sleep(10)
        finally:
            seen.append("cleaned up")

    try:
        task = start_task(loop, body())
        assert seen == ["went on"], "an eager task takes its first step where it is made"
        task.cancel()
        await asyncio.wait([task])
    finally:
        loop.set_task_factory(None)
    assert task.cancelled()
    assert seen == ["went on", "cleaned up"]


async def test_a_factory_that_takes_the_first_step_at_once_is_no_obstacle():
    """What an eager factory does, on any Python: the coroutine is stepped before the task is there."""
    loop = asyncio.get_running_loop()
    seen: list[str] = []

    async def body() -> None:
        try:
            await started()
            seen.append("went on")
        finally:
            seen.append("cleaned up")

    def eager(loop: Any, coroutine: Any, **options: Any) -> Any:
        try:
            coroutine.send(None)
        except StopIteration:
            pass
        return asyncio.Task(_nothing(), loop=loop)

    async def _nothing() -> None: ...

    loop.set_task_factory(eager)
    try:
        await start_task(loop, body())
    finally:
        loop.set_task_factory(None)
    assert seen == ["went on", "cleaned up"]


# Turnstile


def test_a_turnstile_lets_one_in():
    gate = Turnstile()
    assert not gate.is_taken
    assert gate.enter()
    assert gate.is_taken
    assert not gate.enter()
    gate.leave()
    assert not gate.is_taken
    assert gate.enter()


async def test_whoever_waits_goes_on_when_it_is_free_and_at_once_if_it_is():
    gate = Turnstile()
    await gate.wait()
    gate.enter()
    waiters = [asyncio.create_task(gate.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiters)
    gate.leave()
    await asyncio.wait_for(asyncio.gather(*waiters), 20)


async def test_a_waiter_is_woken_though_somebody_else_enters_first():
    gate = Turnstile()
    gate.enter()
    waiter = asyncio.create_task(gate.wait())
    await asyncio.sleep(0)
    gate.leave()
    assert gate.enter()
    await asyncio.wait_for(waiter, 20)
    assert gate.is_taken, "waiting takes nothing"


async def test_a_cancelled_waiter_does_not_keep_the_others_waiting():
    gate = Turnstile()
    gate.enter()
    gone, stays = asyncio.create_task(gate.wait()), asyncio.create_task(gate.wait())
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    gate.leave()
    await asyncio.wait_for(stays, 20)
    assert gone.cancelled()


def test_a_waiter_whose_event_loop_was_closed_is_no_obstacle():
    gate = Turnstile()
    gate.enter()
    loop = asyncio.new_event_loop()
    waiter = gate.wait()

    async def begin() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(waiter)), 0.01)

    loop.run_until_complete(begin())
    for task in asyncio.all_tasks(loop):
        task.cancel()
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    gate.leave()
    assert gate.enter()
    gc.collect()


def test_threads_and_event_loops_lose_no_wake_up_and_never_meet_inside():
    """Every thread has a loop of its own, waits for the turnstile, goes in, and leaves again, many times."""
    gate, inside, passages = Turnstile(), [0], [0]
    rounds, met = (400 if MORE else 60), []

    async def pass_through() -> None:
        for _ in range(rounds):
            while not gate.enter():
                await asyncio.wait_for(gate.wait(), 20)
            inside[0] += 1
            if inside[0] != 1:
                met.append(inside[0])
            if random.random() < 0.5:
                await asyncio.sleep(0)
            inside[0] -= 1
            passages[0] += 1
            gate.leave()

    async def several() -> None:
        await asyncio.gather(*[pass_through() for _ in range(3)])

    threads = [threading.Thread(target=lambda: asyncio.run(several()), name=f"gate-{n}") for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a wake-up was lost"
    assert met == []
    assert passages[0] == rounds * 3 * 4
    assert not gate.is_taken


async def test_a_turnstile_may_be_left_while_its_lock_is_held_by_the_same_thread():
    """A stream that the garbage collector drops in the middle of `enter` leaves its own turnstile."""
    from swink.system import aio as waiting

    gate = Turnstile()
    gate.enter()
    with waiting._lock:
        gate.leave()
    assert not gate.is_taken


# call_later


async def test_a_timer_runs_in_the_callers_context_with_its_values():
    seen: list[Any] = []
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    variable.set("mine")
    done = asyncio.Event()

    def note(*values: Any) -> None:
        seen.append((variable.get(), *values))
        done.set()

    call_later(asyncio.get_running_loop(), 0.001, note, 1, 2)
    variable.set("changed since")
    await asyncio.wait_for(done.wait(), 20)
    assert seen == [("mine", 1, 2)]


async def test_a_cancelled_timer_holds_neither_context_variables_nor_its_values():
    class Heavy:
        pass

    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("heavy")

    def make() -> tuple[Any, weakref.ref[Any], weakref.ref[Any]]:
        kept, given = Heavy(), Heavy()
        variable.set(kept)
        timer = call_later(asyncio.get_running_loop(), 3600, print, given)
        return timer, weakref.ref(kept), weakref.ref(given)

    timer, kept, given = contextvars.copy_context().run(make)
    gc.collect()
    assert kept() is not None
    timer.cancel()
    gc.collect()
    assert kept() is None, "the handle stays in the loop's heap until its time; what it held must not"
    assert given() is None


# raise_soon


def end_of(body: Callable[[], Any]) -> BaseException | None:
    try:
        asyncio.run(body())
    except BaseException as error:
        return error
    return None


def test_what_ends_the_program_is_raised_between_two_steps_of_the_event_loop():
    steps: list[str] = []

    async def body() -> None:
        raise_soon(SystemExit(3))
        steps.append("this step is finished")
        await asyncio.sleep(10)

    error = end_of(body)
    assert isinstance(error, SystemExit)
    assert error.code == 3
    assert steps == ["this step is finished"]


def test_a_loop_that_is_just_being_ended_is_not_ended_again():
    steps: list[str] = []

    async def body() -> None:
        try:
            raise_soon(KeyboardInterrupt())
            await asyncio.sleep(10)
        finally:
            raise_soon(SystemExit(4))  # while the loop shuts down
            await asyncio.sleep(0)
            steps.append("cleaned up")

    assert isinstance(end_of(body), KeyboardInterrupt)
    assert steps == ["cleaned up"]


def test_without_an_event_loop_it_is_raised_here_without_a_misleading_context():
    with pytest.raises(SystemExit) as caught:
        raise_soon(SystemExit(5))
    assert caught.value.__suppress_context__


def test_two_event_loops_are_ended_each_by_itself():
    async def body() -> None:
        raise_soon(SystemExit(6))
        await asyncio.sleep(10)

    assert isinstance(end_of(body), SystemExit)
    assert isinstance(end_of(body), SystemExit)
