"""A scene: a workspace as a command finds it, with what the sandbox hides and protects in it."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.tools.guarded import Guard, plan_guard
from swink.tools.obeyed import GUARDED, INSTEAD
from swink.tools.runtime import REMEDY, list_runtime
from swink.tools.survey import Findings, Survey
from swink.tools.view import View, build_view, is_beneath

MAX_NAMED = 5
"""Files that one note names."""

_IS_BUSY = re.compile(r"resource busy|EBUSY", re.IGNORECASE)
_MEETS_A_MOUNT = re.compile(rf"read-only file ?system|EROFS|{_IS_BUSY.pattern}", re.IGNORECASE)
"""What programs say when they cannot change a read-only file, or move or remove one that is mounted."""


class Scene(Struct, frozen=True):
    """What a command sees, what it may not change, and what a survey of the workspace found."""

    view: View
    guard: Guard = Guard()
    findings: Findings | None = None
    before: Mapping[str, Any] = {}

    @property
    def mounts(self) -> int:
        """How many mounts bubblewrap needs to hide and protect all of it."""
        guard = self.guard
        return sum(map(len, (self.view.hidden_in_root, guard.read_only, guard.steady, guard.reserved)))

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

    def explain(self, text: str) -> list[str]:
        """Notes on the files that a command and its output name and that it could not read or change."""
        notes: list[str] = []
        credentials = self._list_relative(self.view.credentials)
        if hidden := [path for path in credentials if os.path.basename(path) in text][:MAX_NAMED]:
            notes.append(
                "[hidden, as they may hold credentials; to allow them, "
                f"the program names them: readable={hidden}]"
            )
        if not _MEETS_A_MOUNT.search(text):
            return notes
        if own := _find_named(self._list_relative(list_runtime(self.view.root)), text):
            notes.append(
                f"[read-only for commands, because swink itself runs from it: {', '.join(own)}. "
                f"Tell the user the remedy: {REMEDY}]"
            )
        elif obeyed := _find_named(self._list_relative(self.guard.read_only), text):
            notes.append(
                f"[read-only for commands, because other programs obey it: {', '.join(obeyed)}. {INSTEAD}]"
            )
        return notes

    def _list_relative(self, paths: Sequence[str]) -> list[str]:
        return [os.path.relpath(path, self.view.root) for path in paths]

    def how_to_allow(self, *paths: str) -> str:
        """What a refusal says about those of the paths that are hidden for their credentials."""
        named = [os.path.relpath(path, self.view.root) for path in paths if path in self.view.credentials]
        return f" (it may hold credentials; to allow it: readable={named})" if named else ""


def _find_named(paths: Sequence[str], text: str) -> list[str]:
    """The paths that a text names; else those that keep a directory it names from being moved or removed."""
    found = [
        path for path in paths if path in text or ("." in (name := os.path.basename(path)) and name in text)
    ]
    if not found and _IS_BUSY.search(text):
        found = [path for path in paths if any(part in text for part in path.split("/")[:-1])]
    return found[:MAX_NAMED]


def survey_scene(
    root: Path, survey: Survey, readable: Sequence[str | Path] = (), hidden: Sequence[str | Path] = ()
) -> Scene:
    """The workspace as it is now; raises `TooLarge`."""
    view = build_view(root, readable, hidden)
    findings = survey.look()
    places = view.hidden_in_root
    credentials = tuple(
        path for path in findings.credentials if not any(is_beneath(path, place) for place in places)
    )
    view = replace(view, hidden=(*view.hidden, *credentials), credentials=credentials)
    return Scene(view, plan_guard(view, findings), findings)
