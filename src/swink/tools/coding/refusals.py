"""What the sandbox kept from a command that failed, recognised by what the command wrote.

a path       read-only, hidden or not there inside, though it is outside
a domain     no name can be looked up and no address reached without a network
a device     a device, a socket or a port of this machine that a sandboxed command does not see
"""

import os
import re
import socket
from collections.abc import Iterator

from swink.system.writable import is_beneath
from swink.tools.coding.sandboxplan import SandboxPlan

SAMPLE = 20_000
"""Characters of the output that are looked at, from its end."""
_WAIT = 0.2

_READ_ONLY = re.compile(r"read-only file ?system|EROFS", re.I)
_DENIED = re.compile(r"permission denied|operation not permitted|EACCES|EPERM", re.I)
_ABSENT = re.compile(r"no such file or directory|ENOENT|permission denied|EACCES|cannot open|not found", re.I)
_PATH = re.compile(r"(?<![\w.:/~-])~?/[^\s:;,'\"`()<>|]+")
_QUOTED = re.compile(r"['\"`‘]([^'\"`’]+)['\"`’]")
_NO_NETWORK = re.compile(
    r"could not resolve host(?:name)?:? *'?(?P<a>[\w.-]*)|temporary failure in name resolution"
    r"|name or service not known|nodename nor servname|no address associated with hostname"
    r"|network is unreachable|getaddrinfo (?:ENOTFOUND|EAI_AGAIN) *(?P<b>[\w.-]*)"
    r"|failed to resolve '(?P<c>[\w.-]+)'|host='(?P<f>[\w.-]+)'.*failed to establish a new connection"
    r"|unable to resolve host(?: address)? .?(?P<d>[\w.-]*)|dial tcp: lookup (?P<e>[\w.-]+)",
    re.I,
)
_REFUSED_PORT = re.compile(r"(?:127\.0\.0\.1|localhost|::1)\W{1,3}(?:port )?(\d{2,5})", re.I)
_WAS_REFUSED = re.compile(r"connection refused|ECONNREFUSED|could ?n.t connect|failed to connect", re.I)
_DAEMON = re.compile(
    r"cannot connect to the docker daemon|could not open a connection to your authentication agent"
    r"|cannot open display|failed to connect to (?:the )?(?:system )?bus|cannot autolaunch D-Bus",
    re.I,
)
_ISOLATION = re.compile(r"(?:unshare|clone|mount|ptrace|setns|chroot|bwrap)\b.*operation not permitted", re.I)
_VISIBLE = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/fd", "/dev/pts",
    "/dev/shm", "/dev/std", "/proc",
)  # fmt: skip


def find_refusal(plan: SandboxPlan, backend: str, text: str, *, network: bool) -> str:
    """What the sandbox refused to a command that failed, in words for a person; empty if nothing shows."""
    return next(_list_refusals(plan, backend, text[-SAMPLE:], network), "")


def _list_refusals(plan: SandboxPlan, backend: str, text: str, network: bool) -> Iterator[str]:
    for line in text.splitlines():
        if _READ_ONLY.search(line) or (backend != "bubblewrap" and _DENIED.search(line)):
            named = [path for path in _list_paths(line) if not _is_writable(plan, path)]
            named = named or _QUOTED.findall(line)
            yield f"it may not write {named[0]}" if named else "it may not write what is read-only there"
        if _ABSENT.search(line):
            yield from (f"it cannot see {path}" for path in _list_paths(line) if _is_kept_away(plan, path))
    if not network and (found := _NO_NETWORK.search(text)):
        host = next((name for name in found.groupdict().values() if name), "")
        yield f"it has no network there, and wants {host}" if host else "it has no network there"
    if not network and _WAS_REFUSED.search(text):
        for port in dict.fromkeys(map(int, _REFUSED_PORT.findall(text))):
            if _listens(port):
                yield f"it cannot reach port {port} of this machine"
    if found := _DAEMON.search(text) or _ISOLATION.search(text):
        yield f"it has neither the services nor the devices of this machine ({found[0][:80]})"


def _list_paths(line: str) -> list[str]:
    return [os.path.normpath(os.path.expanduser(path.rstrip("."))) for path in _PATH.findall(line)]


def _is_writable(plan: SandboxPlan, path: str) -> bool:
    kept = (*plan.guard.read_only, *plan.guard.everything)
    return plan.mounts.may_write(path) and not any(is_beneath(path, top) for top in kept)


def _is_kept_away(plan: SandboxPlan, path: str) -> bool:
    """Whether a path is there, but not for sandboxed commands."""
    mounts = plan.mounts
    shown = (*mounts.readable, mounts.root)
    real = os.path.realpath(path)
    if path.startswith(_VISIBLE) or not os.path.lexists(path):
        return False
    hidden = any(is_beneath(place, top) for place in (path, real) for top in mounts.hidden)
    return hidden or not any(is_beneath(place, top) for place in (path, real) for top in shown)


def _listens(port: int) -> bool:
    """Whether something outside takes connections to a port of loopback; blocking, shortly."""
    if not 0 < port < 1 << 16:
        return False
    with socket.socket() as probe:
        probe.settimeout(_WAIT)
        return probe.connect_ex(("127.0.0.1", port)) == 0
