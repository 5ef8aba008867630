"""Sessions in an SQLite file: whole appends or none, whatever happens to the file."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from swink.errors import SessionBusy, SessionConflict, SessionError, SessionNotFound, SessionUnreadable
from swink.memory import SqliteStore, sqlite
from swink.messages import UserMessage
from swink.messages.records import Label

KEPT = Path(__file__).parent / "files" / "version-1.db"


def said(store: SqliteStore, id: str) -> list[str]:
    return [message.text for message in store.sync.open(id).messages]


def connection_of(store: SqliteStore) -> sqlite3.Connection:
    store.sync.list()
    backend: Any = store.sync.backend
    return backend.database._connection


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = SqliteStore(tmp_path / "private" / "sessions.db")
    yield store
    store.sync.close()


def test_the_file_and_its_directory_are_private(store: SqliteStore, tmp_path: Path):
    store.sync.create().append([UserMessage("hello")])
    directory = tmp_path / "private"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}
    assert (directory / "sessions.db-wal").exists()


def test_a_closed_store_leaves_one_file_and_can_be_used_again(store: SqliteStore, tmp_path: Path):
    session = store.sync.create()
    session.append([UserMessage("one")])
    store.sync.close()
    assert [file.name for file in (tmp_path / "private").iterdir()] == ["sessions.db"]
    session.append([UserMessage("two")])
    assert said(store, session.id) == ["one", "two"]


def test_an_append_is_synced_and_one_that_need_not_be_is_not(store: SqliteStore):
    session = store.sync.create()
    connection = connection_of(store)
    session.append([UserMessage("durable")])
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.sync.backend.append(session.id, 1, [Label("x", 0)], durable=False)
    assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_append_that_fails_midway_leaves_nothing(store: SqliteStore):
    session = store.sync.create()
    session.append([UserMessage("kept")])
    connection_of(store).execute(
        "CREATE TEMP TRIGGER fails BEFORE UPDATE ON sessions BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(SessionError):
        session.append([UserMessage("lost")])
    assert said(store, session.id) == ["kept"]
    assert not store.sync.search("lost")
    session.append([UserMessage("again")])
    assert said(store, session.id) == ["kept", "again"]


def test_a_full_disk_is_told_and_nothing_is_lost(store: SqliteStore):
    session = store.sync.create()
    session.append([UserMessage("kept")])
    connection = connection_of(store)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SessionError, match="disk is full; make room"):
        session.append([UserMessage("x " * 100_000)])
    assert said(store, session.id) == ["kept"]
    session.append([UserMessage("there is room again")])
    assert said(store, session.id) == ["kept", "there is room again"]


def test_a_file_that_cannot_be_written_is_told(store: SqliteStore):
    session = store.sync.create()
    session.append([UserMessage("kept")])
    connection_of(store).execute("PRAGMA query_only = ON")
    with pytest.raises(SessionError, match="read-only"):
        session.append([UserMessage("lost")])
    assert said(store, session.id) == ["kept"]


def test_a_place_that_is_no_file_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "sessions.db"):
        with pytest.raises(SessionError, match="cannot be used"):
            SqliteStore(path).sync.list()


def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path):
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("no database at all, but a text that is long enough to be looked at " * 20)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE things (x)")
    connection.close()
    for path, message in ((text, "no SQLite database"), (other, "of another program")):
        before = path.read_bytes()
        with pytest.raises(SessionUnreadable, match=message):
            SqliteStore(path).sync.create()
        assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["notes.txt", "other.db"]


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(store: SqliteStore, tmp_path: Path):
    store.sync.create(id="x")
    connection_of(store).execute("PRAGMA user_version = 99")
    store.sync.close()
    path = tmp_path / "private" / "sessions.db"
    before = path.read_bytes()
    with pytest.raises(SessionUnreadable, match=r"version 99.*update swink"):
        store.sync.list()
    assert path.read_bytes() == before


def test_a_damaged_file_is_told(store: SqliteStore, tmp_path: Path):
    session = store.sync.create()
    session.append([UserMessage(f"{number} " * 500) for number in range(50)])
    store.sync.close()
    path = tmp_path / "private" / "sessions.db"
    data = bytearray(path.read_bytes())
    data[4096 : len(data) - 4096] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(SessionUnreadable, match="damaged"):
        store.sync.open(session.id)


def test_a_session_with_damaged_metadata_is_left_out_of_the_list(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
):
    store.sync.create(id="good")
    store.sync.create(id="bad")
    connection_of(store).execute("UPDATE sessions SET meta = '{' WHERE id = 'bad'")
    assert [meta.id for meta in store.sync.list()] == ["good"]
    assert "session bad is damaged" in caplog.text
    with pytest.raises(SessionUnreadable, match="session bad is damaged"):
        store.sync.open("bad")


def test_a_session_of_a_newer_version_is_refused(store: SqliteStore):
    store.sync.create(id="x")
    connection_of(store).execute("UPDATE sessions SET meta = json_set(meta, '$.version', 7)")
    with pytest.raises(SessionUnreadable, match="update swink"):
        store.sync.open("x")


def test_a_file_of_version_1_is_read_and_written(tmp_path: Path):
    path = tmp_path / "sessions.db"
    shutil.copy(KEPT, path)
    store = SqliteStore(path)
    (meta,) = store.sync.list()
    assert (meta.title, meta.messages, meta.sequence) == ("What is the capital of France?", 2, 1)
    session = store.sync.open(meta.id)
    assert [message.text for message in session.messages] == [
        "What is the capital of France?",
        "Paris, since 987.",
    ]
    assert session.state == {"asked": 1}
    session.append([UserMessage("And of Spain?")])
    assert [hit.number for hit in store.sync.search("capital")] == [0]
    assert [hit.number for hit in store.sync.search("spain")] == [2]
    store.sync.close()


def test_another_program_that_keeps_writing_is_told(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite, "BUSY", 0.01)
    session = store.sync.create()
    other = sqlite3.connect(tmp_path / "private" / "sessions.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SessionBusy, match="another program"):
        session.append([UserMessage("now")])
    assert store.sync.open(session.id).messages == ()  # readers do not wait
    other.execute("ROLLBACK")
    other.close()
    session.append([UserMessage("then")])
    assert said(store, session.id) == ["then"]


def test_a_file_that_is_removed_meanwhile_is_not_written_to(store: SqliteStore, tmp_path: Path):
    session = store.sync.create()
    shutil.rmtree(tmp_path / "private")
    with pytest.raises(SessionNotFound):
        session.append([UserMessage("into nothing")])


def test_a_file_that_is_renamed_meanwhile_is_an_error_until_it_is_back(store: SqliteStore, tmp_path: Path):
    session = store.sync.create()
    (file,) = (tmp_path / "private").glob("*.db")
    file.rename(moved := file.with_name("moved"))
    for call in (store.sync.create, store.sync.list, lambda: session.append([UserMessage("a")])):
        with pytest.raises(SessionError, match=r"is gone: it was renamed or removed.*Put it back"):
            call()
    assert not file.exists()
    moved.rename(file)
    session.append([UserMessage("b")])
    assert said(store, session.id) == ["b"]


def test_a_store_that_was_closed_begins_anew(store: SqliteStore, tmp_path: Path):
    store.sync.create()
    store.sync.close()
    shutil.rmtree(tmp_path / "private")
    assert store.sync.list() == []


def test_threads_append_to_their_sessions_at_the_same_time(store: SqliteStore):
    sessions = [store.sync.create() for _ in range(8)]

    def write(session: Any) -> None:
        for number in range(5):
            session.append([UserMessage(str(number))])

    threads = [threading.Thread(target=write, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        assert said(store, session.id) == list("01234")


APPENDS = """
import sys
from swink.errors import SessionConflict
from swink.memory import SqliteStore
from swink.messages import UserMessage
path, name, id = sys.argv[1:]
assert "psycopg" not in sys.modules  # an extra
store = SqliteStore(path)
own = store.sync.create()
for number in range(10):
    own.append([UserMessage(f"{name} {number}")])
    while True:
        try:
            store.sync.open(id).append([UserMessage(f"{name} {number}")])
            break
        except SessionConflict:
            pass
