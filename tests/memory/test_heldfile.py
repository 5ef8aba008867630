"""The file of a session stays open between appends, and everybody else can still write, replace, delete or protect it."""

import copy
import os
import pickle
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from swink import UserMessage
from swink.errors import SessionBusy, SessionError, SessionNotFound
from swink.memory import JsonlStore, SyncSession, SyncStore, heldfile
from swink.memory.jsonlfile import transaction
from swink.messages import Message, ToolResultMessage
from swink.messages.records import Record, UnknownRecord, encode_record, saved
from swink.system.filelock import locked

HAS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
COUNTS_FILES = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def session(folder: Path) -> SyncSession:
    """A session that has been appended to."""
    session = JsonlStore(folder).sync.create(id="one")
    session.append([UserMessage("first")])
    return session


@pytest.fixture
def other(folder: Path) -> SyncStore:
    """What another program has."""
    return JsonlStore(folder).sync


def texts(store: SyncStore, id: str = "one") -> list[str]:
    return [message.text for message in store.open(id).messages]


def open_in(folder: Path) -> list[str]:
    """The names of the files there that this process has open."""
    found: list[str] = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            path = Path(os.readlink(f"/proc/self/fd/{entry}"))
        except FileNotFoundError:
            continue  # the list's own
        if path.parent == folder:
            found.append(path.name)
    return found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heldfile, "LOCKED_FOR", 0.02)


@pytest.mark.usefixtures("impatient")
def test_between_appends_others_may_write_and_while_they_do_an_append_waits(
    session: SyncSession, other: SyncStore, folder: Path
):
    other.rename("one", "another title")
    session.append([UserMessage("second")])
    assert session.meta.title == "another title"
    with open(folder / "one.jsonl", "rb") as file, locked(file):
        with pytest.raises(SessionBusy, match="locked by another program"):
            session.append([UserMessage("not now")])
    session.append([UserMessage("third")])
    assert texts(other) == ["first", "second", "third"]


def test_an_append_goes_to_the_file_that_another_program_has_put_in_the_place_of_the_open_one(
    session: SyncSession, other: SyncStore, folder: Path
):
    file = folder / "one.jsonl"
    new = folder / "new"
    new.write_bytes(file.read_bytes())
    new.replace(file)
    session.append([UserMessage("second")])
    assert texts(other) == ["first", "second"]


def test_a_session_that_another_program_has_deleted_is_not_found(session: SyncSession, other: SyncStore):
    other.delete("one")
    with pytest.raises(SessionNotFound):
        session.append([UserMessage("second")])


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_was_made_read_only_is_not_written_to(session: SyncSession, folder: Path):
    (folder / "one.jsonl").chmod(0o400)
    with pytest.raises(SessionError, match="chmod"):
        session.append([UserMessage("second")])


@COUNTS_FILES
@pytest.mark.skipif(sys.platform == "win32", reason="no file stays open")
def test_few_files_stay_open_and_none_once_the_store_is_closed_or_gone(folder: Path):
    store = JsonlStore(folder).sync
    sessions = [store.create() for _ in range(40)]
    for _ in range(2):
        for session in sessions:
            session.append([UserMessage("hello")])
    assert 0 < len(open_in(folder)) < 20
    store.delete(sessions[-1].id)
    assert not any("deleted" in name for name in open_in(folder))
    store.close()
    assert open_in(folder) == []
    sessions[0].append([UserMessage("after all")])
    assert len(open_in(folder)) == 1
    del store, session, sessions
    assert open_in(folder) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no file stays open")
def test_a_file_that_the_program_closed_behind_our_back_is_opened_again_and_no_other_is_written_to(
    session: SyncSession, other: SyncStore, folder: Path, tmp_path: Path
):
    held = os.stat(folder / "one.jsonl")
    mine = next(number for number in range(3, 1024) if _is_open_at(number, held))
    os.close(mine)
    with open(tmp_path / "precious", "wb") as precious:
        assert precious.fileno() == mine
        session.append([UserMessage("second")])
        assert os.fstat(mine).st_size == 0
    assert texts(other) == ["first", "second"]


def _is_open_at(number: int, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(number), file)
    except OSError:
        return False


