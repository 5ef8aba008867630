"""MCP over stdio: good servers, old ones, and bad ones."""

import asyncio
import base64
import json
import os
import re
import shutil
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_servers import HERE, agent_of, alive, bare, call, leftovers, results, sdk
from tests.counts import left_to_more

from swink import Agent, Image, tool
from swink.errors import InvalidInput, InvalidTool, MisuseError
from swink.events import ToolExecutionUpdate
from swink.mcp import HttpServer, McpError, McpServers, StdioServer, servers_from
from swink.mcp.naming import tool_names
from swink.mcp.serveroutput import broken_reply
from swink.messages import Base64Source, Text
from swink.system.writable import mark_writable
from swink.testing import EventCollector, ScriptedModel
from swink.tools import Tool


async def test_a_real_server_gives_text_numbers_images_errors_and_progress_and_hears_of_a_cancelled_run(
    tmp_path: Path,
):
    cancelled = tmp_path / "cancelled"
    async with McpServers([sdk()]) as servers:
        assert [tool.name for tool in servers.tools] == [
            f"sdk_{name}" for name in ("add", "echo", "picture", "fail", "environment", "slow", "crash")
        ]
        agent = agent_of(
            servers,
            [
                call("sdk_add", 1, a=2, b=3),
                call("sdk_echo", 2, text="grüß"),
                call("sdk_picture", 3),
                call("sdk_fail", 4, text="no luck"),
            ],
            [call("sdk_slow", 5, seconds=0, mark=str(tmp_path / "mark")), call("sdk_add", 6, a="x")],
            "done",
        )
        events = EventCollector()
        agent.subscribe(events)
        await agent.run("Go.")
        events.check()
        add, echo, picture, fail, slow, invalid = [
            message for message in agent.messages if message.role == "tool_result"
        ]
        agent = agent_of(servers, call("sdk_slow", seconds=60, mark=str(cancelled)), "after")
        assert (await agent.run("Go.", deadline=0.3)).stop_reason == "aborted"
        for _ in range(3_000):
            if cancelled.exists() and cancelled.read_text():
                break
            await asyncio.sleep(0.02)
        assert cancelled.read_text() == "cancelled"
        (after,) = await results(servers, call("sdk_add", a=1, b=1))
        assert after.text == "2", "the connection is as good as before"
    assert (add.text, add.details, add.is_error) == ("5", {"structured": {"result": 5}}, False)
    assert echo.text == "grüß"
    (image,) = picture.content
    assert isinstance(image, Image)
    assert isinstance(image.source, Base64Source)
    assert base64.b64decode(image.source.data).startswith(b"\x89PNG")
    assert fail.is_error
    assert "no luck" in fail.text
    assert slow.text == "done"
    assert [event.update for event in events.of(ToolExecutionUpdate)] == [
        {"progress": 1.0, "total": 2.0, "message": "half way"}
    ]
    assert invalid.is_error, "arguments are checked here, before anything is sent"
    assert "required" in invalid.text
    assert leftovers() == []


@left_to_more
async def test_mcp_server_time_works():
    if find_spec("mcp_server_time") is None:
        pytest.skip("mcp-server-time is not installed")
    async with McpServers(
        [StdioServer("time", sys.executable, ["-m", "mcp_server_time"], requires_approval=False)]
    ) as servers:
        assert {tool.name for tool in servers.tools} == {"time_get_current_time", "time_convert_time"}
        good, bad = await results(
            servers,
            call("time_get_current_time", 1, timezone="Europe/Oslo"),
            call("time_get_current_time", 2, timezone="Mars/Base"),
        )
    assert json.loads(good.text)["timezone"] == "Europe/Oslo"
    assert bad.is_error


def everything() -> str | None:
    own = Path(sys.prefix, "node", "node_modules", ".bin", "mcp-server-everything")
    return str(own) if own.exists() else shutil.which("mcp-server-everything")


