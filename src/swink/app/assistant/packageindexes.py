"""Package indexes: the hosts that the tool chains of a project fetch packages from.

They are only offered to the person, by name, as one answer to a question: files that a model can write name
some of them.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

from swink.tools.coding.domains import PORTS, canonicalize

_MOST_BYTES = 1 << 18


class _ToolChain(Struct, frozen=True):
    """The files that show that a project uses it, its hosts, and where other ones are configured."""

    marks: tuple[str, ...]
    hosts: tuple[str, ...]
    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


_CHAINS = (
    _ToolChain(
        ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile", "uv.lock", "poetry.lock"),
        ("pypi.org", "files.pythonhosted.org"),
        ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX"),
        ("requirements.txt", "Pipfile", "~/.config/pip/pip.conf", "~/.pip/pip.conf"),
    ),
    _ToolChain(
        ("package.json", ".npmrc"),
        ("registry.npmjs.org",),
        ("NPM_CONFIG_REGISTRY", "npm_config_registry"),
        (".npmrc", "~/.npmrc"),
    ),
    _ToolChain(
        ("Cargo.toml",),
        ("index.crates.io", "static.crates.io", "crates.io"),
        files=(".cargo/config.toml", "~/.cargo/config.toml"),
    ),
    _ToolChain(("go.mod",), ("proxy.golang.org", "sum.golang.org"), ("GOPROXY",)),
)
_URL = re.compile(r"https?://[^\s\"',|]+")
_INDEX_LINE = re.compile(r"^.*(?:index|registry|find-links|source|url|replace-with).*$", re.I | re.M)
_REMOTE_LINE = re.compile(r"^\s*(?:push)?url\s*=.*$", re.I | re.M)


def find_indexes(directory: Path) -> tuple[str, ...]:
    """The hosts, with the port where it is not a usual one; blocking."""
    found: dict[str, None] = {}
    for chain in _CHAINS:
        if any((directory / name).is_file() for name in chain.marks):
            found |= dict.fromkeys(chain.hosts)
            found |= dict.fromkeys(_configured(directory, chain))
    if "pypi.org" in found:
        found |= dict.fromkeys(_of_pyproject(_read(directory / "pyproject.toml")))
    found |= dict.fromkeys(_hosts_in(_REMOTE_LINE, _read(directory / ".git" / "config")))
    return tuple(found)


def _configured(directory: Path, chain: _ToolChain) -> Iterator[str]:
    for name in chain.variables:
        yield from _hosts(os.environ.get(name, ""))
    for name in chain.files:
        place = Path(os.path.expanduser(name)) if name.startswith("~") else directory / name
        yield from _hosts_in(_INDEX_LINE, _read(place))


def _of_pyproject(text: str) -> Iterator[str]:
    """The indexes of uv and Poetry."""
    try:
        tools: Any = tomllib.loads(text).get("tool", {})
        sources = [*tools.get("uv", {}).get("index", []), *tools.get("poetry", {}).get("source", [])]
    except (tomllib.TOMLDecodeError, AttributeError, TypeError):
        return
    for source in sources:
        if isinstance(source, dict):
            yield from _hosts(str(cast(dict[str, Any], source).get("url", "")))


def _hosts_in(lines: re.Pattern[str], text: str) -> Iterator[str]:
    for line in lines.finditer(text):
        yield from _hosts(line[0])


def _hosts(text: str) -> Iterator[str]:
    """The hosts of the addresses in a text; credentials in them are left out."""
    for url in _URL.finditer(text):
        try:
            parts = urlsplit(url[0])
            name, port = canonicalize(parts.hostname or ""), parts.port
        except ValueError:
            continue
        if name is not None:
            yield name if port is None or port in PORTS else f"{name}:{port}"


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
