"""delete_file: one file, the one that was looked at, and nothing else."""

import asyncio
import os
from pathlib import Path

import pytest
from calling import call, complaint, named

from swink.tools import Tool, ToolContext, ToolError, coding_tools
from swink.tools.coding import writing
from swink.tools.coding.text import hash_content
from swink.tools.coding.workspace import Workspace
from swink.tools.coding.writing import write_tools


@pytest.fixture
def delete_file(tmp_path: Path) -> Tool:
    return named(write_tools(Workspace(tmp_path)), "delete_file")


async def test_a_file_is_deleted_and_its_content_kept_for_the_diff(tmp_path: Path, delete_file: Tool):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/file").write_text("one\ntwo\n")
    result = await call(delete_file, path="sub/file")
    assert not (tmp_path / "sub/file").exists()
    assert os.listdir(tmp_path / "sub") == []
    assert result.details == {
        "path": "sub/file",
        "is_new_file": False,
        "old_content": "one\ntwo\n",
        "new_content": None,
        "hash": None,
    }
    assert "deleted sub/file (8 bytes)" in result.text


def test_it_asks_and_is_among_the_coding_tools(tmp_path: Path, delete_file: Tool):
    assert delete_file.requires_approval is True
    assert named(coding_tools(tmp_path), "delete_file")


async def test_a_binary_or_empty_file_is_deleted_too(tmp_path: Path, delete_file: Tool):
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    (tmp_path / "empty").touch()
    assert (await call(delete_file, path="binary")).details["old_content"] is None
    assert (await call(delete_file, path="empty")).details["old_content"] == ""
    assert os.listdir(tmp_path) == []


async def test_what_is_no_file_of_the_workspace_stays(tmp_path: Path):
    root = tmp_path / "root"
    (root / "directory").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git/config").write_text("x")
    (root / "secret").mkdir()
    (root / "secret/file").write_text("x")
    (root / "file").write_text("x")
    (tmp_path / "outside").write_text("x")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to("file")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    tool = named(write_tools(Workspace(root, hidden=[root / "secret"])), "delete_file")
    said = {
        "directory": "is a directory", "directory/": "is a directory", ".": "is a directory", ".git/config": "belongs to git", "secret/file": "secrets",
        "out": "symbolic link", "in": "is a symbolic link", "loop": "symbolic link", "pipe": "a pipe", "missing": "does not exist",
        "../outside": "out of the workspace", str(tmp_path / "outside"): "outside the workspace", "missing/file": "does not exist",
    }  # fmt: skip
    for path, reason in said.items():
        assert reason in await complaint(tool, path=path), path
    assert sorted(os.listdir(root)) == [".git", "directory", "file", "in", "loop", "out", "pipe", "secret"]
    assert (tmp_path / "outside").exists()


async def test_another_hash_than_expected_keeps_the_file(tmp_path: Path, delete_file: Tool):
    (tmp_path / "file").write_text("new")
    assert "nothing was changed" in await complaint(
        delete_file, path="file", expected_hash=hash_content(b"old")
    )
    assert (tmp_path / "file").read_text() == "new"
    await call(delete_file, path="file", expected_hash=hash_content(b"new"))
    assert not (tmp_path / "file").exists()


async def test_a_file_that_changes_at_the_same_moment_is_kept(
    tmp_path: Path, delete_file: Tool, monkeypatch: pytest.MonkeyPatch
):
    """Somebody writes between our look at the file and its end."""
    (tmp_path / "file").write_text("old")
    rename = os.rename

    def late(source: str, target: str, **options: int) -> None:
        (tmp_path / "file").write_text("changed meanwhile")
        rename(source, target, **options)

    monkeypatch.setattr(writing.os, "rename", late)
    assert "somebody else changed file" in await complaint(delete_file, path="file")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "changed meanwhile"


async def test_a_cancelled_deletion_deletes_nothing(tmp_path: Path, delete_file: Tool):
    (tmp_path / "file").write_text("x")
    ctx = ToolContext("call", "delete_file")
    ctx.cancel()
    with pytest.raises(ToolError, match="nothing was changed"):
        await delete_file.execute("call", {"path": "file"}, ctx)
    assert (tmp_path / "file").exists()


async def test_deletions_and_edits_of_one_file_take_turns(tmp_path: Path):
    tools = write_tools(Workspace(tmp_path))
    for _ in range(20):
        (tmp_path / "file").write_text("a")
        results = await asyncio.gather(
            call(named(tools, "edit_file"), path="file", edits=[{"old": "a", "new": "b"}]),
            call(named(tools, "delete_file"), path="file"),
            return_exceptions=True,
        )
        assert not (tmp_path / "file").exists()
        assert not isinstance(results[1], BaseException)
        assert results[1].details["old_content"] in ("a", "b")
        assert os.listdir(tmp_path) == []
