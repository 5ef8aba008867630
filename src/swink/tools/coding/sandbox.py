"""Sandbox levels: what a command may reach, and how that is enforced on this machine.

    none            the user's own rights; limits and process rules still hold
    workspace       system read-only, workspace and private temp files writable, no network, no secrets
    workspace+net   the same with the network, or with the domains that are named

On Linux bubblewrap enforces the two upper levels, or, with a warning in the log, Landlock where bubblewrap
does not work; on macOS Seatbelt does. Where none works the level is refused with the reasons; or, if the
sandbox was made with `or_none`, commands run at the level `none` and every one of them asks.
"""

import logging
import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from shlex import join
from typing import Literal, get_args

from msgspec.structs import replace

from swink.errors import InvalidInput
from swink.system.threads import in_thread
from swink.system.writable import mark_writable
from swink.tools import ToolError
from swink.tools.coding import bubblewrap, seatbelt
from swink.tools.coding.addresses import parse_networks
from swink.tools.coding.backends import (
    USUAL,
    Backend,
    Verdict,
    confine,
    find_machine_trouble,
    judge,
    make_private_directory,
    recall_machine_trouble,
)
from swink.tools.coding.baseline import find_running, record_baseline
from swink.tools.coding.credentials import Readable
from swink.tools.coding.domainquestions import CommandNetwork, DomainGate
from swink.tools.coding.domains import Domains
from swink.tools.coding.egress import ApproveDomain, DomainApproval
from swink.tools.coding.environment import build_environment
from swink.tools.coding.guarded import plan_guard
from swink.tools.coding.linkedgit import LinkedGit
from swink.tools.coding.mounts import build_mounts
from swink.tools.coding.process import Launch, Limits
from swink.tools.coding.refusals import find_refusal
from swink.tools.coding.sandboxnotes import explain_refusals
from swink.tools.coding.sandboxplan import SandboxPlan, plan_sandbox
from swink.tools.coding.survey import Survey, TooLarge
from swink.tools.coding.workspace import as_tuple, select_roots, select_shown

warn_once = cache(logging.getLogger("swink.tools").warning)

Level = Literal["none", "workspace", "workspace+net"]


class SandboxUnavailable(ToolError):
    """The sandbox level is not available here; the text says why and what to do."""


