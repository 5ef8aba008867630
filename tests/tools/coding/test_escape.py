"""The escape corpus: `attacker.py` against every level and backend, as this user and as an ordinary one.

No canary is read, no byte is written outside, no connection is made, no process outside is touched.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from calling import shell
from msgspec.structs import replace
from ordinary import NOBODY, as_ordinary, ordinary_python
from tests.counts import MORE, in_cells
from tests.patience import wait_until

from swink.tools.coding import bubblewrap
from swink.tools.coding.mounts import build_mounts
from swink.tools.coding.process import Limits, run
from swink.tools.coding.sandbox import Sandbox, SandboxUnavailable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")

SCENE = Path(__file__).with_name("scene.py")
LEVELS = [
    ("workspace", "bubblewrap"),
    ("workspace", "landlock"),
    ("workspace+net", "bubblewrap"),
    ("workspace+net", "landlock"),
]
confined = in_cells(
    ("level", "backend"), LEVELS, ids=[f"{level}-{backend}" for level, backend in LEVELS], every=3
)
users = in_cells("ordinary", [False, True], ids=["this-user", "ordinary-user"], every=2)


def play(level: str, backend: str, *, ordinary: bool) -> dict[str, Any]:
    if not ordinary:
        done = subprocess.run(
            [sys.executable, str(SCENE), level, backend],
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
    else:
        if os.getuid() != 0:
            pytest.skip("only root can become another user")
        python = ordinary_python()
        if python is None:
            pytest.skip("no interpreter that an ordinary user may run")
        done = as_ordinary([python, str(SCENE), level, backend], timeout=90)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@users
def test_the_corpus_bites_where_nothing_holds_it(ordinary: bool):
    """At level none every kind of attack succeeds: so what fails elsewhere fails because of the sandbox."""
    found = play("none", "none", ordinary=ordinary)
    assert found["finished"]
    for kind in ("file", "memory", "key", "shared", "shm", "environment"):
        assert any(f"CANARY-4f1d-{kind}" in line for line in found["canaries"]), kind
    assert not any("own-environment" in line for line in found["canaries"] if line.startswith("{")), (
        "its own environment is clean even here"
    )
    assert len(found["written"]) >= 5
    planted = {path for path, _ in found["planted"]}
    for path in (
        ".git/config",
        "config",
        "new/.git/hooks/pre-commit",
        "repository/.git/config",
        "repository/.git/commondir",
        ".mcp.json",
    ):
        assert path in planted, path
    assert found["reached"] == ["abstract", "tcp", "udp", "unix"]
    assert not found["victim_lives"]
    for name in ("prlimit64", "sched_setaffinity", "setpriority", "setpriority of the user", "ioprio_set"):
        assert f"HOLE {name} " in found["holes"], name


@pytest.mark.more
@pytest.mark.parametrize(
    ("level", "backend", "ordinary"),
    [
        (*each, ordinary)
        for at, each in enumerate(LEVELS)
        for ordinary in (False, True)
        if MORE or (at % 2 == ordinary and at < 3)
    ],
)
def test_nothing_gets_out(level: str, backend: str, ordinary: bool, need):
    need(backend)
    found = play(level, backend, ordinary=ordinary)
    assert found["finished"], found["output"]
    assert found["canaries"] == []
    assert found["holes"] == []
    assert found["written"] == []
    assert found["appeared"] == []
    # Nothing that is obeyed has changed, and a repository that was made runs nothing; what was refused is beside it.
    assert [
        (path, text)
        for path, text in found["planted"]
        if ".refused" not in path and ("pwned" in text or "planted" in text)
    ] == []
    assert found["reached"] == ([] if level == "workspace" else ["tcp", "udp"])
    assert found["victim_lives"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root has capabilities to keep")
async def test_without_dropping_capabilities_root_remounts_its_way_out(tmp_path: Path, need):
    """Why `--cap-drop ALL` is there, whatever else holds: bare bubblewrap is no sandbox for root, and with it alone it is one."""
    need("bubblewrap")
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    command = f"mount -o remount,bind,rw {outside} && touch {outside}/escaped"
    box = Sandbox(workspace, readable=[outside], backends=("bubblewrap",))
    ours = await box.launch(["/bin/sh", "-c", command])
    dropping = replace(
        ours,
        argv=_without(ours.argv, "--unshare-user", "--disable-userns", "--seccomp"),
        seccomp=b"",
        seccomp_fd=0,
    )
    for launch in (ours, dropping):
        assert (await run(launch, lambda data: None)).code != 0
        assert not (outside / "escaped").exists()
    bare = replace(dropping, argv=_without(dropping.argv, "--cap-drop"))
    assert (await run(bare, lambda data: None)).code == 0
    assert (outside / "escaped").exists()


def _without(argv: tuple[str, ...], *options: str) -> tuple[str, ...]:
    kept = list(argv)
    for option in options:
        at = kept.index(option)
        del kept[at : at + (2 if option in ("--cap-drop", "--seccomp") else 1)]
    return tuple(kept)


async def test_killing_everybody_kills_nobody_outside(tmp_path: Path, need):
    need("bubblewrap")
    outside = await asyncio.create_subprocess_exec("sleep", "60")
    code, _ = await shell(Sandbox(tmp_path), "kill -9 -1; sleep 0.1; echo not reached by a killed shell")
    assert code in (0, 137)
    assert outside.returncode is None
    outside.kill()
    await outside.wait()


async def test_hooks_and_configuration_of_the_repository_stay(
    tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch
):
    """They run programs when a person uses git later, outside. Commits work, in the user's name, without their configuration."""
    need("bubblewrap")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        '[credential]\n\tname = not this\n[user]\n\tname = "Ann Other"\n\temail = ann@example.org\n[url "x"]\n\tname = nor this\n'
    )
    monkeypatch.setenv("HOME", str(home))
    tmp_path = tmp_path / "repository"
    tmp_path.mkdir()
    await (await asyncio.create_subprocess_exec("git", "init", "-q", str(tmp_path))).wait()
    before = (tmp_path / ".git/config").read_text()
    code, output = await shell(
        Sandbox(tmp_path),
        "echo '[core] fsmonitor = evil' >> .git/config; echo evil > .git/hooks/post-commit; rm -rf .git/hooks; mv .git moved; rm -rf .git/config;"
        "git config core.fsmonitor evil; touch file && git add file && git commit -qm works && git log --format='%s by %an %ce'",
    )
    assert code == 0, output
    assert "works by Ann Other ann@example.org" in output
    assert (tmp_path / ".git/config").read_text() == before
    assert not (tmp_path / "moved").exists()
    assert not (tmp_path / ".git/hooks/post-commit").exists()


