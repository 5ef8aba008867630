"""Sessions in PostgreSQL: a real server, which goes away, refuses, is full or belongs to somebody else."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from tests.postgres import PASSWORD

from swink.errors import (
    AgentError,
    InvalidInput,
    MisuseError,
    SessionBusy,
    SessionConflict,
    SessionError,
    SessionUnreadable,
)
from swink.memory import PostgresStore, postgresserver
from swink.memory import postgres as postgresdb
from swink.messages import UserMessage
from swink.messages.records import Label

KEPT = Path(__file__).parent / "files" / "version-1.sql"


@pytest.fixture
def schema() -> str:
    return f"test_{token_hex(8)}"


@pytest.fixture
def store(postgres: str, schema: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres, schema=schema)
    yield store
    store.sync.close()


def said(store: PostgresStore, id: str) -> list[str]:
    return [message.text for message in store.sync.open(id).messages]


def ask(postgres: str, sql: str) -> list[Any]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def cut(postgres: str, schema: str) -> None:
    """End the connections of a store, as a server does that is stopped."""
    ask(
        postgres,
        f"SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name = '{schema}'",
    )


@pytest.fixture
def named(postgres: str, schema: str) -> Iterator[PostgresStore]:
    """A store whose connections bear the name of its schema."""
    store = PostgresStore(f"{postgres}&application_name={schema}", schema=schema)
    yield store
    store.sync.close()


def test_the_tables_are_created_on_first_use_in_a_schema_of_their_own(
    store: PostgresStore, postgres: str, schema: str
):
    assert store.sync.list() == []
    found = ask(postgres, f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'")
    assert {name for (name,) in found} == {"sessions", "records", "checkpoints", "version"}


def test_all_who_start_at_once_find_the_tables(postgres: str, schema: str):
    stores = [PostgresStore(postgres, schema=schema) for _ in range(6)]
    failures: list[BaseException] = []

    def start(store: PostgresStore) -> None:
        try:
            store.sync.create()
        except BaseException as error:
            failures.append(error)
        store.sync.close()

    threads = [threading.Thread(target=start, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(stores[0].sync.list()) == 6
    stores[0].sync.close()


def test_a_session_is_kept_whatever_it_says(store: PostgresStore):
    texts = ["plain", "nul \0 and \ud800", "% ? %s ' \" \\ {} $1", "日本語 😀 ß", "x" * 300_000]
    session = store.sync.create(title="'; DROP TABLE sessions; --", directory="/a'b\0c")
    session.append([UserMessage(text) for text in texts], state={"nul": "\0"})
    again = store.sync.open(session.id)
    assert [message.text for message in again.messages] == [
        "plain",
        "nul \0 and \ufffd",
        *texts[2:],
    ]
    assert again.state == {"nul": "\0"}
    assert [hit.number for hit in store.sync.search("日本")] == [3]
    assert store.sync.search("x" * 300_000) == []  # PostgreSQL takes no such word


def test_a_word_is_found_unless_it_is_longer_than_postgresql_takes(store: PostgresStore):
    session = store.sync.create()
    session.append([UserMessage(f"{'x' * 2046} {'y' * 2047} z")])
    assert [hit.number for hit in store.sync.search("x" * 2046)] == [0]
    assert store.sync.search("y" * 2047) == []
    assert [hit.number for hit in store.sync.search("z")] == [0]


def test_a_message_with_more_words_than_the_index_takes_is_kept(store: PostgresStore):
    session = store.sync.create()
    session.append([UserMessage(" ".join(f"word{number} {number:01800}" for number in range(700)))])
    assert [hit.number for hit in store.sync.search("word7")] == [0]
    assert len(said(store, session.id)) == 1


def test_two_who_continue_one_session_do_not_mix(store: PostgresStore, postgres: str, schema: str):
    first = store.sync.create()
    other = PostgresStore(postgres, schema=schema)
    second = other.sync.open(first.id)
    first.append([UserMessage("first")])
    with pytest.raises(SessionConflict, match="continued elsewhere"):
        second.append([UserMessage("second")])
    assert said(store, first.id) == ["first"]
    other.sync.close()


def test_threads_share_a_few_connections(named: PostgresStore, postgres: str, schema: str):
    sessions = [named.sync.create() for _ in range(10)]

    def write(session: Any) -> None:
        for number in range(5):
            session.append([UserMessage(str(number))])

    threads = [threading.Thread(target=write, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        assert said(named, session.id) == list("01234")
    count = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{schema}'"
    assert 1 <= ask(postgres, count)[0][0] <= postgresdb.CONNECTIONS


async def test_a_closed_store_holds_no_connection_and_can_be_used_again(
    named: PostgresStore, postgres: str, schema: str
):
    session = await named.create()
    await session.append([UserMessage("one")])
    await named.aclose()
    ended = "SELECT pid FROM pg_stat_activity WHERE application_name = '" + schema + "'"
    for _ in range(1000):
        if not ask(postgres, ended):
            break
    assert ask(postgres, ended) == []
    await session.append([UserMessage("two")])
    assert said(named, session.id) == ["one", "two"]


def test_a_lost_connection_is_made_again_and_nothing_is_missing_or_twice(
    named: PostgresStore, postgres: str, schema: str
):
    session = named.sync.create()
    for number in range(3):
        session.append([UserMessage(str(number))])
        cut(postgres, schema)
    assert said(named, session.id) == ["0", "1", "2"]
    cut(postgres, schema)
    assert [meta.messages for meta in named.sync.list()] == [3]


def test_an_append_whose_answer_is_lost_is_not_done_twice(
    named: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    session = named.sync.create()
    original = psycopg.Connection.execute
    lost: list[bool] = []

    def execute(self: Any, query: Any, *values: Any, **options: Any) -> Any:
        result = original(self, query, *values, **options)
        if query == b"COMMIT" and not lost:
            lost.append(True)
            self.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return result

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    session.append([UserMessage("once")])
    session.append([UserMessage("more")])
    assert lost
    assert said(named, session.id) == ["once", "more"]


def test_a_server_that_comes_back_is_waited_for(postgres: str, schema: str, tmp_path_factory: Any):
    socket = Path(parse_qs(urlsplit(postgres).query)["host"][0])
    place = Path(os.path.realpath("/tmp"), f"swink-{token_hex(4)}")
    place.symlink_to(socket)
    store = PostgresStore(
        f"postgresql://postgres@/postgres?host={place}&application_name={schema}", schema=schema
    )
    try:
        session = store.sync.create()
        place.unlink()  # nobody listens there any more
        cut(postgres, schema)
        timer = threading.Timer(0.3, place.symlink_to, [socket])
        timer.start()
        session.append([UserMessage("after the restart")])
        timer.join()
        assert said(store, session.id) == ["after the restart"]
    finally:
        store.sync.close()
        place.unlink(missing_ok=True)


def test_a_server_that_stays_away_is_told(
    postgres: str, schema: str, named: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(postgresdb, "PATIENCE", 0.0)
    session = named.sync.create()
    backend: Any = named.sync.backend
    backend.database._server._dsn = "postgresql://localhost:1/postgres"
    cut(postgres, schema)
    with pytest.raises(SessionError, match=r"localhost:1/postgres cannot be used.*is running"):
        session.append([UserMessage("lost")])


def guarded(postgres: str, password: str) -> str:
    return postgres.replace("postgres:@", f"guarded:{password}@")


def test_a_wrong_password_is_told_and_never_shown(postgres: str, caplog: pytest.LogCaptureFixture):
    store = PostgresStore(guarded(postgres, "a-wrong-password"))
    with caplog.at_level(0), pytest.raises(SessionError, match="check the user and the password") as caught:
        store.sync.list()
    for text in (str(caught.value), repr(caught.value), repr(vars(store)), repr(store), caplog.text):
        assert "a-wrong-password" not in text
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://user:hunt/er2@localhost/db",
        "postgresql://user:hunt@er2@localhost/db",
        "postgresql://user:hunt?er2@localhost/db",
        "postgresql://user:12/hunt@localhost/db",
        "postgresql://user:hunt er2@localhost/db",
        "postgresql://user:hunt%zzer2@localhost/db",
        "password=hunter2 nonsense",
        "password=hunter2 port=x",
        "host=localhost port=1 user=u password=hunter2 dbname=hunter2",
        "postgresql://user:hunter2@localhost:1/db?application_name=hunter2",
        "hunter2",
    ],
)
def test_no_error_shows_a_password_however_the_address_is_written(dsn: str):
    pytest.importorskip("psycopg")
    with pytest.raises(AgentError) as caught:
        PostgresStore(dsn).sync.list()
    shown: BaseException | None = caught.value
    while shown is not None:
        assert "hunt" not in str(shown)
        assert "er2" not in str(shown)
        shown = shown.__cause__


def test_a_user_who_may_create_nothing_is_told(postgres: str, schema: str):
    store = PostgresStore(guarded(postgres, PASSWORD), schema=schema)
    with pytest.raises(SessionError, match="GRANT CREATE ON DATABASE"):
        store.sync.list()
    store.sync.close()


def test_a_missing_database_is_told(postgres: str):
    with pytest.raises(SessionError, match='"nowhere" does not exist; create it'):
        PostgresStore(postgres.replace("/postgres?", "/nowhere?")).sync.list()


@pytest.mark.parametrize(
    "dsn", ["postgresql://localhost:1/x", "postgresql://nobody.invalid/x", "postgresql:///x?host=/nowhere"]
)
def test_a_wrong_address_is_told(dsn: str):
    pytest.importorskip("psycopg")
    with pytest.raises(SessionError, match=r"cannot be used: .*check the address"):
        PostgresStore(dsn).sync.list()


def test_a_server_that_is_too_old_is_told(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(postgresserver, "OLDEST", 999)
    with pytest.raises(SessionError, match="too old: 999 or newer"):
        store.sync.list()


def test_a_database_that_cannot_hold_every_text_is_told(postgres: str, schema: str):
    ask(postgres, f"CREATE DATABASE {schema} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(SessionError, match=r"encoding SQL_ASCII.*ENCODING 'UTF8'"):
        PostgresStore(postgres.replace("/postgres?", f"/{schema}?")).sync.list()
    ask(postgres, f"DROP DATABASE {schema} WITH (FORCE)")


def test_a_schema_of_another_program_is_refused_and_left_as_it_is(postgres: str, schema: str):
    ask(postgres, f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.things (x int)")
    with pytest.raises(SessionUnreadable, match="another program; give another one with schema="):
        PostgresStore(postgres, schema=schema).sync.create()
    assert ask(postgres, f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'") == [(1,)]


def test_tables_of_a_newer_version_are_refused(store: PostgresStore, postgres: str, schema: str):
    store.sync.create()
    ask(postgres, f"UPDATE {schema}.version SET version = 99")
    with pytest.raises(SessionUnreadable, match=r"version 99.*update swink"):
        PostgresStore(postgres, schema=schema).sync.list()


def test_tables_of_version_1_are_read_and_written(postgres: str, schema: str):
    ask(postgres, KEPT.read_text("utf-8").replace("{schema}", schema))
    store = PostgresStore(postgres, schema=schema)
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


def fails(postgres: str, schema: str, state: str) -> None:
    """Let the database refuse the next append with an error of its own, after the records are written."""
    ask(
        postgres,
        f"CREATE FUNCTION {schema}.fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" RAISE EXCEPTION 'so it is' USING ERRCODE = '{state}'; END $$;"
        f" CREATE TRIGGER fails BEFORE UPDATE ON {schema}.sessions EXECUTE FUNCTION {schema}.fails()",
    )


@pytest.mark.parametrize(
    ("state", "kind", "message"),
    [
        ("53100", SessionError, "disk of the server is full"),
        ("25006", SessionError, "address of the primary"),
        ("40P01", SessionBusy, "try again"),
        ("XX001", SessionError, "so it is .SQLSTATE XX001"),
    ],
)
def test_what_the_server_refuses_is_told_and_nothing_is_lost(
    store: PostgresStore, postgres: str, schema: str, state: str, kind: type[SessionError], message: str
):
    session = store.sync.create()
    session.append([UserMessage("kept")])
    fails(postgres, schema, state)
    with pytest.raises(kind, match=message):
        session.append([UserMessage("lost")])
    assert said(store, session.id) == ["kept"]
    assert not store.sync.search("lost")
    ask(postgres, f"DROP FUNCTION {schema}.fails CASCADE")
    session.append([UserMessage("again")])
    assert said(store, session.id) == ["kept", "again"]


def test_a_session_that_somebody_keeps_locked_is_told(
    store: PostgresStore, postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
):
    session = store.sync.create()
    monkeypatch.setattr(postgresdb, "BUSY", "10ms")
    with psycopg.connect(postgres) as other:
        other.execute(f"SELECT * FROM {schema}.sessions FOR UPDATE".encode())
        with pytest.raises(SessionBusy, match="another program holds the session"):
            session.append([UserMessage("now")])
        assert said(store, session.id) == []
    session.append([UserMessage("then")])
    assert said(store, session.id) == ["then"]


def test_an_append_waits_for_the_disk_and_one_that_need_not_be_durable_does_not(
    store: PostgresStore, postgres: str, schema: str
):
    session = store.sync.create()
    ask(
        postgres,
        f"CREATE TABLE {schema}.seen (setting text); CREATE FUNCTION {schema}.look() RETURNS trigger"
        f" LANGUAGE plpgsql AS $$ BEGIN INSERT INTO {schema}.seen VALUES (current_setting('synchronous_commit'));"
        f" RETURN NULL; END $$; CREATE TRIGGER look AFTER UPDATE ON {schema}.sessions"
        f" EXECUTE FUNCTION {schema}.look()",
    )
    session.append([UserMessage("durable")])
    store.sync.backend.append(session.id, 1, [Label("x", 0)], durable=False)
    store.sync.backend.append(session.id, 2, [Label("y", 0)])
    assert ask(postgres, f"SELECT setting FROM {schema}.seen") == [("on",), ("off",), ("on",)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(store: PostgresStore):
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


@pytest.mark.parametrize(
    "text", ['"', "a* OR", "NEAR(", "x:y", "-a", "!", "a & b", "(", "'", "\0", "é\ud800"]
)
def test_no_query_is_a_syntax_error(store: PostgresStore, text: str):
    store.sync.create().append([UserMessage("a b c")])
    assert isinstance(store.sync.search(text), list)


@pytest.mark.parametrize("schema", ["", "Upper", "a-b", "pg_x", "x" * 64, 'a"; DROP'])
def test_a_schema_that_is_no_plain_name_is_refused(schema: str):
    with pytest.raises(InvalidInput, match="schema="):
        PostgresStore("postgresql://localhost/x", schema=schema)


@pytest.mark.parametrize("dsn", ["", " ", None, 5])
def test_an_address_that_is_none_is_refused(dsn: Any):
    with pytest.raises(InvalidInput, match="postgresql://user"):
        PostgresStore(dsn)


def test_without_psycopg_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(postgresserver, "find_spec", lambda name: None)
    with pytest.raises(MisuseError, match=r"install it with: .*pip install"):
        PostgresStore("postgresql://localhost/x")
