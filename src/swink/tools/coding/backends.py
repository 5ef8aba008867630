"""Backends: the ways to confine a command, and whether each works on this machine.

Each is tried once per program: in a scratch workspace, a command writes a file inside and tries one outside.
"""

import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swink.system.programs import find_program, passed_over
from swink.tools.coding import bubblewrap, landlock, seatbelt, seccomp
from swink.tools.coding.credentials import Readable
from swink.tools.coding.environment import build_environment
from swink.tools.coding.process import CannotStart, Launch, Limits, find_shell, run
from swink.tools.coding.runtime import REMEDY, find_trouble, list_runtime
from swink.tools.coding.sandboxplan import SandboxPlan, plan_sandbox
from swink.tools.coding.survey import Survey

log = logging.getLogger("swink.tools")

Backend = Literal["none", "bubblewrap", "landlock", "seatbelt"]
USUAL: tuple[Backend, ...] = ("seatbelt",) if sys.platform == "darwin" else ("bubblewrap", "landlock")
"""The backends to try on this system, best first."""

MAX_MOUNTS = 300
"""Mounts that bubblewrap makes in acceptable time (150 ms; it grows with the square)."""

_PROBE = '(echo broken > "$CANARY") 2>/dev/null; echo works > "$INSIDE"'


class Verdict(Struct, frozen=True):
    """What the trial of a backend showed: why it cannot be used, or how it can."""

    backend: Backend
    trouble: str = ""
    disable_userns: bool = True


_verdicts: dict[tuple[object, ...], Verdict] = {}


def confine(plain: Launch, plan: SandboxPlan, private: str, verdict: Verdict, *, network: bool) -> Launch:
    """A launch with the user's rights as a launch in a sandbox; `private` holds its temp files and home."""
    if verdict.backend == "landlock":
        return landlock.confine(plain, plan, private, network=network)
    if verdict.backend == "seatbelt":
        return seatbelt.confine(plain, plan, private, network=network)
    return bubblewrap.confine(plain, plan, private, network=network, disable_userns=verdict.disable_userns)


async def judge(backend: Backend, plan: SandboxPlan, *, network: bool) -> Verdict:
    """Whether a backend can be used for a workspace."""
    if trouble := _trouble_here(backend) or _trouble_with(backend, plan):
        return Verdict(backend, trouble)
    return await _judge_machine(backend, network)


async def find_machine_trouble(backends: Sequence[Backend], *, network: bool) -> str:
    """Why none of these backends works on this machine, whatever the workspace; empty if one does."""
    for backend in backends:
        if (await _judge_machine(backend, network)).trouble == "":
            return ""
    return recall_machine_trouble(backends, network=network) or "no backend is known for this system"


def recall_machine_trouble(backends: Sequence[Backend], *, network: bool) -> str | None:
    """What `find_machine_trouble` has found; None if nobody has looked yet."""
    found = [_verdicts.get(_key(backend, network)) for backend in backends]
    if any(verdict is not None and not verdict.trouble for verdict in found):
        return ""
    reasons = [f"{verdict.backend}: {verdict.trouble}" for verdict in found if verdict is not None]
    return "; ".join(reasons) if len(reasons) == len(found) else None


def make_private_directory(path: str) -> str:
    """Fill a new directory with a command's `tmp` and `home`, and with what covers secrets."""
    for name in ("tmp", "home", "nothing"):
        os.mkdir(os.path.join(path, name))
    Path(path, "unreadable").touch(0)
    return path


def _trouble_here(backend: Backend) -> str:
    """What keeps a backend from this system."""
    system, name = ("darwin", "macOS") if backend == "seatbelt" else ("linux", "Linux")
    return "" if sys.platform == system else f"only on {name}, this is {sys.platform}"


