"""What a command leaves in the workspace runs nothing later: git, swink, editors and shells find nothing of its making to obey."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calling import call, eventually, named, shell
from tests.counts import MORE, in_cells

from swink.tools import coding_tools
from swink.tools.coding.process import build_shell_argv, run
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.supervisor.reservation import MARK, release, reserve

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")
BACKENDS = ["bubblewrap", "landlock"]
on_bubblewrap = in_cells("backend", BACKENDS, every=2)
on_landlock = in_cells("backend", BACKENDS[::-1], every=2)
"""For what the supervisor does around a command, the same with both."""

EVIL = "[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch $PWNED; false\\n[alias]\\n\\tst = !touch $PWNED\\n"
HOOK = "#!/bin/sh\\ntouch $PWNED\\n"
OBEY = "git status; git st; git add -A; git commit -qm x --allow-empty; git checkout -q -b other; git stash; git stash pop"
if MORE:  # slower than all the others together, and they obey nothing else
    OBEY += "; git diff; git log; git fetch; git gc -q; git submodule status"


def git(*words: str, cwd: Path, **environment: str) -> str:
    full = {
        **os.environ,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(cwd.parent / "no-home"),
        "GIT_TERMINAL_PROMPT": "0",
        **environment,
    }
    name = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "init.defaultBranch=main",
    )
    done = subprocess.run(
        ["git", *name, *words], cwd=cwd, env=full, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def repository(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "file").write_text("one")
    git("init", "-q", cwd=path)
    git("add", "file", cwd=path)
    git("commit", "-qm", "first", cwd=path)
    return path


def with_submodule(root: Path) -> Path:
    repository(root.parent / "library")
    repository(root)
    git("submodule", "add", "-q", str(root.parent / "library"), "sub", cwd=root)
    git("commit", "-qm", "sub", cwd=root)
    assert (root / ".git/modules/sub/config").exists()
    return root


def obeyed(root: Path, pwned: Path) -> bool:
    """Whether any of the usual git commands, in any directory, as a person would type them, runs something of the command's."""
    places = [
        root,
        *(
            path
            for path in root.rglob("*")
            if path.is_dir() and not {".git", "objects", "refs", "d"} & {*path.relative_to(root).parts}
        ),
    ]
    person = {f"GIT_{role}_{kind}": "a" for role in ("AUTHOR", "COMMITTER") for kind in ("NAME", "EMAIL")}
    for place in filter(Path.is_dir, places):
        subprocess.run(
            ["bash", "-c", OBEY],
            cwd=place,
            env={
                **os.environ,
                **person,
                "GIT_CONFIG_NOSYSTEM": "1",
                "HOME": str(root.parent / "no-home"),
                "PWNED": str(pwned),
                "GIT_EDITOR": "true",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if pwned.exists():
            return True
    return False


# A repository whose configuration and hooks run programs, in the directory $1.
MAKE = (
    f'plant() {{ mkdir -p "$1/objects" "$1/refs/heads" "$1/hooks" && echo "ref: refs/heads/main" > "$1/HEAD"; printf "{EVIL}" > "$1/config";'
    f' for hook in pre-commit post-checkout post-commit; do printf "{HOOK}" > "$1/hooks/$hook"; chmod +x "$1/hooks/$hook"; done; }};'
)
ATTACKS: dict[str, tuple[str, str]] = {
    "config": ("repository", f'printf "{EVIL}" >> .git/config; printf "{EVIL}" > c; mv c .git/config; cp c .git/config; git config core.fsmonitor "touch $PWNED"'),
    "hooks": ("repository", "plant .git; rm -rf .git/hooks; mv .git/hooks .git/h; plant .git"),
    "missing hooks": ("no-hooks", "plant .git; ln -s ../evil .git/hooks; plant evil; cp -r evil/hooks .git/"),
    "missing config": ("no-config", f'printf "{EVIL}" > .git/config; plant .git'),
    "commondir": ("repository", "plant evil; cp -r .git/objects .git/refs evil/; echo ../evil > .git/commondir"),
    "commondir by rename": ("repository", "plant evil; cp -r .git/objects .git/refs evil/; echo ../evil > x; mv x .git/commondir; ln x .git/commondir"),
    "worktree config": ("worktree-config", f'printf "{EVIL}" > .git/config.worktree'),
    "moved away": ("repository", "mv .git old && plant .git"),
    "moved away and linked": ("repository", f'mv .git old; printf "{EVIL}" > old/config; ln -s old .git'),
    "no repository yet": ("nothing", "plant .git"),
    "git init": ("nothing", "git init -q; plant .git; git config core.fsmonitor 'touch $PWNED'"),
    "a pointer": ("nothing", "plant evil; echo 'gitdir: evil' > .git"),
    "a link": ("nothing", "plant evil; ln -s evil .git"),
    "a pointer into the temp directory": ("nothing", 'plant "$TMPDIR/evil"; mkdir sub; echo "gitdir: $HOST/evil" > sub/.git; echo "gitdir: $TMPDIR/evil" > .git'),
    "bare at the root": ("nothing", "plant ."),
    "bare in a directory": ("repository", "plant sub/deep; plant file.git"),
    "nested": ("repository", "plant sub/.git; plant sub/deep/er/.git"),
    "nested pointer": ("repository", "mkdir -p sub; plant sub/real; echo 'gitdir: real' > sub/.git"),
    "nested common directory": ("repository", "plant evil; mkdir -p s/.git; echo 'ref: refs/heads/main' > s/.git/HEAD; echo ../../evil > s/.git/commondir"),
    "nested configuration that is a link": ("repository", 'plant a/.git; mv a/.git/config x; ln -s ../../x a/.git/config; mv a/.git/hooks h; ln -s ../../h a/.git/hooks'),
    "nested include": ("repository", f'git init -q s; printf "{EVIL}" > evil; printf "[include]\\n\\tpath = ../../evil\\n" >> s/.git/config'),
    "nested configuration after a comment that ends in a backslash": ("repository", "plant s/.git; rm -r s/.git/hooks; (echo '[core]'; echo '# a \\'; echo 'fsmonitor = \"touch $PWNED; false\"') > s/.git/config"),
    "nested configuration after a setting with such a comment": ("repository", "plant s/.git; rm -r s/.git/hooks; (echo '[core]'; echo 'bare = false ; \\'; echo 'fsmonitor = \"touch $PWNED; false\"') > s/.git/config"),
    "nested configuration after an escaped backslash": ("repository", "plant s/.git; rm -r s/.git/hooks; (echo '[core]'; echo 'eol = \\\\'; echo 'fsmonitor = \"touch $PWNED; false\"') > s/.git/config"),
    "nested, the common directory without a HEAD": ("repository", "plant evil; rm evil/HEAD; mkdir -p s/.git; echo 'ref: refs/heads/main' > s/.git/HEAD; echo ../../evil > s/.git/commondir"),
    "nested, with hooks too large to keep": ("repository", "plant s/.git; rm s/.git/config; head -c 20000000 /dev/zero > s/.git/hooks/pad"),
    "nested, with a configuration too large to keep": ("repository", "plant s/.git; rm -r s/.git/hooks; yes '# pad' | head -c 20000000 >> s/.git/config"),
    "nested, with hooks too deep to look into": ("repository", "plant s/.git; rm s/.git/config; mkdir -p s/.git/hooks/$(printf 'd/%.0s' $(seq 600))"),
    "nested, beside something too deep to look into": ("repository", "plant s/.git; mkdir -p .cursor/$(printf 'd/%.0s' $(seq 600))"),
    "nested where nobody may list": ("repository", "plant s/.git; chmod 311 s"),
    "submodule configuration": ("submodule", f'printf "{EVIL}" > .git/modules/sub/config; plant .git/modules/sub'),
    "submodules moved away": ("submodule", "mv .git/modules .git/old; plant .git/modules/sub; mv .git/modules/sub x; plant .git/modules/sub"),
    "submodule pointer": ("submodule", "plant evil; rm sub/.git; echo 'gitdir: ../evil' > sub/.git; mv sub old; mkdir sub; echo 'gitdir: ../evil' > sub/.git"),
    "included file": ("includes", f'printf "{EVIL}" > shared.gitconfig; rm shared.gitconfig; printf "{EVIL}" > shared.gitconfig'),
    "hooks in the workspace": ("hooks-path", f'printf "{HOOK}" > .githooks/pre-commit; chmod +x .githooks/pre-commit; mv .githooks x; mkdir .githooks; printf "{HOOK}" > .githooks/pre-commit; chmod +x .githooks/pre-commit'),
    "missing hooks in the workspace": ("hooks-path-missing", f'mkdir .githooks; printf "{HOOK}" > .githooks/pre-commit; chmod +x .githooks/pre-commit'),
}  # fmt: skip


def attacks_and_backends() -> Iterator[tuple[str, str]]:
    """Every other attack on one of the backends by turns; all of them on both in `make test-more`."""
    for number, name in enumerate(ATTACKS):
        for at, backend in enumerate(BACKENDS):
            if MORE or number % 4 == 2 * at:
                yield name, backend


def lay(root: Path, scene: str) -> None:
    if scene == "nothing":
        root.mkdir()
        (root / "file").touch()
    elif scene == "submodule":
        with_submodule(root)
    else:
        repository(root)
    match scene:
        case "no-hooks":
            subprocess.run(["rm", "-rf", str(root / ".git/hooks")], check=True)
        case "no-config":
            (root / ".git/config").unlink()
        case "worktree-config":
            git("config", "extensions.worktreeConfig", "true", cwd=root)
        case "includes":
            git("config", "include.path", "../shared.gitconfig", cwd=root)
            (root / "shared.gitconfig").write_text("[user]\n\tname = a\n")
        case "hooks-path" | "hooks-path-missing":
            git("config", "core.hooksPath", ".githooks", cwd=root)
            if scene == "hooks-path":
                (root / ".githooks").mkdir()
                (root / ".githooks/pre-push").write_text("#!/bin/sh\n")
        case _:
            pass


@pytest.mark.more
@in_cells(("name", "backend"), [*attacks_and_backends()], every=3)
async def test_git_obeys_nothing_that_a_command_planted(tmp_path: Path, name: str, backend: Any, need):
    need(backend)
    scene, attack = ATTACKS[name]
    root, pwned = tmp_path / "workspace", tmp_path / "pwned"
    lay(root, scene)
    box = Sandbox(root, backends=(backend,), environment={"PWNED": str(pwned), "HOST": str(tmp_path)})
    for _ in range(2):  # a second command may build on the first
        await shell(box, f"{MAKE} {attack}")
    assert not obeyed(root, pwned), name


@pytest.mark.more
@pytest.mark.parametrize("name", sorted(ATTACKS) if MORE else sorted(ATTACKS)[::18])
async def test_the_plants_bite_where_nothing_holds_them(tmp_path: Path, name: str):
    scene, attack = ATTACKS[name]
    root, pwned = tmp_path / "workspace", tmp_path / "pwned"
    lay(root, scene)
    await shell(
        Sandbox(root, "none", environment={"PWNED": str(pwned), "HOST": str(tmp_path)}), f"{MAKE} {attack}"
    )
    pwned.unlink(missing_ok=True)
    assert obeyed(root, pwned), name


@on_bubblewrap
async def test_hooks_that_the_users_own_configuration_names_are_reserved(
    tmp_path: Path, backend: Any, need, monkeypatch: pytest.MonkeyPatch
):
    need(backend)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
    monkeypatch.setenv("HOME", str(home))
    root = repository(tmp_path / "workspace")
    await shell(
        Sandbox(root, backends=(backend,)), "mkdir .githooks; echo x > .githooks/pre-commit; touch done"
    )
    assert (root / "done").exists()
    assert not (root / ".githooks").exists()


@on_landlock
async def test_an_empty_directory_of_the_users_stays_however_new_it_is(
    tmp_path: Path, backend: Any, need: Any
):
    need(backend)
    root = repository(tmp_path / "workspace")
    hooks = root / ".git" / "hooks"
    shutil.rmtree(hooks, ignore_errors=True)
    hooks.mkdir()
    await shell(Sandbox(root, backends=(backend,)), "true")
    assert hooks.is_dir()
    hooks.rmdir()
    hooks.mkdir()
    reserve([(str(hooks), None)])
    reserve([(str(hooks), None)])
    release()
    assert hooks.is_dir()


NAMES = [
    ".swink",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".claude",
    ".cursor",
    ".codex",
    ".envrc",
    ".nvim.lua",
    ".devcontainer",
]


@on_landlock
async def test_a_directory_that_becomes_a_repository_later_is_judged_then(tmp_path: Path, backend: Any, need):
    need(backend)
    root, pwned = repository(tmp_path / "workspace"), tmp_path / "pwned"
    box = Sandbox(root, backends=(backend,), environment={"PWNED": str(pwned)})
    for attack in ("mkdir -p a/.git b/.git/refs", "plant a/.git; plant b/.git"):
        await shell(box, f"{MAKE} {attack}")
    assert not obeyed(root, pwned)


@on_bubblewrap
@in_cells(
    "later",
    ["true", "plant s/.git", 'printf "[core]\\nfsmonitor = touch $PWNED\\n" > a/.git/config; echo x > .exrc'],
    every=3,
)
async def test_a_command_takes_nothing_for_given_that_another_has_just_made(
    tmp_path: Path, backend: Any, later: str, need
):
    need(backend)
    root, pwned = repository(tmp_path / "workspace"), tmp_path / "pwned"
    (root / ".nvimrc").write_text("mine")
    boxes = [Sandbox(root, backends=(backend,), environment={"PWNED": str(pwned)}) for _ in range(2)]
    wait = "until [ -e {0} ]; do sleep 0.02; done"
    evil = "plant s/.git; git init -q a; echo x > .exrc; mkdir .cursor; echo x > .cursor/x; echo x > .nvimrc; touch planted"
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        first = group.create_task(shell(boxes[0], f"{MAKE} {evil}; {wait.format('go')}"))
        await eventually((root / "planted").exists)
        group.create_task(shell(boxes[1], f"{MAKE} touch ready; {wait.format('on')}; {later}"))
        await eventually((root / "ready").exists)
        (root / "go").touch()
        await first
        (root / "on").touch()
    assert not obeyed(root, pwned)
    assert not (root / ".exrc").exists()
    assert not (root / ".cursor").exists()
    assert (root / ".nvimrc").read_text() == "mine"


@on_bubblewrap
async def test_what_programs_obey_is_neither_made_nor_changed(tmp_path: Path, backend: Any, need):
    need(backend)
    missing, there = tmp_path / "missing", tmp_path / "there"
    missing.mkdir()
    for name in NAMES:
        (there / name).mkdir(parents=True)
        (there / name / "old").write_text("old")
    attack = "; ".join(
        f"mkdir {name}; echo x > {name}/planted; echo x > {name}/old; mv {name} {name}2; echo x > {name}; ln -s /etc {name}"
        for name in NAMES
    )
    for root in (missing, there):
        box = Sandbox(root, readable=["."], backends=(backend,))
        for _ in range(2):
            await shell(box, attack)
    assert not [name for name in NAMES if os.path.lexists(missing / name)]
    for name in NAMES:
        assert [(path.name, path.read_text()) for path in (there / name).iterdir()] == [("old", "old")], name


@on_landlock
async def test_start_up_files_of_a_home_stay(
    tmp_path: Path, backend: Any, need, monkeypatch: pytest.MonkeyPatch
):
    need(backend)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text("# mine")
    (tmp_path / ".config/fish").mkdir(parents=True)
    attack = (
        'cd "$ROOT"; for name in .bashrc .bash_profile .zshenv .gitconfig .config/fish/config.fish .config/git/config'
        " .vim/plugin/x.vim .psqlrc .cargo/config.toml .local/share/systemd/user/x.service; do mkdir -p $(dirname $name);"
        "echo evil >> $name; done; mv .config .config2; mkdir -p .config/fish; echo evil > .config/fish/config.fish"
    )
    await shell(Sandbox(tmp_path, backends=(backend,), environment={"ROOT": str(tmp_path)}), attack)
    assert (tmp_path / ".bashrc").read_text() == "# mine"
    names = [".bash_profile", ".zshenv", ".gitconfig", ".config/git/config", ".config/fish/config.fish"]
    names += [".vim/plugin/x.vim", ".psqlrc", ".cargo/config.toml", ".local/share/systemd/user/x.service"]
    for name in names:
        assert not (tmp_path / name).exists(), name


@on_bubblewrap
async def test_ordinary_work_with_git_goes_on(tmp_path: Path, backend: Any, need):
    need(backend)
    root = with_submodule(tmp_path / "workspace")
    git("worktree", "add", "-q", "trees/one", "-b", "one", cwd=root)
    before = {path: path.read_bytes() for path in root.glob(".git/**/config")}
    work = (
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e;"
        "echo two > file; git add -A; git commit -qm second; git checkout -q -b branch; echo 3 > file; git commit -qam third; git tag t;"
        "git checkout -q main; git merge -q branch; echo 4 > file; git stash -q; git stash pop -q; git commit -qam 4; git rebase -q HEAD~1; git gc -q;"
        "(cd sub; echo 1 >> file; git checkout -q -b mine; git commit -qam in-sub); (cd trees/one; echo 1 >> file; git commit -qam in-tree);"
        "git init -q fresh; (cd fresh; touch a; git add a; git commit -qm x); git clone -q fresh copy; git status; git fsck"
    )
    code, output = await shell(Sandbox(root, backends=(backend,)), work)
    assert code == 0, output
    assert "4" in git("log", "--format=%s", cwd=root)
    assert "in-sub" in git("log", "--format=%s", cwd=root / "sub")
    assert "in-tree" in git("log", "--format=%s", cwd=root / "trees/one")
    assert "x" in git("log", "--format=%s", cwd=root / "copy")
    assert {path: path.read_bytes() for path in before} == before
    assert not list(root.rglob("*.refused*"))


async def test_a_result_tells_of_new_repositories_and_of_what_was_moved_aside(tmp_path: Path, need):
    need("bubblewrap")
    bash = named(coding_tools(tmp_path), "bash")
    result = await call(
        bash, command="git init -q fresh; git init -q evil; git -C evil config core.fsmonitor x; touch .zzz"
    )
    assert "[the command made a git repository: fresh/.git]" in result.text
    assert "evil/.git/config would have git run programs" in result.text
    assert (tmp_path / "evil/.git/config.refused").exists()
    assert (tmp_path / "fresh/.git/config").exists()


async def test_nothing_stands_in_the_workspace_when_a_command_has_ended(tmp_path: Path, need):
    need("bubblewrap")
    root = repository(tmp_path / "workspace")
    before = sorted(root.rglob("*"))
    box = Sandbox(root, hidden=["store", "log.db"])
    for command in ("true", "false", "kill -9 $$", "ls -A; rm -rf .vscode .git/commondir"):
        await shell(box, command)
        assert sorted(root.rglob("*")) == before
    waiting = asyncio.ensure_future(shell(box, "sleep 20"))
    while not (root / ".vscode").exists():
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert sorted(root.rglob("*")) == before


async def test_commands_that_run_at_the_same_time_share_what_is_reserved(tmp_path: Path, need):
    """Where the first to end took it away, the other could put its own in the place."""
    need("bubblewrap")
    root = repository(tmp_path / "workspace")
    attack = "sleep 1; mkdir -p .vscode .swink; echo x > .vscode/x; echo x > .swink/x; echo ../evil > .git/commondir; true"
    boxes = [Sandbox(root, backends=("bubblewrap",)) for _ in range(4)]
    await asyncio.gather(
        shell(boxes[0], "true"), *(shell(box, attack) for box in boxes[1:]), shell(boxes[0], "sleep 0.3")
    )
    for name in (".vscode", ".swink", ".git/commondir"):
        assert not (root / name).exists()
    assert not list(root.rglob("*.refused*"))


def supervisors() -> list[int]:
    """The two processes above a command, the outer first."""
    outer, inner = [], []
    for pid in (int(entry.name) for entry in Path("/proc").glob("[0-9]*")):
        try:
            if b"supervisor/start.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                (outer if parent == os.getpid() else inner).append((pid, parent))
        except OSError:
            continue
    mine = [pid for pid, _ in outer]
    return mine + [pid for pid, parent in inner if parent in mine]


@on_landlock
async def test_things_are_put_right_when_the_supervisor_is_killed(tmp_path: Path, backend: Any, need):
    need(backend)
    root = repository(tmp_path / "workspace")
    box = Sandbox(root, backends=(backend,))
    launch = await box.launch(
        build_shell_argv("mkdir .vscode evil; echo x >> .git/config; touch started; sleep 20")
    )
    running = asyncio.ensure_future(run(launch, len))
    while not (root / "started").exists():
        await asyncio.sleep(0.01)
    os.kill(supervisors()[-1], 9)
    ending = await running
    assert ending.reason == "supervisor"
    assert not (root / ".vscode").exists()
    assert not (root / ".git/config").read_text().endswith("x\n")
    assert not (root / ".git/commondir").exists()


async def test_what_a_crash_has_left_breaks_nothing_and_goes_with_the_next_command(tmp_path: Path, need):
    need("bubblewrap")
    root = repository(tmp_path / "workspace")
    box = Sandbox(root)
    launch = await box.launch(build_shell_argv("touch started; sleep 20"))
    running = asyncio.ensure_future(run(launch, lambda data: None))
    while not (root / "started").exists():
        await asyncio.sleep(0.01)
    both = supervisors()
    for number in (signal.SIGSTOP, signal.SIGKILL):  # none of them is to see the other's death
        for pid in both:
            os.kill(pid, number)
    assert (await running).reason == "supervisor"
    assert (root / ".git/commondir").stat().st_mtime_ns == MARK
    assert "first" in git("log", "--format=%s", cwd=root)
    assert "nothing to commit" in git("stash", cwd=root) + git("status", cwd=root) or "started" in git(
        "status", cwd=root
    )
    await shell(box, "true")
    assert not (root / ".git/commondir").exists()
    assert not (root / ".vscode").exists()


async def test_a_hidden_place_that_is_made_while_a_command_runs_is_hidden(tmp_path: Path, need):
    need("bubblewrap")
    box = Sandbox(tmp_path, hidden=["store", "log.db"], backends=("bubblewrap",))
    running = asyncio.ensure_future(shell(box, "touch started; sleep 0.7; cat store/a log.db; ls store"))
    while not (tmp_path / "started").exists():
        await asyncio.sleep(0.01)
    (tmp_path / "store").mkdir(exist_ok=True)
    (tmp_path / "store/a").write_text("CANARY")
    (tmp_path / "log.db").write_text("CANARY")
    _, output = await running
    assert "CANARY" not in output
    assert (tmp_path / "store/a").read_text() == (tmp_path / "log.db").read_text() == "CANARY"
    assert "CANARY" not in (await shell(box, "cat store/a log.db"))[1]


async def test_a_hidden_place_is_not_moved_with_its_parent(
    tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch
):
    need("bubblewrap")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".config/gh/hosts.yml", ".config/swink/key", ".local/share/swink/s", "data/store/a"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("CANARY")
    box = Sandbox(tmp_path, hidden=["data/store"], backends=("bubblewrap",))
    attack = 'cd "$ROOT"; mv .config .config2; mv .local .local2; mv .local/share .local/x; mv data data2; mv data/store s; grep -r CANARY .; true'
    box = Sandbox(
        tmp_path, hidden=["data/store"], backends=("bubblewrap",), environment={"ROOT": str(tmp_path)}
    )
    for _ in range(2):
        assert "CANARY" not in (await shell(box, attack))[1]
