"""Searching JSONL sessions: the index is only a help; whatever happens to it, what is there is found."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from swink import AssistantMessage, UserMessage
from swink.memory import JsonlStore, SyncStore, jsonlindex
from swink.messages import ToolCall
from swink.messages.records import Compaction, decode_record


@pytest.fixture
def store(tmp_path: Path) -> SyncStore:
    return JsonlStore(tmp_path).sync


def say(store: SyncStore, *texts: str) -> str:
    session = store.create()
    session.append([UserMessage(text) for text in texts])
    return session.id


def found(store: SyncStore, text: str, **filters: Any) -> list[tuple[str, int]]:
    return [(hit.session, hit.number) for hit in store.search(text, **filters)]


def test_new_messages_and_new_sessions_are_found_at_once(store: SyncStore):
    session = store.create("Rivers")
    assert found(store, "Danube") == []
    session.append([UserMessage("Where does the Danube end?")])
    assert found(store, "danube") == [(session.id, 0)]
    session.append([UserMessage("And the Danube's source?")])
    other = say(store, "Danube again")
    assert sorted(found(store, "danube")) == sorted([(session.id, 0), (session.id, 1), (other, 0)])
    (hit,) = store.search('"does the danube"')
    assert (hit.title, hit.role, hit.snippet) == ("Rivers", "user", "Where «does the Danube» end?")


def test_the_index_knows_the_place_of_each_message_that_was_appended_with_others(tmp_path: Path):
    store = JsonlStore(tmp_path).sync
    id = say(store, "danube", "rhine", "volga")
    assert found(store, "volga") == [(id, 2)]
    data = (tmp_path / f"{id}.jsonl").read_bytes()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as index:
        places = index.execute("SELECT start, length FROM messages ORDER BY number").fetchall()
    texts = [decode_record(data[start : start + length]).message.text for start, length in places]
    assert texts == ["danube", "rhine", "volga"]


def test_a_deleted_session_is_not_found(store: SyncStore):
    id = say(store, "danube")
    assert found(store, "danube") == [(id, 0)]
    store.delete(id)
    assert found(store, "danube") == []


def test_a_session_that_was_rewritten_is_read_again(store: SyncStore, tmp_path: Path):
    id, other = say(store, "danube"), say(store, "the rhine and more words, so that lines have other places")
    assert found(store, "rhine") == [(other, 0)]
    (tmp_path / f"{other}.jsonl").replace(tmp_path / f"{id}.jsonl")
    assert found(store, "rhine") == [(id, 0)]
    assert found(store, "danube") == []


def test_a_file_that_was_edited_in_place_is_read_again(store: SyncStore, tmp_path: Path):
    id = say(store, "danube", "second")
    session = store.open(id)
    assert found(store, "second") == [(id, 1)]
    path = tmp_path / f"{id}.jsonl"
    with path.open("r+b") as file:  # the same inode, and longer: it looks as if it was appended to
        text = file.read().replace(b"danube", b"the long river").replace(b',"crc":"', b',"was":"')
        file.seek(0)
        file.write(text)
    session = store.open(id)
    session.append([UserMessage("third")])
    assert found(store, "second") == [(id, 1)]
    assert found(store, "third") == [(id, 2)]


@pytest.mark.parametrize("damage", ["garbage", "empty", "other version", "other tables", "cut"])
def test_a_damaged_index_is_built_again(store: SyncStore, tmp_path: Path, damage: str):
    id = say(store, "danube")
    assert found(store, "danube") == [(id, 0)]
    index = tmp_path / "index.sqlite"
    match damage:
        case "garbage":
            index.write_bytes(os.urandom(20_000))
        case "empty":
            index.write_bytes(b"")
        case "cut":
            index.write_bytes(index.read_bytes()[:9000])
        case "other version":
            connection = sqlite3.connect(index)
            connection.execute("PRAGMA user_version = 99")
            connection.close()
        case _:
            index.unlink()
            connection = sqlite3.connect(index)
            connection.execute("CREATE TABLE sessions (x)")
            connection.close()
    assert found(store, "danube") == [(id, 0)]
    assert index.read_bytes().startswith(b"SQLite format 3")
    assert index.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("trouble", ["no fts5", "no sqlite3", "locked", "full"])
def test_without_an_index_all_sessions_are_read(
    store: SyncStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
):
    id = say(store, "danube", "no", "the danube")

    def fail(*_: Any) -> Any:
        error = sqlite3.OperationalError("no such module: fts5" if trouble == "no fts5" else trouble)
        error.sqlite_errorcode = 1 if trouble == "no fts5" else sqlite3.SQLITE_FULL
        raise error

    if trouble == "no sqlite3":
        monkeypatch.setitem(__import__("sys").modules, "swink.memory.jsonlindex", None)
    elif trouble == "locked":
        monkeypatch.setattr(jsonlindex, "WAITS", 0.01)
        lock = (tmp_path / "index.sqlite.lock").open("ab")
        jsonlindex.locked(lock).__enter__()
    else:
        monkeypatch.setattr(jsonlindex.JsonlIndex, "_update", fail)
    assert found(store, "danube") == [(id, 2), (id, 0)]
    if trouble == "locked":
        lock.close()


def test_many_deleted_messages_leave_the_index(
    store: SyncStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jsonlindex, "_GONE", 10)
    gone = say(store, *[f"danube {number}" for number in range(30)])
    assert len(found(store, "danube", limit=50)) == 30
    store.delete(gone)
    id = say(store, "danube")
    assert found(store, "danube") == [(id, 0)]
    with sqlite3.connect(tmp_path / "index.sqlite") as index:
        assert index.execute("SELECT max(seq) FROM sqlite_sequence").fetchone() == (1,)
    index.close()


def test_the_index_stays_while_fewer_than_half_of_its_messages_are_gone(
    store: SyncStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jsonlindex, "_GONE", 10)
    say(store, *[f"danube {number}" for number in range(20)])
    gone = say(store, *[f"danube {number}" for number in range(10)])
    assert len(found(store, "danube", limit=50)) == 30
    store.delete(gone)
    assert len(found(store, "danube", limit=50)) == 20
    index = sqlite3.connect(tmp_path / "index.sqlite")
    assert index.execute("SELECT max(seq) FROM sqlite_sequence").fetchone() == (30,)
    index.close()


def test_what_was_compacted_away_is_found(store: SyncStore):
    session = store.create()
    session.append([UserMessage("danube"), UserMessage("rhine")])
    session.append([], records=[Compaction([1])])
    assert [message.text for message in session.messages] == ["rhine"]
    assert found(store, "danube") == [(session.id, 0)]


def test_calls_of_tools_are_found_by_their_arguments(store: SyncStore):
    session = store.create()
    call = ToolCall("1", "bash", {"command": "docker compose up", "more": [{"deep": "seafloor"}]})
    session.append([AssistantMessage([call], "test", "m", stop_reason="tool_use")])
    assert found(store, "compose") == found(store, "seafloor") == found(store, "bash") == [(session.id, 0)]
