"""Durable agents: runs as workflows of DBOS."""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from swink import Agent, AuthError, InvalidInput, MisuseError, ToolCall, UserMessage, defer, tool
from swink.memory import MemoryStore, Session, SqliteStore, Store
from swink.memory import dbos as durable_agents
from swink.memory.dbos import DurableAgent
from swink.testing import ScriptedModel

dbos = pytest.importorskip("dbos")
if sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
    pytest.skip("DBOS on this Python needs SQLite 3.42", allow_module_level=True)

# DBOS hangs its threads on the event loop, and they end with the first one.
pytestmark = pytest.mark.asyncio(loop_scope="module")

seen: list[str] = []
waiting = threading.Event()
stopped = threading.Event()


@tool
async def note(text: str) -> str:
    """Note something."""
    seen.append(text)
    return "noted"


@tool
async def hang() -> str:
    """Never end."""
    waiting.set()
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()
    return ""


@tool(requires_approval=True)
async def buy(what: str) -> str:
    """Buy something."""
    seen.append(what)
    return "bought"


def answer(context: Any) -> Any:
    """What the model says to a prompt: `note X`, `buy X`, `hang`, `fail`, or anything else."""
    last = context.messages[-1]
    if not isinstance(last, UserMessage):
        return "done"
    word, _, rest = last.text.partition(" ")
    match word:
        case "note":
            return ToolCall("1", "note", {"text": rest})
        case "buy":
            return [ToolCall(what, "buy", {"what": what}) for what in rest.split()]
        case "hang":
            return ToolCall("1", "hang", {})
        case "fail":
            return AuthError("no such key")
        case _:
            return f"{len(context.messages)} messages, the last: {last.text}"


def make_agent(session: Session) -> Agent:
    model, tools = ScriptedModel([answer] * 9), [note, hang, buy]
    return Agent("test:m", stream_fn=model, tools=tools, approve=defer, session=session)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return SqliteStore(tmp_path_factory.mktemp("sessions") / "sessions.db")


@pytest.fixture(scope="module")
def durable(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableAgent]:
    """One engine for all tests: it is one of the whole program."""
    agent = DurableAgent(make_agent, store, name="test")
    path = tmp_path_factory.mktemp("dbos") / "dbos.sqlite"
    dbos.DBOS(
        config={"name": "swink-test", "system_database_url": f"sqlite:///{path}", "log_level": "CRITICAL"}
    )
    dbos.DBOS.launch()
    yield agent
    dbos.DBOS.destroy(destroy_registry=True)
    durable_agents._names.clear()


@pytest.fixture(autouse=True)
def fresh() -> None:
    seen.clear()
    waiting.clear()
    stopped.clear()


async def test_a_run_is_a_workflow_whose_messages_are_in_its_session(durable: DurableAgent, store: Store):
    result = await durable.run("one", "note it")
    assert (result.session, result.text, result.stop_reason, result.reason) == ("one", "done", "stop", None)
    assert [message.role for message in (await store.open("one")).messages] == [
        "user",
        "assistant",
        "tool_result",
        "assistant",
    ]
    status = await dbos.DBOS.get_workflow_status_async("one")
    assert (status.status, status.name) == ("SUCCESS", "swink.test")


async def test_the_same_id_again_gives_the_same_result_and_runs_nothing(durable: DurableAgent):
    first = await durable.run("twice", "note it")
    assert await durable.run("twice", "note it") == first
    assert seen == ["it"]


async def test_two_who_ask_for_one_id_at_once_get_one_run(durable: DurableAgent):
    results = await asyncio.gather(*[durable.run("race", "note it") for _ in range(3)])
    assert len(set(results)) == 1
    assert seen == ["it"]


async def test_a_conversation_goes_on_with_a_new_workflow_on_its_session(durable: DurableAgent):
    await durable.run("talk-1", "hello", session="talk")
    result = await durable.run("talk-2", [UserMessage("again")], session="talk")
    assert result.text == "3 messages, the last: again"


async def test_a_run_that_failed_raises_and_is_continued_without_a_prompt(
    durable: DurableAgent, store: Store
):
    with pytest.raises(AuthError, match="no such key"):
        await durable.run("fails", "fail please")
    with pytest.raises(AuthError, match="no such key"):  # and so does the record of it
        await durable.run("fails", "fail please")
    again = DurableAgent(
        lambda session: Agent("test:m", stream_fn=ScriptedModel(["better"]), session=session),
        store,
        name="better",
    )
    assert (await again.run("fails-2", session="fails")).text == "better"


async def test_what_waits_for_approval_is_answered_by_another_workflow(durable: DurableAgent, store: Store):
    result = await durable.run("order", "buy tea cake")
    assert (result.reason, seen) == ("approval", [])
    assert [pending.call_id for pending in (await store.open("order")).pending] == ["tea", "cake"]
    with pytest.raises(InvalidInput, match="no call 'gold' waits for approval; pending: cake, tea"):
        await durable.run("order-typo", session="order", approvals={"gold": True})
    result = await durable.run("order-2", session="order", approvals={"tea": True, "cake": False})
    assert (result.text, result.reason, seen) == ("done", None, ["tea"])
    # Taken up again after a crash, it finds that its answers were given.
    assert (await durable._finish("order", None, {"tea": True, "cake": False}, 0))["text"] == "done"
    assert seen == ["tea"]


async def test_cancelling_the_workflow_stops_a_tool_in_its_middle(durable: DurableAgent):
    run = asyncio.ensure_future(durable.run("stuck", "hang"))
    while not waiting.is_set():
        await asyncio.sleep(0.01)
    await dbos.DBOS.cancel_workflow_async("stuck")
    with pytest.raises(dbos.error.DBOSAwaitedWorkflowCancelledError):
        await run
    assert stopped.is_set()


async def test_what_ended_before_the_engine_noted_it_is_not_run_again(durable: DurableAgent, store: Store):
    """A process may end between the last message of a run and the note that this was all."""
    await durable.run("noted", "note it")
    messages = (await store.open("noted")).meta.messages
    ended = await durable._finish("noted", "note it", {}, 0)
    assert ended["text"] == "done"
    assert seen == ["it"]
    assert (await store.open("noted")).meta.messages == messages


async def test_an_agent_without_the_session_is_refused(durable: DurableAgent, store: Store):
    forgetful = DurableAgent(
        lambda session: Agent("test:m", stream_fn=ScriptedModel(["hi"])), store, name="forgetful"
    )
    with pytest.raises(MisuseError, match=r"make_agent\(session\) has to pass session= to its Agent"):
        await forgetful.run("forgetful", "hello")


async def test_two_of_one_name_are_refused(durable: DurableAgent, store: Store):
    with pytest.raises(InvalidInput, match="there is already a durable agent 'test'"):
        DurableAgent(make_agent, store, name="test")


@pytest.mark.parametrize("id", ["", "a/b", "..", "a:b", "x" * 200])
async def test_an_id_that_is_no_session_id_is_refused(durable: DurableAgent, id: str):
    with pytest.raises(InvalidInput):
        await durable.run(id, "hello")


async def test_what_cannot_work_is_refused_when_it_is_written():
    with pytest.raises(InvalidInput, match="make_agent is a function"):
        DurableAgent("agent", MemoryStore())  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="store takes Store"):
        DurableAgent(make_agent, "dir")  # pyright: ignore[reportArgumentType]


async def test_without_the_engine_the_error_says_what_installs_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "dbos", None)
    with pytest.raises(MisuseError, match=r"durable agents need DBOS .*; install it with: .*dbos"):
        DurableAgent(make_agent, MemoryStore(), name="nobody")
