"""The plan of a sandbox: the workspace as a command finds it, and what is hidden and protected in it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.system.writable import is_beneath
from swink.tools.coding.credentials import Readable
from swink.tools.coding.guarded import Guard, plan_guard
from swink.tools.coding.homes import list_writable
from swink.tools.coding.mounts import Mounts, build_mounts
from swink.tools.coding.obeyed import GUARDED, INSTEAD
from swink.tools.coding.survey import Findings, Survey
from swink.tools.coding.toolchains import find_credentials


class SandboxPlan(Struct, frozen=True):
    """What a command sees, what it may not change, and what a survey of the workspace found."""

    mounts: Mounts
    guard: Guard = Guard()
    findings: Findings | None = None
    before: Mapping[str, Any] = {}

    @property
    def mount_count(self) -> int:
        """How many mounts bubblewrap needs to hide and protect all of it."""
        mounts, guard = self.mounts, self.guard
        hidden = {*mounts.hidden_in_root, *mounts.credentials}
        return sum(map(len, (hidden, mounts.writable, guard.read_only, guard.steady, guard.reserved)))

    def watch(self, kept: Sequence[str]) -> dict[str, object] | None:
        """What the supervisor compares when the command has ended."""
        if self.findings is None:
            return None
        mounts = self.mounts
        secrets = (path for path in mounts.hidden_in_root if path not in mounts.credentials)
        return {
            "root": mounts.root,
            "kept": sorted({*kept, *self.before}, key=len),
            "reserved": [*secrets, *(path for path, _ in self.guard.reserved)],
            "before": dict(self.before),
            "directories": self.findings.directories,
            "repositories": list(self.findings.repositories),
            "pointers": list(self.findings.pointers),
            "obeyed": list(self.findings.obeyed),
            "names": GUARDED.plain,
            "instead": INSTEAD,
        }

    def how_to_allow(self, *paths: str) -> str:
        """What a refusal says about those of the paths that are hidden for their credentials."""
        named = [os.path.relpath(path, self.mounts.root) for path in paths if path in self.mounts.credentials]
        return f" (it may hold credentials; to allow it: readable={named})" if named else ""


def plan_sandbox(
    root: Path,
    survey: Survey,
    readable: Sequence[str | Path] = (),
    hidden: Sequence[str | Path] = (),
    shown: Sequence[str] = (),
) -> SandboxPlan:
    """The workspace as it is now; raises `TooLarge`."""
    mounts = build_mounts(root, readable, hidden, shown)
    mounts = replace(mounts, writable=list_writable(mounts))
    findings = survey.look()
    found = (*findings.credentials, *find_credentials(mounts, Readable(root, readable)))
    credentials = tuple(path for path in found if not any(is_beneath(path, top) for top in mounts.hidden))
    mounts = replace(mounts, hidden=(*mounts.hidden, *credentials), credentials=credentials)
    return SandboxPlan(mounts, plan_guard(mounts, findings), findings)
