"""bash: what a model sees of a command, when it asks, and where it runs."""

import asyncio
import os
from pathlib import Path

import pytest
from calling import call, complaint, named

from swink.errors import InvalidInput, MisuseError
from swink.tools import Tool, ToolContext, coding_tools
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.command import MAX_OUTPUT, Completed
from swink.tools.coding.process import ExitStatus, Limits
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.workspace import Workspace


@pytest.fixture
def bash(tmp_path: Path) -> Tool:
    return bash_tools(Workspace(tmp_path), Sandbox(tmp_path, "none"))[0]


async def test_output_and_exit_code(bash: Tool):
    result = await call(bash, command="echo out; echo err >&2; exit 3")
    assert result.text == "out\nerr\n[exit code 3]"
    assert result.is_error
    assert result.details["exit_code"] == 3
    assert (result.details["sandbox"], result.details["backend"]) == ("none", "none")
    assert (await call(bash, command="true")).text == "[exit code 0]"
    assert (await call(bash, command="printf x")).text == "x\n[exit code 0]"


async def test_output_is_streamed_as_it_comes(bash: Tool, tmp_path: Path):
    updates: list[str] = []
    task = asyncio.create_task(
        call(
            bash,
            updates,
            command="echo first; until [ -e go ]; do sleep 0.02; done; printf 'h\\303'; sleep 0.3; printf '\\251llo'",
        )
    )
    async with asyncio.timeout(20):
        while not updates:
            await asyncio.sleep(0.01)
    assert updates == ["first\n"]
    (tmp_path / "go").touch()
    result = await task
    assert "".join(updates) == "first\nhéllo"
    assert result.text == "first\nhéllo\n[exit code 0]"


async def test_a_flood_gives_few_updates_and_a_short_result(bash: Tool):
    updates: list[str] = []
    result = await call(bash, updates, command="echo start; yes | head -c 50000000; echo end")
    assert len(result.text) < MAX_OUTPUT + 200
    assert result.text.startswith("start\ny\n")
    assert result.text.endswith("y\nend\n[exit code 0]")
    assert "bytes of 50,000,010 cut here" in result.text
    assert sum(map(len, updates)) < MAX_OUTPUT + 1000


async def test_a_models_timeout_is_never_above_the_hosts(tmp_path: Path):
    bash = bash_tools(Workspace(tmp_path), Sandbox(tmp_path, "none"), limits=Limits(wall=0.5))[0]
    async with asyncio.timeout(60):
        result = await call(bash, command="sleep 30", timeout=3600)
    assert result.details["reason"] == "timeout"
    assert "the timeout of 3600 s was lowered to 0.5 s" in result.text
    assert (
        bash.parameters_schema["properties"]["timeout"]["description"]
        == "Seconds after which it is ended, at most 0.5."
    )
    assert "lowered" not in (await call(bash, command="true", timeout=0.5)).text


async def test_a_timeout_says_so_and_keeps_what_came(bash: Tool):
    result = await call(bash, command="echo before; sleep 30", timeout=2)
    assert result.is_error
    assert result.text.startswith("before\n[timed out after 2 s;")
    assert result.details["reason"] == "timeout"


