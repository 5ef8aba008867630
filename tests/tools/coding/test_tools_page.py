"""docs/library/tools.md, script-tools.md and docs/coding-agent/protected-files.md: their tables are those of the tools."""

import re
from pathlib import Path

from tests.pages import ROOT

from swink.tools import coding_tools, script_tools
from swink.tools.coding.guarded import RESERVED
from swink.tools.coding.obeyed import GROUPS, IN_HOME, is_obeyed

PAGE = (ROOT / "docs" / "library" / "tools.md").read_text("utf-8")
SCRIPTS = (ROOT / "docs" / "library" / "script-tools.md").read_text("utf-8")
PROTECTED = (ROOT / "docs" / "coding-agent" / "protected-files.md").read_text("utf-8")


def test_the_script_tool_is_one(tmp_path: Path):
    (script,) = re.findall(r"```toml\n(.*?)```", SCRIPTS, re.DOTALL)
    (tmp_path / "count.toml").write_text(script, "utf-8")
    scripts = script_tools(tmp_path)
    assert ([tool.name for tool in scripts], scripts.bad) == (["count_lines"], ())


def test_the_table_names_every_tool_and_whether_it_asks(tmp_path: Path):
    rows = dict(re.findall(r"^\| `(\w+)` \| (no|yes|by command) \|", PAGE, re.MULTILINE))
    tools = {tool.name: tool for tool in coding_tools(tmp_path)}
    asks = {
        name: "by command" if callable(tool.requires_approval) else "yes" if tool.requires_approval else "no"
        for name, tool in tools.items()
    }
    assert rows == asks
    (sentence,) = re.findall(r"(.*) are marked `read_only`", PAGE)
    assert set(re.findall(r"`(\w+)`", sentence)) == {name for name, tool in tools.items() if tool.read_only}


def test_the_page_lists_what_other_programs_obey():
    section = PROTECTED.split("## What other programs obey")[1].split("\n## ")[0]
    rows = {
        who: tuple(re.findall(r"`([^`]+)`", what))
        for who, what in re.findall(r"^\| ([^|]+) \| (`[^|]+) \|$", section, re.MULTILINE)
    }
    assert rows == {**GROUPS, "in homes alone": IN_HOME}
    (reserved,) = re.findall(r"refused afterwards; (.*) at the root are reserved", PROTECTED)
    assert {".git", *re.findall(r"`([^`]+)`", reserved)} == set(RESERVED)


def test_the_page_of_permissions_names_files_of_that_list():
    page = (ROOT / "docs" / "coding-agent" / "permissions.md").read_text("utf-8")
    (sentence,) = re.findall(
        r"other programs obey\]\(protected-files\.md#what-other-programs-obey\)(.*)", page
    )
    names = re.findall(r"`([^`]+)`", sentence)
    assert names
    assert [name for name in names if not is_obeyed(name, "/work")] == []
