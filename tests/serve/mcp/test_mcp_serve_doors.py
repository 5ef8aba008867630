"""Who may reach a served agent over HTTP, and `swink mcp serve` as a process."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import served_agents
from tests.counts import in_cells
from tests.later import Later

from swink.errors import MisuseError
from swink.serve.mcp import AgentTool, ToolServer, serve_http

mcp, mcp_types = Later("mcp"), Later("mcp_types")
TOKEN = "secret-word-of-clients"
PING = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
HERE = Path(__file__).parent


@asynccontextmanager
async def serving(token: str | None = None, host: str = "127.0.0.1") -> AsyncGenerator[str]:
    tool = await AgentTool.open(served_agents.greeter)
    async with serve_http(await ToolServer.open("test", [tool.served]), host, token=token) as url:
        yield url


async def post(url: str, **headers: str) -> tuple[int, str]:
    accepted = {"Accept": "application/json, text/event-stream"}
    sent = accepted | {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as session, session.post(url, json=PING, headers=sent) as response:
        return response.status, await response.text()


async def test_another_host_a_web_page_and_another_path_are_refused():
    async with serving() as url:
        assert (await post(url, Host="evil.example"))[0] == 403
        assert (await post(url, Origin="https://evil.example"))[0] == 403
        assert (await post(f"{url}/more"))[0] == 404
        assert (await post(url, Origin=url.removesuffix("/mcp")))[0] not in (401, 403, 404)


async def test_a_token_is_asked_for_and_is_in_no_answer():
    async with serving(TOKEN) as url:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
            status, said = await post(url, **headers)
            assert status == 401
            assert TOKEN not in said
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await post(url, **right))[0] != 401
        assert (await post(url, Origin="https://evil.example", **right))[0] == 403


async def test_nothing_beyond_this_machine_is_served_without_a_token():
    tool = await AgentTool.open(served_agents.greeter)
    server = await ToolServer.open("test", [tool.served])
    with pytest.raises(MisuseError, match="whole network"):
        async with serve_http(server, "0.0.0.0"):
            raise AssertionError


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "swink", "mcp", "serve", *arguments]


def parameters(factory: str) -> Any:
    given = command(f"served_agents:{factory}")
    return mcp.StdioServerParameters(command=given[0], args=given[1:], cwd=str(HERE))


@in_cells("edition", ["auto", pytest.param("legacy", marks=pytest.mark.more)], every=2)
async def test_the_command_speaks_nothing_but_the_protocol_on_stdout(edition: str, tmp_path: Path):
    with (tmp_path / "stderr").open("w+") as stray:
        client = mcp.Client(mcp.stdio_client(parameters("greeter"), errlog=stray), mode=edition)
        async with client as connected:
            result = await connected.call_tool("greeter", {"input": "Hi."})
        said = (tmp_path / "stderr").read_text()
    assert result.content[0].text == "Hello, world."
    for source in ("an import", "a factory", "a tool"):
        assert f"stray output of {source}" in said


@pytest.mark.more
def test_the_command_ends_with_its_input_and_answers_a_wrong_line():
    done = subprocess.run(
        command("served_agents:greeter"),
        input=b'{"half a li\n',
        capture_output=True,
        cwd=HERE,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"stray" not in done.stdout


@pytest.mark.more
def test_a_signal_ends_the_command_while_no_input_comes():
    process = subprocess.Popen(
        command("served_agents:greeter"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=HERE,
    )
    assert process.stderr is not None
    while b"factory" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.more
@in_cells(
    ("arguments", "says"),
    [
        (["served_agents:nothing"], "nothing"),
        (["served_agents:DELETED"], "not a function"),
        (["served_agents:greeter", "--port", "1"], "--http"),
        (["served_agents:greeter", "--http", "--host", "0.0.0.0"], "SWINK_SERVE_TOKEN"),
    ],
    every=4,
)
def test_a_wrong_use_is_refused_with_advice(arguments: list[str], says: str):
    environment = {name: value for name, value in os.environ.items() if name != "SWINK_SERVE_TOKEN"}
    done = subprocess.run(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=HERE,
        env=environment,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.decode()
    assert done.stdout == b""
