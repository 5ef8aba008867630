"""docs/tools.md: its programs run, and its table is that of the tools."""

import re
from pathlib import Path

from tests.pages import ROOT, blocks_of, run_program

from swink.tools import coding_tools, script_tools

PAGE = (ROOT / "docs" / "tools.md").read_text("utf-8")


def test_the_programs_run(tmp_path: Path):
    (tmp_path / "project").mkdir()
    (tmp_path / "tools").mkdir()
    for program in blocks_of("docs/tools.md"):
        assert run_program(program, tmp_path) == ("", "")


def test_the_script_tool_is_one(tmp_path: Path):
    (script,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
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