class Sandbox:
    """Runs commands of one workspace at one level.

    `readable` adds paths that a command may read, among them files of the workspace that hold credentials;
    `hidden` are paths it may not (a session store). Relative ones are relative to the root. `environment`
    adds variables to ours, of which secrets are left out. `backends` are the ways to try, best first. `net`
    confines the level workspace+net to domains such as `docs.example.org`, `*.example.com`, `localhost:8080`;
    `approve_domain` is asked about any other, once, and `net_from` are networks they may be in besides the
    public internet. A `DomainGate` instead of a function decides for each command, about private addresses
    too; where Landlock is all there is, commands then have no network. `writable` are further directories
    that commands may write, guarded like the root; under bubblewrap alone. `shown` are directories that
    commands may read even where they lie in a hidden place. `linked` is the repository that a root belongs
    to which is a git worktree: commands read it, and under bubblewrap commit to it. With `or_none` commands
    run at the level none where no backend works on this machine; `is_proven` tells.
    """

    def __init__(
        self,
        root: str | Path,
        level: Level = "workspace",
        *,
        readable: Sequence[str | Path] = (),
        hidden: Sequence[str | Path] = (),
        environment: Mapping[str, str] | None = None,
        backends: Sequence[Backend] = USUAL,
        net: Sequence[str] | None = None,
        net_from: Sequence[str] = (),
        approve_domain: ApproveDomain | DomainGate | None = None,
        or_none: bool = False,
        writable: Sequence[str | Path] = (),
        shown: Sequence[str | Path] = (),
        linked: LinkedGit | None = None,
    ) -> None:
        if level not in get_args(Level):
            raise InvalidInput(f"no sandbox level {level!r}; there are {', '.join(get_args(Level))}")
        if unknown := [name for name in backends if name not in get_args(Backend)]:
            raise InvalidInput(f"no sandbox backend {unknown[0]!r}; there are {', '.join(get_args(Backend))}")
        if (net is not None or approve_domain is not None) and level != "workspace+net":
            raise InvalidInput(
                f"the sandbox level {level!r} cannot be confined to domains; choose sandbox='workspace+net'"
            )
        self.net = None if net is None and approve_domain is None else as_tuple("net", net or ())
        self.gate = None if approve_domain is None or callable(approve_domain) else approve_domain
        approve = approve_domain if callable(approve_domain) else None
        self._approval = DomainApproval(Domains(self.net or ()), approve)
        self._net_from = parse_networks(net_from)
        self.root = Path(os.path.realpath(root))
        self.level: Level = level
        self._linked = linked
        git = () if linked is None else (linked.common,)
        self._readable = (*as_tuple("readable", readable), *git)
        self._hidden = as_tuple("hidden", hidden)
        self._shown = select_shown(self.root, shown)
        self._environment = dict(environment or {})
        is_listed = self.net is not None and self.gate is None
        self._backends: list[Backend] = [name for name in backends if not is_listed or name != "landlock"]
        self._left_out = [name for name in backends if name not in self._backends]
        self._or_none = or_none
        self._survey = Survey(str(self.root), Readable(self.root, self._readable))
        self._looking = threading.Lock()
        self._commands = find_running(str(self.root))
        self._plan: SandboxPlan | None = None
        self._private: str | None = None
        self._forget: Callable[[], object] = lambda: None
        self._writable = [mark_writable(self.root)]
        places = select_roots(self.root, writable) if level != "none" else ()
        self._further = [Sandbox(place, readable=readable, hidden=hidden) for place in places]

    async def backend(self) -> Backend:
        """The backend this level uses here; raises `SandboxUnavailable` with the reasons if there is none."""
        return (await self._choose(await self._plan_now())).backend

    async def launch(
        self,
        argv: Sequence[str],
        cwd: str | Path | None = None,
        *,
        limits: Limits = Limits(),
        network: CommandNetwork | None = None,
    ) -> Launch:
        """The command `argv` in `cwd` as this sandbox runs it; `network` is `open_network`'s, closed by the
        caller.

        Args:
            limits: what it may use
        """
        since = self._commands.started
        plan = await self._plan_now()
        verdict = await self._choose(plan)
        plan = await in_thread(self._settle, plan, verdict.backend, since)
        where, disks = str(cwd or self.root), (str(self.root), tempfile.gettempdir())
        env = self.environment()
        plain = Launch(tuple(argv), where, env, limits, disks=disks, backend=verdict.backend)
        if verdict.backend == "none":
            return plain
        private = self._own_directory()
        launch = confine(plain, plan, private, verdict, network=self._has_network)
        launch = replace(launch, running=self._commands.running)
        for other in self._further if verdict.backend == "bubblewrap" else ():
            launch = await other.add_to(launch, private)
        if self._linked is not None and verdict.backend == "bubblewrap":
            launch = await in_thread(self._linked.add_to, launch)
        if self.net is not None and verdict.backend != "landlock":
            add_proxy = seatbelt.add_proxy if verdict.backend == "seatbelt" else bubblewrap.add_proxy
            admission = network if network is not None else self._approval
            launch = add_proxy(launch, private, admission, self._net_from)
        return launch

    async def add_to(self, launch: Launch, private: str) -> Launch:
        """Another sandbox's launch with this root to write too, guarded as here; `private` is its scratch
        directory.
        """
        since = self._commands.started
        plan = await in_thread(self._look, False)
        if trouble := (await judge("bubblewrap", plan, network=False)).trouble:
            raise SandboxUnavailable(f"{self.root} cannot be written by commands: {trouble}")
        plan = await in_thread(self._settle, plan, "bubblewrap", since)
        return bubblewrap.add_root(launch, plan, private, self._commands.running)

    def open_network(self, argv: Sequence[str]) -> CommandNetwork | None:
        """The network of the command `argv`, if a `DomainGate` decides about it."""
        is_line = "-c" in argv[1:-1]
        return None if self.gate is None else CommandNetwork(self.gate, argv[-1] if is_line else join(argv))

    def close(self) -> None:
        """Remove the commands' temp files and home now; otherwise they go with this object, or at exit."""
        self._private = None
        self._forget()

    @property
    def further(self) -> list[str]:
        """The further directories that commands may write."""
        return [str(other.root) for other in self._further]

    @property
    def private(self) -> str | None:
        """The directory with the commands' own home and temp files, once there is one."""
        return self._private

    async def find_temp(self) -> tuple[str, str]:
        """Where the commands' temp files are, and where commands find them."""
        backend = await self.backend()
        path = f"{self._own_directory()}/tmp"
        return path, "/tmp" if backend == "bubblewrap" else path

    def environment(self) -> dict[str, str]:
        """The environment of commands, without our secrets."""
        return build_environment(self._environment)

    def explain(self, text: str, backend: str) -> list[str]:
        """Notes on what a `text` names and a command under this `backend` could not read or change."""
        return [] if self._plan is None else list(explain_refusals(self._plan, backend, text))

    def find_refusal(self, text: str, backend: str) -> str:
        """What a `backend` refused to a command that failed and wrote this `text`, if anything; blocks
        shortly.
        """
        if self._plan is None:
            return ""
        return find_refusal(self._plan, backend, text, network=self._has_network)

    @property
    def is_proven(self) -> bool:
        """Whether commands certainly run at this level, and at no lower one."""
        return self.level == "none" or not self._or_none or self._trouble() == ""

    @property
    def is_missing(self) -> bool:
        """Whether commands are known to run at the level none, because no backend works on this machine."""
        return self.level != "none" and self._or_none and bool(self._trouble())

    def _trouble(self) -> str | None:
        return recall_machine_trouble(self._backends, network=self._has_network)

    @property
    def _has_network(self) -> bool:
        """Whether commands share our network; with a list of domains they only have a socket to a proxy."""
        return self.level == "workspace+net" and self.net is None

    async def _is_open(self) -> bool:
        """Whether commands run with the user's rights."""
        if self.level == "none":
            return True
        return self._or_none and await find_machine_trouble(self._backends, network=self._has_network) != ""

    async def _plan_now(self) -> SandboxPlan:
        """The workspace as it is now; nothing of it matters to commands with the user's rights."""
        return await in_thread(self._look, await self._is_open())

    def _look(self, is_open: bool) -> SandboxPlan:
        if is_open or str(self.root) == "/":
            return SandboxPlan(build_mounts(self.root, self._readable, self._hidden, self._shown))
        try:
            with self._looking:
                plan = plan_sandbox(self.root, self._survey, self._readable, self._hidden, self._shown)
        except TooLarge as error:
            raise SandboxUnavailable(
                f"{error}, too many to look through for credentials before every command; "
                "choose a smaller workspace"
            ) from error
        self._plan = plan
        return plan

    async def _choose(self, plan: SandboxPlan) -> Verdict:
        """The first backend that can be used."""
        if await self._is_open():
            return Verdict("none")
        reasons = [f"{name}: Landlock cannot confine the network to domains" for name in self._left_out]
        for backend in self._backends:
            verdict = await judge(backend, plan, network=self._has_network)
            if not verdict.trouble:
                if backend == "landlock" and reasons:
                    warn_once(f"commands are sandboxed with {backend}, which is weaker: {'; '.join(reasons)}")
                return verdict
            reasons.append(f"{backend}: {verdict.trouble}")
        advice = "Install bubblewrap, allow unprivileged user namespaces"
        raise SandboxUnavailable(
            f"the sandbox level {self.level!r} cannot be had here, so the command was not run "
            f"({'; '.join(reasons)}). {'Use WSL on Windows' if sys.platform == 'win32' else advice}, "
            "or choose sandbox='none' to run commands with your own rights."
        )

    def _settle(self, plan: SandboxPlan, backend: Backend, since: int) -> SandboxPlan:
        """The plan as it was when no other command was running."""
        if plan.findings is None:
            return plan
        kept = plan.guard.everything if backend == "landlock" else plan.guard.kept
        now = record_baseline(plan.findings, kept, plan.mounts.root)
        baseline = self._commands.settle(now, since)
        if baseline is now:
            return replace(plan, before=now.before)
        findings = plan.findings.without_new(baseline.findings)
        return SandboxPlan(plan.mounts, plan_guard(plan.mounts, findings), findings, baseline.before)

    def _own_directory(self) -> str:
        """Our directory for the commands' temp files and home; it lives as long as this object."""
        if self._private is None:
            path = os.path.realpath(tempfile.mkdtemp(prefix=f"swink-{os.getpid()}-"))
            self._forget = weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
            self._private = make_private_directory(path)
            self._writable.append(mark_writable(path))
        return self._private
