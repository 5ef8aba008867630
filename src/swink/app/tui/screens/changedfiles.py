"""What the tools of this conversation changed in files, as they are now against what they were at first."""

from collections.abc import Collection, Sequence

from rich.text import Text

from swink.app.assistant.snapshots.rewinding import FileChange
from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.screens.excerpts import diffs_text
from swink.app.tui.screens.listscreen import ListRow, ListScreen
from swink.events.transcript import Diff
from swink.events.transcript.blockkinds import counted
from swink.system.threads import in_thread

_ALL = ""  # no path is empty


class ChangedFiles(ListScreen[None]):
    """The files, and their diffs."""

    title_text = "what this conversation changed"
    hints = "↑↓ choose a file · PgUp/PgDn scroll its diff · Esc leaves"

    def __init__(self, look: Look, changes: Sequence[tuple[FileChange, Diff | None]]) -> None:
        super().__init__(look)
        self._diffs = {change.path: diff for change, diff in changes}
        self._kinds = {change.path: _kind(change) for change, _ in changes}

    async def rows(self, typed: str) -> Sequence[ListRow]:
        name = counted(len(self._diffs), "file")
        files = [self._row(path, path, self._kinds[path], [diff]) for path, diff in self._diffs.items()]
        return [self._row(_ALL, name, "", self._diffs.values()), *files]

    async def preview(self, id: str) -> Text:
        shown = self._diffs.items() if id == _ALL else [(id, self._diffs[id])]
        return await in_thread(diffs_text, shown, self.width, self.look)

    def take_row(self, id: str) -> None:
        self.dismiss(None)

    def _row(self, id: str, name: str, kind: str, diffs: Collection[Diff | None]) -> ListRow:
        added = sum(diff.added for diff in diffs if diff is not None)
        removed = sum(diff.removed for diff in diffs if diff is not None)
        text = Text(no_wrap=True, overflow="ellipsis").append(visible(name), self.look.text)
        text.append(f" +{added}", self.look.ok).append(f" −{removed}", self.look.failed)
        return ListRow(id, text.append(f"  {kind}", self.look.dim))


def _kind(change: FileChange) -> str:
    return "new" if change.then is None else "deleted" if change.now is None else ""
