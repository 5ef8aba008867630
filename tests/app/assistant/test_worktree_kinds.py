"""What else than plain files is in a worktree's change: links, modes, repositories inside, submodules."""

import os
import sys
from pathlib import Path

import pytest
from treescene import git, make_repository

from swink.app.assistant.linkedtree import find_linked
from swink.app.assistant.worktreechange import (
    drop_change,
    keep_change,
    preview_file,
    read_change,
    take_change,
)
from swink.app.assistant.worktrees import OpenedWorktree, find_tree, find_worktree, open_worktree


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return make_repository(tmp_path / "repo")


def opened(repository: Path) -> OpenedWorktree:
    return open_worktree(find_tree(repository), "fix")


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are POSIX's")
def test_links_and_modes_are_told_with_each_file(repository: Path):
    (repository / "link").symlink_to("a.py")
    (repository / "old").symlink_to("a.py")
    (repository / "file").symlink_to("a.py")
    (repository / "mode").write_text("mode\n")
    (repository / "text").write_text("text\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "links")
    path = opened(repository).worktree.path
    for name in ("link", "old", "file", "b.txt"):
        (path / name).unlink()
    (path / "b.txt").symlink_to("/etc/passwd")
    (path / "link").symlink_to("mode")
    (path / "new").symlink_to("/etc/\x1bhosts")
    (path / "file").write_text("text\n")
    (path / "text").write_text("other\n")
    (path / "run").write_text("run\n")
    for name in ("file", "mode", "text", "run"):
        (path / name).chmod(0o755)
    main = find_tree(repository)
    files = read_change(main, find_worktree(main, "fix")).files
    assert {file.path: preview_file(main, file).summary for file in files} == {
        "b.txt": "replaces b.txt, a symbolic link to /etc/passwd, before a file",
        "file": "creates file, 1 line, before a symbolic link to a.py; makes it executable",
        "link": "replaces link, a symbolic link to mode, before a symbolic link to a.py",
        "mode": "changes mode: makes it executable",
        "new": "creates new, a symbolic link to /etc/\\x1bhosts",
        "old": "deletes old, a symbolic link to a.py",
        "run": "creates run, 1 line; makes it executable",
        "text": "changes text: +1 -1; makes it executable",
    }


@pytest.mark.parametrize("index", ["whole", "broken"])
def test_git_never_looks_into_a_repository_inside_the_worktree(repository: Path, tmp_path: Path, index: str):
    worktree = opened(repository).worktree
    inner = make_repository(worktree.path / "inner")
    git(worktree.path, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    git(worktree.path, "commit", "-qm", "inner")
    git(inner, "config", "filter.x.clean", f"touch {tmp_path}/ran; cat")
    (inner / ".gitattributes").write_text("* filter=x\n")
    (inner / "b.txt").write_text("c\n")
    os.utime(inner / "b.txt", (1, 1))
    linked = find_linked(worktree.path)
    assert linked is not None
    if index == "broken":
        (linked.own / "index").write_bytes(b"DIRC")
    main = find_tree(repository)
    change = read_change(main, worktree)
    assert [file.path for file in change.files] == ["inner"]
    assert index == "broken" or keep_change(main, change) is None
    drop_change(main, change)
    assert not (tmp_path / "ran").exists()


def test_a_repository_without_a_commit_is_left_out_and_named(repository: Path):
    worktree = opened(repository).worktree
    git(worktree.path, "init", "-q", "app [1]")
    (worktree.path / "new").write_text("new\n")
    main = find_tree(repository)
    change = read_change(main, worktree)
    assert [(file.path, file.is_repository) for file in change.files] == [("app [1]", True), ("new", False)]
    assert take_change(main, change, {"new": True}) == ["new"]
    assert keep_change(main, change) is not None
    assert git(repository, "ls-tree", "--name-only", "swink/fix").split() == ["a.py", "b.txt", "new"]


def test_a_submodule_that_is_not_checked_out_is_no_change(repository: Path):
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    git(repository, "commit", "-qm", "submodule")
    worktree = opened(repository).worktree
    main = find_tree(repository)
    assert read_change(main, worktree).files == ()
    (worktree.path / "sub" / "file").touch()  # an ordinary directory in its place
    found = [(file.path, file.is_repository) for file in read_change(main, worktree).files]
    assert found == [("sub", True), ("sub/file", False)]
