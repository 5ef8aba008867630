"""Sandbox levels: what a command may reach, and how that is had on this machine.

    none            the user's own rights; limits and process rules still hold
    workspace       the system read-only, the workspace and a private temp directory writable, no network, no secrets
    workspace+net   the same with the network, or with those domains of it that are named

On Linux bubblewrap gives the two upper levels, or Landlock with seccomp where bubblewrap does not work. Each
is tried once, by running a command in it and watching it fail to write outside. Where none works the level is
refused with the reasons.
"""

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from swink.errors import MisuseError
from swink.tool import ToolError
from swink.tools import bubblewrap, landlock, seccomp
from swink.tools.addresses import networks
from swink.tools.baseline import record_baseline, running_in
from swink.tools.credentials import Readable
from swink.tools.domains import Domains
from swink.tools.egress import ApproveDomain, DomainApproval, Egress
from swink.tools.environment import command_environment, git_identity
from swink.tools.guarded import Guard, guard_of
from swink.tools.process import CannotStart, Launch, Limits, run
from swink.tools.survey import Findings, Survey, TooLarge
from swink.tools.view import View, is_beneath, view_of

Level = Literal["none", "workspace", "workspace+net"]
Backend = Literal["none", "bubblewrap", "landlock"]

MAX_MOUNTS = 300
"""Mounts that bubblewrap makes in passable time (150 ms; it grows with the square)."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_TOOL_HOMES = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "NVM_DIR": ".nvm",
    "SDKMAN_DIR": ".sdkman",
}
_FORWARD = str(Path(__file__).with_name("supervisor") / "forward.py")
_PROXY_PORT = 3128
_PROXY_VARIABLES = {
    **{
        name: f"http://127.0.0.1:{_PROXY_PORT}"
        for word in ("http", "https", "all")
        for name in (f"{word}_proxy", f"{word}_proxy".upper())
    },
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}
_PROBE = '(echo broken > "$CANARY") 2>/dev/null; echo works > "$INSIDE"'


class _Verdict(Struct, frozen=True):
    """What trying a backend has shown: why it cannot be used, or how it can."""

    trouble: str = ""
    disable_userns: bool = True


_verdicts: dict[tuple[object, ...], _Verdict] = {}
_sandboxes: "weakref.WeakSet[Sandbox]" = weakref.WeakSet()


class SandboxUnavailable(ToolError):
    """The sandbox level asked for cannot be had here; the text says why and what to do."""


class Sandbox:
    """Runs commands of one workspace at one level.

    `readable` adds paths a command may read, among them files of the workspace that hold credentials;
    `hidden` paths it may not (a session store). Relative ones are relative to the root. `environment` adds
    variables to what is left of ours without its secrets. `backends` are the ways to try, best first. `net`
    confines the level workspace+net to domains, such as `docs.example.org`, `*.example.com`,
    `localhost:8080`; `approve_domain` is asked about any other, once, and `net_from` are networks they may be
    in besides the public internet.
    """

    def __init__(
        self,
        root: str | Path,
        level: Level = "workspace",
        *,
        readable: Sequence[str | Path] = (),
        hidden: Sequence[str | Path] = (),
        environment: Mapping[str, str] | None = None,
        backends: Sequence[Backend] = ("bubblewrap", "landlock"),
        net: Sequence[str] | None = None,
        net_from: Sequence[str] = (),
        approve_domain: ApproveDomain | None = None,
    ) -> None:
        if level not in get_args(Level):
            raise MisuseError(f"no sandbox level {level!r}; there are {', '.join(get_args(Level))}")
        if (net is not None or approve_domain is not None) and level != "workspace+net":
            raise MisuseError(
                f"the sandbox level {level!r} cannot be confined to domains; choose sandbox='workspace+net'"
            )
        self.net = None if net is None and approve_domain is None else tuple(net or ())
        self._approval = DomainApproval(Domains(self.net or ()), approve_domain)
        self._net_from = networks(net_from)
        self.root = Path(os.path.realpath(root))
        self.level: Level = level
        self._readable = tuple(readable)
        self._hidden = tuple(hidden)
        self._environment = dict(environment or {})
        self._backends: Sequence[Backend] = backends if level != "none" else ("none",)
        self._survey = Survey(str(self.root), Readable(self.root, readable))
        self._looking = threading.Lock()
        self._commands = running_in(str(self.root))
        self._credentials: tuple[str, ...] = ()
        self._private: str | None = None
        self._forget: Callable[[], object] = lambda: None
        _sandboxes.add(self)

    async def backend(self) -> Backend:
        """The way this level is had here; raises `SandboxUnavailable` with every reason if there is none."""
        return await self._chosen(await asyncio.to_thread(self._look))

    async def launch(
        self, argv: Sequence[str], cwd: str | Path | None = None, *, limits: Limits = Limits()
    ) -> Launch:
        """A command as this sandbox runs it."""
        since = self._commands.started
        scene = await asyncio.to_thread(self._look)
        backend = await self._chosen(scene)
        scene = await asyncio.to_thread(self._settled, scene, backend, since)
        return self._launch(
            backend,
            scene,
            argv,
            str(cwd or self.root),
            limits,
            disable_userns=self._verdict(backend).disable_userns,
        )

    def close(self) -> None:
        """Remove the commands' temp files and home now; otherwise they go with this object, or at exit."""
        self._private = None
        self._forget()

    @property
    def private(self) -> str | None:
        """The directory with the commands' own home and temp files, once there is one."""
        return self._private

    def environment(self) -> dict[str, str]:
        """What a command gets to see of our environment."""
        return command_environment(self._environment)

    async def _chosen(self, scene: "_Scene") -> Backend:
        if self.level == "none":
            return "none"
        reasons: list[str] = []
        for backend in self._backends:
            reason = await self._trouble_with(backend, scene)
            if not reason:
                return backend
            reasons.append(f"{backend}: {reason}")
        raise SandboxUnavailable(
            f"the sandbox level {self.level!r} cannot be had here, so the command was not run ({'; '.join(reasons)}). "
            "Install bubblewrap, allow unprivileged user namespaces, or choose sandbox='none' to run commands with your own rights."
        )

    def hidden_names(self, text: str) -> list[str]:
        """The files with credentials that a text names, relative to the root."""
        names = (os.path.relpath(path, self.root) for path in self._credentials)
        return [name for name in names if os.path.basename(name) in text]

    def _look(self) -> "_Scene":
        """The workspace as it is now."""
        view = view_of(self.root, self._readable, self._hidden)
        if self.level == "none" or str(self.root) == "/":
            return _Scene(view, Guard(), None)
        try:
            with self._looking:
                findings = self._survey.look()
        except TooLarge as error:
            raise SandboxUnavailable(
                f"{error}, too many to look through for credentials before every command; choose a smaller workspace"
            ) from error
        places = view.hidden_in_root
        self._credentials = tuple(
            path for path in findings.credentials if not any(is_beneath(path, place) for place in places)
        )
        view = replace(view, hidden=(*view.hidden, *self._credentials), credentials=self._credentials)
        return _Scene(view, guard_of(view, findings), findings)

    def _settled(self, scene: "_Scene", backend: Backend, since: int) -> "_Scene":
        """The scene as it was when no other command was running."""
        if scene.findings is None:
            return scene
        now = record_baseline(
            scene.findings,
            scene.guard.everything if backend == "landlock" else scene.guard.kept,
            scene.view.root,
        )
        baseline = self._commands.settle(now, since)
        if baseline is now:
            return replace(scene, before=now.before)
        findings = scene.findings.without_new(baseline.findings)
        return _Scene(scene.view, guard_of(scene.view, findings), findings, baseline.before)

    def _launch(
        self,
        backend: Backend,
        scene: "_Scene",
        argv: Sequence[str],
        cwd: str,
        limits: Limits,
        *,
        disable_userns: bool = True,
    ) -> Launch:
        plain = Launch(
            tuple(argv),
            cwd,
            self.environment(),
            limits,
            disks=(str(self.root), tempfile.gettempdir()),
            backend=backend,
        )
        match backend:
            case "none":
                return plain
            case "bubblewrap":
                return self._in_bubblewrap(plain, scene, disable_userns=disable_userns)
            case "landlock":
                return self._in_landlock(plain, scene)

    def _in_bubblewrap(self, plain: Launch, scene: "_Scene", *, disable_userns: bool) -> Launch:
        view = scene.view
        private = self._own_directory()
        home = view.home if bubblewrap.can_have_home(view) or view.home == view.root else "/tmp"
        network = self.level == "workspace+net" and self.net is None
        options = bubblewrap.arguments(
            view, scene.guard, private, plain.cwd, network=network, disable_userns=disable_userns
        )
        scoped = landlock.abi() >= landlock.MINIMUM_ABI
        families = [seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK]
        if not network or scoped:  # else abstract sockets of the whole machine would be in reach
            families.append(seccomp.AF_UNIX)
        launch = replace(
            plain,
            argv=(str(shutil.which("bwrap")), *options, *_counted(plain)),
            cwd="/",
            env={**git_identity(view.home), **plain.env, "TMPDIR": "/tmp", "HOME": home},
            guards=bubblewrap.GUARDS,
            landlock=landlock.scopes() if scoped else None,
            seccomp=seccomp.program(families, namespaces=True),
            seccomp_fd=bubblewrap.SECCOMP_FD,
            reserved=tuple(bubblewrap.reservations(view, scene.guard, private)),
            watch=scene.watch(scene.guard.kept),
            running=self._commands.running,
        )
        return launch if self.net is None else self._with_way_out(launch, private)

    def _with_way_out(self, launch: Launch, private: str) -> Launch:
        """The launch with a proxy outside, and inside, before the command, a program that leads to it."""
        path = os.path.join(private, f"proxy-{secrets.token_hex(4)}")
        if len(path) > 100:
            raise SandboxUnavailable(
                f"a socket cannot have a path as long as {path}; set TMPDIR to a shorter one"
            )
        at = launch.argv.index("--")
        inside = (
            os.path.realpath(sys.executable),
            "-I",
            "-S",
            bubblewrap.FORWARDER,
            bubblewrap.PROXY,
            str(_PROXY_PORT),
        )
        return replace(
            launch,
            argv=(
                *bubblewrap.with_way_out(launch.argv[:at], _FORWARD, path),
                "--",
                *inside,
                *launch.argv[at + 1 :],
            ),
            env={**launch.env, **_PROXY_VARIABLES},
            egress=lambda: Egress(path, self._approval, self._net_from),
        )

    def _in_landlock(self, plain: Launch, scene: "_Scene") -> Launch:
        view = scene.view
        private = self._own_directory()
        rules = [(path, landlock.READ) for path in (*view.readable, "/proc")]
        rules += [(path, landlock.DEVICE) for path in _DEVICES]
        rules += [(path, landlock.WRITE) for path in (view.root, f"{private}/tmp", f"{private}/home")]
        families = (
            (seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK) if self.level == "workspace+net" else ()
        )
        return replace(
            plain,
            env={
                **git_identity(view.home),
                **_tool_homes(view),
                **plain.env,
                "TMPDIR": f"{private}/tmp",
                "HOME": f"{private}/home",
            },
            landlock=landlock.ruleset(rules, view.hidden),
            seccomp=seccomp.program(families, namespaces=False),
            drop_privileges=True,
            watch=scene.watch(scene.guard.everything),
            running=self._commands.running,
        )

    def _own_directory(self) -> str:
        """Our directory for the command's temp files and home; it lives as long as this object."""
        if self._private is None:
            self._private = os.path.realpath(tempfile.mkdtemp(prefix=f"swink-{os.getpid()}-"))
            self._forget = weakref.finalize(self, shutil.rmtree, self._private, ignore_errors=True)
            for name in ("tmp", "home", "nothing"):
                os.mkdir(os.path.join(self._private, name))
            Path(self._private, "unreadable").touch(0)
        return self._private

    async def _trouble_with(self, backend: Backend, scene: "_Scene") -> str:
        """Why a backend cannot be used for this workspace; empty if it can."""
        if sys.platform != "linux":
            return f"only on Linux, this is {sys.platform}"
        if str(self.root) == "/":
            return "the workspace is the whole file system"
        if backend == "landlock" and (inside := scene.view.hidden_in_root):
            return f"Landlock cannot hide {inside[0]}, which lies inside the workspace" + scene.how_to_allow(
                inside[0]
            )
        if backend == "landlock" and self.net is not None:
            return "Landlock cannot confine the network to domains"
        if backend == "bubblewrap" and scene.mounts > MAX_MOUNTS:
            return f"more than {MAX_MOUNTS} files to hide or protect in the workspace" + scene.how_to_allow(
                *scene.view.credentials[:1]
            )
        key = self._key(backend)
        if key not in _verdicts:
            _verdicts[key] = await self._probe(backend)
        return _verdicts[key].trouble

    def _key(self, backend: Backend) -> tuple[object, ...]:
        return (backend, self._probed, os.getuid(), os.environ.get("PATH"))

    @property
    def _probed(self) -> Level:
        """The level whose ways this one uses: a network of domains is no network but for a socket."""
        return self.level if self.net is None else "workspace"

    def _verdict(self, backend: Backend) -> _Verdict:
        return _verdicts.get(self._key(backend), _Verdict())

    async def _probe(self, backend: Backend) -> _Verdict:
        if not seccomp.is_supported():
            return _Verdict("no system call filter for this kind of processor")
        if backend == "landlock":
            if (abi := landlock.abi()) < landlock.MINIMUM_ABI:
                return _Verdict(
                    f"the kernel has Landlock version {abi}, version {landlock.MINIMUM_ABI} (Linux 6.12) is needed"
                )
            return _Verdict(await self._try(backend))
        if shutil.which("bwrap") is None:
            return _Verdict("bwrap is not installed (package bubblewrap)")
        trouble = await self._try(backend)
        if trouble and not await self._try(backend, disable_userns=False):
            # An older bubblewrap, or /proc/sys out of reach: the system call filter refuses new user namespaces all the same.
            return _Verdict(disable_userns=False)
        return _Verdict(trouble)

    async def _try(self, backend: Backend, *, disable_userns: bool = True) -> str:
        """Run a command that tries to write outside, in a scratch workspace; empty if it is stopped and nothing else is."""
        with _Trial() as trial:
            box = Sandbox(trial.workspace, self._probed, environment=trial.environment)
            output = bytearray()
            try:
                argv = (_shell(), "-c", _PROBE)
                launch = box._launch(
                    backend,
                    box._look(),
                    argv,
                    trial.workspace,
                    Limits(wall=10),
                    disable_userns=disable_userns,
                )
                ending = await run(launch, output.extend)
            except CannotStart as error:
                return str(error)
            if not trial.is_intact():
                return "it runs but does not confine"
            if trial.has_run():
                return ""
        return f"it fails with code {ending.code}: {output.decode(errors='replace').strip()[-300:]}"


