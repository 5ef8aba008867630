"""A workspace that is a home, or holds one: commands write in its ordinary folders and leave nothing that anybody obeys."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from calling import call, shell
from tests.counts import crossed, in_cells

from swink.tools import Tool, Workspace
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.homes import list_writable
from swink.tools.coding.mounts import build_mounts
from swink.tools.coding.sandbox import Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")
on_bubblewrap = in_cells("backend", ["bubblewrap", "landlock"], every=2)
on_landlock = in_cells("backend", ["landlock", "bubblewrap"], every=2)
"""For what the supervisor does around a command, the same with both."""

PLANTS = [
    ".ssh/rc", ".ssh/authorized_keys", ".gnupg/gpg.conf", ".aws/config", ".config/direnv/direnvrc", ".direnvrc",
    ".local/lib/python3.12/site-packages/usercustomize.py", ".local/share/applications/x.desktop", ".local/bin/ls",
    ".pyenv/shims/python", ".cargo/bin/cargo", ".nvm/nvm.sh", ".nvm/.git/info/attributes", ".oh-my-zsh/custom/x.zsh", ".config/whatever/plugin",
    ".bashrc", ".bash_profile", ".zshenv", ".gitconfig", ".config/fish/config.fish", ".git/config", ".git/hooks/pre-commit",
    ".vscode/tasks.json", ".mcp.json", ".nobody-has-heard-of-it", ".cache/pip/wheels/x.whl", "bin/ls", "go/bin/gopls",
    "miniconda3/bin/python", "node_modules/left-pad/index.js", "new-in-the-home", "Library/LaunchAgents/x.plist",
    "tools/on-the-path/ls", "tools/venv/bin/python",
]  # fmt: skip


def lay_home(home: Path, *, full: bool) -> None:
    """A home with ordinary folders; `full` with the directories of everything that is planted, too."""
    for name in ("Documents/deep", "project/.venv", "tools/on-the-path"):
        (home / name).mkdir(parents=True)
    (home / "notes.txt").write_text("mine\n")
    (home / ".profile").write_text("mine\n")
    (home / "Documents/letter").write_text("mine\n")
    if full:
        for name in PLANTS:
            if not name.startswith((".ssh", ".gnupg", ".aws")):  # secrets, in which Landlock refuses
                (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "tools/venv/pyvenv.cfg").touch()
        for name in ("objects", "refs"):
            (home / ".nvm/.git" / name).mkdir()
        (home / ".nvm/.git/HEAD").write_text("ref: refs/heads/main\n")


def plant(top: str) -> str:
    """A command that plants everything, by name and by moving its directory away and back."""
    words = " ".join(PLANTS)
    parents = " ".join(sorted({os.path.dirname(name) for name in PLANTS} - {""}))
    return (
        f"cd {top}; mkdir -p {parents}; for name in {words}; do echo evil > $name; ln -sf /etc/passwd $name; done;"
        " for name in .bashrc .ssh/rc; do echo evil > $TMPDIR/e; mv $TMPDIR/e $name; done;"
        " ln .profile Documents/linked; echo evil >> Documents/linked; ln -s ../.profile Documents/link; echo evil >> Documents/link;"
        " for name in .config .local .cargo bin go tools; do mv $name Documents/moved-$name; mkdir -p $name; done;"
        " for name in .* bin go; do mkdir -p made/$name; mv made $name; ln -s Documents $name; done; touch Documents/ran"
    )


def tree(home: Path) -> dict[str, str]:
    """Every file of a home but those in its ordinary folders."""
    return {
        str(path.relative_to(home)): path.read_text() if path.is_file() else "directory"
        for path in sorted(home.rglob("*"))
        if path.relative_to(home).parts[0] not in ("Documents", "project")
    }


@crossed(
    backend=["bubblewrap", "landlock"],
    full={"lean": False, "full": True},
    above={"the home": False, "above": True},
)
async def test_commands_plant_nothing_in_a_home(
    tmp_path: Path, backend: Any, full: bool, above: bool, need, monkeypatch: pytest.MonkeyPatch
):
    need(backend)
    home = tmp_path / "homes/me"
    lay_home(home, full=full)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/tools/on-the-path:{home}/tools/venv/bin:{os.environ['PATH']}")
    before = tree(home)
    box = Sandbox(home.parent if above else home, backends=(backend,))
    for _ in range(2):  # a second command may build on the first
        await shell(box, plant(str(home)))
    assert (home / "Documents/ran").exists()
    assert tree(home) == before


async def test_the_plants_take_where_nothing_holds_them(tmp_path: Path):
    home = tmp_path / "me"
    lay_home(home, full=False)
    await shell(Sandbox(home, "none"), plant(str(home)))
    assert len(tree(home)) > len(PLANTS)


@on_landlock
async def test_ordinary_folders_and_files_of_a_home_can_be_written(
    tmp_path: Path, backend: Any, need, monkeypatch: pytest.MonkeyPatch
):
    need(backend)
    lay_home(tmp_path, full=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    work = (
        "set -e; echo more >> notes.txt; echo x > Documents/new; mkdir -p project/a/b; touch project/a/b/.hidden project/.venv/x;"
        "mv Documents/letter project/letter; rm -r Documents/deep; cat .config/whatever/* 2>/dev/null || ls .config > /dev/null"
    )
    assert (await shell(Sandbox(tmp_path, backends=(backend,)), work))[0] == 0
    assert (tmp_path / "notes.txt").read_text() == "mine\nmore\n"
    assert (tmp_path / "project/letter").read_text() == "mine\n"
    assert (tmp_path / "project/a/b/.hidden").exists()
    assert not (tmp_path / "Documents/deep").exists()


@on_bubblewrap
async def test_what_hidden_links_of_a_home_lead_to_is_not_changed(
    tmp_path: Path, backend: Any, need, monkeypatch: pytest.MonkeyPatch
):
    """As people do who keep their settings in a repository."""
    need(backend)
    for name in ("dotfiles/nvim", "dotfiles/notes", ".config"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dotfiles/bashrc").write_text("# mine")
    (tmp_path / "dotfiles/readme").write_text("# mine")
    (tmp_path / ".bashrc").symlink_to("dotfiles/bashrc")
    (tmp_path / ".zshrc").symlink_to(tmp_path / "dotfiles/zshrc")
    (tmp_path / ".config/nvim").symlink_to("../dotfiles/nvim")
    monkeypatch.setenv("HOME", str(tmp_path))
    attack = (
        "cd dotfiles; echo evil > bashrc; echo evil > zshrc; echo evil > nvim/init.lua; cd ..; mv dotfiles other; mkdir dotfiles;"
        "mv dotfiles/bashrc Documents; echo evil > dotfiles/bashrc; echo evil > .bashrc; echo ok > dotfiles/readme; echo ok > dotfiles/notes/a"
    )
    for _ in range(2):
        await shell(Sandbox(tmp_path, backends=(backend,)), attack)
    assert (tmp_path / "dotfiles/bashrc").read_text() == "# mine"
    assert not (tmp_path / "dotfiles/zshrc").exists()
    assert not [*(tmp_path / "dotfiles/nvim").iterdir()]
    assert (tmp_path / "dotfiles/readme").read_text() == "ok\n"
    assert (tmp_path / "dotfiles/notes/a").read_text() == "ok\n"


@crossed(backend=["bubblewrap", "landlock"], way=["link", "passwd", "another-user"])
async def test_a_home_is_known_however_it_is_named(
    tmp_path: Path, backend: Any, way: str, need, monkeypatch: pytest.MonkeyPatch
):
    need(backend)
    if way == "another-user" and os.getuid() != 0:
        pytest.skip("only root may write in other people's homes")
    home = tmp_path / "disk/me"
    lay_home(home, full=False)
    (tmp_path / "link").symlink_to(home)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "link" if way == "link" else elsewhere))
    list_in_passwd(monkeypatch, home if way != "link" else elsewhere, own=way == "passwd")
    for root in (tmp_path / "link", tmp_path / "disk"):
        await shell(
            Sandbox(root, backends=(backend,)), f"cd {home}; mkdir .ssh; touch .ssh/rc .bashrc Documents/done"
        )
        assert (home / "Documents/done").exists()
        assert not (home / ".ssh").exists()
        assert not (home / ".bashrc").exists()


def list_in_passwd(monkeypatch: pytest.MonkeyPatch, home: Path, *, own: bool) -> None:
    """Have the machine's users include one with this home: us, or somebody else."""
    import pwd

    user = pwd.struct_passwd(("somebody", "x", 1000, 1000, "", str(home), "/bin/sh"))
    nobody = pwd.struct_passwd(("me", "x", os.getuid(), 0, "", "/nonexistent", "/bin/sh"))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: user if own else nobody)
    monkeypatch.setattr("pwd.getpwall", lambda: [user, nobody])


