"""Which commands run without asking: a corpus by family, at every level, and what surrounds a command."""

import os
from pathlib import Path

import pytest
from calling import call
from shell_corpus import harmless, hostile
from shell_scene import lay_out

from swink.tool import Tool, ToolError
from swink.tools.bash import bash_tools
from swink.tools.sandbox import Level, Sandbox
from swink.tools.workspace import Workspace

LEVELS: list[Level] = ["none", "workspace", "workspace+net"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("scene"))


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of whoever runs the tests decides about them."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "LD_", "LC_", "RIPGREP_", "BASH")) or name in ("LANG", "CDPATH", "POSIXLY_CORRECT"):
            monkeypatch.delenv(name)


def shell(root: Path, level: Level = "none", **options: bool) -> Tool:
    return bash_tools(Workspace(root, hidden=[root / ".store"]), Sandbox(root, level, hidden=[root / ".store"]), **options)[0]


def asks(root: Path, command: str, level: Level = "none", **arguments: object) -> bool:
    return shell(root, level).needs_approval({"command": command, **arguments})


@pytest.mark.parametrize("level", LEVELS)
def test_no_hostile_line_runs_unasked(root: Path, level: Level):
    tool = shell(root, level)
    assert [line for line in hostile() if not tool.needs_approval({"command": line})] == []


@pytest.mark.parametrize("level", LEVELS)
def test_every_harmless_line_runs_unasked(root: Path, level: Level):
    tool = bash_tools(Workspace(root), Sandbox(root, level))[0]
    assert [line for line in harmless() if tool.needs_approval({"command": line})] == []


def test_the_corpus_is_large_enough():
    assert len(hostile()) >= 300
    assert len(harmless()) >= 150
    assert not set(hostile()) & set(harmless())


def test_strange_arguments_ask(root: Path):
    tool = shell(root)
    for arguments in ({}, {"command": 5}, {"command": ["ls"]}, {"command": None}, {"command": "ls", "directory": 5}, {"directory": "src"}):
        assert tool.needs_approval(arguments), arguments
    assert not tool.needs_approval({"command": "ls", "directory": None})


def test_paths_are_those_of_the_directory_the_command_runs_in(root: Path):
    assert not asks(root, "cat link")
    assert asks(root, "cat link", directory="src")
    assert asks(root, "cat ../a.txt")
    assert not asks(root, "cat ../a.txt", directory="src")
    assert not asks(root, f"cat {root}/a.txt", directory="src")
    assert asks(root, "ls ..", directory=".")
    for directory in ("..", "/etc", "dir-out", "missing", "a.txt", ".store", "src/../.."):
        assert asks(root, "ls", directory=directory), directory


async def test_paths_are_those_of_the_directory_that_was_kept(root: Path):
    tool = shell(root, keep_directory=True)
    assert not tool.needs_approval({"command": "cat link"})
    await call(tool, command="cd src")
    assert tool.needs_approval({"command": "cat link"})
    assert not tool.needs_approval({"command": "cat ../a.txt"})


async def test_what_was_judged_before_the_directory_changed_is_judged_again(root: Path):
    tool = shell(root, keep_directory=True)
    assert not tool.needs_approval({"command": "cd src"})
    assert not tool.needs_approval({"command": "cat link"})
    await call(tool, command="cd src")
    with pytest.raises(ToolError, match="has changed since"):
        await call(tool, command="cat link")
    assert tool.needs_approval({"command": "cat link"})
    assert "canary-secret" in (await call(tool, command="cat link")).text


async def test_a_link_made_by_another_call_of_the_turn_is_not_followed(tmp_path: Path):
    tool = shell(lay_out(tmp_path))
    assert not tool.needs_approval({"command": "cat new"})
    await call(tool, command="ln -s ../outside/secret.txt new")
    with pytest.raises(ToolError, match="call it again"):
        await call(tool, command="cat new")
