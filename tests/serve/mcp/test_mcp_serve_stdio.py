"""`swink mcp serve` as a client starts it: everything a call can do over standard input and output, and every bad end."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.counts import cell_of_more, left_to_more
from tests.later import Later
from tests.patience import wait_until

mcp, mcp_types = Later("mcp"), Later("mcp_types")
HERE = Path(__file__).parent
RELAY = HERE.parents[1] / "app" / "acp" / "relay.py"
EDITIONS = ["auto", cell_of_more("legacy")]
HANDSHAKE = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    },
    {"method": "notifications/initialized"},
]


def command(factory: str) -> list[str]:
    return [sys.executable, "-m", "swink", "mcp", "serve", f"served_agents:{factory}"]


def client(factory: str, edition: str, mark: Path | None = None, **options: Any) -> Any:
    given = command(factory)
    env = {**os.environ, **({} if mark is None else {"MARK": str(mark)})}
    parameters = mcp.StdioServerParameters(command=given[0], args=given[1:], cwd=str(HERE), env=env)
    return mcp.Client(mcp.stdio_client(parameters), mode=edition, **options)


@left_to_more
@pytest.mark.parametrize("edition", EDITIONS)
async def test_progress_and_structured_output_arrive(edition: str):
    steps: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with client("cartographer", edition) as connected:
        result = await connected.call_tool("cartographer", {"input": "Oslo?"}, progress_callback=progress)
    assert result.structured_content == {"name": "Oslo", "people": 700_000}
    assert steps == ["turn 1"]


@left_to_more
@pytest.mark.parametrize("edition", EDITIONS)
async def test_the_person_at_the_client_approves_a_call(edition: str):
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"approved": len(asked) == 1})

    async with client("cautious", edition, elicitation_callback=answer) as connected:
        result = await connected.call_tool("careful_one", {"input": "Clean up."})
    assert (result.content[0].text, len(asked)) == ("Done.", 2)


@left_to_more
@pytest.mark.parametrize("edition", EDITIONS)
async def test_a_call_that_is_cancelled_ends_its_tools(edition: str, tmp_path: Path):
    mark = tmp_path / "mark"
    async with client("waiter", edition, mark) as connected:
        task = asyncio.create_task(connected.call_tool("waiter", {"input": "Wait."}))
        while not mark.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while mark.read_text() != "ended":
            await asyncio.sleep(0.01)


@contextmanager
def process(factory: str, mark: Path, *within: str) -> Iterator["subprocess.Popen[bytes]"]:
    started = subprocess.Popen(
        [*within, *command(factory)],
        cwd=HERE,
        env={**os.environ, "MARK": str(mark)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def send(process: "subprocess.Popen[bytes]", *messages: Any) -> None:
    assert process.stdin is not None
    for message in messages:
        line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        process.stdin.write(line + b"\n")
    process.stdin.flush()


def answer_to(process: "subprocess.Popen[bytes]", id: int) -> dict[str, Any]:
    assert process.stdout is not None
    while (message := json.loads(process.stdout.readline())).get("id") != id:
        pass
    return message


def wait_for(path: Path, text: str) -> None:
    wait_until(lambda: path.exists() and path.read_text() == text)


@left_to_more
def test_a_client_that_is_killed_ends_the_server_and_its_tools(tmp_path: Path):
    mark = tmp_path / "mark"
    with process("waiter", mark, sys.executable, str(RELAY)) as relay:
        assert relay.stdout is not None
        relay.stdout.readline()  # the pid of the server
        send(relay, *HANDSHAKE)
        answer_to(relay, 1)
        call = {"name": "waiter", "arguments": {"input": "Wait."}}
        send(relay, {"id": 2, "method": "tools/call", "params": call})
        wait_for(mark, "began")
        relay.kill()
        wait_for(mark, "ended")


@left_to_more
def test_bad_lines_are_answered_or_ignored_and_the_next_one_works(tmp_path: Path):
    with process("greeter", tmp_path / "mark") as server:
        send(server, *HANDSHAKE)
        answer_to(server, 1)
        send(server, b'{"half', b"[]", b"\xff\xfe", b"7", b'{"jsonrpc": "2.0"}', b"x" * 3_000_000)
        send(server, {"id": 2, "method": "tools/dance", "params": {}})
        assert "error" in answer_to(server, 2)
        send(server, {"id": 3, "method": "tools/call", "params": {"name": 7}})
        assert "error" in answer_to(server, 3)
        send(server, {"id": 4, "method": "tools/call", "params": {"name": "nobody", "arguments": {}}})
        assert "there is no tool" in answer_to(server, 4)["error"]["message"]
        call = {"name": "greeter", "arguments": {"input": "Hi."}}
        send(server, {"id": 5, "method": "tools/call", "params": call})
        assert answer_to(server, 5)["result"]["content"][0]["text"] == "Hello, world."