async def test_server_everything_works():
    command = everything()
    if command is None or shutil.which("node") is None:
        pytest.skip("@modelcontextprotocol/server-everything (npm) is not installed")
    async with McpServers([StdioServer("every", command, ["stdio"], requires_approval=False)]) as servers:
        assert "every_echo" in {tool.name for tool in servers.tools}
        (echo,) = await results(servers, call("every_echo", message="hello"))
    assert echo.text == "Echo: hello"


async def test_the_environment_is_path_and_what_is_configured(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ours")
    monkeypatch.setenv("HOME", "/somewhere")
    async with McpServers([bare(env={"API_KEY": "theirs", "LANG": "C"})]) as servers:
        (result,) = await results(servers, call("bare_env"))
    environment = json.loads(result.text)
    assert {key: value for key, value in environment.items() if not key.startswith("__CF")} == {
        "PATH": os.environ["PATH"],
        "API_KEY": "theirs",
        "LANG": "C",
        **({"LC_CTYPE": environment["LC_CTYPE"]} if "LC_CTYPE" in environment else {}),
    }


async def test_approval_is_asked_by_default_and_trusted_tools_are_not():
    async with McpServers([bare(requires_approval=True, trusted=["coun*"])]) as servers:
        assert {tool.name: tool.requires_approval for tool in servers.tools}["bare_fine"] is True
        fine, count = await results(servers, call("bare_fine", 1), call("bare_count", 2))
        assert "needs approval and nobody can give it" in fine.text
        assert count.text.startswith("call 1 "), "the other never reached the server"
        asked: list[str] = []
        await results(servers, call("bare_fine"), approve=lambda request: asked.append(request.name) or True)
        assert asked == ["bare_fine"]


@pytest.mark.parametrize(
    ("trusted", "read_only"), [((), []), (["*"], []), (False, []), (True, ["hints_look"])]
)
async def test_a_servers_read_only_hint_counts_only_if_the_server_is_trusted(trusted, read_only):
    async with McpServers([bare("hints", name="hints", trusted=trusted, requires_approval=True)]) as servers:
        assert [tool.name for tool in servers.tools if tool.read_only] == read_only
        asks = trusted != ["*"]
        assert all(tool.requires_approval is asks for tool in servers.tools), (
            "trust in hints approves nothing"
        )


@pytest.mark.parametrize("wrong", [{"trusted": "get_*"}, {"tools": "*"}, {"trusted": 1}, {"timeout": "20"}])
def test_options_of_the_wrong_type_are_refused_by_name(wrong: dict[str, object]):
    """A text as a list of patterns would be a list of characters, and `*` among them matches everything."""
    (name,) = wrong
    with pytest.raises(InvalidInput, match=rf"MCP server 'x'.*{name}"):
        StdioServer("x", "command", **wrong)
    with pytest.raises(InvalidInput, match=rf"MCP server 'x'.*{name}"):
        servers_from({"mcpServers": {"x": {"command": "command", **wrong}}})


async def test_a_server_that_no_longer_lists_its_tools_is_an_error_of_ours():
    async with McpServers([bare("fickle", env={"API_KEY": "hunter2-secret"})]) as servers:
        with pytest.raises(McpError, match=r"'bare' does not list its tools.*\[redacted\]"):
            await servers.refresh()
        assert len(servers.tools) == 6, "what was known before still works"


async def test_only_the_tools_asked_for_are_used():
    async with McpServers([bare(tools=["fine", "c*"])]) as servers:
        assert [tool.name for tool in servers.tools] == ["bare_fine", "bare_count"]


async def test_a_server_that_dies_in_a_call_is_started_again_for_the_next():
    async with McpServers([bare()]) as servers:
        (first,) = await results(servers, call("bare_count"))
        (dead,) = await results(servers, call("bare_die"))
        assert "was lost" in dead.text
        assert "whether 'die' took effect is unknown" in dead.text
        (second,) = await results(servers, call("bare_count"))
    assert (first.text.split()[:2], second.text.split()[:2]) == (["call", "1"], ["call", "1"])
    assert first.text != second.text, "another process"


async def test_a_server_that_dies_while_idle_is_started_again_before_the_next_call():
    async with McpServers([bare()]) as servers:
        (first,) = await results(servers, call("bare_count"))
        pid = int(first.text.split()[-1])
        os.kill(pid, 9)
        for _ in range(3_000):
            if not alive(pid):
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        (second,) = await results(servers, call("bare_count"))
        assert second.text.startswith("call 1 "), "no call was lost"


async def test_a_server_that_cannot_come_back_is_an_error_result(tmp_path: Path):
    script = tmp_path / "server.py"
    script.write_text(Path(bare().args[0]).read_text())
    async with McpServers(
        [StdioServer("gone", sys.executable, [str(script), "plain"], requires_approval=False)]
    ) as servers:
        await results(servers, call("gone_die"))
        script.unlink()
        (result,) = await results(servers, call("gone_fine"))
    assert result.is_error
    assert "cannot be reached" in result.text


async def test_an_old_server_that_dies_of_the_new_question_is_asked_the_old_way():
    async with McpServers([bare("old")]) as servers:
        assert (await results(servers, call("bare_count")))[0].text.startswith("call 1 ")


async def test_chatter_on_stdout_does_no_harm():
    async with McpServers([bare("garbage")]) as servers:
        assert (await results(servers, call("bare_fine")))[0].is_error is False


async def test_lists_of_many_pages_are_read_to_the_end():
    async with McpServers([bare("pages")]) as servers:
        assert [tool.name for tool in servers.tools] == [f"bare_t{number}" for number in range(5)]
        assert len(await servers.refresh()) == 5


async def test_schemas_that_cannot_be_used_are_left_out_and_nothing_is_fetched():
    async with McpServers([bare("schemas")]) as servers:
        assert [tool.name for tool in servers.tools] == ["bare_fine", "bare_drafty"]
        remote, nonsense, twice = servers.problems
    assert "external references are never fetched" in remote
    assert "'nonsense' is left out" in nonsense
    assert "twice" in twice


async def test_names_are_valid_and_different():
    async with McpServers([bare("names"), bare("names", name="ba re")]) as servers:
        names = [tool.name for tool in servers.tools]
    assert len(set(names)) == 14
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert "bare_ok-1" in names


parts = st.text(st.sampled_from("ab_. é"), min_size=1, max_size=3) | st.text(min_size=1, max_size=90)


@given(st.lists(st.tuples(parts, parts), max_size=30))
def test_any_names_become_valid_and_different_whatever_their_order(pairs: list[tuple[str, str]]):
    names = tool_names(pairs)
    assert set(names) == set(pairs)
    assert len(set(names.values())) == len(set(pairs))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
    assert tool_names(reversed(pairs)) == names


@given(
    st.dictionaries(parts, st.lists(parts, max_size=5, unique=True), max_size=6),
    st.sets(st.text(st.sampled_from("ab_"), min_size=1, max_size=6), max_size=5),
)
def test_a_name_is_nobody_elses_and_does_not_depend_on_the_tools_of_other_servers(
    servers: dict[str, list[str]], taken: set[str]
):
    names = tool_names(
        [(server, tool) for server, tools in servers.items() for tool in tools], servers, taken
    )
    assert not taken & set(names.values())
    for server, tools in servers.items():
        alone = tool_names([(server, tool) for tool in tools], servers, taken)
        assert alone == {pair: name for pair, name in names.items() if pair[0] == server}


async def test_no_tool_of_a_server_is_named_like_the_one_of_structured_output():
    async with McpServers([bare("tools:output", name="final")]) as servers:
        agent = agent_of(servers, [call("final_output", value=7)])
        assert (await agent.run("Go.", output=int)).output == 7
        assert servers.tools[0].name.startswith("final_output_")


async def test_a_clash_with_a_tool_of_the_program_is_refused_when_the_agent_is_made():
    @tool
    def read_file(path: str) -> str:
        """Read a file."""
        return path

    async with McpServers([bare("tools:file", name="read")]) as servers:
        with pytest.raises(InvalidTool, match="two tools are named 'read_file'; rename one"):
            Agent("test:model", tools=[read_file, *servers.tools])


async def test_blocks_no_provider_would_take_become_text():
    async with McpServers([bare()]) as servers:
        (result,) = await results(servers, call("bare_blocks"))
    assert [block.text if isinstance(block, Text) else block for block in result.content] == [
        "[image: not valid base64, not shown]",
        "[image: image/tiff, 2 bytes, not shown]",
        "[audio: audio/wav, 2 bytes, not shown]",
        "[resource file:///x]\ninside",
        Image(Base64Source("aGk=", "image/png")),
        "[resource file:///z: binary, 2 bytes, not shown]",
        "[resource doc: file:///d]",
    ]


async def test_a_server_that_does_not_start_is_reported_with_its_last_words_and_without_its_secrets():
    with pytest.raises(McpError) as raised:
        async with McpServers([bare(), bare("exit", name="broken", env={"API_KEY": "hunter2-secret"})]):
            pass
    assert "'broken' cannot be reached" in str(raised.value)
    assert "no luck with [redacted]" in str(raised.value)
    assert leftovers() == []


async def test_a_server_that_is_not_required_is_left_out():
    async with McpServers([bare(), bare("exit", name="broken", required=False)]) as servers:
        assert all(tool.name.startswith("bare_") for tool in servers.tools)
        assert "'broken' cannot be reached" in servers.problems[0]


async def test_a_command_that_does_not_exist_is_named():
    with pytest.raises(McpError, match="no command 'no-such-command'"):
        async with McpServers([StdioServer("x", "no-such-command")]):
            pass


async def test_a_server_that_never_answers_is_given_up():
    with pytest.raises(McpError, match=r"no answer within 0\.3 s"):
        async with McpServers([bare("mute", connect_timeout=0.3)]):
            pass
    assert leftovers() == []


async def test_opening_can_be_cancelled():
    opening = asyncio.create_task(McpServers([bare("mute", connect_timeout=600)]).__aenter__())
    await asyncio.sleep(0.2)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert leftovers() == []


async def test_a_server_that_will_not_go_is_killed(monkeypatch: pytest.MonkeyPatch):
    for patience in ("PROCESS_TERMINATION_TIMEOUT", "FORCE_KILL_TIMEOUT"):
        monkeypatch.setattr(f"mcp.client.stdio.{patience}", 0.3)
    async with McpServers([bare("stubborn")]) as servers:
        (result,) = await results(servers, call("bare_count"))
        pid = int(result.text.split()[-1])
    assert not alive(pid)


async def test_servers_work_when_they_are_opened_and_closed_in_different_tasks():
    servers = await asyncio.create_task(McpServers([bare()]).__aenter__())
    assert (await asyncio.create_task(results(servers, call("bare_fine"))))[0].is_error is False
    await asyncio.create_task(servers.aclose())
    assert leftovers() == []


async def test_tools_of_a_closed_server_or_of_another_event_loop_say_so():
    async with McpServers([bare()]) as servers:
        tools = servers.tools
        said: list[str] = []

        def elsewhere() -> None:
            agent = Agent("test:model", stream_fn=ScriptedModel([call("bare_fine"), "done"]), tools=tools)
            said.append(agent.run_sync("Go.").messages[2].text)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
    assert "belongs to the event loop it was opened in" in said[0]
    agent = Agent("test:model", stream_fn=ScriptedModel([call("bare_fine"), "done"]), tools=tools)
    await agent.run("Go.")
    assert "is closed" in agent.messages[2].text
    with pytest.raises(MisuseError):
        _ = servers.tools


async def test_no_servers_are_no_trouble_and_two_of_one_name_are():
    async with McpServers([]) as servers:
        assert servers.tools == ()
    with pytest.raises(MisuseError):
        McpServers([bare(), bare()])


def test_the_sdk_is_not_imported_before_it_is_needed():
    code = "import sys, swink.mcp; swink.mcp.McpServers([]); sys.exit('mcp' in sys.modules or 'mcp.client' in sys.modules)"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


def test_the_usual_configuration_is_read_and_keys_stay_out_of_sight():
    stdio, http = servers_from(
        {
            "mcpServers": {
                "files": {
                    "command": "npx",
                    "args": ["-y", "server"],
                    "env": {"KEY": "hunter2"},
                    "disabled": False,
                },
                "web": {
                    "type": "http",
                    "url": "https://example.com/mcp",
                    "headers": {"Authorization": "Bearer hunter2"},
                    "timeout": 5,
                },
            }
        }
    )
    assert isinstance(stdio, StdioServer)
    assert (stdio.name, stdio.command, stdio.args) == ("files", "npx", ["-y", "server"])
    assert isinstance(http, HttpServer)
    assert (http.url, http.timeout, http.requires_approval) == ("https://example.com/mcp", 5, True)
    assert "hunter2" not in repr(stdio) + repr(http)
    with pytest.raises(MisuseError):
        servers_from({"x": {}})


@pytest.mark.parametrize(
    "server", [StdioServer("s", "command", env={"KEY": "hunter2"}), HttpServer("s", "https://example.com")]
)
def test_a_server_among_the_tools_of_an_agent_is_refused_with_the_way_to_its_tools(server: Any):
    with pytest.raises(InvalidTool, match=r"McpServers.*tools=servers\.tools") as raised:
        Agent("test:scripted", stream_fn=ScriptedModel([]), tools=[server])
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"comand": "npx"}, "'comand' means nothing; did you mean 'command'?"),
        ({"ulr": "https://example.com"}, "'ulr' means nothing; did you mean 'url'?"),
        ({"frobnicate": "npx"}, "by name"),
        ({"command": 3}, "by name"),
        (["npx"], "by name"),
    ],
)
def test_a_server_without_a_command_brings_the_nearest_name_if_one_is_near(item: object, said: str):
    with pytest.raises(MisuseError) as raised:
        servers_from({"mcpServers": {"x": item}})
    assert str(raised.value).endswith(said)


