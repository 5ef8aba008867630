"""JSONL sessions: what is in the files, and what happens when files, disks and other processes misbehave."""

import errno
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from swink import AssistantMessage, UserMessage
from swink.errors import SessionConflict, SessionError, SessionNotFound, SessionUnreadable
from swink.memory import JsonlStore, SyncSession, SyncStore, jsonl, sessions_dir
from swink.messages import CustomMessage, Message, ToolResultMessage
from swink.messages.records import Record, UnknownRecord, encode_record, encode_records, saved


@pytest.fixture
def store(tmp_path: Path) -> SyncStore:
    return JsonlStore(tmp_path / "sessions").sync


def file_of(store: SyncStore, id: str) -> Path:
    backend: Any = store.backend
    return backend.directory / f"{id}.jsonl"


def turn(number: int) -> list[UserMessage | AssistantMessage]:
    return [UserMessage(f"question {number}"), AssistantMessage(f"answer {number}", "test", "m")]


def texts(session: SyncSession) -> list[str]:
    return [message.text for message in session.messages]


def test_a_file_is_the_metadata_and_then_transactions(store: SyncStore):
    session = store.create("Paris")
    session.append(turn(1))
    lines = [json.loads(line) for line in file_of(store, session.id).read_text("utf-8").splitlines()]
    assert [line["type"] for line in lines] == ["session", "begin", "message", "message", "commit"]
    assert {"id", "title", "created", "updated", "version"} <= lines[0].keys()
    assert lines[1]["tx"] == lines[-1]["tx"]
    assert lines[-1]["meta"]["sequence"] == 1


def test_a_session_is_opened_as_it_was_saved(store: SyncStore):
    session = store.create()
    session.state["n"] = 1
    session.append(turn(1))
    session.append(turn(2))
    again = store.open(session.id)
    assert again.messages == session.messages
    assert again.state == {"n": 1}
    assert again.meta == session.meta


def test_only_their_owner_can_read_sessions(store: SyncStore):
    file = file_of(store, store.create().id)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_whoever_comes_second_gets_a_conflict_and_can_go_on(store: SyncStore):
    first = store.create()
    second = store.open(first.id)
    first.append(turn(1))
    with pytest.raises(SessionConflict, match="Open it again"):
        second.append(turn(2))
    second = store.open(first.id)
    second.append(turn(2))
    assert texts(store.open(first.id)) == ["question 1", "answer 1", "question 2", "answer 2"]


