"""Bubblewrap arguments: a command in its own namespaces, the rest of the machine read-only or absent."""

import os
import secrets
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from msgspec.structs import replace

from swink.system.programs import find_program
from swink.system.writable import is_beneath
from swink.tools.coding import landlock, seccomp
from swink.tools.coding.addresses import Network
from swink.tools.coding.egress import Admission, Egress
from swink.tools.coding.environment import read_git_identity
from swink.tools.coding.guarded import Guard
from swink.tools.coding.mounts import SYSTEM, Mounts
from swink.tools.coding.process import CannotStart, Launch, find_shell
from swink.tools.coding.sandboxplan import SandboxPlan

Running = Callable[[], AbstractContextManager[object]]

GUARDS = 2
"""Generations of bubblewrap's own processes above the command."""
SECCOMP_FD = 9
SHARED_MEMORY = 64 << 20
FORWARDER, PROXY = "/run/swink/forward.py", "/run/swink/proxy"

FORWARD = str(Path(__file__).with_name("supervisor") / "forward.py")
_PROXY_PORT = 3128
_PROXIED = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def confine(plain: Launch, plan: SandboxPlan, private: str, *, network: bool, disable_userns: bool) -> Launch:
    """A launch with the user's rights as one in bubblewrap; `private` as in `build_arguments`."""
    mounts = plan.mounts
    options = build_arguments(
        mounts, plan.guard, private, plain.cwd, network=network, disable_userns=disable_userns
    )
    scoped = landlock.read_abi() >= landlock.MINIMUM_ABI
    families = [seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK]
    if not network or scoped:  # else abstract sockets of the whole machine would be in reach
        families.append(seccomp.AF_UNIX)
    home = mounts.home if can_have_home(mounts) or mounts.home == mounts.root else "/tmp"
    # Where the workspace is the home, its caches are not for commands, so they have their own.
    caches = {"XDG_CACHE_HOME": "/tmp/.cache"} if home == mounts.root else {}
    env = {**read_git_identity(mounts.home), **plain.env, "TMPDIR": "/tmp", "HOME": home, **caches}
    inside = [name for name in env if _makes_the_linker_load(name)]
    set_inside = [word for name in inside for word in ("--setenv", name, env.pop(name))]
    program = find_program("bwrap")
    if program is None:
        raise CannotStart("bwrap (package bubblewrap) is not there any more")
    return replace(
        plain,
        argv=(program, *set_inside, *options, *_limit_processes(plain)),
        cwd="/",
        env=env,
        guards=GUARDS,
        landlock=landlock.build_scopes() if scoped else None,
        seccomp=seccomp.build_filter(families, namespaces=True),
        seccomp_fd=SECCOMP_FD,
        reserved=tuple(list_reservations(mounts, plan.guard, private)),
        watch=plan.watch(plan.guard.kept),
    )


def _makes_the_linker_load(name: str) -> bool:
    """Whether a variable has libraries loaded: the command may have it, bubblewrap, outside, must not."""
    return name.startswith("LD_") or name in ("GCONV_PATH", "LOCPATH", "NLSPATH", "GLIBC_TUNABLES")


def add_proxy(launch: Launch, private: str, admission: Admission, networks: Sequence[Network]) -> Launch:
    """The launch with a proxy outside, and inside, before the command, the program that forwards to it."""
    path = make_socket_path(private)
    options, command = launch.argv[: (at := launch.argv.index("--"))], launch.argv[at + 1 :]
    mounted = ("--ro-bind", FORWARD, FORWARDER, "--ro-bind", path, PROXY)
    forwarder = (os.path.realpath(sys.executable), "-I", "-S", FORWARDER, PROXY, str(_PROXY_PORT))
    return replace(
        launch,
        argv=(*_insert_mounts(options, mounted), "--", *forwarder, *command),
        env={**launch.env, **build_proxy_variables(_PROXY_PORT)},
        egress=lambda: Egress(path, admission, networks),
    )


def make_socket_path(private: str) -> str:
    """Where the proxy of one command listens."""
    path = os.path.join(private, f"proxy-{secrets.token_hex(4)}")
    if len(path) > 100:
        raise CannotStart(f"a socket cannot have a path as long as {path}; set TMPDIR to a shorter one")
    return path


def build_proxy_variables(port: int) -> dict[str, str]:
    """The variables by which programs find the proxy."""
    return {
        **dict.fromkeys(_PROXIED, f"http://127.0.0.1:{port}"),
        **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
        "NODE_USE_ENV_PROXY": "1",
        # Nobody is to be asked about a host that is only wanted to look for a newer pip or npm.
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_update_notifier": "false",
    }


