"""Which tools may run, and where their paths may lead."""

import re
from typing import Any

from scenes import Scene, call

from swink.policies import ToolAllowList, ToolDenyList


async def _ran(policy: Any, names: list[str]) -> tuple[list[str], list[str]]:
    scene = Scene(policy, [[call(number, name) for number, name in enumerate(names)], "done"], names=names)
    await scene.run()
    return [name for name, _ in scene.ran], [
        message.text for message in scene.agent.messages if message.role == "tool_result"
    ]


async def test_a_deny_list_skips_by_name_glob_and_regex_and_tells_the_model():
    policy = ToolDenyList("bash", "fs_*", re.compile(r"db_(drop|delete)"))
    ran, texts = await _ran(policy, ["bash", "bash_history", "fs_write", "db_drop", "db_dropped", "read"])
    assert ran == ["bash_history", "db_dropped", "read"]
    assert "'bash' is not allowed" in texts[0]


async def test_an_allow_list_skips_everything_else_and_says_what_is_allowed():
    ran, texts = await _ran(ToolAllowList(["read", "search_*"]), ["read", "reader", "search_text", "bash"])
    assert ran == ["read", "search_text"]
    assert "allowed: read, search_*" in texts[1]


async def test_an_allow_list_does_not_break_structured_output():
    scene = Scene(ToolAllowList("read"), [call(name="final_output", value=3)])
    assert (await scene.agent.run("How many?", output=int)).output == 3


async def test_an_empty_allow_list_allows_nothing():
    assert await _ran(ToolAllowList(), ["read"]) == (
        [],
        ["tool call not run: 'read' is not allowed here; allowed: none"],
    )
