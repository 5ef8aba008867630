"""Directories that tools and commands may read by absolute paths and never write, such as those of skills."""

import os
import sys
from pathlib import Path

import pytest
from calling import call, complaint, named, shell

from swink.tools.coding import Sandbox, coding_tools

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program of Linux")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A workspace, and a skill in a place of the home that is secret otherwise."""
    work, skill = tmp_path / "work", tmp_path / "home/.claude/skills/forms"
    work.mkdir()
    skill.mkdir(parents=True)
    (skill / "fill.sh").write_text("echo filled\n")
    (skill.parent.parent / "credentials.json").write_text("secret\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return work, skill


async def test_tools_read_there_and_write_nothing(places: tuple[Path, Path]):
    work, skill = places
    tools = coding_tools(work, shown=[skill])
    read, write = named(tools, "read_file"), named(tools, "write_file")
    assert "filled" in (await call(read, path=f"{skill}/fill.sh")).text
    assert "fill.sh" in (await call(named(tools, "list_files"), path=str(skill))).text
    assert "fill.sh" in (await call(named(tools, "search_text"), path=str(skill), pattern="echo")).text
    for path in (f"{skill}/fill.sh", f"{skill}/new/b.py"):
        assert "not written" in await complaint(write, path=path, content="x")
    assert "not written" in await complaint(named(tools, "delete_file"), path=f"{skill}/fill.sh")
    os.symlink("../../credentials.json", skill / "out")
    for path in (f"{skill}/out", f"{skill}/../../credentials.json", f"{skill}2/x"):
        assert await complaint(read, path=path)
    assert (skill / "fill.sh").read_text() == "echo filled\n"


async def test_what_holds_the_workspace_or_a_home_is_not_shown(places: tuple[Path, Path]):
    work, skill = places
    tools = coding_tools(work, shown=[work.parent, skill.parents[2]])
    assert await complaint(named(tools, "read_file"), path=f"{skill.parents[2]}/.claude/credentials.json")


@linux
async def test_commands_run_what_is_there_and_see_nothing_beside_it(places: tuple[Path, Path], need):
    need("bubblewrap")
    work, skill = places
    box = Sandbox(work, shown=[skill], backends=("bubblewrap",))
    code, output = await shell(box, f"sh {skill}/fill.sh")
    assert (code, output) == (0, "filled\n"), output
    for line in (f"echo x > {skill}/fill.sh", f"touch {skill}/new", f"cat {skill}/../../credentials.json"):
        assert (await shell(box, line))[0] != 0, line
    assert (skill / "fill.sh").read_text() == "echo filled\n"
