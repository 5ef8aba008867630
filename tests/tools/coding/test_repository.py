"""git runs unasked only where no file makes it run something else."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import call
from shell_scene import git
from tests.counts import in_cells

from swink.tools.coding.bash import bash_tools
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.workspace import Workspace


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("a\n")
    git(root, "init", "-q")
    git(root, "add", "a.txt")
    git(root, "commit", "-q", "-m", "first")
    return root


def asks(root: Path, command: str = "git status", sandbox: Sandbox | None = None, **arguments: str) -> bool:
    return bash_tools(Workspace(root), sandbox or Sandbox(root, "none"))[0].needs_approval(
        {"command": command, **arguments}
    )


def add(root: Path, text: str) -> None:
    with open(root / ".git/config", "a") as file:
        file.write(text + "\n")


ORDINARY = [
    "", "# a comment", "; another", '[user]\n\tname = A B\n\temail = "a@example.org"', '[remote "origin"]\n\turl = git@example.org:x/y.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*',
    '[branch "feature/a-b"]\n\tremote = origin\n\tmerge = refs/heads/main\n\tvscode-merge-base = origin/main', "[core]\n\tautocrlf = input\n\tquotepath = off\n\tIgnoreCase = true",
    "[pull]\n\trebase = true\n[push]\n\tdefault = simple", "[core]\n\thooksPath = .husky/_", "[alias]\n\tst = status", "[diff]\n\talgorithm = histogram", "[core]\r\n\tfilemode = true\r",
    "[lfs]\n\trepositoryformatversion = 0", '[lfs "https://example.org/x.git/info/lfs"]\n\tlocksverify = true', "[gc]\n\tauto = 0", '[http "https://example.org/"]\n\textraheader = AUTHORIZATION: basic x', "[commit]\n\tgpgsign = true",
]  # fmt: skip
OBEYED = [
    '[lfs "extension.x"]\n\tclean = touch pwned\n\tpriority = 0', '[lfs "customtransfer.x"]\n\tpath = evil', "[alias]\n\twhatchanged = commit -a", '[alias "whatchanged"]\n\tcommand = commit -a',
    "[core]\n\tfsmonitor = touch pwned", "[core] fsmonitor = touch pwned", "[CORE]\n\tFsMonitor = touch pwned", "[core]\nfsmonitor=touch pwned", "[core]\n\tfsmonitor", "[core]\n\tfsmonitor = true",
    "[co\\\nre]", "[core]\n\tpager = touch pwned", "[core]\n\tsshCommand = touch pwned", "[core]\n\teditor = touch pwned", "[core]\n\tworktree = /etc", "[core]\n\tbare = true",
    "[core]\n\tattributesFile = /etc/passwd", "[core]\n\texcludesFile = /etc/passwd", "[core]\n\tgitProxy = x", "[core]\n\thooksPath = evil", "[core]\n\thooksPath = ~/x",
    "[core]\n\talternateRefsCommand = touch pwned", "[diff]\n\texternal = touch pwned", "[diff]\n\torderFile = /etc/passwd", '[diff "x"]\n\ttextconv = touch pwned', '[diff "x"]\n\tcommand = touch pwned',
    "[diff.x]\n\ttextconv = touch pwned", '[filter "x"]\n\tclean = touch pwned', '[filter "x"]\n\tprocess = touch pwned', '[filter "lfs"]\n\tsmudge = git-lfs smudge', "[include]\n\tpath = ../evil",
    '[includeIf "gitdir:/"]\n\tpath = ../evil', "[alias]\n\tstatus = !touch pwned", '[alias]\n\tst = "!touch pwned"', "[extensions]\n\tworktreeConfig = true", "[extensions]\n\tpartialClone = origin",
    '[remote "origin"]\n\tpromisor = true', '[remote "origin"]\n\tuploadpack = touch pwned', "[gpg]\n\tprogram = touch pwned", "[log]\n\tshowSignature = true", "[pretty]\n\tx = %G?",
    "[format]\n\tpretty = %G?", "[pager]\n\tlog = touch pwned", "[interactive]\n\tdiffFilter = touch pwned", '[merge "x"]\n\tdriver = touch pwned', "[mailmap]\n\tfile = /etc/passwd",
    "[user]\n\tname = a\\\n[core]\n\tfsmonitor = x", '[user "a\\"b"]\n\tname = x', "[user]\n\tname = a \\\nb", "\ufeff[core]\n\tfsmonitor = x", "[trace2]\n\tnormalTarget = /tmp/x", "x = y = z\x01",
    "[difftool]\n\tprompt = false", '[credential]\n\thelper = "!touch pwned"', "[sequence]\n\teditor = x", "[blame]\n\tignoreRevsFile = /etc/passwd", "[unknown]\n\tx = y", "[core",
    "[user]\n\tname = \x00", '[submodule "x"]\n\tupdate = !touch pwned', "[stash]\n\tshowPatch = true", "[status]\n\tsubmoduleSummary = true", "[diff]\n\tsubmodule = diff", "[diff]\n\tignoreSubmodules = none",
]  # fmt: skip


@in_cells("text", ORDINARY, every=3)
def test_ordinary_configuration_stays_silent(root: Path, text: str):
    add(root, text)
    assert not asks(root)
    assert not asks(root, "git log --oneline -5")
    assert not asks(root, "git diff HEAD", directory="src")


@in_cells("text", OBEYED, every=4)
def test_configuration_that_is_obeyed_asks(root: Path, text: str):
    (root / "evil").mkdir()
    (root / "evil/post-index-change").touch()
    add(root, text)
    assert asks(root)
    assert asks(root, "git diff")


def bare(root: Path) -> None:
    git(root, "init", "-q", "--bare", "src/x")


def half_bare(root: Path) -> None:
    (root / "src/x").mkdir()
    (root / "src/x/HEAD").write_text("ref: refs/heads/main\n")


def pointer(root: Path) -> None:
    (root / "src/x").mkdir()
    (root / "src/x/.git").write_text("gitdir: /somewhere\n")


def linked(root: Path) -> None:
    (root / "src/x").mkdir()
    (root / "src/x/.git").symlink_to("../../.git")


@pytest.mark.parametrize("plant", [bare, half_bare, pointer, linked])
def test_a_repository_among_the_files_asks(root: Path, plant: Callable[[Path], None]):
    plant(root)
    assert not asks(root)
    assert asks(root, directory="src/x")
    assert asks(root, "cd src/x && git status")
    assert asks(root, "cd src; cd x; git log")
    assert asks(root, "git -C src/x status")
    assert asks(root, "git -C src -C x status")
    (root / "src/x/deeper").mkdir()
    assert asks(root, directory="src/x/deeper")


def moved(root: Path) -> None:
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").write_text("gitdir: ../elsewhere\n")


def moved_by_a_link(root: Path) -> None:
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").symlink_to("../elsewhere")


def configured_elsewhere(root: Path) -> None:
    (root / ".git/config").rename(root / "config")
    (root / ".git/config").symlink_to("../config")


def with_a_common_directory(root: Path) -> None:
    (root / ".git/commondir").write_text("../src\n")


def with_other_objects(root: Path) -> None:
    (root / ".git/objects/info").mkdir(exist_ok=True)
    (root / ".git/objects/info/alternates").write_text("/somewhere\n")


def with_a_shared_index(root: Path) -> None:
    (root / ".git/sharedindex.0123").touch()


def with_a_hook(root: Path) -> None:
    (root / ".git/hooks").mkdir(exist_ok=True)
    (root / ".git/hooks/post-index-change").write_text("#!/bin/sh\n")


def with_a_submodule(root: Path) -> None:
    git(root, "init", "-q", "src/module")
    git(root / "src/module", "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "add", "src/module")


def with_a_bad_head(root: Path) -> None:
    (root / ".git/HEAD").write_text("nonsense\n")


def without_objects(root: Path) -> None:
    subprocess.run(["rm", "-r", ".git/objects"], cwd=root, check=True)


def beneath_another(root: Path) -> None:
    (root / ".git").rename(root.parent / ".git")


CHANGES = [
    moved, moved_by_a_link, configured_elsewhere, with_a_common_directory, with_other_objects, with_a_shared_index, with_a_hook, with_a_submodule, with_a_bad_head,
    without_objects, beneath_another,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_repository_that_is_not_all_in_the_workspace_asks(root: Path, change: Callable[[Path], None]):
    assert not asks(root)
    change(root)
    assert asks(root)
    assert asks(root, "git log", directory="src")


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "line",
    [
        "\tname =" + " " * 200_000 + "\x01",
        "\t" * 200_000 + "x\x01",
        "[a " + " " * 200_000,
        "a" * 200_000 + "\\",
        '[a "' + "b" * 200_000,
    ],
)
def test_a_long_line_in_a_configuration_is_judged_at_once(root: Path, line: str):
    add(root, "[user]\n" + line)
    assert asks(root)


def test_names_that_a_sandboxed_command_keeps_free_mean_nothing(root: Path, tmp_path: Path):
    (root / ".git/commondir").write_text(".\n")
    assert not asks(root)
    (tmp_path / "other/.git").mkdir(parents=True)
    assert not asks(tmp_path / "other")


async def test_calls_of_one_turn_do_not_disturb_each_other(root: Path, need: Callable[[str], None]):
    need("bubblewrap")
    tool = bash_tools(Workspace(root), Sandbox(root))[0]
    commands = ["git status", "git log --oneline", "git diff", "sleep 1", "git branch -a"]
    assert [tool.needs_approval({"command": command}) for command in commands] == [
        False,
        False,
        False,
        True,
        False,
    ]
    results = await asyncio.gather(*(call(tool, command=command) for command in [*commands, "ls"]))
    assert [result.is_error for result in results] == [False] * 6


def test_a_size_that_looks_like_the_mode_of_a_submodule_is_none(root: Path):
    (root / "large").write_bytes(b"x" * 0xE000)
    git(root, "add", "large")
    assert b"\0\0\xe0\0" in (root / ".git/index").read_bytes()
    assert not asks(root)
    assert not asks(root, "git diff")


def test_without_any_repository_there_is_nothing_to_obey(tmp_path: Path):
    assert not asks(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "GIT_CONFIG_COUNT",
        "GIT_EXTERNAL_DIFF",
        "GIT_WORK_TREE",
        "GIT_CONFIG_GLOBAL",
        "GIT_EXEC_PATH",
        "GIT_TRACE",
        "GIT_INDEX_FILE",
    ],
)
def test_variables_that_git_obeys_ask(root: Path, name: str):
    assert asks(root, sandbox=Sandbox(root, "none", environment={name: "1"}))


@pytest.mark.parametrize("version", ["2", "4"])
def test_a_search_of_tracked_files_stays_inside(root: Path, tmp_path: Path, version: str):
    for name in ("src/passwords", "other/x/y"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    git(root, "add", "src", "other")
    git(root, "update-index", "--index-version", version)
    assert not asks(root, "git grep x")
    (root / "src").rename(root / "old")
    (root / "src").symlink_to("/etc")
    assert asks(root, "git grep x")
    assert not asks(root, "git grep x", Sandbox(root))
    (root / "src").unlink()
    (root / "old").rename(root / "src")
    assert not asks(root, "git grep x")
    (root / "other/.env").write_text("KEY=x\n")
    assert not asks(root, "git grep x")  # it is not tracked
    git(root, "add", "-f", "other/.env")
    assert asks(root, "git grep x")


def test_variables_for_commits_and_networks_do_not_ask(root: Path):
    assert not asks(
        root,
        sandbox=Sandbox(root, "none", environment={"GIT_SSL_CAINFO": "/etc/ssl/x", "GIT_AUTHOR_NAME": "A"}),
    )


def test_personal_configuration_in_the_workspace_is_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(root))
    (root / ".gitconfig").write_text("[user]\n\tname = A\n")
    assert not asks(root)
    (root / ".gitconfig").write_text("[core]\n\tfsmonitor = touch pwned\n")
    assert asks(root)


async def test_personal_configuration_in_the_sandbox_is_looked_at(root: Path):
    box = Sandbox(root)
    home = Path(box._own_directory(), "home")
    assert not asks(root, sandbox=box)
    (home / ".gitconfig").write_text("[core]\n\tfsmonitor = touch pwned\n")
    assert asks(root, sandbox=box)
    box.close()


def test_a_planted_configuration_would_have_run(root: Path):
    """What is asked about here is no fancy: git does obey it."""
    add(root, f"[core]\n\tfsmonitor = touch {root.parent}/pwned; false")
    subprocess.run(["git", "status"], cwd=root, capture_output=True)
    assert (root.parent / "pwned").exists()