def test_a_copy_of_a_store_opens_files_of_its_own(folder: Path):
    store = JsonlStore(folder)
    session = store.sync.create(id="one")
    session.append([UserMessage("first")])
    copies = [copy.deepcopy(store), pickle.loads(pickle.dumps(store))]
    for number, each in enumerate(copies):
        each.sync.open("one").append([UserMessage(f"of copy {number}")])
    del each, copies
    session = store.sync.open("one")
    session.append([UserMessage("last")])
    assert texts(store.sync) == ["first", "of copy 0", "of copy 1", "last"]


@COUNTS_FILES
def test_an_append_that_fails_leaves_nothing_open(
    session: SyncSession, monkeypatch: pytest.MonkeyPatch, instead_of_sync: Any
):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    folder = Path(session._backend.directory)  # pyright: ignore
    with monkeypatch.context() as patch:
        instead_of_sync(patch, interrupt)
        with pytest.raises(KeyboardInterrupt) as first:
            session.append([UserMessage("second")])
    assert open_in(folder) == []
    with monkeypatch.context() as patch:
        patch.setattr(heldfile, "take_lock", interrupt)
        patch.setattr(heldfile, "try_lock", lambda descriptor: False)
        with pytest.raises(KeyboardInterrupt) as second:
            session.append([UserMessage("second")])
    assert open_in(folder) == []
    assert first.tb
    assert second.tb  # they hold whatever was in use


@pytest.mark.usefixtures("impatient")
def test_threads_with_one_store_do_not_write_to_a_session_at_the_same_time(
    session: SyncSession, other: SyncStore, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    begun, may_end = threading.Event(), threading.Event()

    def wait(_: int) -> None:
        begun.set()
        may_end.wait(60)

    monkeypatch.setattr("swink.memory.jsonl.sync", wait)
    writer = threading.Thread(target=session.append, args=([UserMessage("second")],))
    writer.start()
    begun.wait(60)
    with pytest.raises(SessionBusy):
        session._backend.append("one", 1, [saved(UserMessage("third"), 1)])  # pyright: ignore
    may_end.set()
    writer.join()
    assert texts(other) == ["first", "second"]


@pytest.fixture
def child_that_writes(session: SyncSession) -> Generator[int]:
    """A forked child that has its own lock on the session, until it can read from this pipe."""
    begun, begin = os.pipe()
    ended, end = os.pipe()
    child = os.fork()
    if not child:

        def wait(_: int) -> None:
            os.write(begin, b"x")
            os.read(ended, 1)

        os.fdatasync = wait
        try:
            session.append([UserMessage("of the child")])
        finally:
            os._exit(0)
    os.read(begun, 1)
    yield end
    os.waitpid(child, 0)
    for descriptor in (begun, begin, ended, end):
        os.close(descriptor)


@HAS_FORK
@pytest.mark.skipif(sys.platform == "darwin", reason="a file is synced by other means")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("impatient")
def test_a_forked_child_and_its_parent_do_not_write_at_the_same_time(
    session: SyncSession, child_that_writes: int
):
    try:
        with pytest.raises(SessionBusy):
            session.append([UserMessage("of the parent")])
    finally:
        os.write(child_that_writes, b"x")


@pytest.mark.parametrize(
    "odd",
    [
        UserMessage("null"),
        UserMessage("\ud800"),
        UserMessage("[" * 300),
        ToolResultMessage("1", "t", "x", details=float("nan")),
        ToolResultMessage("1", "t", "x", details={"$number": "inf"}),
    ],
)
def test_a_transaction_has_the_lines_that_its_records_have_one_by_one(session: SyncSession, odd: Message):
    records: list[Record] = [saved(UserMessage("ordinary"), 0), saved(odd, 1)]
    alone = [encode_record(record) for record in records]
    assert transaction(session.meta, records).splitlines()[1:-1] == alone
    foreign = UnknownRecord("begin", {"type": "begin", "tx": 1})
    with_foreign = transaction(session.meta, [*records, foreign]).splitlines()[1:-1]
    assert with_foreign == [*alone, b'{ "type":"begin","tx":1}']