async def test_a_command_runs_where_it_is_told(bash: Tool, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    assert (await call(bash, command="pwd", directory="sub")).text == f"{tmp_path / 'sub'}\n[exit code 0]"
    (tmp_path / "out").symlink_to("/")
    for directory in ("..", "/etc", "out"):
        await complaint(bash, command="pwd", directory=directory)
    assert "does not exist" in await complaint(bash, command="pwd", directory="missing")


async def test_a_directory_can_be_kept_between_calls(tmp_path: Path):
    (tmp_path / "sub/deeper").mkdir(parents=True)
    bash = bash_tools(Workspace(tmp_path), Sandbox(tmp_path, "none"), keep_directory=True)[0]
    assert bash.sequential
    assert (
        await call(bash, command="cd sub/deeper")
    ).text == "[exit code 0]\n[working directory: sub/deeper]"
    assert (await call(bash, command="pwd; exit 4")).text == f"{tmp_path}/sub/deeper\n[exit code 4]"
    assert "outside the workspace; back at its root" in (await call(bash, command="cd /")).text
    assert (await call(bash, command="pwd")).text == f"{tmp_path}\n[exit code 0]"
    await call(bash, command="cd sub; kill -9 $$")
    assert (await call(bash, command="pwd")).text == f"{tmp_path}\n[exit code 0]"
    updates: list[str] = []
    await call(bash, updates, command="cd sub; (sleep 50 &); echo x")
    assert (await call(bash, command="pwd")).text == f"{tmp_path}/sub\n[exit code 0]"


async def test_a_directory_is_kept_in_the_sandbox_too(tmp_path: Path, need):
    need("bubblewrap")
    (tmp_path / "sub").mkdir()
    bash = bash_tools(Workspace(tmp_path), Sandbox(tmp_path, backends=("bubblewrap",)), keep_directory=True)[
        0
    ]
    await call(bash, command="cd sub")
    assert (await call(bash, command="pwd")).text == f"{tmp_path}/sub\n[exit code 0]"


async def test_cancelling_the_call_ends_the_command(bash: Tool, tmp_path: Path):
    ctx = ToolContext("call", "bash")
    task = asyncio.create_task(
        bash.execute("call", {"command": "trap '' TERM; echo $$ > pid; sleep 60; sleep 60"}, ctx)
    )
    async with asyncio.timeout(20):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_limits_are_told_in_words(tmp_path: Path):
    bash = bash_tools(Workspace(tmp_path), Sandbox(tmp_path, "none"), limits=Limits(processes=20))[0]
    result = await call(bash, command="for i in $(seq 60); do sleep 5 & done; wait")
    assert "[ended: it started more processes than a command may have]" in result.text or result.is_error


async def test_bad_arguments_are_refused(bash: Tool):
    assert "NUL" in await complaint(bash, command="a\0b")
    assert "timeout" in await complaint(bash, command="true", timeout=0)
    with pytest.raises(MisuseError, match="no sandbox level 'open'"):
        Sandbox("/tmp", "open")  # type: ignore[arg-type]


async def test_where_the_level_cannot_be_had_bash_refuses_and_the_rest_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.tools.coding.landlock.read_abi", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere:/bin")
    if os.path.exists("/bin/bwrap"):
        (tmp_path / "bin").mkdir()
        for name in ("bash", "sh", "touch"):
            (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    root = tmp_path / "workspace"
    root.mkdir()
    tools = coding_tools(root)
    assert "cannot be had here, so the command was not run" in await complaint(
        named(tools, "bash"), command="touch ran"
    )
    assert not (root / "ran").exists()
    await call(named(tools, "write_file"), path="a", content="works")
    assert (await call(named(tools, "read_file"), path="a")).text == "works"


def test_the_tools_that_change_nothing_are_read_only(tmp_path: Path):
    """A request by GET changes nothing either, though it needs approval; the task list is state that is saved."""
    expected = {"read_file", "list_files", "find_files", "search_text", "fetch_url"}
    assert {tool.name for tool in coding_tools(tmp_path) if tool.read_only} == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"net": "docs.example.org", "sandbox": "workspace+net"}, "net=['docs.example.org']"),
        ({"readable": ".env"}, "readable=['.env']"),
        ({"hidden": Path("store")}, "hidden=["),
        ({"fetch_from": "127.0.0.0/8"}, "write ['127.0.0.0/8']"),
        ({"fetch_from": ["localhost"]}, "write a network such as 127.0.0.0/8"),
        ({"net": ["https://a.example"], "sandbox": "workspace+net"}, "write a name such as"),
        ({"net": ["a.example"]}, "choose sandbox='workspace+net'"),
        ({"sandbox": "open"}, "there are none, workspace, workspace+net"),
    ],
)
def test_wrong_options_are_refused_with_what_to_write(tmp_path: Path, options: dict, expected: str):
    with pytest.raises(InvalidInput) as refusal:
        coding_tools(tmp_path, **options)
    assert expected in str(refusal.value)


def test_an_unknown_backend_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="there are none, bubblewrap, landlock"):
        Sandbox(tmp_path, backends=("docker",))  # type: ignore[arg-type]


def test_processes_that_could_not_be_ended_are_reported():
    completed = Completed(ExitStatus(0, left=2), "output", {"timeout": 1.0})
    assert completed.result().text == "output\n[exit code 0]\n[2 of its processes could not be ended]"


def test_the_bundle_has_the_tools_of_the_specification(tmp_path: Path):
    tools = coding_tools(tmp_path)
    asks = {"write_file", "edit_file", "delete_file", "bash", "fetch_url"}
    assert [tool.name for tool in tools] == [
        "read_file",
        "list_files",
        "find_files",
        "search_text",
        "write_file",
        "edit_file",
        "delete_file",
        "bash",
        "fetch_url",
        "todo",
    ]
    for tool in tools:
        assert tool.needs_approval({"command": "rm -rf x"}) is (tool.name in asks)
        assert tool.description
        assert all("description" in schema for schema in tool.parameters_schema["properties"].values()), (
            tool.name
        )
