"""The conversations of the store: search, preview, resume, rename, fork, delete, export."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from msgspec import Struct
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.widgets import Input

from swink.app.assistant.exporting import export_to
from swink.app.assistant.sessionfacts import format_age, format_cost, working_directory
from swink.app.assistant.titles import FoundSession, find_sessions, title_line
from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.screens.excerpts import last_blocks
from swink.app.tui.screens.listscreen import ListRow, ListScreen, row
from swink.errors import AgentError
from swink.events.transcript import Transcript
from swink.events.transcript.blockkinds import counted
from swink.memory.meta import SessionMeta
from swink.memory.store import SyncStore
from swink.system.oneline import shorten
from swink.system.threads import in_thread

_HINTS = "Enter resume · / search · r rename · f fork · d delete · e export · a {} · Esc"


class SessionChoice(Struct, frozen=True):
    """What was chosen: a conversation to go on with, or to go on with a copy of."""

    id: str
    how: Literal["resume", "fork"] = "resume"


class SessionList(ListScreen[SessionChoice | None]):
    """Left with what was chosen, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "rename", "rename"),
        Binding("f", "fork", "fork"),
        Binding("d", "delete", "delete"),
        Binding("e", "export", "export"),
        Binding("a", "scope", "all directories"),
    ]
    can_search = True

    def __init__(self, look: Look, store: SyncStore, current: str | None = None) -> None:
        super().__init__(look)
        self._store = store
        self._current = current
        self._here: str | None = working_directory()
        self._metas: dict[str, FoundSession] = {}
        self._typed = ""
        self._asking: Literal["", "rename", "export", "delete"] = ""
        self._name_scope()

    async def rows(self, typed: str) -> Sequence[ListRow]:
        self._typed = typed
        try:
            found = await in_thread(find_sessions, self._store, typed, self._here)
        except AgentError as error:
            self.hint(str(error))
            return []
        self._metas = {each.meta.id: each for each in found}
        return [self._row(each.meta) for each in found]

    def _row(self, meta: SessionMeta) -> ListRow:
        marks = f"{'● ' if meta.id == self._current else ''}{'↳ ' if meta.parent is not None else ''}"
        return row(meta.id, format_age(time.time() - meta.updated), f"{marks}{title_line(meta)}", self.look)

    async def preview(self, id: str) -> Text:
        meta = self._metas[id].meta
        try:
            blocks = await in_thread(lambda: Transcript.of(self._store.read(id).records).blocks)
        except AgentError as error:
            return Text(str(error), self.look.failed)
        text = Text().append(f"{visible(title_line(meta))}\n", self.look.strong)
        facts = [meta.model or "", counted(meta.turns, "prompt"), format_cost(meta).replace("?", "")]
        text.append(f"{' · '.join(fact for fact in facts if fact)}\n", self.look.dim)
        text.append(f"{visible(meta.directory or '')}\n\n", self.look.dim)
        if snippet := self._metas[id].snippet:
            text.append(f"… {visible(snippet)} …\n\n", self.look.found)
        return text.append_text(await in_thread(last_blocks, blocks, self.width, self.look))

    def take_row(self, id: str) -> None:
        self.dismiss(SessionChoice(id))

    def action_fork(self) -> None:
        if self.marked is not None:
            self.dismiss(SessionChoice(self.marked, "fork"))

    def action_scope(self) -> None:
        self._here = working_directory() if self._here is None else None
        self._name_scope()
        self.query_one("Vertical").border_title = self.title_text
        self.hint()
        self.refresh_rows(self._typed)

    def action_rename(self) -> None:
        if self.marked is not None:
            self._ask("rename", self._meta().title, "its new title; Enter keeps it, Esc leaves it")

    def action_export(self) -> None:
        if self.marked is not None:
            name = "-".join("".join(c if c.isalnum() else " " for c in self._meta().title).split()[:6])
            hint = "a new file: .html, .md or .json; Enter writes it, Esc does not"
            self._ask("export", f"{name.lower() or 'conversation'}.html", hint)

    def action_delete(self) -> None:
        if self.marked is None:
            return
        if self.marked == self._current:
            self.hint("this conversation is open: begin another one first (/new)")
            return
        self._asking = "delete"
        title = shorten(self._meta().title, 30)
        self.hint(f"delete “{title}” for ever? y deletes it, any other key does not")

    def on_key(self, event: Key) -> None:
        """The answer to whether to delete. Other keys are the listing's, which Textual calls by itself."""
        if self._asking == "delete":
            event.stop()
            event.prevent_default()
            self._asking = ""
            self.hint()
            if event.character == "y" and self.marked is not None:
                self.run_worker(self._delete(self.marked))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "line" and self.marked is not None and event.value.strip():
            work = self._rename if self._asking == "rename" else self._export
            self.run_worker(work(self.marked, event.value.strip()))
            self._stop_asking()

    def action_back(self) -> None:
        if self._asking:
            self._stop_asking()
        else:
            super().action_back()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a question is open, or the user types, letters are letters."""
        if action in ("rename", "fork", "delete", "export", "scope"):
            return not self._asking and self.focused is self.list
        return True

    async def _rename(self, id: str, title: str) -> None:
        await self._try(f"renamed to “{shorten(title, 30)}”", self._store.rename, id, title)
        self.refresh_rows(self._typed, id)

    async def _delete(self, id: str) -> None:
        await self._try("deleted", self._store.delete, id)
        self.refresh_rows(self._typed)

    async def _export(self, id: str, path: str) -> None:
        await self._try(f"written to {path}", lambda: export_to(path, self._store.read(id)))

    async def _try(self, done: str, work: Any, *values: Any) -> None:
        try:
            await in_thread(work, *values)
        except (AgentError, OSError) as error:
            self.hint(str(error))
        else:
            self.hint(done)

    def _ask(self, what: Literal["rename", "export"], value: str, hint: str) -> None:
        self._asking = what
        line = self.query_one("#line", Input)
        line.value = value
        line.display = True
        line.focus()
        self.hint(hint)

    def _stop_asking(self) -> None:
        self._asking = ""
        self.query_one("#line", Input).display = False
        self.hint()
        self.list.focus()

    def _meta(self) -> SessionMeta:
        return self._metas[self.marked or ""].meta

    def _name_scope(self) -> None:
        here, other = "this directory", "all directories"
        if self._here is None:
            here, other = other, here
        self.title_text, self.hints = f"conversations in {here}", _HINTS.format(other)
