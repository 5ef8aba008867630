"""Which commands run without asking: a corpus by family, at every level, and what surrounds a command."""

import os
from pathlib import Path

import pytest
from calling import call
from shell_corpus import harmless, hostile
from shell_scene import add_secrets, lay_out
from tests.counts import cell_of_more, crossed, in_cells

from swink.tools import Tool, ToolError
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.process import find_shell
from swink.tools.coding.sandbox import Level, Sandbox
from swink.tools.coding.workspace import Workspace

LEVELS: list[Level] = ["none", "workspace", "workspace+net"]
DAILY = [LEVELS[0], *map(cell_of_more, LEVELS[1:])]  # the rule is the same at every level


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="module")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = lay_out(tmp_path_factory.mktemp("scene"))
    add_secrets(root)
    return root


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of whoever runs the tests decides about them."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "LD_", "LC_", "RIPGREP_", "BASH")) or name in (
            "LANG",
            "CDPATH",
            "POSIXLY_CORRECT",
        ):
            monkeypatch.delenv(name)


def shell(root: Path, level: Level = "none", **options: bool) -> Tool:
    return bash_tools(
        Workspace(root, hidden=[root / ".store"]), Sandbox(root, level, hidden=[root / ".store"]), **options
    )[0]


def asks(root: Path, command: str, level: Level = "none", **arguments: object) -> bool:
    return shell(root, level).needs_approval({"command": command, **arguments})


@pytest.mark.parametrize("level", DAILY)
def test_no_hostile_line_runs_unasked(secretive: Path, level: Level):
    tool = shell(secretive, level)
    assert [line for line in hostile() if not tool.needs_approval({"command": line})] == []


@pytest.mark.parametrize("level", DAILY)
def test_every_harmless_line_runs_unasked(root: Path, level: Level):
    tool = bash_tools(Workspace(root), Sandbox(root, level))[0]
    assert [line for line in harmless() if tool.needs_approval({"command": line})] == []


def test_the_corpus_is_large_enough():
    assert len(hostile()) >= 300
    assert len(harmless()) >= 150
    assert not set(hostile()) & set(harmless())


def test_strange_arguments_ask(root: Path):
    tool = shell(root)
    for arguments in (
        {},
        {"command": 5},
        {"command": ["ls"]},
        {"command": None},
        {"command": "ls", "directory": 5},
        {"directory": "src"},
    ):
        assert tool.needs_approval(arguments), arguments
    assert not tool.needs_approval({"command": "ls", "directory": None})


def test_paths_are_those_of_the_directory_the_command_runs_in(root: Path):
    assert not asks(root, "cat link")
    assert asks(root, "cat link", directory="src")
    assert asks(root, "cat ../a.txt")
    assert not asks(root, "cat ../a.txt", directory="src")
    assert not asks(root, f"cat {root}/a.txt", directory="src")
    assert asks(root, "ls ..", directory=".")
    for directory in ("..", "/etc", "dir-out", "missing", "a.txt", ".store", "src/../.."):
        assert asks(root, "ls", directory=directory), directory


async def test_paths_are_those_of_the_directory_that_was_kept(root: Path):
    tool = shell(root, keep_directory=True)
    assert not tool.needs_approval({"command": "cat link"})
    await call(tool, command="cd src")
    assert tool.needs_approval({"command": "cat link"})
    assert not tool.needs_approval({"command": "cat ../a.txt"})


async def test_what_was_judged_before_the_directory_changed_is_judged_again(root: Path):
    tool = shell(root, keep_directory=True)
    assert not tool.needs_approval({"command": "cd src"})
    assert not tool.needs_approval({"command": "cat link"})
    await call(tool, command="cd src")
    with pytest.raises(ToolError, match="has changed since"):
        await call(tool, command="cat link")
    assert tool.needs_approval({"command": "cat link"})
    assert "canary-secret" in (await call(tool, command="cat link")).text


async def test_a_link_made_by_another_call_of_the_turn_is_not_followed(tmp_path: Path):
    tool = shell(lay_out(tmp_path))
    assert not tool.needs_approval({"command": "cat new"})
    await call(tool, command="ln -s ../outside/secret.txt new")
    with pytest.raises(ToolError, match="call it again"):
        await call(tool, command="cat new")


async def test_calls_that_are_alike_are_each_judged_again(tmp_path: Path):
    tool = shell(lay_out(tmp_path))
    for _ in range(3):
        assert not tool.needs_approval({"command": "cat new"})
    assert (await call(tool, command="cat new")).is_error
    await call(tool, command="ln -s ../outside/secret.txt new")
    for _ in range(2):
        with pytest.raises(ToolError, match="call it again"):
            await call(tool, command="cat new")
    assert tool.needs_approval({"command": "cat new"})
    assert "canary-secret" in (await call(tool, command="cat new")).text


