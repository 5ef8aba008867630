"""kill -9 at any moment: what an append had acknowledged is there, and nothing is there by half."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.counts import MORE

from swink import UserMessage
from swink.errors import SessionConflict
from swink.memory import JsonlStore, SqliteStore, Store

ROOT = Path(__file__).parents[2]


@pytest.mark.more
@pytest.mark.parametrize("store", ["jsonl", "sqlite"])
def test_no_acknowledged_turn_is_missing_after_a_kill(store: str, tmp_path: Path):
    times = 100 if MORE else 8
    command = [sys.executable, "-m", "tests.memory.crashing", store, str(tmp_path), str(times)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["problems"] == []
    assert result["killed"] == times


_LATE = """
import sys
from swink import UserMessage
from swink.errors import SessionConflict
from swink.memory import JsonlStore, SqliteStore
kind, place, id = sys.argv[1:]
store = {"jsonl": JsonlStore, "sqlite": SqliteStore}[kind](place).sync
session = store.open(id)
print("open", flush=True)
sys.stdin.readline()
try:
    session.append([UserMessage("late")])
except SessionConflict as error:
    print("conflict", [message.text for message in session.messages], flush=True)
    session = store.open(id)
    session.append([UserMessage("late")])
store.close()
"""


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_of_two_processes_one_wins_and_the_other_keeps_its_text(kind: str, tmp_path: Path):
    place = tmp_path / "sessions"
    store: Store = JsonlStore(place) if kind == "jsonl" else SqliteStore(place)
    session = store.sync.create()
    session.append([UserMessage("first")])
    command = [sys.executable, "-c", _LATE, kind, str(place), session.id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        session.append([UserMessage("second")])
        other.stdin.write("go\n")
        other.stdin.flush()
        assert other.stdout.readline() == "conflict ['first']\n"
        assert other.wait(60) == 0
    with pytest.raises(SessionConflict):
        session.append([UserMessage("third")])
    assert [message.text for message in store.sync.open(session.id).messages] == ["first", "second", "late"]
    store.sync.close()
