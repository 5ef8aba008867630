"""Every test fails on what it leaves behind: unhandled errors in the event loop, and threads of tools."""

import asyncio
import faulthandler
import gc
import logging
import re
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from tests import counts as counts
from tests.clock import leave_out_the_wait_for_a_core
from tests.isolation import leave_the_user_out

leave_the_user_out()
leave_out_the_wait_for_a_core()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a script: what the tests start must hear Ctrl-C all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Started by nohup: a handler that does nothing stays here, and what the tests start has none.
    signal.signal(signal.SIGHUP, lambda number, frame: None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Ten thousand tests are no garbage: who looks for leaks later need not look through them.

    Python's usual thresholds would spend one second in twenty on looking; these are larger.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.set_threshold(20_000, 20, 20)
        gc.freeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Every property is tried more often by `make test-more`, which alone starts a browser."""
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("more")
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker("more")
        if not counts.MORE:
            item.add_marker(pytest.mark.skip(reason="make test-more runs it"))


class Watch:
    """Ends a worker whose test swallows the exception of its timeout: the run goes on and names it.

    It is set again from time to time: set for every test, as pytest would, it is 20,000 threads to wait for.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._limit = 180 + float(config.getoption("timeout") or config.getini("timeout"))
        self._output = config.stash[fault_handler_stderr_fd_key]
        self._due = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        if time.monotonic() > self._due:
            faulthandler.dump_traceback_later(self._limit, exit=True, file=self._output)
            self._due = time.monotonic() + 60

    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)  # after pytest's own, which knows where to write
def pytest_configure(config: pytest.Config) -> None:
    if fault_handler_stderr_fd_key in config.stash:
        config.pluginmanager.register(Watch(config))


@pytest.fixture(autouse=True, scope="module")
def small_heap() -> None:
    """What the modules before have left in memory is not looked through again and again by the tests of this one."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's, with the same names, which it finds by looking through all directories that there are."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(_numbers[name])}"
    path.mkdir(mode=0o700)
    return path


_numbers: defaultdict[str, Iterator[int]] = defaultdict(count)
_unhandled: list[dict[str, Any]] = []
asyncio.BaseEventLoop.call_exception_handler = lambda loop, context: _unhandled.append(context)  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, Any, Any]:
    """Nothing is left behind. No fixture looks: there are 20,000 tests, and a hook costs a tenth of one."""
    try:
        result = yield
        assert not _unhandled, f"unhandled in the event loop: {_unhandled}"
        for _ in range(1_000):
            left = [thread.name for thread in threading.enumerate() if thread.name.startswith("swink-")]
            if not left:
                return result
            time.sleep(0.02)
        pytest.fail(f"threads left behind: {left}")
    finally:
        _unhandled.clear()
        put_back_logging()


@pytest.fixture
def quick_turns() -> Iterator[None]:
    """Threads take turns often: how many rounds the event loop gets is not left to the interpreter's pace."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def put_back_logging() -> None:
    """A command that a test runs in this process sets up the log of the process, and changes its records."""
    for handler in [*logging.root.handlers]:
        if type(handler) is logging.StreamHandler:
            logging.root.removeHandler(handler)
            logging.root.setLevel(logging.WARNING)
            logging.getLogger("asyncio").setLevel(logging.NOTSET)