def add_root(launch: Launch, plan: SandboxPlan, private: str, running: Running) -> Launch:
    """The launch with a further root that commands may write, guarded like the workspace."""
    mounts, guard = plan.mounts, plan.guard
    options, command = launch.argv[: (at := launch.argv.index("--"))], launch.argv[at:]
    hidden = [path for path in mounts.hidden_in_root if os.path.lexists(path)]
    covers = [word for path in hidden for word in ("--ro-bind", choose_cover(path, private), path)]
    more = [
        *_bind("--ro-bind", [mounts.root] if mounts.writable != (mounts.root,) else []),
        *_bind("--bind", (*mounts.writable, *guard.steady)),
        *_bind("--ro-bind", guard.read_only),
        *covers,
    ]
    watch = plan.watch(guard.kept)
    return replace(
        launch,
        argv=(*_insert_mounts(options, more), *command),
        reserved=(*launch.reserved, *list_reservations(mounts, guard, private)),
        disks=(*launch.disks, mounts.root),
        further=launch.further if watch is None else (*launch.further, watch),
        running=_both(launch.running, running),
    )


def add_mounts(launch: Launch, mounts: Sequence[str]) -> Launch:
    """The launch with further mounts, as words for bubblewrap, on top of the others."""
    options, command = launch.argv[: (at := launch.argv.index("--"))], launch.argv[at:]
    return replace(launch, argv=(*_insert_mounts(options, mounts), *command))


def _both(first: Running, second: Running) -> Running:
    @contextmanager
    def both() -> Generator[None, None, None]:
        with first(), second():
            yield

    return both


def build_arguments(
    mounts: Mounts, guard: Guard, private: str, cwd: str, *, network: bool, disable_userns: bool = True
) -> list[str]:
    """What goes between `bwrap` and the command.

    `private` is a directory of ours with the command's `tmp` and `home`, and with `nothing` and `unreadable`,
    which cover secrets. Capabilities are dropped because root would keep them in a user namespace and could
    remount all.
    """
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if network else ("--unshare-net",)),
        *(("--disable-userns",) if disable_userns else ()),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--seccomp", str(SECCOMP_FD)),
        *_system(),
        # Root may write kernel settings such as core_pattern without any capability, and bubblewrap lets it.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", "/dev", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm"),
        *("--bind", f"{private}/tmp", "/tmp", "--bind", f"{private}/tmp", "/var/tmp"),
        *(("--bind", f"{private}/home", mounts.home) if can_have_home(mounts) else ()),
        *_bind("--ro-bind", [path for path in mounts.readable if not _in_system(path)]),
        *_bind("--ro-bind", [mounts.root] if mounts.writable != (mounts.root,) else []),
        *_bind("--bind", mounts.writable),
        *_bind("--bind", guard.steady),
        *_bind("--ro-bind", guard.read_only),
        *_cover_secrets(mounts, private),
        *("--remount-ro", "/", "--chdir", cwd, "--"),
    ]


def _insert_mounts(options: Sequence[str], mounts: Sequence[str]) -> list[str]:
    """The options with further mounts, before the root becomes read-only."""
    at = len(options) - 1 - list(reversed(options)).index("--remount-ro")
    return [*options[:at], *mounts, *options[at:]]


def can_have_home(mounts: Mounts) -> bool:
    """Whether the command may get a home of its own at the usual place."""
    home = mounts.home
    return (os.path.isdir(home) and home != "/") and not (_in_system(home) or is_beneath(home, mounts.root))


def _system() -> Iterator[str]:
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.exists(path):
            yield from ("--ro-bind", path, path)


def choose_cover(path: str, private: str) -> str:
    """What covers a secret: an empty directory, or an unreadable file that no program takes for real."""
    return f"{private}/{'nothing' if os.path.isdir(path) else 'unreadable'}"


def list_reservations(mounts: Mounts, guard: Guard, private: str) -> Iterator[tuple[str, bytes | None, str]]:
    """The names that the supervisor reserves: those of the guard, and hidden ones that do not exist yet."""
    for path, content in guard.reserved:
        yield path, content, f"{private}/nothing" if content is None else ""
    for path in mounts.hidden_in_root:
        if not os.path.lexists(path):
            while not os.path.isdir(os.path.dirname(path)):
                path = os.path.dirname(path)
            is_file = os.path.splitext(path)[1] != ""
            yield path, b"" if is_file else None, f"{private}/{'unreadable' if is_file else 'nothing'}"


def _cover_secrets(mounts: Mounts, private: str) -> Iterator[str]:
    shown = (mounts.root, *mounts.readable)
    for path in mounts.hidden:
        if any(is_beneath(path, top) for top in shown) and os.path.lexists(path):
            yield from ("--ro-bind", choose_cover(path, private), path)


def _bind(option: str, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        yield from (option, path, path)


def _in_system(path: str) -> bool:
    return any(is_beneath(path, top) for top in SYSTEM)


def _limit_processes(launch: Launch) -> tuple[str, ...]:
    """The command with a limit of processes, set inside since it counts per user namespace; not for root."""
    if os.getuid() == 0:
        return launch.argv
    limit = f'ulimit -u {launch.limits.processes} 2>/dev/null; exec "$@"'
    return (find_shell(), "-c", limit, "sh", *launch.argv)