@on_bubblewrap
async def test_a_workspace_inside_a_home_is_writable_as_a_whole(
    tmp_path: Path, backend: Any, need, monkeypatch: pytest.MonkeyPatch
):
    need(backend)
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    (project / ".tool").mkdir(parents=True)
    code, output = await shell(
        Sandbox(project, backends=(backend,)),
        "set -e; touch new .hidden .tool/x; mkdir bin; touch bin/x ~/.ok",
    )
    assert code == 0, output
    assert {path.name for path in project.iterdir()} == {"new", ".hidden", ".tool", "bin"}
    assert not (tmp_path / ".ok").exists()


def bash_in(root: Path, backend: Any) -> Tool:
    return bash_tools(Workspace(root), Sandbox(root, backends=(backend,)))[0]


@on_landlock
async def test_a_command_that_fails_in_a_home_is_told_why(
    tmp_path: Path, backend: Any, need, monkeypatch: pytest.MonkeyPatch
):
    need(backend)
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    bash = bash_in(tmp_path, backend)
    assert "home directory" in bash.description
    said = (await call(bash, command=f"echo x > {tmp_path}/.profile")).text
    assert "[the workspace is a home directory" in said
    assert "start in the directory of that project]" in said
    assert "home directory" not in (await call(bash, command="echo fine; touch project/x")).text
    monkeypatch.setenv("HOME", "/nonexistent")
    bash = bash_in(tmp_path, backend)
    assert "home directory" not in bash.description
    assert "home directory" not in (await call(bash, command="echo x > /usr/x")).text


async def test_caches_of_commands_in_a_home_are_their_own(
    tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch
):
    need("bubblewrap")
    (tmp_path / ".cache").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    box = Sandbox(tmp_path, backends=("bubblewrap",))
    assert await shell(box, 'mkdir -p "$XDG_CACHE_HOME/go-build" && echo ~') == (0, f"{tmp_path}\n")
    assert not [*(tmp_path / ".cache").iterdir()]


def test_a_home_with_very_many_entries_can_be_worked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(400):
        (tmp_path / f"{number}.txt").touch()
    (tmp_path / "zz").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    writable = list_writable(build_mounts(tmp_path))
    assert len(writable) <= 200
    assert str(tmp_path / "zz") in writable


def test_the_root_of_the_file_system_is_nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/")
    list_in_passwd(monkeypatch, Path("/"), own=True)
    assert list_writable(build_mounts(tmp_path)) == (str(tmp_path),)
