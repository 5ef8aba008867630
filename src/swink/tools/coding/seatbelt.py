"""Seatbelt profiles: what a command may use on macOS, as text for `sandbox-exec`.

The profile says the same as the mounts of bubblewrap: system, tool chains and workspace to read, the
workspace and temp files to write, the network or nothing of it. Everything else is denied. A rule that allows
names its exceptions itself (`require-not`), so that the order of rules decides nothing.
"""

import os
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from swink.tools.coding.addresses import Network
from swink.tools.coding.bubblewrap import FORWARD, build_proxy_variables, make_socket_path
from swink.tools.coding.egress import Admission, Egress
from swink.tools.coding.environment import read_git_identity
from swink.tools.coding.mounts import find_tool_homes
from swink.tools.coding.process import CannotStart, Launch
from swink.tools.coding.sandboxplan import SandboxPlan

SANDBOX_EXEC = "/usr/bin/sandbox-exec"

_SYSTEM = (
    "/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/Applications", "/private/etc",
    "/private/var/select", "/private/var/db/dyld", "/private/var/db/timezone",
    "/private/var/db/xcode_select_link", "/private/var/db/DarwinDirectory",
)  # fmt: skip
_KEYS_OF_SYSTEM = ("/Library/Keychains", "/private/etc/master.passwd")
_BASE = """(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow sysctl-read
  (sysctl-name-prefix "hw.")
  (sysctl-name-prefix "machdep.cpu.")
  (sysctl-name-prefix "kern.os")
  (sysctl-name-prefix "kern.proc.pgrp.")
  (sysctl-name-prefix "kern.proc.pid.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg"))
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/dtracehelper")
  (literal "/dev/ptmx")
  (literal "/dev/tty")
  (subpath "/dev/fd"))
(allow file-read*
  (literal "/")
  (literal "/dev")
  (literal "/dev/random")
  (literal "/dev/urandom"))
(allow file-read* file-write*
  (require-all
    (regex #"^/dev/ttys[0-9]+$")
    (extension "com.apple.sandbox.pty")))
(allow file-read-metadata
  (literal "/etc")
  (literal "/tmp")
  (literal "/var"))
"""
_NETWORK = """(allow network-outbound
  (remote ip "*:*")
  (literal "/private/var/run/mDNSResponder"))
(allow network-bind (local ip "*:*"))
(allow network-inbound (local ip "*:*"))
(allow system-socket)
(allow sysctl-read (sysctl-name-prefix "net.routetable"))
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.networkd")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
"""
_PROXIED = """(allow network-outbound
  (remote ip "localhost:{port}")
  (remote unix-socket (path-literal {socket})))
(allow network-bind (local ip "localhost:{port}"))
(allow network-inbound (local ip "localhost:{port}"))
(allow system-socket)
"""


def confine(plain: Launch, plan: SandboxPlan, private: str, *, network: bool) -> Launch:
    """A launch with the user's rights as one in Seatbelt; `private` holds its temp files and home."""
    if not os.path.exists(SANDBOX_EXEC):
        raise CannotStart(f"{SANDBOX_EXEC} is not there")
    profile = build_profile(plan, private, network=network)
    mounts = plan.mounts
    own = {"TMPDIR": f"{private}/tmp", "HOME": f"{private}/home"}
    return replace(
        plain,
        argv=(SANDBOX_EXEC, "-p", profile, "--", *plain.argv),
        env={**read_git_identity(mounts.home), **find_tool_homes(mounts.home), **plain.env, **own},
        watch=plan.watch(plan.guard.everything),
    )


def add_proxy(launch: Launch, private: str, admission: Admission, networks: Sequence[Network]) -> Launch:
    """The launch with a proxy outside, and inside, before the command, the program that forwards to it.

    There is no network of the command's own here, so the forwarder takes a free port of this machine's.
    """
    path = make_socket_path(private)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    at = launch.argv.index("--")
    program, option, profile = launch.argv[:at]
    forwarder = (os.path.realpath(sys.executable), "-I", "-S", FORWARD, path, str(port))
    return replace(
        launch,
        argv=(program, option, profile + build_proxied(port, path), "--", *forwarder, *launch.argv[at + 1 :]),
        env={**launch.env, **build_proxy_variables(port)},
        egress=lambda: Egress(path, admission, networks),
    )


def build_profile(plan: SandboxPlan, private: str, *, network: bool) -> str:
    """The profile for commands of a workspace."""
    mounts, guard = plan.mounts, plan.guard
    hidden = [*map(_subpath, (*mounts.hidden, *_KEYS_OF_SYSTEM))]
    own = [f"{private}/tmp", f"{private}/home"]
    tops = [*_SYSTEM, *mounts.readable, mounts.root, *own]
    kept = [
        *map(_subpath, guard.read_only),
        *(_by_name(path) for path in (*guard.kept, *(path for path, _ in guard.reserved))),
        *map(_literal, (mounts.root, *guard.steady)),
    ]
    return "".join((
        _BASE,
        _allow_ancestors((mounts.root, private, *mounts.readable)),
        _allow("file-read* file-map-executable", map(_subpath, dict.fromkeys(tops)), hidden),
        _allow("file-write*", map(_subpath, mounts.writable), [*hidden, *kept]),
        _allow("file-write*", map(_subpath, own)),
        _allow("network-bind network-inbound network-outbound", map(_subpath, own)),
        _NETWORK if network else "",
    ))  # fmt: skip


def build_proxied(port: int, path: str) -> str:
    """The rules for a network that is a proxy alone, and for the program that forwards to it."""
    return _allow("file-read*", [_literal(FORWARD)]) + _PROXIED.format(port=port, socket=_quote(path))


def _allow(operations: str, places: Iterable[str], excepted: Sequence[str] = ()) -> str:
    lines = [f"(allow {operations}"]
    if not excepted:
        return "\n".join([*lines, *(f"  {place}" for place in places)]) + ")\n"
    lines += ["  (require-all", "    (require-any", *(f"      {place}" for place in places)]
    lines[-1] += ")"
    lines += [f"    (require-not {place})" for place in dict.fromkeys(excepted)]
    return "\n".join(lines) + "))\n"


def _allow_ancestors(paths: Iterable[str]) -> str:
    """Names above what is shown: programs follow a path from the root on."""
    return _allow("file-read-metadata", (f"(path-ancestors {_quote(path)})" for path in dict.fromkeys(paths)))


def _subpath(path: str) -> str:
    return f"(subpath {_quote(path)})"


def _literal(path: str) -> str:
    return f"(literal {_quote(path)})"


def _by_name(path: str) -> str:
    """A path that need not exist, in any spelling that a disk which ignores case takes for it."""
    return f'(regex #"^{"".join(_fold(path))}(/|$)")'


def _fold(path: str) -> Iterator[str]:
    for char in path:
        if char.isascii() and char.isalpha():
            yield f"[{char.lower()}{char.upper()}]"
        elif char.isascii() and (char.isalnum() or char in "/_-"):
            yield char
        else:
            # A quote would end the expression, and letters of other alphabets are several bytes.
            yield f"\\{char}" if char.isascii() and char.isprintable() and char not in '"\\ ' else ".+"


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
