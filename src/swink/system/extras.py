"""Extras: the command that installs what an optional part of swink needs, wherever swink itself came from."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

_FOR_EXTRA = re.compile(r"""^(?P<requirement>[^;]+?)\s*;.*\bextra\s*==\s*["'](?P<extra>[\w-]+)["']""")


def install_command(extra: str) -> str:
    """What to type to get an extra, in a checkout or with an installed wheel, published or not."""
    checkout = _checkout()
    what = ["-e", f"{checkout}[{extra}]"] if checkout else [*_requirements(extra)]
    return _line(what)


def pip_command(package: str) -> str:
    """What to type to get a package for this Python."""
    return _line([package])


def _line(what: Sequence[str]) -> str:
    words = [*_installer(), *what]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _checkout() -> Path | None:
    """The directory of the source that this is, if it is one."""
    root = Path(__file__).resolve().parents[3]
    project = root / "pyproject.toml"
    try:
        is_ours = re.search(r'^name = "swink"$', project.read_text("utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return root if is_ours else None


def _requirements(extra: str) -> Iterator[str]:
    """What the extra consists of; an installed wheel may be on no package index, but these are."""
    try:
        listed: Sequence[str] = requires("swink") or ()
    except PackageNotFoundError:
        listed = ()
    found = [
        match["requirement"]
        for line in listed
        if (match := _FOR_EXTRA.match(line)) and match["extra"] == extra
    ]
    yield from found or [f"swink[{extra}]"]


def _installer() -> list[str]:
    """The pip of this Python; environments made by uv have none."""
    if importlib.util.find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]
