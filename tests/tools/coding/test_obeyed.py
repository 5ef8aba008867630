"""What other programs obey: one list, found at every depth, which sandboxed commands neither change nor make."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from calling import call, eventually, named, shell
from hypothesis import given
from hypothesis import strategies as st
from ordinary import as_ordinary, ordinary_python
from tests.counts import in_cells, left_to_more, tried

from swink.tools import coding_tools
from swink.tools.coding.guarded import RESERVED
from swink.tools.coding.obeyed import GROUPS, IN_HOME, is_obeyed
from swink.tools.coding.sandbox import Sandbox

linux = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")
backends = pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
on_bubblewrap = in_cells("backend", ["bubblewrap", "landlock"], every=2)
on_landlock = in_cells("backend", ["landlock", "bubblewrap"], every=2)
"""For what the supervisor does around a command, the same with both."""
ROOT = "/work"
LISTED = [entry for entries in GROUPS.values() for entry in entries]
PLANTS = [
    ".hg/hgrc",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    ".jj/repo/config.toml",
    ".zed/tasks.json",
    ".dir-locals.el",
    "sub/.mcp.json",
    "sub/deep/er/.vscode/tasks.json",
    "sub/.config/autostart/x.desktop",
    "sub/.SSH/authorized_keys",
    "sub/.bash_aliases",
    "sub/x.code-workspace",
    "node_modules/left-pad/.exrc",
]


def plant(names: list[str]) -> str:
    return "; ".join(f"mkdir -p $(dirname {name}); echo evil >> {name}" for name in names)


def evil_in(root: Path) -> list[str]:
    """The obeyed files with something of the command's in them."""
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file()
        and ".refused" not in path.name
        and "evil" in path.read_text(errors="replace")
        and is_obeyed(str(path.relative_to(root)), str(root))
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".cursor/mcp.json",
        ".gemini/settings.json",
        ".devcontainer/devcontainer.json",
        ".exrc",
        ".nvimrc",
        ".nvim.lua",
        ".bash_aliases",
        ".config/autostart/x.desktop",
        ".ssh/authorized_keys",
        ".hg/store/x",
        "a/b/.git/config",
        "a/.MCP.JSON",
        "project.code-workspace",
        ".vsco\u200dde/tasks.json",
        ".ｅnvrc",
        ".\u017fwink/tools/x.toml",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        "GIT~1/config",
        "vscode~1/tasks.json",
        "VS8A3F~1/tasks.json",
        "a\\.envrc",
    ],
)
def test_a_path_that_other_programs_obey_is_known_however_it_is_spelled(path: str):
    assert is_obeyed(path, ROOT)


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        "Makefile",
        "AGENTS.md",
        ".gitignore",
        ".gitattributes",
        ".editorconfig",
        ".github/workflows/ci.yml",
        "config/autostart/x",
        "autostart",
        "hgrc",
        "git/config",
        "code-workspace",
        ".vscode.refused/tasks.json",
        "notes~1",
        "bin/run",
        "~",
    ],
)
def test_source_build_files_and_instructions_are_not_listed(path: str):
    assert not is_obeyed(path, ROOT)


@pytest.mark.parametrize(
    ("there", "path", "is_part"),
    [
        ([], "HEAD", True),
        ([], "sub/head", True),
        (["sub/HEAD"], "sub/config", True),
        (["sub/HEAD"], "sub/OBJECTS/a", True),
        (["HEAD"], "refs/heads/main", True),
        (["sub/HEAD"], "sub/commondir", True),
        (["bare/HEAD", "bare/objects/a", "bare/refs/a"], "bare/hooks/post-checkout", True),
        (["sub/objects/a"], "sub/refs/a", True),
        (["sub/objects/a", "sub/refs/a"], "sub/config", True),
        ([], "src/objects/a.py", False),
        ([], "config", False),
        ([], "components/Head/index.tsx", False),
        (["sub/HEAD"], "config", False),
        (["sub/HEAD"], "sub/notes.txt", False),
    ],
)
def test_what_makes_a_directory_of_any_name_a_repository_is_obeyed(
    tmp_path: Path, there: list[str], path: str, is_part: bool
):
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert is_obeyed(path, str(tmp_path)) == is_part


