"""Programs: none is chosen by what a model can write, and one module starts them all."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import swink
from swink.system.programs import (
    NEUTRAL,
    Command,
    ProgramChanged,
    environment,
    find_program,
    passed_over,
    python_code,
    python_module,
    python_script,
)
from swink.system.writable import is_writable_by_model, mark_writable

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX links and permissions")
SOURCE = Path(swink.__file__).parent


def plant(place: Path, name: str = "helper", says: str = "planted") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    program = place / name
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A directory that no model can write, with a program."""
    plant(tmp_path / "system", says="real")
    return tmp_path / "system"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def joined(*places: str | Path) -> str:
    return os.pathsep.join(map(str, places))


def test_relative_and_empty_entries_of_the_path_do_not_count(
    tmp_path: Path, system: Path, monkeypatch: pytest.MonkeyPatch
):
    plant(tmp_path / "here")
    plant(tmp_path / "here" / "bin")
    monkeypatch.chdir(tmp_path / "here")
    assert find_program("helper", joined("", ".", "bin", "./bin")) is None
    assert find_program("helper", joined("", ".", "bin", system)) == str(system / "helper")


def test_entries_that_a_workspace_can_write_do_not_count(system: Path, workspace: Path):
    plant(workspace / ".venv" / "bin")
    path = joined(workspace / ".venv" / "bin", system)
    assert find_program("helper", path) == str(workspace / ".venv" / "bin" / "helper")
    held = mark_writable(workspace)
    assert find_program("helper", path) == str(system / "helper"), "also if it was found there before"
    assert find_program("helper", joined(workspace / ".venv" / "bin")) is None
    del held
    assert find_program("helper", joined(workspace / ".venv" / "bin")) is not None


@posix
def test_no_link_leads_into_a_workspace_or_through_it(tmp_path: Path, system: Path, workspace: Path):
    planted = plant(workspace)
    held = mark_writable(workspace)
    for number, target in enumerate((planted, workspace / "current", workspace / "places" / "helper")):
        place = tmp_path / f"place{number}"
        place.mkdir()
        (place / "helper").symlink_to(target)
        assert find_program("helper", joined(place)) is None
    (workspace / "current").symlink_to(system / "helper")
    (workspace / "places").symlink_to(system)
    assert find_program("helper", joined(tmp_path / "place1")) is None, "the workspace decides where it leads"
    assert find_program("helper", joined(tmp_path / "place2")) is None
    (tmp_path / "into").symlink_to(workspace)
    assert find_program("helper", joined(tmp_path / "into")) is None
    assert find_program("helper", joined(workspace / "places")) is None
    assert held


@posix
def test_a_workspace_is_known_by_any_of_its_names(tmp_path: Path, workspace: Path):
    alias = tmp_path / "alias"
    alias.symlink_to(workspace)
    held = mark_writable(alias)
    for spelling in (workspace, alias, f"{tmp_path}/alias/../workspace/x", f"{workspace}//x/./y"):
        assert is_writable_by_model(spelling)
    assert not is_writable_by_model(tmp_path / "workspace-2")
    moved = workspace.rename(tmp_path / "moved")
    assert is_writable_by_model(moved / "x"), "the same directory under another name"
    assert held


def test_what_is_hidden_in_a_home_is_read_only_for_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    held = mark_writable(tmp_path)
    assert not is_writable_by_model(tmp_path / ".local" / "bin" / "uvx")
    assert is_writable_by_model(tmp_path / "bin" / "uvx")
    assert held


def test_the_whole_disk_as_a_workspace_leaves_programs_where_they_are():
    held = mark_writable(os.path.abspath(os.sep))
    assert not is_writable_by_model(sys.executable)
    assert held


def test_a_program_that_was_replaced_since_its_first_use_is_not_started(system: Path):
    path = joined(system)
    found = find_program("helper", path)
    assert found is not None
    command = Command((found,), NEUTRAL, {})
    assert command.run().stdout == b"real\n"
    plant(system, "other").replace(found)
    with pytest.raises(ProgramChanged, match="start swink again"):
        find_program("helper", path)
    with pytest.raises(ProgramChanged, match="not the program that it was"):
        command.run()


