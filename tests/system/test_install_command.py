"""The command that installs an extra is one that works where it is printed."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from swink.system.extras import install_command

ROOT = Path(__file__).parents[2]
PROJECT = """
[project]
name = "swink"
version = "9"
optional-dependencies.mcp = ["mcp>=2"]

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
from pathlib import Path

def prepare_metadata_for_build_editable(directory, settings=None):
    info = Path(directory, "swink-9.dist-info")
    info.mkdir()
    lines = ("Metadata-Version: 2.1", "Name: swink", "Version: 9", "Provides-Extra: mcp", "")
    info.joinpath("METADATA").write_text("\\n".join(lines))
    return info.name

def build_editable(directory, settings=None, metadata=None):
    raise NotImplementedError
"""
"""A project that pip can look at without a package index."""

needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip")


@needs_pip
def test_in_a_checkout_it_installs_the_checkout(tmp_path: Path):
    command = shlex.split(_installed_like(tmp_path, "checkout"))
    assert command == [sys.executable, "-m", "pip", "install", "-e", f"{tmp_path}/checkout[mcp]"]


@needs_pip
def test_pip_takes_the_command_as_it_is_printed(tmp_path: Path):
    offline = (
        "--dry-run --no-deps --no-build-isolation --no-index --disable-pip-version-check --ignore-installed"
    )
    done = subprocess.run(
        f"{_installed_like(tmp_path, 'a place')} {offline}",
        shell=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done
    assert "Would install swink-9" in done.stdout, done


def test_a_directory_with_spaces_and_quotes_is_one_word(tmp_path: Path):
    command = shlex.split(_installed_like(tmp_path, "it's a place"))
    assert command[-2:] == ["-e", f"{tmp_path}/it's a place[mcp]"]


def test_from_a_wheel_it_installs_what_the_extra_consists_of(tmp_path: Path):
    packages = tmp_path / "site-packages"
    _copy(packages / "swink")
    info = packages / "swink-9.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        "Metadata-Version: 2.4\nName: swink\nVersion: 9\n"
        'Requires-Dist: msgspec\nRequires-Dist: mcp>=2; extra == "mcp"\nRequires-Dist: keyring>=25; extra == "keyring"\n'
    )
    assert _print(packages, "mcp")[-1:] == ["mcp>=2"]
    assert _print(packages, "keyring")[-1:] == ["keyring>=25"]


def test_without_pip_it_is_a_command_of_uv(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    assert shlex.split(install_command("local"))[:5] == ["uv", "pip", "install", "--python", sys.executable]


def test_no_message_and_no_page_advises_to_install_what_is_not_published():
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    advice = re.compile(r"pip install [^\n`]*(?<![/\w])swink\[")  # not ../swink[…], the checkout
    assert [str(file) for file in files if advice.search(file.read_text("utf-8"))] == []


def _installed_like(tmp_path: Path, name: str) -> str:
    """The command that swink prints in a checkout in a directory of that name."""
    checkout = tmp_path / name
    _copy(checkout / "src" / "swink")
    checkout.joinpath("pyproject.toml").write_text(PROJECT)
    checkout.joinpath("backend.py").write_text(BACKEND)
    return shlex.join(_print(checkout / "src", "mcp"))


def _copy(package: Path) -> None:
    package.joinpath("system").mkdir(parents=True)
    for name in ("system/extras.py", "system/__init__.py", "py.typed"):
        package.joinpath(name).write_bytes((ROOT / "src" / "swink" / name).read_bytes())
    package.joinpath("__init__.py").write_text('"""A copy."""\n')


def _print(path: Path, extra: str) -> list[str]:
    code = f"import sys; sys.path.insert(0, {str(path)!r})\nfrom swink.system.extras import install_command; print(install_command({extra!r}))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return shlex.split(done.stdout)