def plant(directory: Path, name: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text("#!/bin/sh\n")
    (directory / name).chmod(0o755)


@crossed(
    name=["ls", "git", "rg", "python3", "find"],
    entry=["{root}/tools", "tools", ".", "", "./tools", "{root}/../alias"],
)
def test_a_program_in_the_workspace_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, entry: str
):
    root = tmp_path / "workspace"
    (root / "tools").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(root / "tools")
    monkeypatch.setenv("PATH", f"{entry.format(root=root)}:/usr/local/bin:/usr/bin:/bin")
    command = f"{name} --version"
    assert not asks(root, command)
    plant(root / "tools", name)
    plant(root, name)
    assert asks(root, command)


def test_a_program_in_the_workspace_that_another_starts_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path / "workspace"
    root.mkdir()
    monkeypatch.setenv("PATH", f"{root}/bin:/usr/bin:/bin")
    for command, started in (("egrep x a.txt", "grep"), ("fgrep x a.txt", "grep"), ("shasum a.txt", "perl")):
        assert not asks(root, command)
        plant(root / "bin", started)
        assert asks(root, command), command
        (root / "bin" / started).unlink()


def test_a_link_to_a_program_in_the_workspace_asks(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    (tmp_path / "ls").symlink_to(root / "bin/ls")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert asks(root, "ls")
    assert not asks(root, "cat a.txt")


def test_a_program_that_a_sandboxed_command_put_into_its_home_asks(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{Path.home()}/new/bin:{os.environ['PATH']}")
    box = Sandbox(root)
    tool = bash_tools(Workspace(root), box)[0]
    assert not tool.needs_approval({"command": "ls"})
    plant(Path(box._own_directory(), "home/new/bin"), "ls")
    assert tool.needs_approval({"command": "ls"})
    box.close()


def test_a_shell_in_the_workspace_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    tools = tmp_path / "workspace/tools"
    plant(tools, "bash")
    shell = find_shell()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert not asks(tmp_path / "workspace", "true")
    held = Workspace(tmp_path / "workspace")
    assert find_shell() == shell
    assert held


def test_without_bash_everything_asks(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asks(root, "true")


VARIABLES = [
    ("BASH_ENV", "evil.sh", "ls"), ("BASH_FUNC_ls%%", "() { touch x; }", "ls"), ("SHELLOPTS", "xtrace", "ls"), ("BASHOPTS", "extglob", "ls"), ("POSIXLY_CORRECT", "1", "ls"),
    ("LD_PRELOAD", "./evil.so", "ls"), ("LD_PRELOAD", "{root}/evil.so", "ls"), ("LD_LIBRARY_PATH", "/usr/lib:", "ls"), ("LD_LIBRARY_PATH", "lib/x", "ls"), ("LD_AUDIT", "{root}/x", "ls"),
    ("DYLD_INSERT_LIBRARIES", "{root}/x", "ls"), ("GREP_OPTIONS", "-R", "grep x a.txt"), ("RIPGREP_CONFIG_PATH", "x", "rg x"), ("CDPATH", "/", "cd src && ls"), ("MAGIC", "x", "file a.txt"),
    ("LC_ALL", "ja_JP.SJIS", "echo 'é'"), ("LANG", "zh_CN.GBK", "echo 'é'"), ("_POSIX2_VERSION", "199209", "tail +5f a.txt"), ("GLOBIGNORE", "a", "ls *.md"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "command"), VARIABLES)
def test_variables_that_change_what_a_line_means_ask(root: Path, name: str, value: str, command: str):
    plain = bash_tools(Workspace(root), Sandbox(root, "none"))[0]
    box = Sandbox(root, "none", environment={name: value.replace("{root}", str(root))})
    assert not plain.needs_approval({"command": command})
    assert bash_tools(Workspace(root), box)[0].needs_approval({"command": command})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RIPGREP_CONFIG_PATH", "x"),
        ("LD_LIBRARY_PATH", "/usr/lib"),
        ("LANG", "de_DE.UTF-8"),
        ("LD_PRELOAD", "libx.so"),
        ("CDPATH", "/"),
    ],
)
def test_variables_that_do_not_concern_a_line_do_not_ask(root: Path, name: str, value: str):
    box = Sandbox(root, "none", environment={name: value})
    assert not bash_tools(Workspace(root), box)[0].needs_approval({"command": "cat a.txt; echo 'é'"})


LONG = [
    *(
        piece * (100_000 // len(piece))
        for piece in ("(", "a;", "$(", "*", "<<a ", "*/", "[ ", "\n", "'", "ls *")
    ),
    *(
        piece * (3_999 // len(piece))
        for piece in (
            "(",
            "a;",
            "$(",
            "{ ",
            "a &&",
            "[ ",
            "if ",
            "a|",
            "! ",
            '"$(',
            "case x in ",
            "((",
            "${",
            "<(",
            "a=(",
            "[[ ",
            "@(",
        )
    ),
]


@pytest.mark.timeout(10)
@in_cells("line", LONG, ids=lambda line: f"{line[:6]!r}x{len(line)}", every=4)
def test_a_long_line_is_judged_at_once(root: Path, line: str):
    assert asks(root, line)


def test_a_search_reads_nothing_hidden_where_no_sandbox_hides_it(root: Path):
    for command in (
        "grep -rn x .",
        "rg --hidden x",
        "rg -uu x",
        "grep -r x .store",
        "rg -g '*' x",
        "grep -rn --include='*' x .",
    ):
        assert asks(root, command), command
        assert asks(root, command, "workspace") is (".store" in command), command
    for command in ("rg x", "grep -rn --include='*.py' x src", "grep -rn x src", "rg -g '!docs' x"):
        assert not asks(root, command), command


def test_a_search_reads_no_credentials_where_no_sandbox_hides_them(secretive: Path):
    for command in (
        "grep -rn KEY .",
        "grep -r KEY keys",
        "rg KEY",
        "rg KEY keys",
        "rg --hidden KEY .",
        "grep -rn --include='id_*' KEY .",
    ):
        assert asks(secretive, command), command
        assert not asks(secretive, command, "workspace"), command
    tool = bash_tools(Workspace(secretive), Sandbox(secretive, "none"))[0]
    for command in ("grep -rn KEY src", "rg KEY src", "grep -rn --include='*.py' KEY .", "rg -g '*.py' KEY"):
        assert not tool.needs_approval({"command": command}), command
    named = bash_tools(Workspace(secretive, readable=[".env", "keys"]), Sandbox(secretive, "none"))[0]
    for command in ("grep -rn KEY .", "cat .env", "rg KEY"):
        assert not named.needs_approval({"command": command}), command


SEARCHES = [
    "grep -r --exclude=zzz --include=*.zzz KEY .", r"grep -r --include='\.env' KEY .", "grep -r --include='[^z]env' KEY .",
    "grep -r --include='[[:punct:]]env' KEY .", "rg --glob-case-insensitive -g .ENV KEY", "diff -rN --no-dereference . ../workspace/src",
    "diff -r --no-dereference keys src",
]  # fmt: skip


@pytest.mark.parametrize("command", SEARCHES)
def test_a_search_reads_no_credentials_by_another_pattern(secretive: Path, command: str):
    assert asks(secretive, command)


@crossed(
    name=[".gitignore", ".ignore", ".rgignore"], rule=["!.env", "!/.env", "!*", "!.e[n]v", "!**/.ENV", "!.*"]
)
def test_a_search_reads_no_credentials_that_an_ignore_file_excepts(tmp_path: Path, name: str, rule: str):
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / ".env").write_text("KEY=canary-env\n")
    (root / "src/.env").write_text("KEY=canary-env\n")
    (root / name).write_text(".env*\n!.env.example\n!keep/\n")
    assert not asks(root, "rg KEY")
    (root / name).write_text(f"build\n{rule}\n")
    assert asks(root, "rg KEY")
    assert asks(root, "rg KEY src")
    assert not asks(root, "rg KEY", "workspace")


def test_wildcards_are_what_bash_makes_of_them(tmp_path: Path):
    root = tmp_path / "workspace"
    for name in ("a.py", "b.py", ".hidden.py", "sub/c.py", "sub/d.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for command in (
        "ls *",
        "cat *.py",
        "wc -l */*.py",
        "ls -d */",
        "du -sh *",
        "cat sub/?.txt",
        "ls nothing*",
        "head -n 3 *.py",
    ):
        assert not asks(root, command), command
    (root / "out.py").symlink_to("/etc/passwd")
    for command in ("cat *.py", "cat *", "grep x *", "wc -l o*", "ls *"):
        assert asks(root, command), command
    assert not asks(root, "ls -l *")
    assert not asks(root, "du -sh *")
    (root / "out.py").unlink()
    for name in ("-o", "!x", "--output=x"):
        (root / name).touch()
        assert asks(root, "sort *"), name
        (root / name).unlink()
    (root / "é").touch()
    assert asks(root, "cat ?")
