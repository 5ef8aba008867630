"""Checkpoints of conversations: the newest few are kept, and another process goes on from them."""

import asyncio
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from swink import Agent
from swink.errors import InvalidInput, SessionError, SessionNotFound, SessionUnreadable
from swink.memory import (
    Checkpoints,
    FileCheckpoints,
    PostgresCheckpoints,
    SqliteCheckpoints,
    SqliteStore,
    files,
)
from swink.messages import UserMessage
from swink.policies import Checkpoint
from swink.testing import ScriptedModel

NAMES = {"File": FileCheckpoints, "Sqlite": SqliteCheckpoints, "Postgres": PostgresCheckpoints}


@pytest.fixture(params=list(NAMES))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "Postgres":
        dsn = request.getfixturevalue("postgres")
        return f"PostgresCheckpoints({dsn!r}, 'talk', keep=3, schema='test_{token_hex(8)}')"
    return f"{request.param}Checkpoints({str(tmp_path / 'place')!r}, 'talk', keep=3)"


def opened(address: str) -> Checkpoints:
    return eval(address, {cls.__name__: cls for cls in NAMES.values()})


@pytest.fixture
def checkpoints(address: str) -> Iterator[Checkpoints]:
    checkpoints = opened(address)
    yield checkpoints
    checkpoints.sync.close()


def test_the_newest_few_are_kept(checkpoints: Checkpoints):
    assert checkpoints.sync.newest() is None
    assert checkpoints.sync.list() == []
    for number in range(5):
        checkpoints.sync.save({"turn": number})
    assert checkpoints.sync.newest() == {"turn": 4}
    found = checkpoints.sync.list()
    assert [checkpoints.sync.load(saved.number) for saved in found] == [
        {"turn": 4},
        {"turn": 3},
        {"turn": 2},
    ]
    assert found[0].saved >= found[-1].saved > 1e9
    with pytest.raises(SessionNotFound, match="no checkpoint 1 of talk"):
        checkpoints.sync.load(1)


def test_conversations_do_not_mix(checkpoints: Checkpoints):
    other = checkpoints.of("another talk")
    checkpoints.sync.save({"mine": 1})
    for number in range(5):
        other.sync.save({"theirs": number})
    assert checkpoints.sync.newest() == {"mine": 1}
    assert len(other.sync.list()) == 3
    with pytest.raises(SessionNotFound):
        checkpoints.sync.load(other.sync.list()[0].number + 1)


def test_what_is_saved_is_read_back_as_it_was(checkpoints: Checkpoints):
    data = {
        "a": [1, 2.5, None, True, "é\0 😀"],
        "inf": float("inf"),
        "$number": {"$number": "x"},
        "big": 10**400,
    }
    checkpoints.sync.save(data)
    assert checkpoints.sync.newest() == data


async def go_on(address: str) -> None:
    """What another process does."""
    async with opened(address) as checkpoints:
        agent = Agent.restore(await checkpoints.newest() or {}, stream_fn=ScriptedModel(["Madrid."]))
        await agent.run("And of Spain?")
        await checkpoints.save(agent.checkpoint())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_policy_saves_every_turn_and_another_process_goes_on(checkpoints: Checkpoints, address: str):
    agent = Agent("test:m", stream_fn=ScriptedModel(["Paris."]), policies=[Checkpoint(checkpoints)])
    asyncio.run(agent.run("What is the capital of France?"))
    child = os.fork()
    if not child:
        try:
            asyncio.run(go_on(address))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    restored = Agent.restore(checkpoints.sync.newest() or {}, stream_fn=ScriptedModel([]))
    assert [message.text for message in restored.messages] == [
        "What is the capital of France?",
        "Paris.",
        "And of Spain?",
        "Madrid.",
    ]
    assert len(checkpoints.sync.list()) == 2