def test_an_append_is_one_write_and_one_sync(
    store: SyncStore, monkeypatch: pytest.MonkeyPatch, instead_of_sync: Any
):
    session = store.create()
    calls: list[str] = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda *args: (calls.append("write"), write(*args))[1])
    instead_of_sync(monkeypatch, lambda *args: calls.append("sync"))
    session.append(turn(1))
    assert calls == ["write", "sync"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_disk_that_fails_costs_nothing_that_was_there(
    store: SyncStore, monkeypatch: pytest.MonkeyPatch, instead_of_sync: Any, code: int, call: str
):
    session = store.create()
    session.append(turn(1))
    before = file_of(store, session.id).read_bytes()
    write = os.write

    def fail(descriptor: int, data: bytes | int = b"") -> int:
        write(descriptor, data[:20] if isinstance(data, bytes) else b"")
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        if call == "write":
            patch.setattr(os, "write", fail)
        else:
            instead_of_sync(patch, fail)
        with pytest.raises(SessionError, match=os.strerror(code)):
            session.append(turn(2))
    assert file_of(store, session.id).read_bytes() == before
    session.append(turn(3))
    assert texts(store.open(session.id)) == ["question 1", "answer 1", "question 3", "answer 3"]


def test_what_cannot_be_taken_back_at_once_is_taken_back_before_the_next_append(
    store: SyncStore, monkeypatch: pytest.MonkeyPatch, instead_of_sync: Any
):
    session = store.create()
    session.append(turn(1))

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        instead_of_sync(patch, fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(SessionError, match="broken"):
            session.append(turn(2))
    session.append(turn(3))
    assert texts(store.open(session.id)) == ["question 1", "answer 1", "question 3", "answer 3"]


def test_what_is_no_session_is_refused_and_left_alone(store: SyncStore):
    store.create(id="good")
    for name, text in [("foreign", "hello\n"), ("empty", ""), ("list", "[1]\n"), ("other", '{"type":"x"}\n')]:
        file_of(store, name).write_text(text, "utf-8")
        with pytest.raises(SessionUnreadable, match="no session of swink"):
            store.open(name)
        assert file_of(store, name).read_text("utf-8") == text
    assert [meta.id for meta in store.list()] == ["good"]


def test_a_deleted_session_is_not_found(store: SyncStore):
    session = store.create()
    store.delete(session.id)
    with pytest.raises(SessionNotFound):
        session.append(turn(1))
    with pytest.raises(SessionNotFound):
        store.open(session.id)
    assert store.list() == []


def test_the_directory_of_sessions_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("SWINK_SESSIONS_DIR", str(tmp_path / "mine"))
    assert sessions_dir() == tmp_path / "mine"
    monkeypatch.delenv("SWINK_SESSIONS_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert sessions_dir() == tmp_path / "swink" / "sessions"


def test_what_was_left_of_a_creation_is_removed_later(store: SyncStore, monkeypatch: pytest.MonkeyPatch):
    session = store.create()
    left = file_of(store, session.id).with_name(".1a2b3c4d.s.jsonl.new")
    left.write_text("half", "utf-8")
    assert len(store.list()) == 1
    assert left.exists()
    os.utime(left, (1, 1))
    assert len(store.list()) == 1
    assert not left.exists()


def test_a_creation_that_fails_leaves_nothing(store: SyncStore, monkeypatch: pytest.MonkeyPatch):
    folder = file_of(store, store.create().id).parent
    before = sorted(folder.iterdir())

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr("swink.memory.files.sync", full)
        with pytest.raises(SessionError, match="free some space"):
            store.create()
    assert sorted(folder.iterdir()) == before


def test_a_file_in_the_place_of_the_directory_is_explained(tmp_path: Path):
    (tmp_path / "file").write_text("x", "utf-8")
    store = JsonlStore(tmp_path / "file" / "sessions").sync
    with pytest.raises(SessionError, match="choose another directory"):
        store.create()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_is_explained(store: SyncStore):
    session = store.create()
    folder = file_of(store, session.id).parent
    folder.chmod(0o500)
    try:
        with pytest.raises(SessionError, match="chmod"):
            store.create()
        session.append(turn(1))
        assert [hit.number for hit in store.search("question")] == [0]
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize(
    "odd",
    [
        UserMessage("ordinary"),
        UserMessage("null"),
        UserMessage("\ud800"),
        UserMessage("[" * 300),
        ToolResultMessage("1", "t", "x", details=float("nan")),
        ToolResultMessage("1", "t", "x", details={"$number": "inf"}),
        ToolResultMessage("1", "t", "x", details=None),
        CustomMessage("own", {"a": float("inf")}),
    ],
)
def test_records_are_written_together_as_they_are_one_by_one(odd: Message):
    messages = [AssistantMessage("hi", "test", "m"), odd, UserMessage("more")]
    records: list[Record] = [saved(message, number) for number, message in enumerate(messages)]
    for added in ([], [UnknownRecord("begin", {"type": "begin", "tx": 1})]):
        lines = [encode_record(record) + b"\n" for record in (*records, *added)]
        assert encode_records([*records, *added]) == b"".join(lines)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were read as a session, each time that something was."""
    sizes: list[int] = []
    scan = jsonl.scan
    monkeypatch.setattr(jsonl, "scan", lambda data, where: (sizes.append(len(data)), scan(data, where))[1])
    return sizes


def test_more_sessions_than_a_store_remembers_cost_one_look_each_at_the_oldest(
    store: SyncStore, scanned: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jsonl, "_MOST_KNOWN", 3)
    first, second, third, fourth = (store.create() for _ in range(4))
    for session in (first, second, third, first, fourth):
        session.append(turn(1))
    scanned.clear()
    for session in (third, first, fourth, first):
        session.append(turn(2))
    assert scanned == []
    second.append(turn(2))
    assert len(scanned) == 1


def test_an_append_to_a_session_that_is_not_remembered_reads_its_end_alone(
    store: SyncStore, scanned: list[int]
):
    session = store.create()
    session.append([UserMessage("x" * 500_000)])
    session.append(turn(1))
    another = JsonlStore(file_of(store, session.id).parent).sync.backend
    meta = another.append(session.id, 2, [saved(UserMessage("more"), 3)])
    assert meta.sequence == 3
    assert sum(scanned) < 2_000
    assert len(store.open(session.id).messages) == 4


def test_an_append_after_a_damaged_one_goes_on_with_what_is_sound(store: SyncStore):
    session = store.create()
    session.append(turn(1))
    session.append(turn(2))
    file = file_of(store, session.id)
    file.write_bytes(file.read_bytes().replace(b"answer 2", b"answer X"))
    another = JsonlStore(file.parent).sync.backend
    assert another.append(session.id, 1, [saved(UserMessage("more"), 2)]).sequence == 2