async def test_secrets_inside_the_workspace_are_covered_or_the_level_refused(
    tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch
):
    """Somebody works in their home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    for name in (".ssh/id_rsa", ".netrc", ".config/swink/key"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("CANARY")
    need("bubblewrap")
    _, output = await shell(
        Sandbox(tmp_path, backends=("bubblewrap",)),
        "cat .ssh/id_rsa .netrc .config/swink/key ~/.netrc; ls -A .ssh; touch project/works; ls -d ~/project/works",
    )
    assert "CANARY" not in output
    assert f"{tmp_path}/project/works" in output
    need("landlock")
    with pytest.raises(SandboxUnavailable, match=r"Landlock cannot hide .*inside the workspace"):
        await Sandbox(tmp_path, backends=("landlock",)).backend()


async def test_a_level_that_cannot_be_had_is_refused_with_every_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("swink.tools.coding.landlock.read_abi", lambda: 4)
    marker = tmp_path / "ran"
    with pytest.raises(SandboxUnavailable) as refusal:
        await Sandbox(tmp_path).launch(["/bin/touch", str(marker)])
    text = str(refusal.value)
    assert "'workspace' cannot be had here" in text
    assert "bwrap is not installed (package bubblewrap)" in text
    assert "Landlock version 4, version 6 (Linux 6.12) is needed" in text
    assert not marker.exists()


async def test_a_weaker_backend_is_reported_once(
    tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    need("landlock")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert await Sandbox(tmp_path / name).backend() == "landlock"
    warnings = [record.getMessage() for record in caplog.records if record.name == "swink.tools"]
    assert warnings == [
        "commands are sandboxed with landlock, which is weaker: "
        "bubblewrap: bwrap is not installed (package bubblewrap)"
    ]


async def test_a_bubblewrap_that_cannot_disable_user_namespaces_is_still_tight(
    tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch
):
    """As before version 0.8: the system call filter refuses them then."""
    need("bubblewrap")
    old = tmp_path / "bin"
    old.mkdir()
    (old / "bwrap").write_text(
        '#!/bin/bash\nfor word; do [ "$word" = --disable-userns ] && { echo "bwrap: Unknown option --disable-userns"; exit 1; }; done\n'
        f'exec {shutil.which("bwrap")} "$@"\n'
    )
    (old / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{old}:{os.environ['PATH']}")
    box = Sandbox(tmp_path, backends=("bubblewrap",))
    assert await box.backend() == "bubblewrap"
    code, output = await shell(box, "unshare -U true && echo escaped; unshare -Ur id; echo done")
    assert (code, output.splitlines()[-1]) == (0, "done"), output
    assert "escaped" not in output
    assert "uid=0" not in output or os.getuid() == 0


async def test_the_whole_file_system_is_no_workspace(need):
    need("bubblewrap")
    with pytest.raises(SandboxUnavailable, match="the whole file system"):
        await Sandbox("/").backend()


async def test_a_bubblewrap_that_does_not_confine_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Found on the PATH is not enough: it is tried."""
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "bwrap").write_text('#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    (fake / "bwrap").chmod(0o755)
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match="it runs but does not confine"):
        await Sandbox(tmp_path / "workspace", backends=("bubblewrap",)).backend()


