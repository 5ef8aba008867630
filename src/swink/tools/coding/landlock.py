"""Landlock rulesets: which files a command may use, enforced by the kernel without namespaces or privileges.

Landlock confines opening, making, renaming, truncating and removing files, and (from ABI 6, Linux 6.12)
signals and abstract Unix sockets. It does not cover permission bits, owners and time stamps, and cannot
exclude a path beneath one that it allows.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from swink.tools.coding import seccomp
from swink.tools.coding.environment import read_git_identity
from swink.tools.coding.mounts import find_tool_homes, list_around
from swink.tools.coding.process import Launch
from swink.tools.coding.sandboxplan import SandboxPlan

MINIMUM_ABI = 6
"""The first that keeps signals inside, without which a command could kill its supervisor."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_ALL = (1 << 16) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = _ALL & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE

_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_CREATE_RULESET = 444

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def confine(plain: Launch, plan: SandboxPlan, private: str, *, network: bool) -> Launch:
    """A launch with the user's rights as one under Landlock; `private` holds its temp files and home."""
    mounts = plan.mounts
    temp, home = f"{private}/tmp", f"{private}/home"
    rules = [(path, READ) for path in (*mounts.readable, "/proc")]
    rules += [(path, DEVICE) for path in _DEVICES]
    rules += [(mounts.root, READ), *((path, WRITE) for path in (*mounts.writable, temp, home))]
    families = (seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK) if network else ()
    identity = read_git_identity(mounts.home)
    return replace(
        plain,
        env={**identity, **find_tool_homes(mounts.home), **plain.env, "TMPDIR": temp, "HOME": home},
        landlock=build_ruleset(rules, mounts.hidden),
        seccomp=seccomp.build_filter(families, namespaces=False),
        drop_privileges=True,
        watch=plan.watch(plan.guard.everything),
    )


def read_abi() -> int:
    """The version of Landlock the running kernel offers; 0 if none."""
    if sys.platform != "linux":
        return 0
    import ctypes

    return max(0, ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def build_ruleset(rules: Iterable[tuple[str, int]], hidden: Sequence[str]) -> dict[str, Any]:
    """A ruleset for the supervisor: access beneath each path, and none to the hidden paths beneath those."""
    paths = [
        (path, access if os.path.isdir(path) else access & _OF_FILES)
        for top, access in rules
        for path in list_around(top, hidden)  # since a rule holds for everything beneath
    ]
    return {"attributes": [_ALL, 0, _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS], "paths": paths}


def build_scopes() -> dict[str, Any]:
    """A ruleset that leaves files alone and keeps signals and abstract sockets inside."""
    return {"attributes": [0, 0, _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS], "paths": []}
