"""What a review found, with the lines that it is about; what is chosen is sent to be fixed."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from swink.app.assistant.codereview import ReviewFinding
from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.screens.listscreen import ListRow, ListScreen
from swink.system.files import READ
from swink.system.threads import in_thread

_AROUND = 8  # lines shown before and after the one that a finding is about
_LARGEST = 1_000_000
_STYLES = {"critical": "failed", "high": "failed", "medium": "warning", "low": "dim"}


class FindingsList(ListScreen[list[ReviewFinding] | None]):
    """The findings; left with those that are to be fixed, or with None."""

    title_text = "findings"
    hints = "Enter has this one fixed · a all of them · PgUp/PgDn scroll · Esc leaves"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "take_all", "all")]

    def __init__(self, look: Look, findings: Sequence[ReviewFinding], directory: Path) -> None:
        super().__init__(look)
        self._findings = {str(number): finding for number, finding in enumerate(findings, 1)}
        self._directory = directory

    async def rows(self, typed: str) -> Sequence[ListRow]:
        return [self._row(key, finding) for key, finding in self._findings.items()]

    async def preview(self, id: str) -> Text:
        finding, look = self._findings[id], self.look
        text = Text().append(visible(finding.place), look.strong)
        text.append(f"  {finding.severity}\n\n", getattr(look, _STYLES[finding.severity]))
        text.append(f"{visible(finding.text)}\n\n", look.text)
        for number, line in await in_thread(_lines_around, self._directory, finding):
            is_it = number == finding.line
            mark = "›" if is_it else " "  # not by colour alone
            text.append(f"{mark}{number:>5}  {visible(line)}\n", look.accent if is_it else look.dim)
        return text

    def take_row(self, id: str) -> None:
        self.dismiss([self._findings[id]])

    def action_take_all(self) -> None:
        self.dismiss(list(self._findings.values()))

    def _row(self, key: str, finding: ReviewFinding) -> ListRow:
        line = Text(no_wrap=True, overflow="ellipsis").append(f"{key:>3} ", self.look.dim)
        line.append(f"{finding.severity:<8} ", getattr(self.look, _STYLES[finding.severity]))
        line.append(f"{visible(finding.place)}  ", self.look.text)
        return ListRow(key, line.append(" ".join(visible(finding.text).split()), self.look.dim))


def _lines_around(directory: Path, finding: ReviewFinding) -> list[tuple[int, str]]:
    """The lines that a finding is about, if its file is one of the directory's."""
    path = Path(os.path.realpath(directory / finding.file))
    if not finding.line or not path.is_relative_to(os.path.realpath(directory)) or not path.is_file():
        return []
    try:
        with os.fdopen(os.open(path, READ), "rb") as file:
            lines = file.read(_LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    first = max(0, finding.line - 1 - _AROUND)
    return list(enumerate(lines[first : finding.line + _AROUND], first + 1))
