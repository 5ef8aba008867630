"""Rewind: the prompts of the conversation, what going back to one does to files, and what to take back.

prompts ──Enter──→ conversation and files | conversation | files  (and, if others changed some, those too)
"""

import time
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from rich.text import Text

from swink.app.assistant.sessionfacts import format_age
from swink.app.assistant.sessionswitcher import SessionSwitcher
from swink.app.assistant.snapshots.rewinding import FileChange
from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.screens.excerpts import changes_text, diffs_text
from swink.app.tui.screens.listscreen import ListRow, ListScreen, row
from swink.errors import AgentError
from swink.events.transcript.blockkinds import counted
from swink.system.oneline import shorten
from swink.system.threads import in_thread

_PROMPTS = "Enter goes back to before a prompt · PgUp/PgDn scroll the preview · Esc leaves"
_WHAT = "what to take back? · Enter takes · Esc: another prompt"
_REDO = "redo"
_PREVIEWED = 30  # files whose diffs are shown


class RewindChoice(Struct, frozen=True):
    """A prompt to go back to before, and what of; files in `confirmed` even if others changed them."""

    number: int
    chat: bool
    files: bool
    confirmed: tuple[str, ...] = ()


class Rewind(ListScreen[RewindChoice | Literal["redo"] | None]):
    """Left with what was chosen, "redo", or None."""

    title_text = "rewind"
    hints = _PROMPTS

    def __init__(self, look: Look, sessions: SessionSwitcher) -> None:
        super().__init__(look)
        self._sessions = sessions
        self._number: int | None = None
        self._changes: Sequence[FileChange] = ()
        self._options: dict[str, RewindChoice] = {}

    async def rows(self, typed: str) -> Sequence[ListRow]:
        """The prompts, the last one at the end; or what to take back."""
        if self._number is not None:
            return self._choices(self._number)
        now = time.time()
        rows = [
            row(str(prompt.number), format_age(now - prompt.message.timestamp), prompt.text, self.look)
            for prompt in self._sessions.prompts()
        ]
        if await self._sessions.can_redo():
            rows.append(ListRow(_REDO, Text("↷ redo: back to before the last rewind", self.look.accent)))
        return rows

    def first(self, ids: Sequence[str]) -> int | None:
        """The last prompt; of what to take back, the first."""
        return None if not ids else 0 if self._number is not None else len(ids) - 1

    async def preview(self, id: str) -> Text:
        if id == _REDO:
            again = "The conversation and the files are again as they were before the rewind."
            return Text(again, self.look.text)
        number = self._options[id].number if id in self._options else int(id)
        prompt = next(prompt for prompt in self._sessions.prompts() if prompt.number == number)
        text = Text().append(f"> {visible(shorten(prompt.text, 500))}", self.look.prompt).append("\n\n")
        try:
            changes = await self._sessions.preview(number)
        except (AgentError, OSError) as error:
            return text.append(str(error), self.look.failed)
        if not changes:
            return text.append("No file that the tools changed since then is different now.", self.look.dim)
        text.append_text(changes_text(changes, self.look)).append("\n")
        shown = [change for change in changes if change.possible][:_PREVIEWED]
        diffs = [(change.path, await self._sessions.diff(change)) for change in shown]
        return text.append_text(await in_thread(diffs_text, diffs, self.width, self.look))

    def take_row(self, id: str) -> None:
        """First the prompt, then what to take back."""
        if id == _REDO:
            self.dismiss(_REDO)
        elif self._number is None:
            self.run_worker(self._choose(int(id)), exclusive=True, group="choose")
        else:
            self.dismiss(self._options[id])

    def action_back(self) -> None:
        if self._number is None:
            super().action_back()
            return
        number, self._options = self._number, {}
        self._list_for(None, _PROMPTS, str(number))

    async def _choose(self, number: int) -> None:
        try:
            self._changes = await self._sessions.preview(number)
        except (AgentError, OSError):
            self._changes = ()
        self._list_for(number, _WHAT, "both")

    def _list_for(self, number: int | None, hints: str, mark: str) -> None:
        self._number, self.hints = number, hints
        self.hint()
        self.refresh_rows(mark=mark)

    def _choices(self, number: int) -> list[ListRow]:
        free = [change for change in self._changes if not change.conflict]
        theirs = tuple([change.path for change in self._changes if change.conflict and change.possible])
        options: dict[str, tuple[str, RewindChoice]] = {}
        if free:
            files = counted(len(free), "file")
            options["both"] = f"conversation and {files}", RewindChoice(number, True, True)
            options["chat"] = "conversation only", RewindChoice(number, True, False)
            options["files"] = f"{files} only", RewindChoice(number, False, True)
        else:
            options["both"] = "conversation", RewindChoice(number, True, False)
        if theirs:
            files = f"{counted(len(free) + len(theirs), 'file')}, {len(theirs)} of them changed since"
            options["all"] = f"conversation and {files}", RewindChoice(number, True, True, theirs)
            options["all files"] = files, RewindChoice(number, False, True, theirs)
        self._options = {id: chosen for id, (_, chosen) in options.items()}
        return [
            ListRow(id, Text(text, self.look.warning if chosen.confirmed else self.look.text))
            for id, (text, chosen) in options.items()
        ]
