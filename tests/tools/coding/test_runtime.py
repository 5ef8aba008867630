"""Interpreter, environment and package that swink runs from: no sandboxed command changes them, wherever they lie."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from tests.counts import in_cells

from swink.tools.coding import runtime
from swink.tools.coding.obeyed import is_obeyed
from swink.tools.coding.runtime import find_trouble, list_runtime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")

SOURCE = Path(__file__).parents[3] / "src"
SHELL = """
import asyncio, json, sys
from swink.tools import ToolContext, ToolError
from swink.tools import coding_tools
from swink.tools.coding.runtime import list_runtime
from swink.tools.coding.sandbox import Sandbox

async def main():
    root, backend, *commands = sys.argv[1:]
    try:
        print(json.dumps(await Sandbox(root, backends=(backend,)).backend()))
    except ToolError as error:
        print(json.dumps(str(error)))
        return
    bash = next(tool for tool in coding_tools(root) if tool.name == "bash")
    for command in commands:
        result = await bash.execute("call", {"command": command}, ToolContext("call", "bash"))
        print(json.dumps(result.text))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with an environment that has swink, as an editable install has it."""
    root = tmp_path_factory.mktemp("workspace")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    (site,) = (root / ".venv/lib").glob("python3*/site-packages")
    (site / "swink.pth").write_text(f"{SOURCE}\n{sysconfig.get_path('purelib')}\n")
    return root


def commands_in(root: Path, *commands: str, backend: str = "bubblewrap", python: str = "") -> list[Any]:
    """What a swink that runs from an environment says of its commands."""
    done = subprocess.run(
        [python or root / ".venv/bin/python", "-c", SHELL, root, backend, *commands],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def contents(top: Path) -> dict[str, str | bytes]:
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in top.rglob("*")
        if (path.is_symlink() or path.is_file()) and "__pycache__" not in path.parts
    }


def test_a_command_replaces_neither_the_interpreter_nor_a_package_of_its_own_program(environment: Path, need):
    need("bubblewrap")
    before = contents(environment / ".venv")
    attacks = [
        "ln -sf /bin/false .venv/bin/python; cp /bin/false .venv/bin/python3; rm -rf .venv/bin",
        "echo import os > $(echo .venv/lib/python3*/site-packages)/evil.pth; rm .venv/pyvenv.cfg",
        "mv .venv old; mkdir -p .venv/bin; mv .venv/lib x; rm -rf .venv; touch done",
    ]
    # What is done without malice says why it fails, and what to do.
    install = (
        "python3 -c \"import pathlib; [p] = pathlib.Path('.venv/lib').glob('*/site-packages');"
        " (p.absolute() / 'new').mkdir()\""
    )
    backend, *results = commands_in(environment, *attacks, install, "mkdir own; touch own/file")
    assert (backend, len(results)) == ("bubblewrap", 5)
    assert contents(environment / ".venv") == before
    assert (environment / "done").exists()
    failed, other = results[3:]
    assert "Read-only file system" in failed
    assert "swink itself runs from it: .venv" in failed
    for remedy in ("pipx install swink", "uv tool install swink", "outside the sandbox"):
        assert remedy in failed
    assert "swink itself" not in other


def test_the_directory_above_is_not_renamed_either(environment: Path, tmp_path: Path, need):
    need("bubblewrap")
    shutil.copytree(environment / ".venv", tmp_path / "tools/python/.venv", symlinks=True)
    attack = "mv tools x; mv tools/python y; mkdir -p tools/python/.venv/bin; touch tools/python/done"
    commands_in(tmp_path, attack, python=str(tmp_path / "tools/python/.venv/bin/python"))
    assert (tmp_path / "tools/python/.venv/bin/python").exists()
    assert (tmp_path / "tools/python/done").exists()


def test_sources_of_an_editable_install_are_read_only(tmp_path: Path, need):
    need("bubblewrap")
    shutil.copytree(SOURCE / "swink", tmp_path / "src/swink", ignore=shutil.ignore_patterns("*.pyc"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    (site,) = (tmp_path / ".venv/lib").glob("python3*/site-packages")
    (site / "swink.pth").write_text(f"import sys; sys.path.insert(0, {str(tmp_path / 'src')!r})\n")
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    before = contents(tmp_path / "src")
    attack = "echo evil >> src/swink/tools/coding/supervisor/start.py; mv src x; mv src/swink y; echo 1 > src/other"
    _, said = commands_in(tmp_path, attack)
    assert {**contents(tmp_path / "src"), **before} == {**before, str(tmp_path / "src/other"): b"1\n"}
    assert "[read-only for commands, because swink itself runs from it: src/swink. " in said


def test_landlock_is_refused_with_the_reason_and_the_remedy(environment: Path, need):
    need("landlock")
    (said,) = commands_in(environment, "true", backend="landlock")
    assert f"Landlock cannot keep {environment / '.venv'} read-only" in said
    assert "pipx install swink" in said


@in_cells("backend", ["landlock", "bubblewrap"], every=2)
def test_a_link_of_the_workspace_to_the_environment_is_refused(
    environment: Path, tmp_path: Path, backend: str, need
):
    need(backend)
    (tmp_path / ".venv").symlink_to(environment / ".venv")
    (said,) = commands_in(tmp_path, "true", backend=backend)
    assert f"swink runs through the link {tmp_path / '.venv'}, which a command could replace" in said
    assert "pipx install swink" in said


def test_an_environment_that_is_the_workspace_is_protected_and_the_rest_stays_open(tmp_path: Path, need):
    need("bubblewrap")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    (site,) = (tmp_path / "lib").glob("python3*/site-packages")
    (site / "swink.pth").write_text(f"{SOURCE}\n{sysconfig.get_path('purelib')}\n")
    attack = "ln -sf /bin/false bin/python; echo home = /x > pyvenv.cfg; mv lib y; echo 1 > own"
    before = contents(tmp_path)
    commands_in(tmp_path, attack, python=str(tmp_path / "bin/python"))
    assert contents(tmp_path) == {**before, str(tmp_path / "own"): b"1\n"}


@pytest.fixture
def editable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package in this checkout, also where the tests run with an installed one."""
    monkeypatch.setattr(runtime, "_PACKAGE", str(SOURCE / "swink"))


@pytest.mark.usefixtures("editable")
def test_a_workspace_inside_the_package_is_refused():
    assert "which swink itself runs from" in find_trouble(str(SOURCE / "swink" / "tools"))
    assert find_trouble("/nowhere") == ""


@pytest.mark.usefixtures("editable")
def test_file_tools_count_those_files_among_the_obeyed_ones():
    root = str(SOURCE.parent)
    assert str(SOURCE / "swink") in list_runtime(root)
    assert is_obeyed("src/swink/agent/agent.py", root)
    assert is_obeyed("SRC/Swink/agent.py", root)
    assert not is_obeyed("src/other.py", root)
    assert not is_obeyed("tests/test_x.py", root)
