"""Interpreters: where on this machine a Python of some version is."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions that swink supports, as the classifiers of pyproject.toml list them."""


def find(version: str) -> str | None:
    """An interpreter of a version such as 3.13: this one, one on the PATH, of pyenv or of uv."""
    return next((path for path in _candidates(version) if version_of(path) == version), None)


def version_of(path: str) -> str | None:
    """The version that an interpreter says it has, such as 3.13; None if it does not start."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:  # a shim of pyenv is there for every version, and starts only the chosen ones
        said = subprocess.run([path, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None


def explain_missing(version: str) -> str:
    """The line for a version that is not here."""
    return f"Python {version}: skipped, there is none on the PATH, in pyenv or in uv"


def _candidates(version: str) -> Iterator[str]:
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        yield os.path.realpath(sys.executable)
    if found := shutil.which(f"python{version}"):
        yield found
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"), "versions")
    yield from _newest_first(pyenv.glob(f"{version}.*/bin/python"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python"))
    yield from _newest_first(uv.glob(f"cpython-{version}.*/bin/python{version}"))
    if shutil.which("py"):  # the launcher of Windows
        told = subprocess.run(
            ["py", f"-{version}", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True
        )
        yield from told.stdout.split("\n")[:1]


def _newest_first(paths: Iterator[Path]) -> Sequence[str]:
    def number(path: Path) -> list[int]:
        name = path.parent.parent.name.removeprefix("cpython-").partition("-")[0]
        return [int(part) for part in name.split(".") if part.isdigit()]

    return [str(path) for path in sorted(paths, key=number, reverse=True)]
