"""A run whose process is killed in the middle of a tool is finished by another process, and nothing is paid twice."""

import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counts import MORE, in_cells
from tests.pages import ROOT
from tests.patience import wait_until

pytest.importorskip("dbos")
if sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
    pytest.skip("DBOS on this Python needs SQLite 3.42", allow_module_level=True)

NUMBERS = itertools.count()
PATIENCE = 100.0
"""Seconds; only what hangs takes them."""


class Children:
    """Processes with a durable agent, forked from one that has imported everything."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.memory.dbos_children"]
        pipe = subprocess.PIPE
        self._parent = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        self._running: set[int] = set()

    def start(self, **order: Any) -> int:
        """The process id of a new child."""
        child = self._tell(order)
        self._running.add(child)
        return child

    def wait(self, child: int) -> int:
        """The exit code of a child that has ended, or will soon."""
        code = self._tell({"wait": child})
        self._running.discard(child)
        return code

    def close(self) -> None:
        """End what a failed test has left."""
        for child in self._running:
            os.kill(child, signal.SIGKILL)
        self._parent.communicate()

    def _tell(self, order: dict[str, Any]) -> int:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def order(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Where the engine and the sessions are kept."""
    if request.param == "sqlite":
        engine, sessions = f"sqlite:///{tmp_path}/engine.sqlite", str(tmp_path / "sessions.db")
    else:
        psycopg = pytest.importorskip("psycopg")
        server: str = request.getfixturevalue("postgres")
        name = f"dbos_{os.getpid()}_{next(NUMBERS)}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        engine = sessions = server.replace("/postgres?", f"/{name}?")
        assert name in engine
    return {"engine": engine, "sessions": sessions, "log": str(tmp_path / "log")}


def acts(log: Path) -> list[str]:
    """What the tools have done so far."""
    return sorted(log.read_text().splitlines()) if log.exists() else []


def test_another_process_finishes_what_a_killed_one_began(
    children: Children, order: dict[str, Any], tmp_path: Path
):
    log = tmp_path / "log"
    killed = children.start(**order, name="killed", hang=["look bill", "pay rent"])
    wait_until(lambda: acts(log) == ["look bill", "pay gas", "pay rent"])
    os.kill(killed, signal.SIGKILL)
    assert children.wait(killed) == -signal.SIGKILL
    assert children.wait(children.start(**order, name="result", hang=[])) == 0
    told = log.with_suffix(".result").read_text()
    # What had ended is known; what was interrupted is not repeated, unless it only reads.
    assert told.startswith("paid gas; outcome unknown")
    assert told.endswith("saw bill")
    assert acts(log) == ["look bill", "look bill", "pay gas", "pay rent"]


def test_a_process_that_was_thought_dead_changes_nothing(children: Children, tmp_path: Path):
    log = tmp_path / "log"
    engine, sessions = f"sqlite:///{tmp_path}/engine.sqlite", str(tmp_path / "sessions.db")
    order = {"engine": engine, "sessions": sessions, "log": str(log)}
    slow = children.start(**order, name="slow", hang=["pay rent"])
    wait_until(lambda: acts(log) == ["look bill", "pay gas", "pay rent"])
    # A second process begins: DBOS takes it for the first one, started again.
    assert children.wait(children.start(**order, name="result", hang=[])) == 0
    log.with_suffix(".free").touch()  # and now the tool returns
    assert children.wait(slow) == 0
    told = log.with_suffix(".result").read_text()
    assert told.startswith("paid gas; outcome unknown")
    assert log.with_suffix(".slow").read_text() == told
    assert [act for act in acts(log) if act.startswith("pay")] == ["pay gas", "pay rent"]


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="its rule is shown once by the test that kills in a tool")
@in_cells("seed", range(4), every=2)
def test_whenever_a_process_is_killed_nothing_is_paid_twice(children: Children, tmp_path: Path, seed: int):
    log = tmp_path / "log"
    engine, sessions = f"sqlite:///{tmp_path}/engine.sqlite", str(tmp_path / "sessions.db")
    order = {"engine": engine, "sessions": sessions, "log": str(log), "hang": []}
    moment = random.Random(seed)
    for number in range(8):
        child = children.start(**order, name=f"try{number}")
        # DBOS cannot be killed while it makes its tables.
        wait_until(log.with_suffix(".ready").exists)
        time.sleep(moment.uniform(0, 2.5))  # any moment will do
        os.kill(child, signal.SIGKILL)
        children.wait(child)
    assert children.wait(children.start(**order, name="result")) == 0
    paid = [act for act in acts(log) if act.startswith("pay")]
    assert len(paid) == len(set(paid))
    told = log.with_suffix(".result").read_text().split("; ", 1)
    assert told[0] == "paid gas" or told[0].startswith("outcome unknown")