@linux
@on_landlock
async def test_a_command_that_completes_a_repository_leaves_it_harmless(
    tmp_path: Path, backend: Any, need: Any
):
    """The rest of it may come from file tools, which nobody is asked about while HEAD is missing."""
    need(backend)
    for name in ("objects", "refs"):
        (tmp_path / "sub" / name).mkdir(parents=True)
    (tmp_path / "sub" / "config").write_text("[core]\n\tfsmonitor = evil\n")
    await shell(Sandbox(tmp_path, backends=(backend,)), "echo ref: refs/heads/main > sub/HEAD")
    assert not (tmp_path / "sub" / "config").exists()
    assert (tmp_path / "sub" / "config.refused").exists()


def test_the_list_says_each_thing_once_and_covers_what_is_reserved():
    assert len(set(LISTED)) == len(LISTED)
    assert set(RESERVED) <= set(LISTED)
    assert not [entry for entry in (*LISTED, *IN_HOME) if entry.startswith("/") or "\\" in entry]


@tried(100, 1_000)
@given(
    st.sampled_from([entry for entry in LISTED if "*" not in entry]),
    st.lists(st.sampled_from(["a", ".b", "Ü", "c d", "node_modules"]), max_size=4),
    st.lists(st.sampled_from(["x", "y.json"]), max_size=2),
    st.integers(0, 2**40),
)
def test_every_listed_name_is_found_at_every_depth_in_any_case(
    entry: str, above: list[str], below: list[str], capitals: int
):
    mixed = "".join(char.upper() if capitals >> at & 1 else char for at, char in enumerate(entry))
    assert is_obeyed("/".join([*above, mixed, *below]), ROOT)


@linux
@backends
async def test_commands_leave_nothing_that_programs_obey_at_any_depth(tmp_path: Path, backend: Any, need):
    need(backend)
    box = Sandbox(tmp_path, backends=(backend,))
    for _ in range(2):  # a second command may build on the first
        code, output = await shell(box, f"{plant(PLANTS)}; touch sub/done")
        assert (code, output) == (0, "")
    assert (tmp_path / "sub/done").exists()
    assert evil_in(tmp_path) == []
    assert (tmp_path / "sub/.mcp.json.refused").read_text() == "evil\n"


LONG = "x" * 235 + ".code-workspace"
COPIES = ": > .mcp.json.refused; for i in $(seq 2 999); do : > .mcp.json.refused-$i; done"


@linux
@on_landlock
@in_cells(
    "attack",
    [
        f"mkdir sub; cd sub; echo evil > .mcp.json; {COPIES}",
        f"mkdir sub; echo evil > sub/{LONG}",
        f"mkdir sub; echo evil > {LONG}; mkdir sub/{LONG}; echo evil > sub/{LONG}/x",
        "mkdir -p sub z; echo evil > sub/.mcp.json; printf 'gitdir: a\\0b' > z/.git",
        "mkdir -p sub z/.git; echo evil > sub/.mcp.json; printf 'a\\0b' > z/.git/commondir",
        "mkdir -p sub z/.git; echo evil > sub/.mcp.json; printf '[core]\\nworktree=a\\0b\\n' > z/.git/config",
    ],
    ids=["copies", "long name", "long directory", "NUL in gitdir", "NUL in commondir", "NUL in worktree"],
    every=4,
)
async def test_nothing_a_command_makes_keeps_a_plant_from_being_moved_aside(
    tmp_path: Path, backend: Any, attack: str, need
):
    need(backend)
    assert await shell(Sandbox(tmp_path, backends=(backend,)), attack) == (0, "")
    assert evil_in(tmp_path) == []
    assert not (tmp_path / "z/.git").is_file()
    assert not list(tmp_path.glob("z/.git/co*[rg]"))


