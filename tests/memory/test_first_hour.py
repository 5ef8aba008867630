"""What people get wrong in their first hour with sessions, and what they are told."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from swink import Agent, InvalidInput, ToolCall, defer, tool
from swink.agent.context.compaction import Summary
from swink.agent.context.windows import SlidingWindow
from swink.errors import SessionError, SessionNotFound
from swink.memory import JsonlStore, MemoryStore, SqliteStore, export
from swink.memory.store import Store
from swink.messages import Message
from swink.testing import ScriptedModel


@pytest.fixture(params=["jsonl", "sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    match request.param:
        case "jsonl":
            return JsonlStore(tmp_path / "sessions")
        case "sqlite":
            return SqliteStore(tmp_path / "sessions.db")
        case _:
            return MemoryStore()


@pytest.mark.parametrize("wrong", [{"title": 42}, {"title": None}, {"directory": Path("here")}])
async def test_a_session_that_could_not_be_read_again_is_not_created(store: Store, wrong: Any):
    with pytest.raises(InvalidInput, match="takes str"):
        await store.create(**wrong)
    assert await store.list() == []


async def test_a_title_that_is_no_text_is_refused_and_the_session_stays_readable(store: Store):
    session = await store.create("before")
    with pytest.raises(InvalidInput, match="title takes str, not int"):
        await store.rename(session.id, cast(Any, 42))
    assert (await store.open(session.id)).meta.title == "before"


@pytest.mark.parametrize("wrong", ["hello", ["hello"], [{"role": "user", "content": "hello"}], None])
async def test_what_is_no_message_is_refused_instead_of_lost(store: Store, wrong: Any):
    session = await store.create()
    with pytest.raises(InvalidInput, match=r"(?i)message"):
        await session.append(wrong)
    assert (session.meta.messages, session.messages) == (0, ())


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"text": None}, "search takes str"),
        ({"limit": "3"}, "limit takes int"),
        ({"role": "human"}, "role is 'user', 'assistant'"),
        ({"after": "2026-01-01"}, "after is seconds since 1970"),
        ({"before": datetime(2026, 1, 1)}, "before is seconds since 1970"),
    ],
)
async def test_a_search_that_can_find_nothing_says_why(store: Store, wrong: Any, told: str):
    with pytest.raises(InvalidInput, match=told):
        await store.search(**cast("dict[str, Any]", {"text": "hello", **wrong}))


async def test_a_list_of_a_path_says_what_to_pass(store: Store):
    with pytest.raises(InvalidInput, match="directory takes str"):
        await store.list(directory=cast(Any, Path("here")))


async def test_what_is_no_session_is_told_how_to_get_one(store: Store):
    opening = store.open("invoice-7")
    for wrong in (store, "invoice-7", opening):
        with pytest.raises(InvalidInput, match=r"await store\.open\(id\)"):
            Agent("test:m", stream_fn=ScriptedModel([]), session=cast(Any, wrong))
    opening.close()


@pytest.mark.parametrize("wrong", ["invoice-7", 7, MemoryStore()])
def test_an_export_of_what_is_no_session_says_what_to_pass(wrong: Any):
    with pytest.raises(InvalidInput, match=r"store\.sync\.read\(id\)"):
        export(wrong, "md")


async def test_messages_are_no_session_to_export(store: Store):
    session = await store.create()
    await Agent("test:m", stream_fn=ScriptedModel(["Hello."]), session=session).run("Hi")
    with pytest.raises(InvalidInput, match="export takes a session"):
        export(cast(Any, session.messages), "html")


async def test_a_file_in_the_place_of_the_directory_is_named_as_such(tmp_path: Path):
    place = tmp_path / "file"
    place.write_text("mine")
    with pytest.raises(SessionError, match="a file stands where a directory should be"):
        await JsonlStore(place).create()
    assert place.read_text() == "mine"


@tool(requires_approval=True)
async def refund(order: int) -> str:
    """Pay money back."""
    return f"paid back {order}"


async def test_an_answer_that_was_given_before_says_that_nothing_is_pending(store: Store):
    session = await store.create()
    model = ScriptedModel([ToolCall("c1", "refund", {"order": 7}), "Done."])
    agent = Agent("test:m", stream_fn=model, tools=[refund], approve=defer, session=session)
    assert (await agent.run("Refund order 7.")).reason == "approval"
    assert (await agent.run(approvals={"c1": True})).text == "Done."
    with pytest.raises(InvalidInput, match="no call 'c1' waits for approval; pending: none"):
        await agent.run(approvals={"c1": True})


class MessagesAlone:
    """A session as it was before there were stores."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.state: dict[str, Any] = {}

    async def append(self, messages: Sequence[Message]) -> None:
        self.messages.extend(messages)


async def test_a_session_that_cannot_keep_what_is_pending_says_so(caplog: pytest.LogCaptureFixture):
    model = ScriptedModel([ToolCall("c1", "refund", {"order": 7}), "Done."])
    session = MessagesAlone()
    agent = Agent("test:m", stream_fn=model, tools=[refund], approve=defer, session=session)
    assert (await agent.run("Refund order 7.")).reason == "approval"
    assert "calls that wait for approval are lost with this process" in caplog.text
    assert (await agent.run(approvals={"c1": True})).text == "Done."


@pytest.mark.parametrize("wrong", [Summary, [SlidingWindow]])
def test_the_class_of_a_transformer_is_refused(wrong: Any):
    with pytest.raises(InvalidInput, match=r"is a class; write \w+\(\.\.\.\)"):
        Agent("test:m", stream_fn=ScriptedModel([]), transform_context=wrong)


async def test_an_id_that_is_like_no_other_names_the_newest_session(store: Store):
    await store.create(id="invoice-7")
    with pytest.raises(SessionNotFound, match="there is no session 'zzz'; the newest is invoice-7"):
        await store.find("zzz")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a place where nothing can be made")
async def test_a_directory_that_cannot_be_made_is_no_session_that_was_not_found():
    with pytest.raises(SessionError, match="the directory /proc/nope cannot be made") as raised:
        await JsonlStore("/proc/nope").create()
    assert not isinstance(raised.value, SessionNotFound)


@pytest.mark.parametrize("wrong", [":memory:", "sqlite:///sessions.db", "postgresql://ada:hunter2@host/shop"])
def test_an_address_is_no_path_of_a_file(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="path is that of an SQLite file") as raised:
        SqliteStore(wrong)
    assert "hunter2" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


async def test_a_directory_in_the_place_of_an_sqlite_file_is_named_as_such(tmp_path: Path):
    with pytest.raises(SessionError, match="it is a directory; give the path of a file"):
        await SqliteStore(tmp_path).create()
