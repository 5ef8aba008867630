"""The family of a conversation: what it was forked from, and what was forked from it."""

from collections.abc import Sequence

from rich.text import Text

from swink.app.assistant.sessionfacts import tree_lines
from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.screens.excerpts import last_blocks
from swink.app.tui.screens.listscreen import ListRow, ListScreen
from swink.errors import AgentError
from swink.events.transcript import Transcript
from swink.memory.store import SyncStore
from swink.system.threads import in_thread


class FamilyTree(ListScreen[str | None]):
    """Left with the id of the conversation to go on with, or with None."""

    title_text = "forks of this conversation"
    hints = "Enter resumes · PgUp/PgDn scroll the preview · Esc leaves"

    def __init__(self, look: Look, store: SyncStore, current: str) -> None:
        super().__init__(look)
        self._store = store
        self._current = current

    async def rows(self, typed: str) -> Sequence[ListRow]:
        try:
            branches = await in_thread(self._store.tree, self._current)
        except AgentError as error:
            self.hint(str(error))
            return []
        rows: list[ListRow] = []
        for branch, line in zip(branches, tree_lines(branches, self._current), strict=True):
            style = self.look.strong if branch.meta.id == self._current else self.look.text
            text = Text(visible(line), style, no_wrap=True, overflow="ellipsis")
            rows.append(ListRow(branch.meta.id, text))
        return rows

    def first(self, ids: Sequence[str]) -> int | None:
        return ids.index(self._current) if self._current in ids else super().first(ids)

    async def preview(self, id: str) -> Text:
        try:
            blocks = await in_thread(lambda: Transcript.of(self._store.read(id).records).blocks)
        except AgentError as error:
            return Text(str(error), self.look.failed)
        return await in_thread(last_blocks, blocks, self.width, self.look)

    def take_row(self, id: str) -> None:
        self.dismiss(None if id == self._current else id)
