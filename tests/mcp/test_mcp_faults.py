"""Servers that go wrong at any moment: an error or nothing at all, never a hang, a leak or a broken run."""

import asyncio
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_servers import HERE, agent_of, call, leftovers, rich
from tests.counts import MORE, crossed, tried

from swink.mcp import McpError, McpServers, StdioServer
from swink.testing import history_problems
from swink.tools import ToolError

SECRET = "hunter2-secret"
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
USES = ("tools/call", "resources/read", "prompts/get")
HARMLESS = ("flood", "twice", "wrong-id", "huge", "garbage", "storm")
FATAL = ("die", "half", "broken", "mute", "shape")


def more(value: str) -> Any:
    marks = [pytest.mark.more, pytest.mark.skipif(not MORE, reason="make test-more runs it")]
    return pytest.param(value, marks=marks)


def faulty(how: str, at: str, **options: Any) -> StdioServer:
    given = {"requires_approval": False, "timeout": 2, "connect_timeout": 10, "env": {"API_KEY": SECRET}}
    return StdioServer("f", sys.executable, [str(HERE / "faulty_server.py"), how, at], **{**given, **options})


async def use_all(servers: McpServers) -> list[str]:
    """What a tool, a resource and a prompt say, or what went wrong with them."""
    agent = agent_of(servers, call("f_fine"), "done")
    await agent.run("Go.")
    assert not history_problems(agent.messages)
    said = [message.text for message in agent.messages if message.role == "tool_result"]
    for ask in (lambda: servers.read("f", "a://b"), lambda: servers.prompt("f", "p")):
        try:
            said.append(str((await ask())[0]))
        except ToolError as error:
            said.append(str(error))
    return said


@pytest.mark.parametrize("how", HARMLESS)
@pytest.mark.parametrize("at", ["tools/call", more("initialize"), more("tools/list")])
async def test_noise_at_any_moment_does_no_harm(how: str, at: str):
    async with McpServers([faulty(how, at)]) as servers:
        said = await use_all(servers)
        assert said[0] == "fine"
        assert all("fine" in one for one in said)
    assert leftovers() == []


@pytest.mark.parametrize("how", ["die", "half", "broken", "shape"])
async def test_a_server_that_goes_wrong_before_it_is_open_is_an_error_without_secrets(how: str):
    with pytest.raises(McpError) as failure:
        async with McpServers([faulty(how, "initialize")]):
            pass
    assert SECRET not in str(failure.value)
    assert leftovers() == []


@crossed(how=["die", "broken", "half", "shape"], at=LISTS)
async def test_a_list_that_goes_wrong_leaves_the_rest_or_is_an_error(
    how: str, at: str, caplog: pytest.LogCaptureFixture
):
    with suppress(McpError):
        async with McpServers([faulty(how, at, required=False)]) as servers:
            if servers.tools:
                said = await use_all(servers)
                assert not any(SECRET in one for one in said)
            assert not any(SECRET in problem for problem in servers.problems)
    assert SECRET not in caplog.text
    assert leftovers() == []


@crossed(how=FATAL, at=USES)
async def test_a_use_that_goes_wrong_is_its_error_alone(how: str, at: str):
    async with McpServers([faulty(how, at, timeout=0.5)]) as servers:
        said = dict(zip(USES, await use_all(servers), strict=True))
        assert said[at].startswith("error: ")
        assert all("fine" in one for use, one in said.items() if use != at), said
        assert not any(SECRET in one for one in said.values())
    assert leftovers() == []


@tried(3, 40)
@given(st.floats(0, 0.6))
def test_opening_and_using_may_be_cancelled_at_any_moment(after: float):
    async def scene() -> None:
        async def whole() -> None:
            async with McpServers([faulty("storm", "tools/call")]) as servers:
                while True:
                    await use_all(servers)

        task = asyncio.create_task(whole())
        await asyncio.wait([task], timeout=after)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert leftovers() == []
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scene())


def test_a_use_may_be_cancelled_at_every_tick():
    """Whichever await it is cancelled at, the connection is as good as before and nothing is left over."""

    async def scene() -> None:
        async with McpServers([rich()]) as servers:
            for asking in (
                lambda: servers.read("rich", "note://one"),
                lambda: servers.prompt("rich", "greet", {"who": "Ada"}),
                lambda: servers.complete("rich", "greet", "who", "A"),
                servers.refresh,
                servers.settle,
            ):
                for ticks in range(30):
                    task = asyncio.ensure_future(asking())
                    for _ in range(ticks):
                        await asyncio.sleep(0)
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
            assert [block.text for block in await servers.read("rich", "note://one")] == [  # type: ignore[union-attr]
                "[resource note://one]\nwhat note://one says"
            ]
        assert leftovers() == []

    asyncio.run(scene())


changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "redefine"]),
        st.sampled_from(["a", "A", "a.b", "a_b", "links", "do2"]),
    ),
    max_size=8,
)


@tried(3, 25)
@given(changes)
def test_however_lists_change_names_stay_unique_and_stable(steps: list[tuple[str, str]]):
    async def scene() -> None:
        names: dict[tuple[str, str], str] = {}
        async with McpServers([rich()]) as servers:
            for word, name in steps:
                agent = agent_of(servers, call("rich_do", what=f"{word} {name}"), "done")
                await agent.run("Go.")
                await servers.settle()
                given = [tool.name for tool in servers.tools]
                assert len({one.casefold() for one in given}) == len(given)
                for one, origin in servers.origins.items():
                    assert names.setdefault(origin, one) == one, "whoever has a name keeps it"
        assert leftovers() == []

    asyncio.run(scene())