async def test_a_tool_is_an_ordinary_tool():
    async with McpServers([bare()]) as servers:
        assert all(isinstance(tool, Tool) for tool in servers.tools)
        assert servers.tools[0].description == "does fine"
        assert servers.tools[0].label == "bare: fine"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("no-utf8", "no valid UTF-8"),
        ("no-json", "no valid JSON"),
        ("no-protocol", "no message of the protocol"),
        ("no-version", "no message of the protocol"),
        ("marked", "no valid JSON"),
        ("no-id", "was lost"),
        ("odd-id", "was lost"),
    ],
)
async def test_a_reply_that_cannot_be_read_ends_its_call_at_once(how: str, reason: str):
    async with McpServers([bare(how, timeout=None)]) as servers:
        async with asyncio.timeout(60):
            first, second = await results(servers, call("bare_fine", 1), call("bare_fine", 2))
            (again,) = await results(servers, call("bare_fine"))
    assert first.is_error
    assert reason in first.text
    assert second.is_error
    assert again.is_error
    assert leftovers() == []


async def test_a_broken_reply_is_no_other_calls_error():
    async with McpServers([bare("no-utf8", timeout=None)]) as servers:
        async with asyncio.timeout(60):
            broken, whole = await results(servers, call("bare_fine", 1), call("bare_count", 2))
    assert "no valid UTF-8" in broken.text
    assert whole.text.startswith("call ")