store.sync.close()
"""


def test_processes_write_to_one_file_at_the_same_time(tmp_path: Path):
    path = tmp_path / "sessions.db"
    store = SqliteStore(path)
    shared = store.sync.create(id="shared")
    children = [
        subprocess.Popen([sys.executable, "-c", APPENDS, str(path), name, shared.id]) for name in "ab"
    ]
    assert [child.wait(100) for child in children] == [0, 0]
    texts = said(store, shared.id)
    for name in "ab":
        assert [text for text in texts if text[0] == name] == [f"{name} {number}" for number in range(10)]
    assert len(texts) == 20
    assert len(store.sync.list()) == 3
    store.sync.close()


def test_all_who_start_at_once_find_the_tables(tmp_path: Path):
    failures: list[BaseException] = []

    def start(store: SqliteStore, together: threading.Barrier) -> None:
        together.wait()
        try:
            store.sync.create()
        except BaseException as error:
            failures.append(error)

    for attempt in range(10):
        stores = [SqliteStore(tmp_path / str(attempt) / "sessions.db") for _ in range(4)]
        together = threading.Barrier(len(stores))
        threads = [threading.Thread(target=start, args=(store, together)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(stores[0].sync.list()) == len(stores)
        for store in stores:
            store.sync.close()


def test_two_who_continue_one_session_do_not_mix(store: SqliteStore, tmp_path: Path):
    first = store.sync.create()
    other = SqliteStore(tmp_path / "private" / "sessions.db")
    second = other.sync.open(first.id)
    first.append([UserMessage("first")])
    with pytest.raises(SessionConflict, match="continued elsewhere"):
        second.append([UserMessage("second")])
    assert said(store, first.id) == ["first"]
    other.sync.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_connection_of_its_own(store: SqliteStore):
    session = store.sync.create()
    session.append([UserMessage("parent")])
    child = os.fork()
    if not child:
        try:
            session.append([UserMessage("child")])
            store.sync.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert said(store, session.id) == ["parent", "child"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_while_a_thread_reads_does_not_wait_for_that_thread(store: SqliteStore):
    session, is_reading, goes_on = store.sync.create(), threading.Event(), threading.Event()
    backend: Any = store.sync.backend
    reading = threading.Thread(
        target=backend.database.look, args=(lambda connection: is_reading.set() or goes_on.wait(60),)
    )
    reading.start()
    assert is_reading.wait(60)
    child = os.fork()
    if not child:
        try:
            signal.alarm(20)  # whoever waits is ended
            session.append([UserMessage("child")])
            store.sync.close()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    goes_on.set()
    reading.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert said(store, session.id) == ["child"]


def test_what_is_deleted_is_not_found_any_more(store: SqliteStore):
    kept, gone = store.sync.create(), store.sync.create()
    kept.append([UserMessage("apples and pears")])
    gone.append([UserMessage("apples and plums")])
    store.sync.delete(gone.id)
    assert [hit.session for hit in store.sync.search("apples")] == [kept.id]
    connection = connection_of(store)
    assert connection.execute("SELECT count(*) FROM records").fetchone() == (1,)
    assert connection.execute("SELECT count(*) FROM words").fetchone() == (1,)


@pytest.mark.parametrize(
    "text", ['"', "a* OR", "NEAR(", "x:y", "-a", "^", "a AND", "(", "'", "\0", "é\ud800"]
)
def test_no_query_is_a_syntax_error(store: SqliteStore, text: str):
    store.sync.create().append([UserMessage("a b c")])
    assert isinstance(store.sync.search(text), list)


async def test_nothing_of_sqlite_runs_on_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    threads: set[int] = set()
    original = sqlite.SqliteFile._transact

    def transact(self: Any, *arguments: Any) -> Any:
        threads.add(threading.get_ident())
        return original(self, *arguments)

    monkeypatch.setattr(sqlite.SqliteFile, "_transact", transact)
    async with SqliteStore(tmp_path / "sessions.db") as store:
        async with await store.create() as session:
            await session.append([UserMessage("hello")])
        await store.search("hello")
        await store.rename(session.id, "title")
        await store.fork(session.id)
        await store.delete(session.id)
    assert threads
    assert threading.get_ident() not in threads
