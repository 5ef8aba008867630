"""Names of MCP tools: unique over all servers and the built-in tools, and stable however lists change."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_servers import agent_of, bare, call, results

from swink import Agent, tool
from swink.app.assistant.servertools import ServerTools
from swink.mcp import McpServers
from swink.mcp.naming import plain_name, tool_names
from swink.testing import ScriptedModel
from swink.tools import Tool

Pair = tuple[str, str]
servers = st.sampled_from(["a", "A", "a_b", "b", "a.b", "x" * 70])
tools = st.sampled_from(["read", "Read", "READ", "b_read", "a.b", "a_b", "a b", "ü", "y" * 80, "y" * 81])
pairs = st.tuples(servers, tools)


def made(name: str) -> Tool:
    return Tool.raw(name, "does it", {"type": "object"}, _nothing)


async def _nothing(call_id: str, arguments: object, ctx: object) -> str:
    return ""


def check(names: dict[Pair, str], taken: Sequence[str] = ()) -> None:
    folded = [name.casefold() for name in names.values()]
    assert len(set(folded)) == len(folded), names
    assert not set(folded) & {name.casefold() for name in taken}
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())


@given(st.lists(st.lists(pairs, max_size=8), max_size=8), st.sets(st.sampled_from(["a_read", "B_READ"])))
def test_names_stay_unique_and_the_same_however_the_lists_change(turns: list[list[Pair]], taken: set[str]):
    configured = sorted({server for turn in turns for server, _ in turn})
    before: dict[Pair, str] = {}
    for turn in turns:
        names = tool_names(turn, configured, taken, before)
        assert set(names) == set(turn)
        check({**before, **names}, sorted(taken))
        for pair, name in names.items():
            assert before.get(pair, name) == name, "whoever has a name keeps it"
        before |= names


@given(st.lists(pairs, max_size=8), st.lists(pairs, max_size=8))
def test_a_name_that_a_tool_of_ours_takes_is_given_up_and_no_other_changes(one: list[Pair], two: list[Pair]):
    configured = sorted({server for server, _ in (*one, *two)})
    before = tool_names(one, configured)
    taken = [name.upper() for name in list(before.values())[:1]]
    after = tool_names([*one, *two], configured, taken, before)
    check(after, taken)
    assert all(after[pair] == name for pair, name in list(before.items())[1:])


def test_of_two_names_that_look_alike_the_later_one_has_the_suffix():
    first = tool_names([("s", "read.file")])
    both = tool_names([("s", "Read_File"), ("s", "read.file")], before=first)
    assert both["s", "read.file"] == "s_read_file"
    assert re.fullmatch(r"s_Read_File_[0-9a-f]{8}", both["s", "Read_File"])
    assert tool_names([("s", "Read_File")], before={**first, **both}) == {
        ("s", "Read_File"): both["s", "Read_File"]
    }


def test_capitals_make_no_other_name():
    names = tool_names([("s", "read"), ("S", "read")])
    assert len({name.casefold() for name in names.values()}) == 2
    assert plain_name("s", "read") not in names.values(), "neither is there first"


async def test_a_clash_with_a_tool_of_the_program_drops_the_later_one_and_the_run_goes_on(
    caplog: pytest.LogCaptureFixture,
):
    @tool
    def read_file(path: str) -> str:
        """Read a file."""
        return "ours"

    async with McpServers([bare("tools:file,other", name="read")]) as servers:
        agent = Agent(
            "test:model",
            stream_fn=ScriptedModel([call("read_file", path="x"), call("read_other"), "done"]),
            tools=[read_file, servers.tools],
        )
        await agent.run("Go.")
    assert [message.text for message in agent.messages if message.role == "tool_result"] == ["ours", ""]
    assert [record.getMessage() for record in caplog.records].count(
        "ServerToolset: there is another tool named 'read_file'; rename one"
    ) == 1


def test_a_new_name_is_told_once_and_many_are_told_together():
    told: list[str] = []
    found = ServerTools(["s"], told.append)
    lists = [["a"], ["a", "A"], ["a"], ["A", "a"], ["a"]]
    for listed in lists:
        found.remove("s")
        found.add("s", {("s", name): made(f"s_{name}") for name in listed})
        assert found.names_of("s")[listed.index("a")] == "s_a"
    assert len(told) == 1
    assert "is named s_A_" in told[0]
    found.add("s", {("s", f"n.{number}"): made(f"s_n_{number}") for number in range(30)})
    found.named([f"s_n_{number}" for number in range(30)])
    assert len(told) == 7
    assert told[-1] == "25 more tools of MCP servers have other names; /mcp lists them"


@pytest.mark.parametrize("how", ["ignorant", "ignorant-silent", "ignorant-rich"])
async def test_a_server_that_ignores_what_it_does_not_know_is_soon_connected(
    how: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.mcp.client._SETTLING", 0.3)
    async with McpServers([bare(how, connect_timeout=3)]) as servers:
        (result,) = await results(servers, call("bare_count"))
    assert result.text.startswith("call 1 ")


async def test_a_server_that_ignores_the_question_for_tools_has_none():
    async with McpServers([bare("ignorant-empty", connect_timeout=6)]) as servers:
        assert servers.tools == ()
        assert servers.lost == {}


async def test_a_newer_server_that_is_slow_to_start_is_spoken_to_in_the_newer_way():
    async with McpServers([bare("late-modern")]) as servers:
        agent = agent_of(servers, call("bare_count"), "done")
        await agent.run("Go.")
        assert agent.messages[-2].text.startswith("call 1 ")
