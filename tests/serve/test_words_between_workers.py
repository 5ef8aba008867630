"""What is said to a run on a worker that does not carry it out: the other worker hears it, once, or it is refused."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.serve.killed import ANNA, all_of, said, until_told

from swink import Agent, tool
from swink.events import AgentEnd, ApprovalRequested, MessageUpdate
from swink.memory import SqliteStore
from swink.messages import ToolCall, as_messages
from swink.serve.hosting import Conversation, Host, HostedRun, RunWord, mailbox
from swink.serve.hosting.keptstart import KeptAnswer
from swink.serve.web import Refused
from swink.testing import Pause, ScriptedModel


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "PAUSE", 0.02)
    monkeypatch.setattr("swink.serve.hosting.host.PAUSE", 0.02)


class Pair:
    """A run on one worker, and the same run as another worker knows it."""

    def __init__(self, here: Conversation, run: HostedRun, there: Conversation, told: HostedRun) -> None:
        self.here, self.run, self.there, self.told = here, run, there, told


@asynccontextmanager
async def two_workers(path: Path, script: list[Any]) -> AsyncIterator[Pair]:
    model = ScriptedModel(script)
    async with SqliteStore(path / "a.db") as one, SqliteStore(path / "a.db") as other:
        hosts = [
            Host(lambda request: Agent("test:m", stream_fn=model, tools=[delete]), store)
            for store in (one, other)
        ]
        here = await hosts[0].create(ANNA)
        run = await here.start("Hello")
        there = await hosts[1].open(ANNA, here.id)
        try:
            yield Pair(here, run, there, await there.find_run(run.id))
        finally:
            for host in reversed(hosts):
                await host.aclose()
        assert await one.list(directory=mailbox.PLACE) == []


async def test_what_the_run_refuses_is_refused_to_who_asked_the_other_worker(tmp_path: Path):
    async with two_workers(tmp_path, [["a", Pause(60)]]) as pair:
        with pytest.raises(Refused, match="no call 'c9' of this run waits"):
            await pair.there.tell(pair.told, RunWord("approve", call_id="c9", answer=KeptAnswer("yes")))
        await pair.there.abort(pair.told)


async def test_a_word_that_no_worker_takes_is_withdrawn_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mailbox, "PATIENCE", 0.05)
    async with two_workers(tmp_path, [["a", Pause(60)]]) as pair:
        pair.here._host._taking_mail.cancel()  # type: ignore[union-attr]  # a worker that hangs
        with pytest.raises(Refused, match="ask again in 10 s"):
            await pair.there.tell(pair.told, RunWord("abort"))
        assert not pair.run.is_over
        await pair.here.abort(pair.run)


async def test_a_word_whose_taker_died_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now = 0.0
    monkeypatch.setattr(mailbox, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    async with two_workers(tmp_path, [["a", Pause(60)]]) as pair:
        pair.here._host._taking_mail.cancel()  # type: ignore[union-attr]  # a worker that is killed
        sending = asyncio.create_task(pair.there.tell(pair.told, RunWord("abort")))
        store = pair.here._host.store
        while not (left := await store.list(directory=mailbox.PLACE)):
            await asyncio.sleep(0)
        session = await store.open(left[0].id)
        await session.append([], records=[mailbox._record("taken", None)])
        now = 2 * mailbox.PATIENCE + 1
        with pytest.raises(Refused, match="look at the events of the run"):
            await asyncio.wait_for(sending, 20)
        await pair.here.abort(pair.run)


async def test_an_abort_reaches_the_worker_that_runs(tmp_path: Path):
    async with two_workers(tmp_path, [["a", Pause(60), "b"]]) as pair:
        await until_told(pair.run, lambda event: isinstance(event, MessageUpdate))
        await pair.there.abort(pair.told)
        [*_, end] = await all_of(pair.told)
        assert isinstance(end.event, AgentEnd)
        assert end.event.stop_reason == "aborted"


async def test_an_approval_and_a_follow_up_reach_the_worker_that_runs(tmp_path: Path):
    script = [ToolCall("c1", "delete", {"path": "a.txt"}), "done", "more"]
    async with two_workers(tmp_path, script) as pair:
        await until_told(pair.run, lambda event: isinstance(event, ApprovalRequested))
        await pair.there.tell(pair.told, RunWord("follow_up", list(as_messages("And then?"))))
        answer = KeptAnswer("yes")
        for _ in range(3_000):  # the question is put a moment after its event
            try:
                await pair.there.tell(pair.told, RunWord("approve", call_id="c1", answer=answer))
                break
            except Refused:
                await asyncio.sleep(0.01)
        await all_of(pair.run)
        assert said(pair.here)[2:] == ["deleted a.txt", "done", "And then?", "more"]
