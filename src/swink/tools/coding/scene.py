"""A scene: a workspace as a command finds it, with what the sandbox hides and protects in it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.tools.coding.credentials import Readable
from swink.tools.coding.guarded import Guard, plan_guard
from swink.tools.coding.homes import list_writable
from swink.tools.coding.obeyed import GUARDED, INSTEAD
from swink.tools.coding.survey import Findings, Survey
from swink.tools.coding.toolchains import find_credentials
from swink.tools.coding.view import View, build_view, is_beneath


class Scene(Struct, frozen=True):
    """What a command sees, what it may not change, and what a survey of the workspace found."""

    view: View
    guard: Guard = Guard()
    findings: Findings | None = None
    before: Mapping[str, Any] = {}

    @property
    def mounts(self) -> int:
        """How many mounts bubblewrap needs to hide and protect all of it."""
        view, guard = self.view, self.guard
        hidden = {*view.hidden_in_root, *view.credentials}
        return sum(map(len, (hidden, view.writable, guard.read_only, guard.steady, guard.reserved)))

    def watch(self, kept: Sequence[str]) -> dict[str, object] | None:
        """What the supervisor compares when the command has ended."""
        if self.findings is None:
            return None
        view = self.view
        secrets = (path for path in view.hidden_in_root if path not in view.credentials)
        return {
            "root": view.root,
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
        named = [os.path.relpath(path, self.view.root) for path in paths if path in self.view.credentials]
        return f" (it may hold credentials; to allow it: readable={named})" if named else ""


def survey_scene(
    root: Path, survey: Survey, readable: Sequence[str | Path] = (), hidden: Sequence[str | Path] = ()
) -> Scene:
    """The workspace as it is now; raises `TooLarge`."""
    view = build_view(root, readable, hidden)
    view = replace(view, writable=list_writable(view))
    findings = survey.look()
    credentials = tuple(
        path
        for path in (*findings.credentials, *find_credentials(view, Readable(root, readable)))
        if not any(is_beneath(path, place) for place in view.hidden)
    )
    view = replace(view, hidden=(*view.hidden, *credentials), credentials=credentials)
    return Scene(view, plan_guard(view, findings), findings)