@given(st.text(), st.integers(0, 2**31), st.integers(0, 60))
def test_a_reply_cut_anywhere_is_no_reply_of_another_call(text: str, number: int, cut: int):
    line = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"id": -1, "text": text}})[: cut + 10]
    try:
        json.loads(line)
    except ValueError:
        broken = broken_reply(_Unread(line))
        assert broken is not None
        assert broken.call_id is None or str(number).startswith(str(broken.call_id))


class _Unread(Exception):
    """As pydantic says what it could not read."""

    def errors(self) -> list[dict[str, str]]:
        return [{"input": str(self)}]


async def test_a_disabled_server_is_not_started(tmp_path: Path):
    mark = tmp_path / "started"
    config = {
        "off": {"command": sys.executable, "args": ["-c", f"open({str(mark)!r}, 'w')"], "disabled": True},
        "on": {"command": sys.executable, "args": bare().args, "disabled": False},
    }
    async with McpServers(servers_from({"mcpServers": config})) as servers:
        assert {tool.name.partition("_")[0] for tool in servers.tools} == {"on"}
        assert servers.disabled == ("off",)
        assert servers.problems == ()
        await servers.refresh()
    assert not mark.exists()


@pytest.mark.parametrize("wrong", ["mcp.json", [], {"mcpServers": []}, None])
def test_what_is_no_configuration_is_refused_with_an_example(wrong: Any):
    with pytest.raises(InvalidInput, match="a dict such as"):
        servers_from(wrong)