@linux
async def test_what_was_changed_is_put_back_though_every_name_for_a_copy_is_taken(tmp_path: Path, need):
    need("landlock")
    (tmp_path / ".mcp.json").write_text("mine")
    await shell(Sandbox(tmp_path, backends=("landlock",)), f"echo evil > .mcp.json; {COPIES}")
    assert (tmp_path / ".mcp.json").read_text() == "mine"


READ_ONLY = {
    "a directory": "mkdir sub; echo evil > sub/.mcp.json; chmod 555 sub",
    "two directories": "mkdir -p a/sub; echo evil > a/sub/.envrc; chmod 555 a/sub a",
    "hooks": "mkdir -p s/.git/hooks s/.git/objects s/.git/refs; echo ref: refs/heads/main > s/.git/HEAD; "
    "echo evil > s/.git/hooks/pre-commit; chmod 555 s/.git",
    "what was there": "echo evil > .mcp.json; echo evil > mine/.mcp.json; chmod 555 mine .",
    "nobody may list": "echo evil > .mcp.json; echo evil > mine/.mcp.json; chmod 000 mine .",
    "a pointer nobody may read": "mkdir z; echo gitdir: /evil > z/.git; chmod 000 z/.git",
}


@linux
@on_landlock
@pytest.mark.skipif(sys.platform == "linux" and os.getuid() != 0, reason="only root can become another user")
def test_taking_away_rights_keeps_no_plant_from_being_undone(backend: str, need):
    """As an ordinary user: root may write in every directory."""
    need(backend)
    python = ordinary_python()
    if python is None:
        pytest.skip("no interpreter that an ordinary user may run")
    program = f"""
import asyncio, subprocess, tempfile
from pathlib import Path
from calling import shell
from swink.tools.coding.sandbox import Sandbox
async def main():
    for name, attack in {READ_ONLY!r}.items():
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            (root / "mine").mkdir()
            for place in (root, root / "mine"):
                (place / ".mcp.json").write_text("mine")
            await shell(Sandbox(root, backends=({backend!r},)), attack)
            subprocess.run(["chmod", "-R", "u+rwX", scratch], check=True)
            for path in root.rglob("*"):
                if path.is_file() and "refused" not in str(path) and "evil" in path.read_text():
                    print(name, path.relative_to(root))
            for place in (root, root / "mine"):
                if (place / ".mcp.json").read_text() != "mine":
                    print(name, place, "was not put back")
asyncio.run(main())
"""
    done = as_ordinary([python, "-c", program], timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@linux
@backends
async def test_commands_change_nothing_that_programs_obey_at_any_depth(tmp_path: Path, backend: Any, need):
    need(backend)
    for name in PLANTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    tops = {name.split("/")[0] for name in PLANTS}
    moves = "; ".join(f"mv {top} {top}2; cp -r {top}2 {top}" for top in sorted(tops))
    inner = "mv sub/deep sub/other; mkdir -p sub/deep/er/.vscode; rm -rf sub/.config; mv .hg/hgrc x; ln -s ../x .hg/hgrc"
    box = Sandbox(tmp_path, readable=["."], backends=(backend,))  # Landlock could not hide them
    for attack in (plant(PLANTS), f"{inner}; {plant(PLANTS)}", f"{moves}; {plant(PLANTS)}"):
        await shell(box, f"{attack}; touch done")
        assert (tmp_path / "done").exists()
        assert evil_in(tmp_path) == []
    for name in PLANTS:
        assert (tmp_path / name).read_text() == "mine", name


@linux
@on_bubblewrap
async def test_a_repository_of_pipes_holds_no_command_up(tmp_path: Path, backend: Any, need):
    need(backend)
    for repository in (".git", "sub/.git"):
        (tmp_path / repository / "objects").mkdir(parents=True)
        (tmp_path / repository / "refs").mkdir()
        for name in ("HEAD", "config", "commondir"):
            os.mkfifo(tmp_path / repository / name)
    assert await shell(Sandbox(tmp_path, backends=(backend,)), "echo done") == (0, "done\n")


@linux
@on_landlock
async def test_version_control_of_every_kind_can_still_be_used(tmp_path: Path, backend: Any, need):
    need(backend)
    for name in (".hg/hgrc", ".hg/store/data", ".jj/repo/config.toml", ".svn/wc.db"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine\n")
    code, output = await shell(
        Sandbox(tmp_path, backends=(backend,)),
        "echo 1 >> .hg/store/data; echo 1 > .hg/dirstate; echo 1 > .jj/repo/op; echo 1 >> .svn/wc.db; "
        "mkdir -p new/.hg/store; echo 1 > new/.hg/requires",
    )
    assert (code, output) == (0, "")
    assert (tmp_path / ".hg/store/data").read_text() == "mine\n1\n"
    assert (tmp_path / "new/.hg/store").is_dir()
    assert not list(tmp_path.rglob("*.refused"))


@linux
async def test_a_result_says_what_was_undone_and_what_to_do(tmp_path: Path, need):
    need("bubblewrap")
    bash = named(coding_tools(tmp_path), "bash")
    (tmp_path / "archive/sub/.vscode").mkdir(parents=True)
    (tmp_path / "archive/sub/.vscode/tasks.json").write_text("{}")
    result = await call(bash, command="tar c -C archive sub | tar x; mkdir a; touch a/.envrc a/b")
    assert result.text.count("[undone: a/.envrc, sub/.vscode. ") == 1
    for said in ("NAME.refused", "write_file", "outside the sandbox"):
        assert said in result.text
    assert (tmp_path / "sub/.vscode.refused/tasks.json").read_text() == "{}"
    assert (tmp_path / "a/b").exists()
    many = await call(bash, command="for i in $(seq 30); do mkdir m$i; touch m$i/.envrc; done")
    assert "and 10 more. Other programs obey" in many.text


@linux
async def test_a_command_that_meets_a_file_it_may_not_change_is_told_why(tmp_path: Path, need):
    need("bubblewrap")
    (tmp_path / "sub/.vscode").mkdir(parents=True)
    bash = named(coding_tools(tmp_path, sandbox="workspace"), "bash")
    for command in ("rm -rf sub", "echo x > sub/.vscode/a", "cd sub; mv .vscode x", "mv sub other"):
        result = await call(bash, command=command)
        assert "[read-only for commands, because other programs obey it: sub/.vscode" in result.text
    assert "read-only for" not in (await call(bash, command="ls -A sub")).text


@linux
@on_landlock
async def test_a_thousand_folders_of_editors_are_no_trouble(tmp_path: Path, backend: Any, need):
    need(backend)
    for number in range(1_000):
        folder = tmp_path / f"packages/p{number}/.vscode"
        folder.mkdir(parents=True)
        (folder / "tasks.json").write_text("mine")
    box = Sandbox(tmp_path, backends=(backend,))
    code, output = await shell(
        box,
        "for i in 7 77 777 999; do echo evil > packages/p$i/.vscode/tasks.json; done 2>/dev/null; touch done",
    )
    assert (code, output) == (0, "")
    assert evil_in(tmp_path) == []


@linux
async def test_folders_too_large_to_hold_are_no_trouble_and_moved_aside_when_they_changed(
    tmp_path: Path, need
):
    need("landlock")
    for name in (".idea", "a/.zed", "b/.zed"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "mine").write_text("mine")
    for name in (".idea", "a/.zed"):
        (tmp_path / name / "large").write_bytes(bytes(17 << 20))
    box = Sandbox(tmp_path, backends=("landlock",))
    assert (await shell(box, "touch done"))[0] == 0
    assert not list(tmp_path.rglob("*.refused"))
    await shell(box, "for name in .idea a/.zed b/.zed; do echo evil > $name/mine; done")
    assert evil_in(tmp_path) == []
    assert (tmp_path / ".idea.refused/mine").exists()
    assert (tmp_path / "b/.zed/mine").read_text() == "mine"


@linux
async def test_dependencies_can_be_replaced_as_a_whole(tmp_path: Path, need):
    need("bubblewrap")
    (tmp_path / "node_modules/pad/.vscode").mkdir(parents=True)
    (tmp_path / "node_modules/pad/.vscode/a").write_text("mine")
    code, output = await shell(
        Sandbox(tmp_path), "mv node_modules old && rm -rf old && mkdir -p node_modules/pad/.vscode"
    )
    assert (code, output) == (0, "")
    assert (tmp_path / "node_modules/pad/.vscode/a").read_text() == "mine"
    assert (await shell(Sandbox(tmp_path), "rm -rf node_modules"))[0] == 0
    assert not (tmp_path / "node_modules").exists()


@linux
@on_bubblewrap
async def test_what_another_command_has_just_made_is_not_taken_for_given(tmp_path: Path, backend: Any, need):
    need(backend)
    boxes = [Sandbox(tmp_path, backends=(backend,)) for _ in range(2)]
    wait = "until [ -e {0} ]; do sleep 0.02; done"
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        first = group.create_task(
            shell(boxes[0], f"mkdir a; echo evil > a/.mcp.json; touch planted; {wait.format('go')}")
        )
        await eventually((tmp_path / "planted").exists)
        group.create_task(
            shell(boxes[1], f"touch ready; {wait.format('on')}; echo evil > a/.mcp.json; touch a/done")
        )
        await eventually((tmp_path / "ready").exists)
        (tmp_path / "go").touch()
        await first
        (tmp_path / "on").touch()
    assert (tmp_path / "a/done").exists()
    assert evil_in(tmp_path) == []


@linux
@on_landlock
async def test_what_a_link_in_dependencies_leads_to_stays_as_it_was(tmp_path: Path, backend: Any, need):
    need(backend)
    for name in ("node_modules/pad", "shared/editor"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "shared/editor/tasks.json").write_text("mine")
    (tmp_path / "node_modules/pad/.vscode").symlink_to("../../shared/editor")
    await shell(Sandbox(tmp_path, backends=(backend,)), "echo evil > shared/editor/tasks.json; touch done")
    assert (tmp_path / "done").exists()
    assert (tmp_path / "node_modules/pad/.vscode/tasks.json").read_text() == "mine"


@linux
@on_bubblewrap
async def test_branches_that_are_called_like_such_files_stay(tmp_path: Path, backend: Any, need):
    need(backend)
    work = "git init -q r; cd r; git -c user.name=a -c user.email=a@b commit -qm x --allow-empty; git branch mise.toml"
    code, output = await shell(Sandbox(tmp_path, backends=(backend,)), work)
    assert (code, output) == (0, "")
    assert (tmp_path / "r/.git/refs/heads/mise.toml").exists()


@linux
@left_to_more
async def test_a_large_tree_is_not_read_again_for_every_command(
    tmp_path: Path, need, monkeypatch: pytest.MonkeyPatch
):
    need("bubblewrap")
    for number in range(20_000):
        folder = tmp_path / f"d{number // 100}"
        if number % 100 == 0:
            folder.mkdir()
        (folder / f"f{number}.py").touch()
    box = Sandbox(tmp_path)
    await shell(box, "true")
    await asyncio.sleep(2.1)  # directories that have just changed are read again
    await shell(box, "true")
    read: list[Any] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda *path: read.append(path) or scandir(*path))
    await shell(box, "true")
    assert len(read) < 20


def test_what_is_hidden_in_a_home_is_obeyed_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = tmp_path / "ada"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for path in (".pyenv/shims/python", ".cargo/bin/x", "bin/x", ".unheard-of"):
        assert is_obeyed(path, str(home))
        assert is_obeyed(f"ada/{path}", str(tmp_path))
        assert not is_obeyed(path, str(home / "project"))
    assert not is_obeyed("project/.unheard-of", str(home))
    assert not is_obeyed("Documents/notes.txt", str(home))