@confined
async def test_temp_and_home_are_private_and_last_as_long_as_the_sandbox(
    tmp_path: Path, level: Any, backend: Any, need
):
    need(backend)
    box = Sandbox(tmp_path, level, backends=(backend,))
    await shell(box, 'echo kept > "$TMPDIR/note"; echo kept > ~/note')
    assert await shell(box, 'cat "$TMPDIR/note" ~/note') == (0, "kept\nkept\n")
    other = Sandbox(tmp_path, level, backends=(backend,))
    code, _ = await shell(other, 'cat "$TMPDIR/note" ~/note 2>/dev/null')
    assert code != 0


@in_cells("place", ["/dev/shm", "/tmp", "~", "/"], every=2)
async def test_memory_backed_places_cannot_fill_the_memory(tmp_path: Path, place: str, need):
    need("bubblewrap")
    _, output = await shell(
        Sandbox(tmp_path),
        f"for i in 1 2 3 4; do head -c 40000000 /dev/zero > {place}/fill$i; done; cat {place}/fill* | wc -c; stat -f -c %T {place}",
        Limits(wall=20),
    )
    size, kind = output.split()[-2:]
    assert kind != "tmpfs" or int(size) <= bubblewrap.SHARED_MEMORY


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@in_cells("backend", ["none", "bubblewrap", "landlock"], every=3)
def test_a_fork_bomb_of_an_ordinary_user_is_ended(backend: str, need):
    """Root's is in test_process; an ordinary user also meets the kernel's own limit."""
    need(backend)
    python = ordinary_python()
    if python is None:
        pytest.skip("no interpreter that an ordinary user may run")
    program = f"""
import asyncio, tempfile
from calling import shell
from swink.tools.coding.process import Limits
from swink.tools.coding.sandbox import Sandbox
async def main():
    with tempfile.TemporaryDirectory() as scratch:
        box = Sandbox(scratch, {"none" if backend == "none" else "workspace"!r}, backends=({backend!r},))
        print(await shell(box, "bomb() {{ bomb | bomb & }}; bomb; sleep 20", Limits(wall=8, processes=60)))
asyncio.run(main())
"""
    done = as_ordinary([python, "-c", program], timeout=30)
    assert done.returncode == 0, done.stderr
    look = ["pgrep", "-c", "-u", str(NOBODY), "bash"]
    # Other tests may run commands as this user meanwhile.
    wait_until(lambda: subprocess.run(look, capture_output=True, text=True).stdout.strip() == "0")


async def test_a_user_without_a_home_has_a_sandbox_too(tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch):
    """A number that no passwd file knows, as in many containers."""
    need("bubblewrap")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert await shell(
        Sandbox(tmp_path, backends=("bubblewrap",)), 'echo "$HOME"; touch ~/x "$TMPDIR/y" z'
    ) == (0, "/tmp\n")


def test_the_view_shows_no_home_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "home"
    for name in ("bin", ".cargo/bin", "project/bin", "Documents", ".ssh"):
        (home / name).mkdir(parents=True)
    (home / ".cargo/credentials.toml").touch()
    (home / "lib").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/bin:{home}/project/bin:/usr/bin:relative")
    view = build_mounts(tmp_path, readable=[home / "Documents", "/", home])
    outside = [path for path in view.readable if path.startswith(str(home))]
    assert outside == []  # all of it lies in the workspace already
    view = build_mounts(home / "Documents", readable=["/", home])
    assert "/" not in view.readable
    assert str(home) not in view.readable
    assert {str(home / "bin"), str(home / ".cargo"), str(home / "project/bin")} <= set(view.readable)
    assert str(home / ".cargo/credentials.toml") in view.hidden
