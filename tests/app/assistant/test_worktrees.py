"""Worktrees: what cannot be one, how one is made and taken up again, and what becomes of its change."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from treescene import git, make_repository, state

from swink.app.assistant import gitprogram, worktrees
from swink.app.assistant.gitprogram import GitProgram
from swink.app.assistant.linkedtree import find_linked
from swink.app.assistant.worktreechange import (
    drop_change,
    keep_change,
    preview_file,
    read_change,
    take_change,
)
from swink.app.assistant.worktrees import (
    OpenedWorktree,
    Worktree,
    check_name,
    check_programs,
    find_tree,
    find_worktree,
    find_worktrees,
    open_worktree,
)
from swink.errors import MisuseError


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return make_repository(tmp_path / "repo")


def opened(repository: Path, name: str = "fix") -> OpenedWorktree:
    return open_worktree(find_tree(repository), name)


def took(repository: Path, worktree: Worktree) -> list[str]:
    main = find_tree(repository)
    change = read_change(main, worktree)
    return take_change(main, change, {file.path: True for file in change.files})


# What cannot be


def test_without_git_the_error_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gitprogram, "find_program", lambda name: None)
    with pytest.raises(MisuseError, match="git is not installed"):
        find_tree(repository)


def test_outside_a_repository_the_error_says_what_to_do(tmp_path: Path):
    with pytest.raises(MisuseError, match="is in no git repository: git init makes one"):
        find_tree(tmp_path)


def test_a_bare_repository_has_no_tree_to_work_beside(tmp_path: Path):
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    with pytest.raises(MisuseError, match="bare repository"):
        find_tree(tmp_path / "bare.git")


def test_a_repository_without_a_commit_has_nothing_to_work_on(tmp_path: Path, repository: Path):
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(MisuseError, match="no commit yet"):
        opened(tmp_path / "empty")
    assert not (tmp_path / "empty-fix").exists()


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("a/b", "a-b"),
        ("../up", "up"),
        ("-x", "x"),
        ("my fix", "my-fix"),
        (".hidden", "hidden"),
        ("a..b", "a.b"),
        ("x.lock", "x"),
        ("ends.", "ends"),
    ],
)
def test_a_name_that_is_none_is_refused_with_one_that_is(name: str, instead: str):
    with pytest.raises(MisuseError, match=f"such as {instead}$"):
        check_name(name)


@pytest.mark.parametrize("name", ["", "/", "é", "a\nb\0", "x" * 61])
def test_other_names_are_refused_too(name: str):
    with pytest.raises(MisuseError, match="cannot be the name"):
        check_name(name)


@given(st.text(alphabet="ab.-_/ ~^:@{\\é", max_size=8))
def test_every_name_that_passes_is_one_of_a_branch_for_git(name: str):
    try:
        check_name(name)
    except MisuseError:
        return
    done = subprocess.run(["git", "check-ref-format", "--branch", f"swink/{name}"], capture_output=True)
    assert done.returncode == 0
    assert os.path.basename(name) == name


def test_a_directory_in_the_way_is_left_alone(repository: Path):
    other = repository.parent / "repo-fix"
    other.mkdir()
    (other / "mine").touch()
    with pytest.raises(MisuseError, match="exists and is no worktree"):
        opened(repository)
    assert [entry.name for entry in other.iterdir()] == ["mine"]
    assert "swink" not in git(repository, "branch", "--list")


def test_a_branch_that_is_checked_out_elsewhere_is_refused_with_what_to_do(repository: Path, tmp_path: Path):
    git(repository, "worktree", "add", "-q", "-b", "swink/fix", str(tmp_path / "mine"))
    with pytest.raises(MisuseError, match=f"checked out in {tmp_path / 'mine'}; work there"):
        opened(repository)


def test_a_repository_that_is_not_trusted_runs_no_filter(repository: Path):
    check_programs(find_tree(repository))
    git(repository, "config", "filter.evil.smudge", "touch /tmp/evil")
    with pytest.raises(MisuseError, match=r"is not trusted.*filter\.evil\.smudge"):
        check_programs(find_tree(repository))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are POSIX's")
def test_a_full_disk_leaves_nothing_behind(repository: Path, monkeypatch: pytest.MonkeyPatch):
    import resource

    (repository / "large").write_bytes(b"x" * 3_000_000)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "large")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        with pytest.raises(MisuseError):
            opened(repository)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (repository.parent / "repo-fix").exists()
    assert git(repository, "branch", "--list", "swink/*") == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert opened(repository).is_new


# Making and taking up


def test_a_worktree_is_beside_the_repository_on_its_own_branch(repository: Path):
    made = opened(repository)
    assert made.is_new
    assert made.worktree.path == repository.parent / "repo-fix"
    assert git(made.worktree.path, "symbolic-ref", "--short", "HEAD") == "swink/fix"
    assert str(made.worktree.path) in made.notices[0]
    assert state(made.worktree.path) | {".git": b""} == state(repository) | {".git": b""}


def test_no_hook_of_the_repository_runs_while_it_is_made(repository: Path):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    opened(repository)
    assert not (repository / "ran").exists()


def test_what_is_not_committed_is_told_and_not_in_it(repository: Path):
    (repository / "b.txt").write_text("dirty\n")
    (repository / "new").touch()
    made = opened(repository)
    assert (made.worktree.path / "b.txt").read_text() == "b\n"
    assert "(2 files) is not in it" in made.notices[1]


def test_submodules_are_told(repository: Path):
    (repository / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ./x\n')
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "modules")
    assert "submodule update --init" in opened(repository).notices[1]


def test_it_is_taken_up_again_with_all_that_is_in_it(repository: Path):
    path = opened(repository).worktree.path
    (path / "half").write_text("work")
    again = opened(repository)
    assert not again.is_new
    assert again.worktree.path == path
    assert (path / "half").read_text() == "work"


def test_from_inside_a_worktree_the_main_tree_counts(repository: Path):
    path = opened(repository).worktree.path
    assert find_tree(path).directory == repository
    git(path, "checkout", "-q", "--detach")
    assert find_tree(path).directory == repository
    assert "no branch checked out" in opened(path).notices[1]


def test_a_directory_that_was_deleted_by_hand_comes_back_with_the_branch(repository: Path):
    path = opened(repository).worktree.path
    (path / "kept").write_text("kept")
    git(path, "add", ".")
    git(path, "commit", "-qm", "kept")
    subprocess.run(["rm", "-rf", str(path)], check=True)
    assert [one.is_there for one in find_worktrees(find_tree(repository))] == [False]
    again = opened(repository)
    assert not again.is_new
    assert (path / "kept").read_text() == "kept"


def test_one_that_was_killed_while_it_was_made_is_made_again(repository: Path):
    path = opened(repository).worktree.path
    git(repository, "worktree", "lock", "--reason", "swink is making it", str(path))
    (path / "a.py").unlink()  # the checkout had not come that far
    assert (opened(repository).worktree.path / "a.py").exists()
    assert (path / "a.py").exists()
    linked = find_linked(path)
    assert linked is not None
    git(repository, "worktree", "lock", "--reason", "swink is making it", str(path))
    (path / ".git").unlink()
    subprocess.run(["rm", "-rf", str(path)], check=True)
    opened(repository)
    assert git(path, "status", "--porcelain") == ""


def test_where_the_directory_above_cannot_be_written_swink_has_its_own_place(
    repository: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worktrees.os, "access", lambda path, mode: False)
    made = opened(repository)
    assert made.worktree.path.is_relative_to(repository.parent / "xdg_data_home" / "swink" / "worktrees")
    assert opened(repository).worktree.path == made.worktree.path
    assert find_worktree(find_tree(repository), "fix").path == made.worktree.path


def test_a_worktree_that_only_itself_knows_is_none(repository: Path, tmp_path: Path):
    path = opened(repository).worktree.path
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".git").write_bytes((path / ".git").read_bytes())
    assert find_linked(path) is not None
    assert find_linked(copy) is None
    assert find_linked(repository) is None


def test_all_of_a_repository_are_listed_and_an_unknown_one_is_told(repository: Path):
    opened(repository, "two")
    opened(repository, "one")
    main = find_tree(repository)
    assert [each.name for each in find_worktrees(main)] == ["one", "two"]
    with pytest.raises(MisuseError, match=r"no worktree three .*; there are one, two"):
        find_worktree(main, "three")


# The change


def changed(repository: Path) -> Worktree:
    """A worktree with a commit, an edit that is not committed, and files that are new, deleted and a link."""
    worktree = opened(repository).worktree
    path = worktree.path
    (path / "committed").write_text("committed\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "one")
    (path / "a.py").write_text((path / "a.py").read_text().replace("line 3\n", "line three\n"))
    (path / "b.txt").unlink()
    (path / "blob").write_bytes(b"\0\1\2")
    (path / "sub").mkdir()
    (path / "sub" / "run me.sh").write_text("#!/bin/sh\n")
    (path / "sub" / "run me.sh").chmod(0o755)
    (path / "link").symlink_to("a.py")
    return worktree


def test_all_of_it_counts_committed_or_not_and_nothing_is_touched_by_looking(repository: Path):
    worktree = changed(repository)
    before, status = state(repository), git(worktree.path, "status", "--porcelain")
    change = read_change(find_tree(repository), worktree)
    assert [file.path for file in change.files] == [
        "a.py", "b.txt", "blob", "committed", "link", "sub/run me.sh",
    ]  # fmt: skip
    assert change.summary == "6 files changed"
    assert state(repository) == before
    assert git(worktree.path, "status", "--porcelain") == status


def test_files_that_git_ignores_are_no_part_of_it(repository: Path):
    worktree = opened(repository).worktree
    (worktree.path / ".gitignore").write_text("*.log\n")
    (worktree.path / "x.log").touch()
    assert [file.path for file in read_change(find_tree(repository), worktree).files] == [".gitignore"]


def test_taking_it_makes_the_main_tree_the_same_and_commits_nothing(repository: Path):
    worktree = changed(repository)
    head = git(repository, "rev-parse", "HEAD")
    took(repository, worktree)
    assert {**state(repository), ".git": b""} == {**state(worktree.path), ".git": b""}
    assert os.access(repository / "sub" / "run me.sh", os.X_OK)
    assert git(repository, "rev-parse", "HEAD") == head
    assert took(repository, worktree) == []  # again, as after a crash


def test_changes_of_the_main_tree_elsewhere_stay(repository: Path):
    worktree = changed(repository)
    text = (repository / "a.py").read_text().replace("line 30\n", "line thirty\n")
    (repository / "a.py").write_text(text)
    took(repository, worktree)
    assert (repository / "a.py").read_text() == text.replace("line 3\n", "line three\n")


@pytest.mark.parametrize("how", ["edited", "new file", "committed"])
def test_what_would_be_overwritten_refuses_all_of_it(repository: Path, how: str):
    worktree = changed(repository)
    if how == "new file":
        (repository / "committed").write_text("mine\n")
    else:
        (repository / "a.py").write_text("mine\n")
    if how == "committed":
        git(repository, "commit", "-qam", "mine")
    before = state(repository)
    with pytest.raises(MisuseError, match=r"nothing was taken: .* would overwrite"):
        took(repository, worktree)
    assert state(repository) == before
    assert worktree.is_there


def test_a_take_that_breaks_in_the_middle_puts_all_back(repository: Path, monkeypatch: pytest.MonkeyPatch):
    worktree = changed(repository)
    before = state(repository)
    do = GitProgram.do

    def broken(self: GitProgram, *words: str, **options: object) -> str:
        if words[0] == "apply" and "--check" not in words:
            do(self, *words, **options)  # type: ignore[arg-type]
            raise gitprogram.GitRefused("no space left on device")
        return do(self, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(GitProgram, "do", broken)
    with pytest.raises(MisuseError, match="nothing was taken, all is as it was: no space"):
        took(repository, worktree)
    assert state(repository) == before


def test_only_what_was_chosen_is_taken_and_as_it_was_written(repository: Path):
    worktree = changed(repository)
    main = find_tree(repository)
    change = read_change(main, worktree)
    paths = take_change(main, change, {"a.py": False, "blob": True, "committed": b"other\n"})
    assert sorted(paths) == ["blob", "committed"]
    assert (repository / "committed").read_text() == "other\n"
    assert "line 3\n" in (repository / "a.py").read_text()


def test_a_repository_inside_the_worktree_is_told_and_not_taken(repository: Path):
    worktree = opened(repository).worktree
    make_repository(worktree.path / "inner")
    main = find_tree(repository)
    change = read_change(main, worktree)
    assert [preview_file(main, file).fails for file in change.files] == [True]
    with pytest.raises(MisuseError, match="cannot be taken"):
        take_change(main, change, {"inner": True})


def test_a_deleted_directory_leaves_what_was_committed_to_take(repository: Path):
    worktree = changed(repository)
    subprocess.run(["rm", "-rf", str(worktree.path)], check=True)
    assert took(repository, find_worktree(find_tree(repository), "fix")) == ["committed"]


def test_keeping_it_commits_the_rest_to_the_branch_without_hooks(repository: Path):
    hook = repository / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    worktree = changed(repository)
    (repository / "ran").unlink(missing_ok=True)
    main = find_tree(repository)
    made = keep_change(main, read_change(main, worktree))
    assert made == git(repository, "rev-parse", "swink/fix")
    assert git(worktree.path, "status", "--porcelain") == ""
    assert keep_change(main, read_change(main, worktree)) is None
    assert not (repository / "ran").exists()
    hook.unlink()
    git(repository, "merge", "-q", "swink/fix")
    assert {**state(repository), ".git": b""} == {**state(worktree.path), ".git": b""}


def test_a_worktree_without_its_branch_is_not_committed_to(repository: Path):
    worktree = changed(repository)
    git(worktree.path, "checkout", "-q", "--detach")
    main = find_tree(repository)
    with pytest.raises(MisuseError, match="has not swink/fix checked out"):
        keep_change(main, read_change(main, worktree))


def test_dropping_it_leaves_a_commit_that_brings_it_back(repository: Path):
    worktree = changed(repository)
    main, there = find_tree(repository), state(worktree.path)
    made = drop_change(main, read_change(main, worktree))
    assert not worktree.path.exists()
    assert find_worktrees(main) == []
    git(repository, "branch", "swink/fix", made)
    back = opened(repository).worktree
    assert {**state(back.path), ".git": b""} == {**there, ".git": b""}
