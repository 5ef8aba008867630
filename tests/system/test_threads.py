"""Blocking work off the event loop: in daemon threads that are used again, bounded, and waited for by nobody."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import swink.agent.engine.laststeps as run_module
from swink import Agent
from swink.errors import HookFailed, NotSaved
from swink.system import threads
from swink.system.threads import AT_ONCE, Serial, in_thread, run_to_end, start_thread
from swink.testing import ScriptedModel

SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="")


async def test_a_function_in_a_thread_sees_the_callers_context_and_its_exceptions_come_back() -> None:
    def look(value: int) -> tuple[int, str, bool]:
        return value, SEEN.get(), threading.current_thread().daemon

    def stop() -> None:
        raise StopIteration

    SEEN.set("here")
    assert await in_thread(look, value=1) == (1, "here", True)
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(stop)


async def test_calls_one_after_the_other_use_one_thread() -> None:
    used = {await in_thread(threading.get_ident) for _ in range(50)}
    assert len(used) < 10


async def test_many_calls_at_once_use_a_bounded_number_of_threads() -> None:
    at_once: list[int] = []
    most: list[int] = []

    def work() -> None:
        at_once.append(1)
        most.append(len(at_once))
        time.sleep(0.001)
        at_once.pop()

    await asyncio.gather(*[in_thread(work) for _ in range(1000)])
    assert max(most) <= AT_ONCE + 5  # one more for each second in which none ended


async def test_when_all_threads_are_stuck_others_still_run() -> None:
    release = threading.Event()
    stuck = [asyncio.create_task(in_thread(release.wait, 100)) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await in_thread(lambda: "done") == "done"
    release.set()
    await asyncio.gather(*stuck)


async def test_a_cancelled_call_does_not_wait_for_its_thread() -> None:
    release = threading.Event()
    task = asyncio.create_task(in_thread(release.wait, 100))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()


async def test_calls_of_one_owner_run_in_order_and_never_concurrently() -> None:
    serial, order = Serial(), []

    def work(number: int) -> None:
        order.append(number)
        time.sleep(0.001)
        order.append(number)

    calls = [asyncio.ensure_future(serial.call(work, number)) for number in range(30)]
    await asyncio.sleep(0)
    calls[3].cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert order == [number for number in range(30) for _ in range(2)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_not_wait_for_its_parents_threads() -> None:
    ready = threading.Event()
    start_thread(ready.set)
    assert ready.wait(60)
    time.sleep(0.05)  # the thread is idle
    child = os.fork()
    if child == 0:
        done = threading.Event()
        start_thread(done.set)
        os._exit(0 if done.wait(60) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_was_forked_during_a_call_of_an_owner_can_call_for_it_and_leaves_its_parents_calls_alone() -> (
    None
):
    owner, begun, may_end, ran = Serial(), threading.Event(), threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        may_end.wait(60)

    owner.start(run)
    assert begun.wait(60)
    owner.start(ran.set)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        owner.start(done.set)
        os._exit(0 if done.wait(60) and not ran.is_set() else 1)
    assert os.waitpid(child, 0)[1] == 0
    may_end.set()
    assert ran.wait(60)


def test_the_end_of_an_event_loop_waits_for_no_executor_and_no_deaf_task() -> None:
    release = threading.Event()
    deaf: list[asyncio.Task[None]] = []

    async def listen() -> None:
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                continue

    async def main() -> str:
        deaf.append(asyncio.create_task(listen()))
        asyncio.get_running_loop().run_in_executor(None, release.wait, 100)
        return await asyncio.to_thread(lambda: "done")

    assert run_to_end(main()) == "done"
    assert not deaf[0].done()
    deaf.clear()
    release.set()


class Session:
    """One with a plain append."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.state: dict[str, Any] = {}
        self.threads: set[int] = set()

    def append(self, messages: Sequence[Any]) -> None:
        self.threads.add(threading.get_ident())
        self.messages.extend(messages)


async def test_a_session_may_be_synchronous_and_is_called_off_the_event_loop() -> None:
    session = Session()
    await Agent("test:model", stream_fn=ScriptedModel(["done"]), session=session).run("go")
    assert [message.role for message in session.messages] == ["user", "assistant"]
    assert threading.get_ident() not in session.threads


class Stuck(Session):
    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()
        self.begun: Callable[[], object] = int

    def append(self, messages: Sequence[Any]) -> None:
        self.begun()
        self.release.wait(100)


@pytest.mark.parametrize("abort", [False, True])
async def test_what_is_not_saved_by_the_deadline_or_after_an_abort_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, abort: bool
) -> None:
    for name in ("SAVE_LATE", "SAVE_LEAST", "SAVE_ABORTED"):
        monkeypatch.setattr(run_module, name, 0.05)
    session = Stuck()
    agent = Agent("test:model", stream_fn=ScriptedModel(["done"]), session=session)
    if abort:  # when the run has ended, and only its last save is left
        session.begun = partial(asyncio.get_running_loop().call_soon_threadsafe, agent.abort)
    with pytest.raises(NotSaved) as raised:
        async with asyncio.timeout(50):
            await agent.run("go", deadline=None if abort else 1)
    assert isinstance(raised.value, HookFailed)
    assert isinstance(raised.value, TimeoutError)
    assert "the end of a run was not saved" in caplog.text
    assert agent.messages[-1].text == "done"
    session.release.set()


UNHEARD = """
import asyncio, os, signal, threading, time
from swink.system.threads import run_to_end

def kill():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    while not waits.is_set():
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

async def main():
    waits.set()
    await asyncio.Event().wait()

waits = threading.Event()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
threading.Thread(target=kill).start()
try:
    run_to_end(main())
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_that_does_not_wake_the_event_loop_is_heard_all_the_same() -> None:
    # Here another thread gets it; one that comes between two instructions of the loop is the same.
    done = subprocess.run([sys.executable, "-c", UNHEARD], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr


def test_a_thread_holds_nothing_of_the_job_it_began_with() -> None:
    class Held:
        def work(self) -> None:
            ended.set()

    def go_on() -> None:
        began.set()
        stay.wait(60)

    ended, began, stay = threading.Event(), threading.Event(), threading.Event()
    idle, threads._idle[:] = list(threads._idle), []  # so that the job gets a thread of its own
    try:
        held = Held()
        gone = weakref.ref(held)
        threads.start_thread(held.work)
        del held
        assert ended.wait(60)
        while not threads._idle:
            time.sleep(0.001)
        threads.start_thread(go_on)  # the same thread lives on
        assert began.wait(60)
        assert gone() is None
    finally:
        stay.set()
        threads._idle.extend(idle)
