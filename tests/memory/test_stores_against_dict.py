"""Stores against an oracle: after any sequence of operations they hold what a plain dict would."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import UserMessage
from swink.errors import SessionConflict, SessionNotFound
from swink.memory import JsonlStore, MemoryStore, SqliteStore, Store
from swink.messages.records import Compaction

KINDS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "jsonl": lambda folder: JsonlStore(folder),
    "sqlite": lambda folder: SqliteStore(folder / "sessions.db"),
}
NAMES = ["a", "b"]
OPERATIONS = st.tuples(
    st.sampled_from(["append", "append", "stale", "state", "compact", "fork", "rename", "delete", "create"]),
    st.sampled_from(NAMES),
    st.integers(0, 5),
)


class Kept:
    """What the oracle knows of a session."""

    def __init__(self) -> None:
        self.context: list[str] = []
        self.everything: list[str] = []
        self.state: dict[str, Any] = {}
        self.title = ""


@pytest.mark.parametrize("kind", KINDS)
@tried(8, 80)
@given(operations=st.lists(OPERATIONS, max_size=12))
def test_a_store_holds_what_was_put_into_it(
    kind: str, operations: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
):
    store = KINDS[kind](tmp_path_factory.mktemp("store")).sync
    known: dict[str, Kept] = {}
    for step, (what, name, number) in enumerate(operations):
        kept, text = known.get(name), f"word{step}"
        if what == "create" or kept is None:
            if kept is None:
                store.create(id=name)
                known[name] = Kept()
            else:
                with pytest.raises(SessionConflict):
                    store.create(id=name)
            continue
        session = store.open(name)
        match what:
            case "append":
                session.append([UserMessage(text)])
                kept.context.append(text)
                kept.everything.append(text)
                kept.title = kept.title or text
            case "stale":
                store.open(name).append([UserMessage(text)])
                kept.context.append(text)
                kept.everything.append(text)
                kept.title = kept.title or text
                with pytest.raises(SessionConflict):
                    session.append([UserMessage("too late")])
            case "state":
                session.append([], state={"n": number})
                kept.state = {"n": number}
            case "compact":
                session.append([], records=[Compaction([UserMessage(text), *session.messages[-number:]])])
                kept.context = [text, *kept.context[-number:]]
            case "fork":
                fork = store.fork(name, min(number, len(kept.everything)))
                assert fork.meta.parent == name
                if number >= len(kept.everything):
                    assert [message.text for message in store.open(fork.id).messages] == kept.context
                store.delete(fork.id)
            case "rename":
                assert store.rename(name, text).title == text
                kept.title = text
            case _:
                store.delete(name)
                del known[name]
                with pytest.raises(SessionNotFound):
                    session.append([UserMessage(text)])
    assert {meta.id for meta in store.list()} == set(known)
    for name, kept in known.items():
        session = store.open(name)
        assert [message.text for message in session.messages] == kept.context
        assert [message.text for message in session.conversation.everything.values()] == kept.everything
        assert (session.state, session.meta.title) == (kept.state, kept.title)
        assert session.meta.messages == len(kept.everything)
        for number, text in enumerate(kept.everything):
            assert (name, number) in [(hit.session, hit.number) for hit in store.search(text)]
    store.close()