def _trouble_with(backend: Backend, plan: SandboxPlan) -> str:
    """What keeps a backend from confining commands of this workspace; empty if nothing does."""
    if plan.mounts.root == "/":
        return "the workspace is the whole file system"
    if trouble := find_trouble(plan.mounts.root):
        return trouble
    if backend == "landlock" and (own := list_runtime(plan.mounts.root)):
        return f"Landlock cannot keep {own[0]} read-only, which swink itself runs from; {REMEDY}"
    if backend == "landlock" and (inside := plan.mounts.hidden_in_root):
        how = plan.how_to_allow(inside[0])
        return f"Landlock cannot hide {inside[0]}, which lies inside the workspace{how}"
    if backend == "bubblewrap" and plan.mount_count > MAX_MOUNTS:
        how = plan.how_to_allow(*plan.mounts.credentials[:1])
        return f"more than {MAX_MOUNTS} files to hide or protect in the workspace{how}"
    return ""


async def _judge_machine(backend: Backend, network: bool) -> Verdict:
    key = _key(backend, network)
    if key not in _verdicts:
        _verdicts[key] = await _probe(backend, network)
    return _verdicts[key]


def _key(backend: Backend, network: bool) -> tuple[object, ...]:
    user = os.getuid() if hasattr(os, "getuid") else None
    return backend, network, user, os.environ.get("PATH")


async def _probe(backend: Backend, network: bool) -> Verdict:
    if trouble := _trouble_here(backend):
        return Verdict(backend, trouble)
    if backend == "seatbelt":
        return Verdict(backend, await _try(Verdict(backend), network))
    if not seccomp.is_supported():
        return Verdict(backend, "no system call filter for this kind of processor")
    if backend == "landlock" and (abi := landlock.read_abi()) < landlock.MINIMUM_ABI:
        needed = f"version {landlock.MINIMUM_ABI} (Linux 6.12) is needed"
        return Verdict(backend, f"the kernel has Landlock version {abi}, {needed}")
    if backend == "bubblewrap" and find_program("bwrap") is None:
        other = passed_over("bwrap")
        found = f"; {other} is not used, because the model can write it" if other else ""
        return Verdict(backend, f"bwrap is not installed (package bubblewrap){found}")
    trouble = await _try(Verdict(backend), network)
    if not trouble or backend == "landlock":
        return Verdict(backend, trouble)
    # An older bubblewrap, or /proc/sys out of reach: the system call filter also refuses new user namespaces.
    fallback = Verdict(backend, disable_userns=False)
    if await _try(fallback, network):
        return Verdict(backend, trouble)
    text = "bubblewrap cannot disable user namespaces here (%s); the system call filter alone does"
    log.info(text, trouble)
    return fallback


async def _try(verdict: Verdict, network: bool) -> str:
    """Run a command that tries to write outside; empty if only that fails, otherwise what went wrong."""
    with tempfile.TemporaryDirectory(prefix=f"swink-{os.getpid()}-probe-") as scratch:
        root, private, canary = _fill_scratch(scratch)
        environment = build_environment({"CANARY": str(canary), "INSIDE": str(root / "inside")})
        argv, workspace = (find_shell(), "-c", _PROBE), str(root)
        limits = Limits(wall=10)
        plain = Launch(argv, workspace, environment, limits, disks=(workspace,), backend=verdict.backend)
        output = bytearray()
        try:
            plan = plan_sandbox(root, Survey(workspace, Readable(root, ())))
            status = await run(confine(plain, plan, private, verdict, network=network), output.extend)
        except CannotStart as error:
            return str(error)
        if canary.read_text() != "alive":
            return "it runs but does not confine"
        if (root / "inside").exists():
            return ""
    return f"it fails with code {status.code}: {output.decode(errors='replace').strip()[-300:]}"


def _fill_scratch(scratch: str) -> tuple[Path, str, Path]:
    """A workspace, a private directory, and beside them a file that must stay as it is."""
    top = Path(os.path.realpath(scratch))
    root, private, canary = top / "workspace", top / "private", top / "canary"
    root.mkdir()
    private.mkdir()
    canary.write_text("alive")
    return root, make_private_directory(str(private)), canary
