"""Git worktrees in the sandbox: commands commit to their branch, and write nothing else of the repository."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from swink.app.assistant.linkedtree import find_linked
from swink.tools.coding.linkedgit import LinkedGit
from swink.tools.coding.process import build_shell_argv, run
from swink.tools.coding.sandbox import Sandbox, SandboxUnavailable


def git(place: Path, *words: str) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *settings, *words], cwd=place, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree of a repository with a packed commit, and another branch beside its own."""
    main, tree = tmp_path / "main", tmp_path / "tree"
    git(tmp_path, "init", "-q", "-b", "main", "main")
    (main / "a").write_text("a\n")
    git(main, "config", "user.name", "A")
    git(main, "config", "user.email", "a@example.org")
    git(main, "add", ".")
    git(main, "commit", "-qm", "first")
    git(main, "gc", "-q")
    git(main, "branch", "swink/other")
    git(main, "worktree", "add", "-q", "-b", "swink/fix", str(tree))
    return tree


async def bash(tree: Path, line: str) -> tuple[int, str]:
    linked = find_linked(tree)
    assert linked is not None
    box = Sandbox(tree, backends=("bubblewrap",), linked=LinkedGit(linked.common, linked.own, "swink/fix"))
    kept = bytearray()
    try:
        launch = await box.launch(build_shell_argv(f"exec 2>&1; {line}"), tree)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    status = await run(launch, kept.extend)
    box.close()
    return status.code, kept.decode()


async def test_commands_commit_to_the_branch_of_the_worktree(tree: Path):
    code, said = await bash(
        tree, "echo b > b && git add b && git commit -qm second && git status --porcelain"
    )
    assert (code, said) == (0, "")
    assert git(tree, "log", "--format=%s", "swink/fix") == "second\nfirst"
    assert git(tree.parent / "main", "show", "swink/fix:b") == "b"
    code, said = await bash(
        tree, "git commit -q --amend -m other && git reset -q --hard HEAD~1 && git log --oneline | wc -l"
    )
    assert (code, said.strip()) == (0, "1")
    git(tree.parent / "main", "fsck", "--strict")


async def test_a_packed_branch_can_be_committed_to_too(tree: Path):
    main = tree.parent / "main"
    git(main, "branch", "-D", "swink/other")
    git(main, "pack-refs", "--all", "--prune")
    code, said = await bash(tree, "git commit -q --allow-empty -m second")
    assert (code, said) == (0, "")


OPEN = "touch {own}/COMMIT_EDITMSG"
FORBIDDEN = [
    "echo x >> {git}/config",
    "git config user.name B",
    "mkdir {git}/hooks/x",
    "echo x > {git}/hooks/post-commit",
    "echo x > {git}/HEAD",
    "git branch -f main HEAD",
    "git update-ref -d refs/heads/main",
    "git branch other2",
    "git branch -D swink/other",
    "rm {git}/refs/heads/swink/other",
    "echo x > {git}/refs/heads/swink/other",
    "mv {git}/refs/heads/swink {git}/refs/heads/gone",
    "rm -rf {git}/objects/pack",
    "touch {git}/objects/pack/x",
    "echo /tmp > {git}/objects/info/alternates",
    "mv {git}/objects {git}/objects2",
    "echo x > {own}/commondir",
    "rm {own}/gitdir",
    "echo x > {own}/gitdir",
    "echo '[core]' > {own}/config.worktree",
    "mv {own} {git}/worktrees/elsewhere",
    "mkdir {git}/worktrees/more",
    "echo 'gitdir: /tmp' > .git",
    "rm .git",
]


async def test_nothing_else_of_the_repository_is_open(tree: Path):
    linked = find_linked(tree)
    assert linked is not None
    main = tree.parent / "main"
    before = look(main), (tree / ".git").read_bytes()
    places = {"git": linked.common, "own": linked.own}
    tried = [
        f"({line.format(**places)}) >/dev/null && echo 'open: {number}'"
        for number, line in enumerate([*FORBIDDEN, OPEN])
    ]
    _, said = await bash(tree, "; ".join(tried))
    opened = [int(line.split()[1]) for line in said.splitlines() if line.startswith("open:")]
    assert [[*FORBIDDEN, OPEN][number] for number in opened] == [OPEN]
    await bash(tree, f"echo x > {main}/a")
    assert (look(main), (tree / ".git").read_bytes()) == before


def look(main: Path) -> dict[str, bytes]:
    """The repository without what a worktree may write and what is only made beforehand."""
    found: dict[str, bytes] = {}
    for folder, _, files in os.walk(main):
        for name in files:
            path = Path(folder) / name
            if name not in ("config.worktree", "index", "COMMIT_EDITMSG", "fix", "ORIG_HEAD"):
                found[str(path)] = path.read_bytes()
    return found


async def test_the_repository_is_only_read_by_other_means_than_mounts(tree: Path):
    linked = find_linked(tree)
    assert linked is not None
    box = Sandbox(tree, backends=("landlock",), linked=LinkedGit(linked.common, linked.own, "swink/fix"))
    try:
        launch = await box.launch(build_shell_argv("git log --format=%s"), tree)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    kept = bytearray()
    assert (await run(launch, kept.extend)).code == 0
    assert kept == b"first\n"
    box.close()


async def test_a_worktree_that_was_dropped_meanwhile_is_an_ordinary_folder(tree: Path):
    linked = find_linked(tree)
    assert linked is not None
    await asyncio.to_thread(subprocess.run, ["rm", "-rf", str(linked.own)], check=True)
    box = Sandbox(tree, backends=("bubblewrap",), linked=LinkedGit(linked.common, linked.own, "swink/fix"))
    try:
        launch = await box.launch(build_shell_argv("true"), tree)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert (await run(launch, bytearray().extend)).code == 0
    box.close()


async def test_the_configuration_of_a_submodule_is_kept(tree: Path):
    linked = find_linked(tree)
    assert linked is not None
    place = linked.own / "modules" / "sub"
    place.parent.mkdir()
    git(tree, "init", "-q", f"--separate-git-dir={place}", "sub")
    before = (place / "config").read_bytes()
    code, _ = await bash(tree, f"echo >> {place}/config || mv {place.parent} {linked.own}/elsewhere")
    assert code != 0
    assert (place / "config").read_bytes() == before
