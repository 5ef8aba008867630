"""MCP servers of an assistant: whose they are, and that a bad one hurts nobody else."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec.structs import replace

from swink import Agent, ToolCall
from swink.app.assistant import servers as server_states
from swink.app.assistant.brought import Brought, read_brought
from swink.app.assistant.forms import Form
from swink.app.assistant.planning import ReadOnlyTools
from swink.app.assistant.servers import Configured, Servers, find_servers
from swink.mcp.serverconfig import HttpServer, StdioServer, own_directory
from swink.testing import ScriptedModel

BARE = Path(__file__).parents[2] / "mcp" / "bare_server.py"
needs_sdk = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp")


def write(project: Path, servers: object) -> Brought:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return read_brought(project)


def bare(name: str, how: str = "plain") -> StdioServer:
    return StdioServer(name, sys.executable, [str(BARE), how])


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_projects_servers_are_read_only_where_it_is_trusted_and_the_users_win(tmp_path: Path):
    theirs = write(tmp_path, {"files": {"command": "theirs"}, "web": {"url": "https://example.org/mcp"}})
    assert find_servers({}, None).servers == ()
    found = find_servers({"files": {"command": "mine"}}, theirs)
    files, web = found.servers
    assert isinstance(files, StdioServer)
    assert isinstance(web, HttpServer)
    assert (files.command, files.cwd) == ("mine", own_directory("files"))
    assert found.sources == {"files": "config.toml", "web": ".mcp.json"}


def test_the_users_servers_start_in_the_folder_only_if_they_ask_for_it_and_it_is_trusted(tmp_path: Path):
    folder = tmp_path / "folder"
    elsewhere = tmp_path / "elsewhere"
    for place in (folder, elsewhere):
        place.mkdir()
    users = {
        "own": {"command": "x"},
        "here": {"command": "x", "cwd": "."},
        "program": {"command": str(folder / "serve")},
        "other": {"command": "./serve", "cwd": str(elsewhere)},
    }
    trusted = find_servers(users, read_brought(folder), folder)
    assert {server.name: (server.command, server.cwd) for server in trusted.servers} == {  # pyright: ignore
        "own": ("x", own_directory("own")),
        "here": ("x", str(folder)),
        "program": (str(folder / "serve"), own_directory("program")),
        "other": (str(elsewhere / "serve"), str(elsewhere)),
    }
    refused = find_servers(users, None, folder)
    assert [server.name for server in refused.servers] == ["own", "other"]
    assert ["starts in this folder, which is not trusted" in notice for notice in refused.notices] == [
        True,
        False,
    ]
    assert "is a program of this folder, which is not trusted" in refused.notices[1]


def test_a_folder_below_a_project_that_is_not_trusted_is_not_trusted_either(tmp_path: Path):
    repository = tmp_path / "repository"
    (repository / "sub").mkdir(parents=True)
    (repository / ".git").mkdir()
    users = {
        "above": {"command": "x", "cwd": ".."},
        "program": {"command": str(repository / "bin" / "serve")},
        "outside": {"command": "x", "cwd": "../.."},
    }
    refused = find_servers(users, None, repository / "sub")
    assert [server.name for server in refused.servers] == ["outside"]
    assert "starts in this folder, which is not trusted" in refused.notices[0]
    assert "is a program of this folder, which is not trusted" in refused.notices[1]


def test_a_projects_server_starts_in_the_project_whatever_directory_is_worked_in(tmp_path: Path):
    below = tmp_path / "below"
    below.mkdir()
    fields = {"a": {"command": "./serve"}, "b": {"command": "x", "cwd": "below"}}
    found = find_servers({}, write(tmp_path, fields), below).servers
    assert [(server.command, server.cwd) for server in found] == [  # pyright: ignore
        (str(tmp_path / "serve"), str(tmp_path)),
        ("x", str(below)),
    ]


def test_a_project_cannot_say_that_its_servers_need_no_approval(tmp_path: Path):
    loose = {"command": "x", "requires_approval": False, "trusted": True}
    (theirs,) = find_servers({}, write(tmp_path, {"a": loose})).servers
    assert theirs.asks("any")
    assert theirs.trusted == ()
    (mine,) = find_servers({"a": loose}, None).servers
    assert not mine.asks("any")


def test_variables_are_replaced_so_that_files_need_hold_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SWINK_TEST_TOKEN", "geheim")
    fields = {
        "command": "x",
        "args": ["${NO_SUCH_THING:-here}", "$HOME"],
        "env": {"T": "${SWINK_TEST_TOKEN}"},
    }
    (server,) = find_servers({}, write(tmp_path, {"a": fields})).servers
    assert isinstance(server, StdioServer)
    assert (server.args, server.env, server.cwd) == (["here", "$HOME"], {"T": "geheim"}, str(tmp_path))


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 7}', '{"files": {"command": "x"}}'])
def test_a_file_that_cannot_be_read_is_one_notice(tmp_path: Path, text: str):
    (tmp_path / ".mcp.json").write_text(text)
    found = find_servers({"mine": {"command": "x"}}, read_brought(tmp_path))
    assert [server.name for server in found.servers] == ["mine"]
    assert len(found.notices) == 1
    assert ".mcp.json was not read" in found.notices[0]


def test_a_server_that_makes_no_sense_is_left_out_and_named(tmp_path: Path):
    found = find_servers({}, write(tmp_path, {"bad": {"args": []}, "worse": 7, "good": {"command": "x"}}))
    assert [server.name for server in found.servers] == ["good"]
    assert ["'bad'" in found.notices[0], "'worse'" in found.notices[1]] == [True, True]


@needs_sdk
async def test_a_server_that_fails_is_one_notice_and_the_others_work():
    notices: list[str] = []
    servers = Servers(notices.append)
    missing = StdioServer("missing", "/no/such/program")
    off = StdioServer("off", "x", disabled=True)
    try:
        await servers.follow(Configured((missing, bare("good"), off)))
        assert [state.state for state in servers.states] == ["starting", "starting", "off"]
        await eventually(lambda: all(state.state != "starting" for state in servers.states))
        failed, good, _ = servers.states
        assert (failed.state, good.state) == ("failed", "ready")
        assert "missing" in failed.error
        assert len(notices) == 1
        assert [tool.name for tool in servers.tools()] == list(good.tools)
        assert set(servers.owners.values()) == {"good"}
        await servers.follow(Configured(()))
        assert servers.tools() == []
        assert servers.states == []
        assert servers.owners == {}
    finally:
        await servers.aclose()


@needs_sdk
async def test_closing_ends_servers_that_are_still_starting(tmp_path: Path):
    mark = tmp_path / "process"
    silent = StdioServer("silent", "/bin/sh", ["-c", f"echo $$ > {mark}; exec sleep 600"])
    servers = Servers(lambda text: None)
    await servers.follow(Configured((silent,)))
    await eventually(lambda: mark.exists() and mark.read_text())
    await servers.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@needs_sdk
async def test_a_server_whose_process_has_died_is_stopped_until_the_next_call(tmp_path: Path):
    mark = tmp_path / "process"
    server = StdioServer(
        "good",
        "/bin/sh",
        ["-c", f"echo $$ > {mark}; exec {sys.executable} {BARE} plain"],
        requires_approval=False,
    )
    servers = Servers(lambda text: None)
    try:
        await servers.follow(Configured((server,)))
        await eventually(lambda: servers.states[0].state == "ready")
        os.kill(int(mark.read_text()), 9)
        await eventually(lambda: servers.states[0].state == "stopped")
        assert "the next call starts it again" in servers.states[0].error
        (fine,) = [tool for tool in servers.tools() if tool.name == "good_fine"]
        agent = Agent(
            "test:m", stream_fn=ScriptedModel([ToolCall("1", "good_fine", {}), "done"]), tools=[fine]
        )
        await agent.run("Go.")
        assert servers.states[0].state == "ready"
    finally:
        await servers.aclose()


@needs_sdk
async def test_a_server_over_http_that_is_gone_or_says_nothing_is_not_ready_when_somebody_asks(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(server_states, "_ANSWER", 0.5)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(BARE.with_name("sdk_server.py")), "http", "0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    servers = Servers(lambda text: None)
    try:
        await servers.follow(Configured((HttpServer("web", url), bare("good"))))
        await servers.settle()
        assert [state.state for state in await servers.check()] == ["ready", "ready"]
        process.send_signal(signal.SIGSTOP)
        web, good = await servers.check()
        assert (web.state, web.error, good.state) == ("silent", "it gave no answer within 0.5 s", "ready")
        asking = asyncio.create_task(servers.check())
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        process.send_signal(signal.SIGCONT)
        await eventually_checked(servers, "ready")
        process.kill()
        await process.wait()
        assert [state.state for state in await servers.check()] == ["stopped", "ready"]
        assert servers.states[0].error == "it has ended; the next call starts it again"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await servers.aclose()


async def eventually_checked(servers: Servers, state: str) -> None:
    async with asyncio.timeout(60):
        while (await servers.check())[0].state != state:
            pass


@needs_sdk
@pytest.mark.parametrize("how", ["first start", "restart", "login", "next call"])
async def test_a_projects_server_whose_program_was_changed_is_started_only_once_it_is_allowed(
    tmp_path: Path, how: str
):
    program, mark = tmp_path / "server.py", tmp_path / "process"
    plain = (
        f"import os, pathlib\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\n{BARE.read_text()}"
    )
    program.write_text(plain)
    fields = {"mine": {"command": sys.executable, "args": ["server.py", "plain"]}}
    allowed = find_servers({}, write(tmp_path, fields))
    evil = plain.replace("import os,", f"open({str(tmp_path / 'evil')!r}, 'w')\nimport os,")
    notices: list[str] = []
    servers = Servers(notices.append)
    try:
        if how == "first start":
            program.write_text(evil)
        await servers.follow(allowed)
        await servers.settle()
        program.write_text(evil)
        if how == "restart":
            await servers.restart("mine")
        elif how == "login":
            await servers.login("mine")
        elif how == "next call":
            os.kill(int(mark.read_text()), 9)
            await eventually(lambda: servers.states[0].state == "stopped")
            (fine,) = [tool for tool in servers.tools() if tool.name == "mine_fine"]
            script = ScriptedModel([ToolCall("1", "mine_fine", {}), "done"])
            agent = Agent("test:m", stream_fn=script, tools=[fine], approve=lambda request: True)
            await agent.run("Go.")
            notices.append(agent.messages[-2].text)
        await servers.settle()
        assert not (tmp_path / "evil").exists()
        assert "server.py is not as it was when the user allowed it; /reload or /trust" in notices[-1]
        await servers.follow(find_servers({}, read_brought(tmp_path)))
        await servers.settle()
        assert servers.states[0].state == "ready"
        assert (tmp_path / "evil").exists()
    finally:
        await servers.aclose()


@needs_sdk
async def test_plan_mode_offers_what_a_trusted_server_calls_read_only():
    servers = Servers(lambda text: None)
    try:
        await servers.follow(
            Configured((replace(bare("loud", "hints"), trusted=True), replace(bare("quiet", "hints"))))
        )
        await eventually(lambda: all(state.state == "ready" for state in servers.states))
        assert len(servers.tools()) == 6
        assert [tool.name for tool in ReadOnlyTools(servers).tools()] == ["loud_look"]
    finally:
        await servers.aclose()


@needs_sdk
async def test_servers_may_ask_where_there_is_a_person_and_are_told_where_there_is_none():
    forms: list[Form] = []

    async def fill_in(form: Form) -> list[str] | None:
        forms.append(form)
        return ["Ada", "30", "Blue", "no", "S; M", "send it"]

    for fill, expected in ((fill_in, '"action": "accept"'), (None, "not supported")):
        servers = Servers(lambda text: None)
        servers.fill_in = fill
        try:
            await servers.follow(Configured((replace(bare("shop", "asking"), requires_approval=False),)))
            await eventually(lambda: servers.states[0].state == "ready")
            agent = Agent(
                "test:m", stream_fn=ScriptedModel([ToolCall("1", "shop_form", {}), "done"]), tools=[servers]
            )
            await agent.run("Go.")
            assert expected in agent.messages[-2].text
        finally:
            await servers.aclose()
    assert [form.asker for form in forms] == ["the MCP server shop"]


async def test_a_server_that_fails_in_a_way_that_nobody_foresaw_is_not_starting_for_ever(
    monkeypatch: pytest.MonkeyPatch,
):
    class Broken:
        def __init__(self, *_: object, **__: object) -> None:
            raise OSError("no certificates")

    monkeypatch.setattr("swink.mcp.client.McpServers", Broken)
    notices: list[str] = []
    servers = Servers(notices.append)
    await servers.follow(Configured((StdioServer("web", "x"),)))
    await servers.settle()
    assert [(state.state, "no certificates" in state.error) for state in servers.states] == [("failed", True)]
    assert "MCP server 'web': OSError('no certificates')" in notices[0]
    await servers.aclose()


def test_a_variable_that_is_not_set_is_named(tmp_path: Path):
    fields = {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${SWINK_NO_SUCH_TOKEN}"}}
    found = find_servers(
        {"web": fields, "other": {"command": "x", "args": ["${SWINK_NO_SUCH_TOKEN:-}"]}}, None
    )
    assert [server.name for server in found.servers] == ["other"]
    assert "SWINK_NO_SUCH_TOKEN is not set" in found.notices[0]