def test_a_command_must_name_its_program_by_an_absolute_path(system: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(system)
    for name in ("helper", "./helper"):
        with pytest.raises(FileNotFoundError, match="no program"):
            Command((name,), None, {"PATH": str(system)}).popen()


def test_what_is_passed_over_can_be_named(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    planted = plant(workspace)
    monkeypatch.setenv("PATH", str(workspace))
    held = mark_writable(workspace)
    assert find_program("helper") is None
    assert passed_over("helper") == str(planted)
    assert passed_over("no-such-program") is None
    assert held


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES"])
def test_the_environment_loses_places_that_a_model_can_write(workspace: Path, name: str):
    held = mark_writable(workspace)
    value = joined("", "lib", workspace / "lib", "/usr/lib")
    assert environment({name: value, "OTHER": "x"}) == {name: "/usr/lib", "OTHER": "x"}
    assert environment({name: joined(workspace)}) == {}, "an empty one would mean the working directory"
    assert held


def test_isolated_python_imports_nothing_of_its_directory_or_of_a_workspace(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("json", "runpy", "webbrowser", "sitecustomize", "usercustomize", "msgspec", "own"):
        (workspace / f"{name}.py").write_text("print('planted')")
    monkeypatch.setattr(sys, "path", [str(workspace), "", *sys.path])
    env = {**os.environ, "PYTHONPATH": str(workspace), "PYTHONSTARTUP": str(workspace / "own.py")}
    held = mark_writable(workspace)
    script = workspace / "script.py"
    script.write_text("import json, webbrowser; print('ran')")
    commands = (
        python_module("webbrowser", "--help", cwd=workspace, env=env),
        python_code("import json, msgspec, webbrowser; print('ran')", cwd=workspace, env=env),
        python_script(script, env=env),
    )
    for command in commands:
        done = command.run(stderr=subprocess.STDOUT)
        assert b"planted" not in done.stdout
        assert done.stdout
    done = python_code("import own", cwd=workspace, env=env).run(stderr=subprocess.STDOUT)
    assert b"No module named 'own'" in done.stdout
    assert held


@posix
def test_no_entry_of_the_path_goes_through_a_link_of_a_workspace(
    tmp_path: Path, system: Path, workspace: Path
):
    (workspace / "tools").symlink_to(system)
    (tmp_path / "bin").symlink_to(workspace / "tools")
    held = mark_writable(workspace)
    assert find_program("helper", joined(tmp_path / "bin")) is None, "the workspace decides where it leads"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert find_program("helper", joined(tmp_path / "loop")) is None
    assert held


@posix
def test_a_script_whose_interpreter_a_model_can_write_is_not_used(tmp_path: Path, workspace: Path):
    plant(workspace, "interpreter")
    held = mark_writable(workspace)
    for number, first in enumerate(
        (f"#!{workspace}/interpreter", "#!bin/interpreter", "#! ./interpreter -x")
    ):
        place = tmp_path / f"scripts{number}"
        plant(place).write_text(f"{first}\n")
        assert find_program("helper", joined(place)) is None
    assert held


def test_separators_that_only_the_linker_knows_hide_no_library(workspace: Path):
    held = mark_writable(workspace)
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
        for between in (" ", ";", ":"):
            cleaned = environment({name: f"/usr/lib/x.so{between}{workspace}/e.so"})
            assert cleaned == {name: "/usr/lib/x.so"}
    assert environment({"BASH_ENV": f"{workspace}/x", "NODE_OPTIONS": f"--require={workspace}/x.js"}) == {}
    assert environment({"NODE_OPTIONS": "--max-old-space-size=4096"}) != {}
    assert held


@pytest.mark.parametrize("python_path", [None, "{folder}", "."])
def test_the_command_imports_nothing_of_the_folder_in_place_of_a_package(
    tmp_path: Path, python_path: str | None
):
    for name in ("msgspec", "aiohttp", "tree_sitter", "pygments"):
        (tmp_path / f"{name}.py").write_text("print('planted')")
    env = {**os.environ, "HOME": str(tmp_path)}
    env.pop("PYTHONPATH", None)
    if python_path is not None:
        env["PYTHONPATH"] = python_path.replace("{folder}", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "swink", "mcp", "list"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done
    assert "planted" not in done.stdout + done.stderr, done


# What a program needs to start another one, by module. Programs that we start are files of their own, which fork and
# exec what they were told to.
STARTERS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "os": {"system", "popen", "fork", "forkpty", "startfile", "posix_spawn", "posix_spawnp"}
    | {f"{kind}{ending}" for kind in ("exec", "spawn") for ending in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")},
    "pty": {"fork", "spawn"},
    "multiprocessing": {"*"},
    "concurrent.futures": {"ProcessPoolExecutor"},
    "webbrowser": {"*"},
    "shutil": {"which"},
}  # fmt: skip
ELSEWHERE = {
    "tools/coding/scripts.py: shutil.which",  # what it finds runs in the sandbox
    *(f"tools/coding/supervisor/{name}.py: os.fork" for name in ("start", "keep", "match", "forward")),
    "tools/coding/supervisor/start.py: os.execve",
    "tools/coding/supervisor/match.py: os.execve",
    "tools/coding/supervisor/keep.py: os.execv",
    "tools/coding/supervisor/forward.py: os.execv",
    "tools/coding/supervisor/tree.py: subprocess.Popen",  # /bin/ps, where there is no /proc
}


_MAY_START = re.compile(
    r"subprocess|multiprocessing|webbrowser|\bpty\b|ProcessPool|shutil|from os import|"
    r"\bos\.(?:exec|spawn|system|popen|fork|startfile|posix_spawn)"
)
"""Whether a source is worth parsing."""


def starts(text: str) -> set[str]:
    """Every way to start a process that a source uses: as an attribute, by `from … import`, or through a loop."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in STARTERS.get(module, ()):
                found.add(f"{module}.{name}")
            case ast.Attribute(attr="subprocess_exec" | "subprocess_shell" as name):
                found.add(f"loop.{name}")
            case ast.ImportFrom(module=str(module), names=names):
                wanted = STARTERS.get(module, set[str]())
                found |= {
                    f"{module}.{alias.name}" for alias in names if alias.name in wanted or "*" in wanted
                }
            case ast.Import(names=names):
                found |= {alias.name for alias in names if "*" in STARTERS.get(alias.name, ())}
            case _:
                pass
    return found


def test_no_other_module_finds_or_starts_a_program():
    found = {
        f"{path.relative_to(SOURCE).as_posix()}: {way}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).as_posix() != "system/programs.py"
        if _MAY_START.search(text := path.read_text("utf-8"))
        for way in starts(text)
    }
    assert found == ELSEWHERE, "start it with swink.system.programs"


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['x'])",
        "from subprocess import Popen as P",
        "import os\nos.execvp('x', ['x'])",
        "async def f():\n    await loop.subprocess_exec(None, 'x')",
        "import multiprocessing",
        "from multiprocessing import Process",
        "import shutil\nshutil.which('x')",
    ],
)
def test_the_reader_of_sources_sees_every_way(text: str):
    assert starts(text)
