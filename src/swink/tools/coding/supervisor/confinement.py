"""Restrictions between fork and exec: resources, capabilities, files (Landlock), system calls (seccomp)."""

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 24, 36, 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
CAPABILITY_VERSION = 0x20080522
RLIMIT_LOCKS = 10
"""A limit that the kernel keeps, hands down and shows, but has not enforced since Linux 2.4."""

_libc: "Any" = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Be the new parent of orphaned descendants, in place of init."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def limit(limits: dict[str, int]) -> None:
    """Set resource limits, never above what is allowed already."""
    import resource

    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        if name == "NPROC":
            value += _threads()  # counted per user, not per command: on top of all there are now
        _, hard = resource.getrlimit(kind)
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # The soft CPU limit sends a signal that can be caught, the hard one kills a second later.
        extra = 1 if name == "CPU" and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(kind, (soft, soft + extra))


def mark(number: int) -> None:
    """Mark this process and its descendants: only root can remove the mark, and /proc shows it."""
    import resource

    if resource.getrlimit(RLIMIT_LOCKS)[1] == resource.RLIM_INFINITY:
        resource.setrlimit(RLIMIT_LOCKS, (number, number))


def _threads() -> int:
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[3].split("/")[1])
    except OSError:
        return 100_000


def drop_capabilities() -> None:
    """Drop all capabilities; also from the bounding set, from which uid 0 regains them at every exec."""
    _no_new_privileges()
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # past the last one the kernel knows, or there are none to drop
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def restrict(rules: "dict[str, Any]") -> None:
    """Enter a Landlock domain: `attributes` of the ruleset, `paths` with the access allowed beneath each."""
    _no_new_privileges()
    words: list[int] = rules["attributes"]
    attributes = (ctypes.c_uint64 * len(words))(*words)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = _check(_libc.syscall(LANDLOCK_CREATE_RULESET, attributes, size, 0), "landlock_create_ruleset")
    for path, access in rules["paths"]:
        try:
            target = os.open(path, getattr(os, "O_PATH", 0))
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            continue  # what cannot be reached needs no permission
        rule = access.to_bytes(8, sys.byteorder) + target.to_bytes(4, sys.byteorder)
        _check(_libc.syscall(LANDLOCK_ADD_RULE, ruleset, 1, rule, 0), f"landlock_add_rule {path}")
        os.close(target)
    _check(_libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def install_filter(program: bytes) -> None:
    """Have every system call from here on judged by a seccomp program."""
    _no_new_privileges()
    pointer = ctypes.byref(_Program(len(program) // 8, program))
    _check(_libc.prctl(PR_SET_SECCOMP, 2, pointer, 0, 0), "prctl(PR_SET_SECCOMP)")


def offer_filter(program: bytes, fd: int) -> None:
    """Leave a seccomp program where bubblewrap, told `--seccomp fd`, reads it."""
    read, write = os.pipe()
    os.write(write, program)  # it is far smaller than a pipe
    os.close(write)
    os.dup2(read, fd)
    os.set_inheritable(fd, True)


def _no_new_privileges() -> None:
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def _check(outcome: int, what: str) -> int:
    if outcome < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return outcome