class _Scene(Struct, frozen=True):
    """A workspace as a command findings it."""

    view: View
    guard: Guard
    findings: Findings | None
    before: Mapping[str, Any] = {}

    @property
    def mounts(self) -> int:
        return (
            len(self.view.hidden_in_root)
            + len(self.guard.read_only)
            + len(self.guard.steady)
            + len(self.guard.reserved)
        )

    def watch(self, kept: Sequence[str]) -> dict[str, object] | None:
        """What the supervisor compares when the command has ended."""
        if self.findings is None:
            return None
        return {
            "root": self.view.root,
            "kept": sorted({*kept, *self.before}, key=len),
            "before": dict(self.before),
            "directories": self.findings.directories,
            "repositories": list(self.findings.repositories),
            "pointers": list(self.findings.pointers),
        }

    def how_to_allow(self, *paths: str) -> str:
        named = [os.path.relpath(path, self.view.root) for path in paths if path in self.view.credentials]
        return f" (it may hold credentials; to allow it: readable={named})" if named else ""


class _Trial:
    """A scratch workspace with a canary beside it."""

    def __init__(self) -> None:
        self._scratch = tempfile.mkdtemp(prefix=f"swink-{os.getpid()}-probe-")
        self._canary = Path(self._scratch, "canary")
        self._inside = Path(self._scratch, "workspace", "inside")
        self._inside.parent.mkdir()
        self._canary.write_text("alive")
        self.workspace = str(self._inside.parent)
        self.environment = {"CANARY": str(self._canary), "INSIDE": str(self._inside)}

    def is_intact(self) -> bool:
        return self._canary.read_text() == "alive"

    def has_run(self) -> bool:
        return self._inside.exists()

    def __enter__(self) -> "_Trial":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._scratch)


