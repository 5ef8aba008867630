"""A process that writes to SQLite or PostgreSQL is killed at any moment: what was acknowledged is there."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest
from tests.counts import MORE

from swink.memory import PostgresStore, SqliteStore, Store
from swink.messages import UserMessage

TURNS = 40


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        store: Store = SqliteStore(tmp_path / "sessions.db")
    else:
        store = PostgresStore(request.getfixturevalue("postgres"), schema=f"test_{token_hex(8)}")
    yield store
    store.sync.close()


def killed_while_writing(store: Store, id: str, when: random.Random) -> int:
    """How many turns a child has acknowledged when it was killed."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            session = store.sync.open(id)
            for number in range(TURNS):
                session.append(
                    [UserMessage(f"ask {number}"), UserMessage(f"reply {number}")], state={"n": number}
                )
                os.write(write, b".")
            while True:
                time.sleep(60)
        finally:
            os._exit(1)
    os.close(write)
    wanted = when.randrange(TURNS)
    acknowledged = len(os.read(read, 1))
    while acknowledged < wanted:
        acknowledged += len(os.read(read, 1))
    for _ in range(when.randrange(3000)):  # somewhere inside the next append
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(read, 64):
        acknowledged += len(more)
    os.close(read)
    return acknowledged


@pytest.mark.more
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_acknowledged_turn_is_missing_and_no_half_turn_is_there(store: Store):
    when = random.Random(7)
    for _ in range(100 if MORE else 8):
        id = store.sync.create().id
        acknowledged = killed_while_writing(store, id, when)
        # A server may still be storing what the child sent last; a claim comes after that.
        with store.sync.claim(id) as session:
            kept = len(session.messages) // 2
            assert kept in (acknowledged, acknowledged + 1)
            texts = [text for number in range(kept) for text in (f"ask {number}", f"reply {number}")]
            assert [message.text for message in session.messages] == texts
            assert session.state == {"n": kept - 1}
            session.append([UserMessage("the next")])
        hits = store.sync.search("next", session=id)
        assert [hit.number for hit in hits] == [2 * kept]
