"""The file system as a sandboxed command sees it: system and tool chains to read, the workspace to write."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from swink.system.writable import is_beneath
from swink.tools.coding.secrets import find_home, list_secret_paths

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap",
    "/sys/devices/system/cpu",
)  # fmt: skip

_TOOL_CHAINS = (
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/pnpm",
    ".local/share/mise", ".local/share/fnm", ".pyenv", ".rbenv", ".nvm", ".nodenv", ".fnm", ".asdf", ".cargo",
    ".rustup", ".sdkman", ".jenv", ".volta", ".bun", ".deno", ".npm-global", ".gem", ".ghcup", ".juliaup",
    ".dotnet", ".conda", "go", "miniconda3", "miniforge3", "anaconda3", ".m2/repository", ".cache/pip",
    ".cache/uv", "bin",
)  # fmt: skip
_TOOL_HOMES = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "NVM_DIR": ".nvm",
    "SDKMAN_DIR": ".sdkman",
}
_PREFIX_MARKS = ("lib", "libexec", "share", "pyvenv.cfg")


class Mounts(Struct, frozen=True):
    """Paths with symlinks resolved: readable ones, the workspace, and hidden ones inside either."""

    root: str
    home: str
    readable: tuple[str, ...]
    hidden: tuple[str, ...]
    writable: tuple[str, ...]
    """The root, or what of it commands may write (`homes.py`); the rest of it they may read."""
    tool_chains: tuple[str, ...] = ()
    """Those of the readable paths that users install programs in."""
    credentials: tuple[str, ...] = ()
    """Those of the hidden paths that are files with credentials, in the workspace or a tool chain."""

    def may_write(self, path: str) -> bool:
        """Whether commands may write a path in the workspace."""
        return any(is_beneath(path, top) for top in self.writable)

    @property
    def hidden_in_root(self) -> tuple[str, ...]:
        """The secrets that lie inside the workspace itself."""
        return tuple(path for path in self.hidden if is_beneath(path, self.root))


def build_mounts(
    root: Path,
    readable: Sequence[str | Path] = (),
    hidden: Iterable[str | Path] = (),
    shown: Sequence[str] = (),
) -> Mounts:
    """What a command in this workspace sees, with `readable`, without `hidden` (relative to the root).

    `shown` are real paths of directories that it sees even where they lie in a hidden place.
    """
    home = str(find_home())
    chains = [os.path.realpath(path) for path in list_tool_chains(home) if os.path.exists(path)]
    secrets = list_secret_paths((os.path.join(root, os.path.expanduser(path)) for path in hidden), root=root)
    found = [*SYSTEM, *chains, *(os.path.join(root, os.path.expanduser(path)) for path in readable)]
    linked = [os.path.realpath(f"/etc/{name}") for name in ("resolv.conf", "localtime")]
    found += [path for path in linked if not is_beneath(path, "/etc")]
    seen = _select_outermost(found, str(root), home, secrets)
    installed = {path for path in chains if path in seen or is_beneath(path, "/opt")}
    there = [path for path in shown if os.path.isdir(path)]  # one may have been removed since
    seen += [path for path in there if not any(is_beneath(path, other) for other in seen)]
    return Mounts(str(root), home, tuple(seen), secrets, writable=(str(root),), tool_chains=tuple(installed))


def list_around(path: str, excluded: Collection[str]) -> Iterator[str]:
    """The path; or, if excluded ones lie beneath it, everything around these, except links."""
    if path in excluded:
        return
    inside = path.rstrip("/") + "/"
    if not any(other.startswith(inside) for other in excluded):
        yield path
        return
    try:
        names = os.listdir(path)
    except OSError:
        return
    for name in names:
        if not os.path.islink(child := inside + name):  # what it points to is listed itself, or not at all
            yield from list_around(child, excluded)


def list_tool_chains(home: str) -> list[str]:
    """Where tool chains are: in a home, on the PATH and around our own interpreter."""
    in_home = [os.path.join(home, name) for name in _TOOL_CHAINS]
    return [*in_home, sys.prefix, sys.base_prefix, *_list_path(home)]


def find_tool_homes(home: str) -> dict[str, str]:
    """Where tool chains are that look for themselves in the home, for commands with another one."""
    places = {name: os.path.join(home, place) for name, place in _TOOL_HOMES.items()}
    return {name: place for name, place in places.items() if os.path.isdir(place)}


def _list_path(home: str) -> list[str]:
    """Where programs on the PATH live: their prefix if it looks like one, else just their directory."""
    found: list[str] = []
    for entry in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        if not entry.startswith("/") or not os.path.isdir(entry):
            continue
        entry = os.path.realpath(entry)
        prefix, name = os.path.split(entry)
        is_prefix = name in ("bin", "sbin", "shims") and any(
            os.path.exists(os.path.join(prefix, mark)) for mark in _PREFIX_MARKS
        )
        found.append(prefix if is_prefix and not is_beneath(home, prefix) else entry)
    return found


def _select_outermost(paths: Iterable[str], root: str, home: str, secrets: Sequence[str]) -> list[str]:
    """The existing paths, less those inside others and those that would show the disk, a home, a secret."""
    kept: list[str] = []
    real = {os.path.realpath(path) for path in paths if os.path.exists(path)}
    for path in sorted(real, key=len):
        covered = any(is_beneath(path, other) for other in (*kept, *secrets))
        if path != "/" and not covered and not is_beneath(path, root) and not is_beneath(home, path):
            kept.append(path)
    return kept