def test_savers_at_the_same_time_lose_nothing(checkpoints: Checkpoints, address: str):
    others = [opened(address) for _ in range(3)]
    threads = [
        threading.Thread(target=other.sync.save, args=({"by": place},)) for place, other in enumerate(others)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [checkpoints.sync.load(saved.number) for saved in checkpoints.sync.list()]
    assert sorted(data["by"] for data in found) == [0, 1, 2]
    for other in others:
        other.sync.close()


@pytest.mark.parametrize("keep", [0, -1, 1.5, True, None])
def test_keeping_none_is_refused(tmp_path: Path, keep: Any):
    with pytest.raises(InvalidInput, match="keep="):
        FileCheckpoints(tmp_path, keep=keep)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a:b", "\n"])
def test_a_name_that_is_no_plain_one_is_refused(tmp_path: Path, name: str):
    with pytest.raises(InvalidInput):
        FileCheckpoints(tmp_path, name)
    with pytest.raises(InvalidInput):
        FileCheckpoints(tmp_path, "good").of(name)


@pytest.mark.parametrize("length", [0, 1, 20, 59])
def test_a_torn_newest_falls_back_to_the_one_before(
    tmp_path: Path, length: int, caplog: pytest.LogCaptureFixture
):
    checkpoints = FileCheckpoints(tmp_path, "talk")
    checkpoints.sync.save({"turn": 1})
    checkpoints.sync.save({"turn": 2, "text": "so long that there is something to cut off"})
    newest = tmp_path / "talk" / "00000002.json"
    data = newest.read_bytes()
    newest.write_bytes(data[:length])
    assert checkpoints.sync.newest() == {"turn": 1}
    assert "checkpoint 2 of talk is damaged" in caplog.text
    with pytest.raises(SessionUnreadable, match="checkpoint 2 of talk is damaged"):
        checkpoints.sync.load(2)
    checkpoints.sync.save({"turn": 3})
    assert checkpoints.sync.newest() == {"turn": 3}


def test_files_are_private_and_nothing_else_is_left(tmp_path: Path):
    checkpoints = FileCheckpoints(tmp_path / "place", "talk", keep=2)
    for number in range(4):
        checkpoints.sync.save({"turn": number})
    place = tmp_path / "place" / "talk"
    assert sorted(file.name for file in place.iterdir()) == ["00000003.json", "00000004.json"]
    assert json.loads((place / "00000004.json").read_text()) == {"turn": 3}
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()} == {0o600}
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_file_is_synced_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []
    sync, sync_directory, link = files.sync, files.sync_directory, os.link
    monkeypatch.setattr(files, "sync", lambda fd: (done.append("sync"), sync(fd)))
    monkeypatch.setattr(files, "sync_directory", lambda path: (done.append("names"), sync_directory(path)))
    monkeypatch.setattr(os, "link", lambda old, new: (done.append("link"), link(old, new)))
    FileCheckpoints(tmp_path, "talk").sync.save({})
    assert done == ["sync", "link", "names"]


def test_a_file_that_cannot_be_written_is_told_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    checkpoints = FileCheckpoints(tmp_path, "talk")
    checkpoints.sync.save({"turn": 1})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync", full)
        with pytest.raises(SessionError, match="No space left on device; make room"):
            checkpoints.sync.save({"turn": 2})
    assert checkpoints.sync.newest() == {"turn": 1}
    assert [file.name for file in (tmp_path / "talk").iterdir()] == ["00000001.json"]


def test_a_place_that_is_no_directory_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    checkpoints = FileCheckpoints(tmp_path / "file")
    for call in (checkpoints.sync.newest, lambda: checkpoints.sync.save({})):
        with pytest.raises(SessionError, match="choose another directory"):
            call()


def test_one_sqlite_file_has_sessions_and_checkpoints(tmp_path: Path):
    store, checkpoints = SqliteStore(tmp_path / "db"), SqliteCheckpoints(tmp_path / "db", "talk")
    store.sync.create(id="x").append([UserMessage("hello")])
    checkpoints.sync.save({"turn": 1})
    assert checkpoints.sync.newest() == {"turn": 1}
    assert [meta.id for meta in store.sync.list()] == ["x"]
    store.sync.close()
    checkpoints.sync.close()