def is_in_workspace(path: str | Path) -> bool:
    """Whether a file, or what it links to, lies where the commands of some sandbox of this program may write."""
    spellings = {os.path.abspath(path), os.path.realpath(path)}
    return any(is_beneath(spelling, str(box.root)) for box in list(_sandboxes) for spelling in spellings)


def shell_argv(command: str) -> list[str]:
    """The command line for a shell command."""
    shell = _shell()
    return (
        [shell, "--noprofile", "--norc", "-c", command] if shell.endswith("bash") else [shell, "-c", command]
    )


def _shell() -> str:
    found = shutil.which("bash") or shutil.which("sh")
    if found is None:
        raise CannotStart("there is no shell on the PATH")
    return os.path.realpath(found)


def _tool_homes(view: View) -> dict[str, str]:
    """Where tool chains are that look for themselves in the home directory."""
    places = {name: os.path.join(view.home, place) for name, place in _TOOL_HOMES.items()}
    return {name: place for name, place in places.items() if os.path.isdir(place)}


def _counted(launch: Launch) -> tuple[str, ...]:
    """The command under a limit of processes, which the kernel counts per user namespace, so it is set inside; not for root."""
    if os.getuid() == 0:
        return launch.argv
    return (_shell(), "-c", f'ulimit -u {launch.limits.processes} 2>/dev/null; exec "$@"', "sh", *launch.argv)
