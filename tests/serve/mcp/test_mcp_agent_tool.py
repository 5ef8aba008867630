"""Agents of ours as tools of an MCP server, called by the published client over HTTP, in both editions."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import served_agents
from tests.counts import crossed, left_to_more
from tests.later import Later

from swink import Agent, ToolCall
from swink.serve.mcp import AgentTool, ToolServer, serve_http
from swink.serve.mcp.toolcall import MOST_WAITING, OpenCall, OpenCalls
from swink.testing import ScriptedModel

mcp, mcp_types = Later("mcp"), Later("mcp_types")
EDITIONS = ("legacy", "auto")
"""How the client asks: with the handshake of 2025-11-25, or as in 2026-07-28."""


@asynccontextmanager
async def serving(factory: Callable[[], Any], **about: Any) -> AsyncGenerator[tuple[str, ToolServer]]:
    tool = await AgentTool.open(factory, **about)
    server = await ToolServer.open("test", [tool.served])
    async with serve_http(server) as url:
        yield url, server


@asynccontextmanager
async def client(factory: Callable[[], Any], edition: str, **options: Any) -> AsyncGenerator[Any]:
    async with serving(factory) as (url, _), mcp.Client(url, mode=edition, **options) as connected:
        yield connected


def answering(*answers: tuple[str, dict[str, Any] | None]) -> Any:
    """A person who answers the questions in this order; what was asked is in its list `asked`."""
    left, asked = list(answers), []

    async def answer(context: Any, params: Any) -> Any:
        asked.append(params.message)
        action, content = left.pop(0)
        return mcp_types.ElicitResult(action=action, content=content)

    answer.asked = asked  # type: ignore[attr-defined]
    return answer


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content)


@pytest.mark.parametrize("edition", EDITIONS)
async def test_a_client_gets_the_text_and_growing_progress(edition: str):
    steps: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, message))

    async with client(served_agents.greeter, edition) as connected:
        [tool] = (await connected.list_tools()).tools
        result = await connected.call_tool("greeter", {"input": "Hi."}, progress_callback=progress)
    assert (tool.name, tool.description, tool.output_schema) == ("greeter", "Greets the world.", None)
    assert text_of(result) == "Hello, world."
    assert steps == [(1, "turn 1"), (2, "look"), (3, "turn 2")]


@pytest.mark.parametrize("edition", EDITIONS)
async def test_the_person_at_the_client_decides_each_call(edition: str):
    served_agents.DELETED.clear()
    person = answering(("accept", {"approved": True}), ("accept", {"approved": False, "reason": "keep b"}))
    async with client(served_agents.cautious, edition, elicitation_callback=person) as connected:
        result = await connected.call_tool("careful_one", {"input": "Clean up."})
    assert text_of(result) == "Done."
    assert served_agents.DELETED == ["a"]
    assert person.asked == [f'The agent wants to run delete with {{"path":"{path}"}}' for path in "ab"]


@crossed(edition=EDITIONS, answer=[("decline", None), ("cancel", None), ("accept", {"approved": "perhaps"})])
async def test_what_is_no_yes_runs_nothing(edition: str, answer: Any):
    served_agents.DELETED.clear()
    person = answering(answer, answer)
    async with client(served_agents.cautious, edition, elicitation_callback=person) as connected:
        result = await connected.call_tool("careful_one", {"input": "Clean up."})
    assert (text_of(result), served_agents.DELETED) == ("Done.", [])


@pytest.mark.parametrize("edition", EDITIONS)
async def test_the_model_is_told_that_a_client_cannot_ask(edition: str):
    served_agents.DELETED.clear()
    model = ScriptedModel([ToolCall("1", "delete", {"path": "a"}), "Not done."])

    def factory() -> Agent:
        return Agent("test:model", stream_fn=model, tools=[served_agents.delete])

    async with client(factory, edition) as connected:
        result = await connected.call_tool("factory", {"input": "Clean up."})
    assert (text_of(result), served_agents.DELETED) == ("Not done.", [])
    assert "cannot ask its user" in str(model.calls[-1].messages[-1])


async def test_an_agent_that_asks_somebody_itself_is_left_to_it():
    served_agents.DELETED.clear()

    def factory() -> Agent:
        script = ScriptedModel([ToolCall("1", "delete", {"path": "a"}), "Done."])
        approve = lambda request: True  # noqa: E731
        return Agent("test:model", stream_fn=script, tools=[served_agents.delete], approve=approve)

    async with client(factory, "auto") as connected:
        await connected.call_tool("factory", {"input": "Clean up."})
    assert served_agents.DELETED == ["a"]


@pytest.mark.parametrize("edition", EDITIONS)
async def test_a_client_that_cancels_ends_the_run_and_its_tools(edition: str, tmp_path: Path):
    mark = tmp_path / "mark"

    def factory() -> Agent:
        script = ScriptedModel([ToolCall("1", "wait", {"mark": str(mark)}), "Never."])
        return Agent("test:model", stream_fn=script, tools=[served_agents.wait])

    began = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        if message == "wait":
            began.set()

    async with client(factory, edition) as connected:
        call = connected.call_tool("factory", {"input": "Wait."}, progress_callback=progress)
        task = asyncio.create_task(call)
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not mark.exists() or mark.read_text() != "ended":
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("edition", EDITIONS)
async def test_an_output_is_structured_content_with_its_schema(edition: str):
    async with client(served_agents.cartographer, edition) as connected:
        [tool] = (await connected.list_tools()).tools
        result = await connected.call_tool("cartographer", {"input": "Oslo?"})
    assert tool.output_schema["properties"]["people"]["type"] == "integer"
    assert result.structured_content == {"name": "Oslo", "people": 700_000}
    assert text_of(result) == '{"name":"Oslo","people":700000}'


async def test_an_output_that_is_no_object_is_in_the_field_result():
    def factory() -> Agent:
        script = ScriptedModel(['{"value": [{"name": "Oslo", "people": 7}]}'])
        return Agent("test:model", stream_fn=script, output=list[served_agents.City])

    async with client(factory, "legacy") as connected:
        [tool] = (await connected.list_tools()).tools
        result = await connected.call_tool("factory", {"input": "Cities?"})
    assert result.structured_content == {"result": [{"name": "Oslo", "people": 7}]}
    assert "City" in tool.output_schema["$defs"]


async def test_a_run_that_fails_is_an_error_result_and_no_protocol_error():
    async with client(served_agents.failing, "auto") as connected:
        result = await connected.call_tool("failing", {"input": "Hi."})
    assert result.is_error
    assert text_of(result).startswith("the agent did not finish: test:model")


async def test_a_factory_that_raises_tells_the_client_the_kind_alone():
    made: list[int] = []

    def factory() -> Agent:
        made.append(1)
        if len(made) > 1:
            raise RuntimeError("the password is hunter2")
        return served_agents.failing()

    async with client(factory, "auto") as connected:
        result = await connected.call_tool("factory", {"input": "Hi."})
    assert (result.is_error, text_of(result)) == (True, "factory failed: RuntimeError")


@pytest.mark.parametrize("arguments", [{}, {"input": " "}, {"input": 1}, {"input": "Hi.", "model": "x"}])
async def test_other_arguments_than_an_input_are_refused(arguments: dict[str, Any]):
    async with client(served_agents.greeter, "auto") as connected:
        result = await connected.call_tool("greeter", arguments)
    assert result.is_error
    assert "pass input" in text_of(result)


async def test_a_state_works_once_and_for_its_own_tool():
    async with serving(served_agents.cautious) as (url, server):
        options: Any = {
            "mode": "auto",
            "elicitation_callback": answering(("decline", None), ("decline", None)),
        }
        async with mcp.Client(url, **options) as connected:
            await connected.call_tool("careful_one", {"input": "Clean up."})
            for state in ("forged", ""):
                with pytest.raises(mcp.MCPError, match="requestState"):
                    await connected.call_tool("careful_one", {"input": "Clean up."}, request_state=state)
        assert len(server.waiting) == 0


async def test_calls_that_nobody_goes_on_with_are_given_up_the_oldest_first():
    waiting, given_up = OpenCalls(), list[int]()

    def call(number: int) -> OpenCall:
        async def give_up() -> None:
            given_up.append(number)

        async def go_on(call: Any, answers: Any) -> None:
            raise AssertionError

        return OpenCall("tool", {}, go_on, give_up)

    tokens = [await waiting.keep(call(number)) for number in range(MOST_WAITING + 2)]
    assert given_up == [0, 1]
    assert waiting.take(tokens[0], "tool") is None
    assert waiting.take(tokens[2], "another") is None
    assert waiting.take(tokens[2], "tool") is not None
    await waiting.aclose()
    assert (len(waiting), len(given_up)) == (0, MOST_WAITING + 1)


async def test_nothing_is_left_when_the_server_is_stopped_in_the_midst_of_a_call(tmp_path: Path):
    mark = tmp_path / "mark"

    def factory() -> Agent:
        script = ScriptedModel([ToolCall("1", "wait", {"mark": str(mark)}), "Never."])
        return Agent("test:model", stream_fn=script, tools=[served_agents.wait])

    before = asyncio.all_tasks()
    async with serving(factory) as (url, _):
        call = asyncio.create_task(_call_and_lose(url))
        while not mark.exists():
            await asyncio.sleep(0.01)
    await call
    assert mark.read_text() == "ended"
    assert not [task for task in asyncio.all_tasks() - before if task.get_name().startswith("swink-mcp")]


async def _call_and_lose(url: str) -> None:
    try:
        async with mcp.Client(url, mode="auto", read_timeout_seconds=5) as connected:
            await connected.call_tool("factory", {"input": "Wait."})
    except* Exception:
        pass  # the server has ended


CALLER = """
import asyncio, mcp, sys

async def main():
    async with mcp.Client(sys.argv[1], mode=sys.argv[2]) as client:
        await client.call_tool("factory", {"input": "Wait."})

asyncio.run(main())
"""


@left_to_more
@pytest.mark.parametrize("edition", EDITIONS)
async def test_a_client_that_is_killed_leaves_the_server_to_others(edition: str, tmp_path: Path):
    mark = tmp_path / "mark"
    replies: list[Any] = [ToolCall("1", "wait", {"mark": str(mark)}), "Never."]

    def factory() -> Agent:
        return Agent("test:model", stream_fn=ScriptedModel(replies), tools=[served_agents.wait])

    async with serving(factory) as (url, _):
        caller = await asyncio.create_subprocess_exec(sys.executable, "-c", CALLER, url, edition)
        while not mark.exists():
            await asyncio.sleep(0.01)
        caller.kill()
        await caller.wait()
        replies[:] = ["Hello."]
        async with mcp.Client(url, mode=edition) as connected:
            assert text_of(await connected.call_tool("factory", {"input": "Hi."})) == "Hello."
    assert mark.read_text() == "ended"
