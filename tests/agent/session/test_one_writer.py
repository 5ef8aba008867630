"""One conversation, one writer: agents that were given the same session object do not interleave in it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.scripted import make

from swink import UserMessage
from swink.errors import SessionConflict
from swink.memory import JsonlStore, Session, Store
from swink.messages.records import Label


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with JsonlStore(tmp_path) as store:
        yield store


async def stored(store: Store, session: Any) -> list[str]:
    return [message.text for message in (await store.open(session.id)).messages]


async def test_an_agent_whose_session_another_one_continued_asks_no_model(store: Store):
    session = await store.create()
    first, _ = make(["one"], session=session)
    second, events = make(["two"], session=session)
    await first.run("a")
    with pytest.raises(SessionConflict, match=r"same session object.*store\.open"):
        await second.run("b")
    assert events.events == []
    assert await stored(store, session) == ["a", "one"]


async def test_of_two_concurrent_runs_on_one_session_object_only_one_is_stored(store: Store):
    session = await store.create()
    agents = [make([name], session=session)[0] for name in "xy"]
    ends = await asyncio.gather(*(agent.run("go") for agent in agents), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["AgentResult", "SessionConflict"]
    kept = next(agent for agent, end in zip(agents, ends, strict=True) if not isinstance(end, Exception))
    assert await stored(store, session) == [message.text for message in kept.messages]


async def test_agents_that_follow_each_other_on_one_session_object_share_a_conversation(store: Store):
    session = await store.create()
    for number in range(3):
        agent, _ = make([f"answer {number}"], session=session)
        await agent.run(f"question {number}")
    assert len(await stored(store, session)) == 6


async def test_a_message_that_the_program_appended_behind_the_agents_back_is_a_conflict(store: Store):
    session = await store.create()
    agent, _ = make(["one", "two"], session=session)
    await agent.run("a")
    await session.append([UserMessage("behind")])
    with pytest.raises(SessionConflict):
        await agent.run("b")


async def test_records_without_messages_may_be_added_while_an_agent_has_the_session(store: Store):
    session = await store.create()
    agent, _ = make(["one", "two"], session=session)
    await agent.run("a")
    await session.append([], records=[Label("here", 2)])
    await agent.run("b")
    assert await stored(store, session) == ["a", "one", "b", "two"]


async def test_agents_with_the_same_synchronous_session_do_not_interleave_either(store: Store):
    session = store.sync.create()
    first, _ = make(["one"], session=session)
    second, _ = make(["two"], session=session)
    await first.run("a")
    with pytest.raises(SessionConflict):
        await second.run("b")
    assert await stored(store, session) == ["a", "one"]


async def test_a_session_of_ones_own_may_override_append(store: Store):
    class Loud(Session):
        async def append(self, messages: Any, **more: Any) -> None:
            await super().append(messages, **more)

    opened: Any = store.sync.begin()
    session = Loud(store.sync.backend, opened)
    agent, _ = make(["one", "two"], session=session)
    await agent.run("a")
    await agent.run("b")
    assert await stored(store, session) == ["a", "one", "b", "two"]


async def test_a_conflict_that_is_raised_is_not_logged_as_well(
    store: Store, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    session = await store.create()
    agent, _ = make(["one"], session=session)
    await (await store.open(session.id)).append([UserMessage("elsewhere")])
    with pytest.raises(SessionConflict, match="continued elsewhere"):
        await agent.run("a")
    assert caplog.text == ""
