"""Git worktrees in the sandbox: commands commit to their branch, and write nothing else of the repository."""

import asyncio
import hashlib
import os
import subprocess
import zlib
from pathlib import Path

import pytest

from swink.app.assistant.linkedtree import find_linked
from swink.tools.coding import privateobjects
from swink.tools.coding.linkedgit import LinkedGit
from swink.tools.coding.privateobjects import PrivateObjects
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
    "touch {git}/swink-main/x",
    "touch {git}/swink-objects/fix/new/x",
    "mkdir {git}/swink-objects/other",
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
    await bash(tree, "true")  # makes the places that are open
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


async def test_a_command_that_deletes_objects_deletes_its_own_alone(tree: Path):
    main = tree.parent / "main"
    git(main, "commit", "-q", "--allow-empty", "-m", "loose")
    await bash(tree, "git commit -q --allow-empty -m second")
    made = git(main, "rev-parse", "swink/fix")
    linked = find_linked(tree)
    assert linked is not None
    objects = PrivateObjects(linked.common, "fix")
    objects.take_over()
    _, said = await bash(
        tree, f"git commit -q --allow-empty -m third; rm -rf {linked.common}/objects/??; git log"
    )
    assert "bad object" in said or "fatal" in said
    git(main, "update-ref", "refs/heads/swink/fix", made)
    assert set(git(main, "log", "--format=%s", "main", "swink/fix").split()) == {"second", "loose", "first"}
    git(main, "rev-list", "--objects", "main", made)


async def test_objects_are_the_repositorys_own_once_the_private_ones_are_removed(tree: Path):
    main = tree.parent / "main"
    alternates = main / ".git/objects/info/alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"{tree.parent}/elsewhere")  # without a line end
    assert (await bash(tree, "echo b > b && git add b && git commit -qm second"))[0] == 0
    moved = main.rename(tree.parent / "moved")
    assert git(moved, "show", "swink/fix:b") == "b"
    moved.rename(main)
    objects = PrivateObjects(main / ".git", "fix")
    forged = objects.place / "new" / "ab" / ("c" * 38)
    forged.parent.mkdir(exist_ok=True)
    forged.write_bytes(zlib.compress(b"blob 1\0x"))
    forged.with_name("d" * 38).symlink_to(forged)
    forged.with_name("e" * 38).write_bytes(zlib.compress(b"blob 1\0x")[:-6])
    objects.remove()
    assert not objects.place.exists()
    assert alternates.read_text() == f"{tree.parent}/elsewhere\n"
    assert git(main, "show", "swink/fix:b") == "b"
    assert not (main / ".git/objects/ab" / ("c" * 38)).exists()
    alternates.unlink()
    git(main, "fsck", "--strict")


def test_objects_that_cannot_be_copied_are_not_removed(tree: Path, monkeypatch: pytest.MonkeyPatch):
    objects = PrivateObjects(tree.parent / "main" / ".git", "fix")
    objects.prepare()
    content = b"blob 1\0x"
    name = hashlib.sha1(content).hexdigest()
    place = objects.place / "new" / name[:2] / name[2:]
    place.parent.mkdir()
    place.write_bytes(zlib.compress(content))

    def full(*words: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(privateobjects, "write_whole", full)
    with pytest.raises(OSError, match="No space"):
        objects.remove()
    assert place.exists()
    assert git(tree, "cat-file", "blob", name) == "x"


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