def test_a_configuration_is_no_list_of_servers_and_is_not_shown():
    with pytest.raises(InvalidInput, match="servers_from") as raised:
        McpServers({"mcpServers": {"x": {"command": "x", "env": {"KEY": "hunter2"}}}})  # pyright: ignore
    assert "hunter2" not in str(raised.value)


def test_a_field_that_means_nothing_is_reported(caplog: pytest.LogCaptureFixture):
    (server,) = servers_from({"mcpServers": {"x": {"command": "x", "timout": 3, "type": "stdio"}}})
    assert server.timeout == 60
    assert "'timout' means nothing here and is ignored; did you mean 'timeout'?" in caplog.text
    assert "'type'" not in caplog.text


def test_an_address_without_a_scheme_is_refused():
    with pytest.raises(InvalidInput, match="https://"):
        servers_from({"mcpServers": {"x": {"url": "example.com/mcp"}}})


async def test_chatter_of_a_server_that_does_not_start_is_no_traceback(caplog: pytest.LogCaptureFixture):
    program = "print('starting'); raise SystemExit('no settings file')"
    with pytest.raises(McpError, match="no settings file"):
        async with McpServers([StdioServer("x", sys.executable, ["-c", program])]):
            pass
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX programs")
async def test_a_server_is_not_chosen_by_files_of_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Not its program, not what starts it, not what its `#!` line looks for, not the modules that it imports."""
    canary, system, workspace = tmp_path / "canary", tmp_path / "system", tmp_path / "workspace"
    system.mkdir()
    for place in (workspace, workspace / "bin"):
        place.mkdir()
        for name in ("env", "serve", "python-of-the-path"):
            (place / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
            (place / name).chmod(0o755)
        (place / "json.py").write_text(f"open({str(canary)!r}, 'w')\n")
    (system / "python-of-the-path").symlink_to(sys.executable)
    bare_server = str(HERE / "bare_server.py")
    code = f"import json, runpy, sys\nsys.argv[1:] = ['plain']\nrunpy.run_path({bare_server!r}, run_name='__main__')\n"
    (system / "serve").write_text(f"#!/usr/bin/env python-of-the-path\n{code}")
    (system / "serve").chmod(0o755)
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", f":.:bin:{workspace}/bin:{system}:{os.environ['PATH']}")
    held = mark_writable(workspace)
    listed = [StdioServer("one", "serve"), StdioServer("two", "python-of-the-path", ["-c", code])]
    async with McpServers(listed) as servers:
        assert servers.tools
    assert not canary.exists()
    assert held


async def test_a_program_that_only_the_workspace_has_is_said_to_be_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "serve").write_text("#!/bin/sh\n")
    (tmp_path / "serve").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    held = mark_writable(tmp_path)
    with pytest.raises(
        McpError, match="serve is not used, because the model can write it: give its whole path"
    ):
        async with McpServers([StdioServer("x", "serve")]):
            pass
    assert held
