"""The editor: a prompt is written in it, Enter sends it.

keys ─┬─ Completer     while it offers something ↑ ↓ Tab Enter Esc are about that
      └─ PastingArea   everything else: text, with placeholders for long pastes and images
"""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from textual import events, on
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.widgets import TextArea

from swink.app.tui.editor import external
from swink.app.tui.editor.attaching import compose, needs_files
from swink.app.tui.editor.choices import Choices
from swink.app.tui.editor.completer import Commands, Completer
from swink.app.tui.editor.drafts import Drafts
from swink.app.tui.editor.mentions import PathIndex
from swink.app.tui.editor.offers import Completion, by_use
from swink.app.tui.editor.pasting import PastingArea
from swink.app.tui.editor.prompthistory import PromptHistory, PromptRecall
from swink.app.tui.editor.submitted import How, Submitted, TakeBack, is_command, kind_of
from swink.app.tui.editor.typed import Typed, fold, join
from swink.app.tui.keys import SPELLINGS, teach_keys
from swink.errors import AgentError
from swink.messages import Input
from swink.system.threads import in_thread

DRAFT_AFTER = 0.5
"""Seconds from a change until the draft is saved."""
MOST_SENT = 20
"""Prompts that can be put back with their pastes and images."""
PLACEHOLDER = "Ask anything   / commands   @ files   ! shell"
_TITLES = {
    "shell": "shell: the model sees the output",
    "private shell": "shell: the model does not see the output",
    "search": "search earlier prompts",
}

teach_keys()


class Editor(PastingArea):
    """A prompt of one or more lines.

    `directory` is where mentions are looked up, `state` the folder that keeps history and drafts; without it
    nothing is kept. `commands` says what can be completed after a slash.
    """

    DEFAULT_CSS = """
    Editor {
        height: auto; min-height: 3; padding: 0 1;
        border: round $border-blurred; background: $background;
        border-title-color: $text-muted; border-subtitle-color: $text-muted;
        overflow-x: hidden; scrollbar-size-vertical: 1;
        &:focus { border: round $primary; }
        &.-plan, &.-plan:focus { border: round $secondary; border-title-color: $secondary; }
        &.-shell, &.-shell:focus { border: round $warning; border-title-color: $warning; }
    }
    Editor:ansi {
        border-subtitle-style: dim;
        .text-area--suggestion { text-style: dim; }
        .text-area--placeholder { text-style: dim; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "search_history", "search earlier prompts", show=False),
        Binding("ctrl+v", "paste_clipboard", "insert the image of the clipboard", show=False),
        Binding("ctrl+y", "yank", "insert what was cut", show=False),
        Binding("ctrl+underscore,alt+u", "undo", "undo", show=False),
        Binding("alt+r", "redo", "redo", show=False),
        Binding("alt+b,alt+left", "cursor_word_left", "a word back", show=False),
        Binding("alt+f,alt+right", "cursor_word_right", "a word forth", show=False),
        Binding("alt+d", "delete_word_right", "cut the word after", show=False),
    ]

    def __init__(
        self, directory: Path | None, *, state: Path | None, commands: Commands, choices: Choices
    ) -> None:
        super().__init__(state and state / "images", placeholder=PLACEHOLDER)
        self.is_busy = False  # whether the agent works, which the app says: Alt+Enter queues then
        self.has_queue = False
        """Whether messages wait, which the app says: ↑ in an empty editor takes the last one back."""
        self._directory = directory or Path.cwd()
        self._recall = PromptRecall(PromptHistory(state and state / "history.jsonl", str(self._directory)))
        self._drafts = Drafts(state / "drafts", str(self._directory)) if state else None
        uses = self._recall.history.command_uses
        self._completer = Completer(
            choices, lambda: by_use(commands(), uses()), PathIndex(self._directory), self._line_to_cursor
        )
        self._sent: dict[str, Typed] = {}
        self._mode = ""
        self._draft_waits = False

    @property
    def is_searching(self) -> bool:
        return self._recall.is_searching

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, min(self.wrapped_document.height, viewport.height // 3 - 2))

    def on_resize(self) -> None:
        """It has grown, or the screen is another: the cursor stays in sight."""
        self.scroll_cursor_visible()

    def on_mount(self) -> None:
        self.run_worker(self._remember, exclusive=False)

    async def _remember(self) -> None:
        await self._recall.history.load()
        if self._drafts is None:
            return
        if (draft := await self._drafts.restore()) is not None:
            self.put_before(draft)
            self.notify("what you had not sent is back in the editor", markup=False)
        await in_thread(external.remove_left)

    def put_back(self, *texts: str) -> None:
        """Put prompts that were sent before what is written, with their pastes and images."""
        self._end_search(None)
        self.put_before(join([self._sent.get(text.strip()) or fold(text) for text in texts]))

    def show_mode(self, name: str) -> None:
        """Say in the border that the agent is in a mode of its own; without a name it is not."""
        if name != self._mode:
            self._mode = name
            self.set_class(bool(name), "-plan")
            self._show_kind()

    def clear_to_history(self) -> None:
        """Empty it; ↑ brings back what stood in it. A search is only left."""
        if not self._end_search(None):
            self._recall.history.add(self.typed)
            self._start_over()

    def _start_over(self) -> None:
        self._completer.close()
        self._recall.start_over()
        self.empty()
        if self._drafts is not None:
            self._drafts.save(Typed(""))

    def _line_to_cursor(self) -> tuple[int, str]:
        row, column = self.cursor_location
        return row, self.document.get_line(row)[:column]

    def on_blur(self) -> None:
        """Something else has the keys; when it is another window, the list waits."""
        if cast("Any", self).app.app_focus:
            self._completer.close()

    # Sending

    async def _submit(self, how: How) -> None:
        typed = self.typed.trimmed()
        if not typed:
            return
        text = typed.whole()
        input: Input = text
        if kind_of(text) == "prompt" and needs_files(typed):
            try:
                composed = await in_thread(compose, typed, self._directory)
            except AgentError as error:
                self.warn(f"not sent: {error}")
                return
            input = composed.input
            for notice in composed.notices:
                self.warn(notice)
        self._sent = dict([*self._sent.items(), (text, typed)][-MOST_SENT:])
        self._recall.history.add(typed)
        self._start_over()
        self.post_message(Submitted(text, input, how))

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        key = SPELLINGS.get(event.key, event.key)
        await self.end_burst(event, key)
        if await self._take_key(key, event) or await self._run_binding(key):
            event.stop()
            event.prevent_default()

    async def _take_key(self, key: str, event: events.Key) -> bool:
        """Whether the key is done with."""
        match key:
            case "enter":
                if not self.take_enter(event.time):
                    await self._enter()
            case "alt+enter" if self.is_busy and not self.is_searching:
                await self._submit("queue")
            case "shift+enter" | "ctrl+j" | "ctrl+enter" | "alt+enter":
                self.put_text("\n")
            case "tab" if self.is_pasted(event) and not (self._completer.is_open or self.suggestion):
                self.put_character("\t", event.time)
            case "tab":
                # Where there is nothing to take it does nothing: the focus stays.
                if self.take_choice() is None and not self._take_suggestion():
                    self.open_touched_paste()
            case "escape":
                return self._dismiss()
            case "question_mark" if self.text == "" and not self.is_pasted(event):
                await self.run_action("app.obey('/help')")
            case _ if key.startswith("alt+"):
                event.prevent_default()  # Textual would insert it; it is a binding's
                return False
            case _ if event.is_printable and event.character and self.detects_bursts:
                self.put_character(event.character, event.time)
            case _:
                return False
        return True

    async def _run_binding(self, key: str) -> bool:
        """Do what a key of ours does at once: Textual would do it after keys that came later."""
        for binding in self._bindings.key_to_bindings.get(key, ()):
            if await cast("Any", self).app.run_action(binding.action, self):
                return True
        return False

    async def send_burst(self) -> None:
        self._completer.close()
        await self._enter()

    async def _enter(self) -> None:
        if self.is_searching:
            self.take_choice()
            return
        if self._completer.is_open and not self._completer.is_done:
            marked = self.take_choice()
            if marked is None or marked.goes_on or not is_command(self.text):
                return
        self._completer.close()
        row, line = self._line_to_cursor()
        if line.endswith("\\") and len(line) == len(self.document.get_line(row)):
            self.replace("\n", (row, len(line) - 1), (row, len(line)), maintain_selection_offset=False)
        else:
            await self._submit("send")

    # Moving

    def action_cursor_up(self, select: bool = False) -> None:
        """Up; from the first line to the prompt before this one."""
        if not select and self._completer.mark(-1):
            return
        if select or self.wrapped_document.location_to_offset(self.cursor_location).y > 0:
            super().action_cursor_up(select)
        elif self.is_blank and self.has_queue and not self.is_searching:
            self.post_message(TakeBack())
        else:
            self._go_through_history(older=True)

    def action_cursor_down(self, select: bool = False) -> None:
        """Down; from the last line to the prompt after this one."""
        if not select and self._completer.mark(1):
            return
        last = self.wrapped_document.height - 1
        if select or self.wrapped_document.location_to_offset(self.cursor_location).y < last:
            super().action_cursor_down(select)
        else:
            self._go_through_history(older=False)

    def _go_through_history(self, *, older: bool) -> None:
        if self.is_searching or (found := self._recall.step(self.typed, older=older)) is None:
            return
        self.put(found)
        if older:
            self.move_cursor((0, len(self.document.get_line(0))))

    def action_cursor_left(self, select: bool = False) -> None:
        """Left; with nothing to select the key is not the editor's."""
        self._pass_on_if_blank(select)
        super().action_cursor_left(select)

    def action_cursor_right(self, select: bool = False) -> None:
        """Right, or take the suggestion; with nothing to select the key is not the editor's."""
        self._pass_on_if_blank(select)
        super().action_cursor_right(select)

    def _pass_on_if_blank(self, select: bool) -> None:
        if select and self.is_blank:
            raise SkipAction

    # Completing

    def update_suggestion(self) -> None:
        """After every change, before the next key: what it offers belongs to what stands there."""
        self._recall.note(self.text)
        self._show_kind()
        self._complete()

    @on(TextArea.Changed)
    def _after_change(self) -> None:
        if self._drafts is not None and not self._draft_waits:
            self._draft_waits = True
            self.set_timer(DRAFT_AFTER, self._save_draft)

    @on(TextArea.SelectionChanged)
    def _after_move(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        if not self.is_searching and self._completer.is_open:
            self._complete()
        self._suggest()

    def _show_kind(self) -> None:
        kind = "search" if self.is_searching else kind_of(self.text)
        self.set_class(kind.endswith("shell"), "-shell")
        title = _TITLES.get(kind, self._mode)
        if self.border_title != title:
            self.border_title = title
            self.placeholder = "words of it" if kind == "search" else PLACEHOLDER

    def _complete(self) -> None:
        try:
            self._offer()
        except Exception as error:  # whatever offers something: what is typed is typed all the same
            self._completer.close()
            cast("Any", self).app._handle_exception(error)
        self._suggest()

    def _offer(self) -> None:
        if self.is_searching:
            self._completer.show_offer(self._recall.search(self.text))
        elif self._recall.is_untouched:
            self._completer.close()
        elif mention := self._completer.look(is_first_line=self.document.line_count == 1):
            self.run_worker(partial(self._find, *mention), group="mentions", exclusive=True)

    async def _find(self, start: int, query: str) -> None:
        await self._completer.find(start, query)
        self._suggest()

    def take_choice(self) -> Completion | None:
        """Take the marked choice, as Tab does; None if there is none."""
        completer = self._completer
        if completer.offer is None or (marked := completer.choices.marked) is None:
            return None
        if self._end_search(marked):
            return marked
        row, line = self._line_to_cursor()
        start = (row, completer.offer.start)
        self.replace(marked.text, start, (row, len(line)), maintain_selection_offset=False)
        if not marked.goes_on:
            completer.close()
        return marked

    def _dismiss(self) -> bool:
        """Close what is open; whether something was. Nothing that was typed is lost."""
        if self._end_search(None):
            return True
        dismissed = self._completer.dismiss()
        self._suggest()
        return dismissed

    def _suggest(self) -> None:
        """Grey text after the cursor: the rest of a choice, or of an earlier prompt that began like this."""
        self.suggestion = self._suggested() if self.cursor_at_end_of_text else ""
        hint = "Tab opens the paste" if self.paste_here else ""
        if self.is_searching:
            hint = "Enter takes it, Esc goes back"
        elif self._completer.is_open:
            hint = "Tab takes it, Esc closes the list"
        if self.border_subtitle != hint:
            self.border_subtitle = hint

    def _suggested(self) -> str:
        text = self.text
        if self.is_searching or self._recall.is_untouched or len(text) < 2 or "\n" in text:
            return ""
        if self._completer.is_open:
            return self._completer.rest_of_marked()
        return self._recall.history.suggest(text)

    def _take_suggestion(self) -> bool:
        taken = self.suggestion
        if taken:
            self.put_text(taken)
        return bool(taken)

    # Searching earlier prompts

    def action_search_history(self) -> None:
        """Search earlier prompts; once more: mark the next one."""
        if self.is_searching:
            self._completer.mark(1)
        else:
            self._recall.before_search = self.typed
            self.replace("", (0, 0), self.document.end)

    def _end_search(self, chosen: Completion | None) -> bool:
        """Leave a search with a choice, or with what stood there before; whether there was one."""
        if not self.is_searching:
            return False
        self.put(self._recall.end_search(chosen))
        return True

    # Elsewhere

    def action_write_outside(self, sends: bool = False) -> None:
        """Write in the user's own editor, and send it then or read it here once more."""
        self.run_worker(partial(self.write_outside, sends), exclusive=True, group="outside")

    async def write_outside(self, sends: bool = False) -> None:
        """Let the user write in their own editor; if they empty it, or it fails, what stands here stays."""
        self._end_search(None)
        typed = self.typed
        try:
            text = await external.edit_outside(cast("Any", self).app, typed.whole())
        except (AgentError, OSError) as error:
            self.warn(str(error))
            return
        if text is None:
            return
        for name, paste in typed.pastes.items():
            text = text.replace(paste, name, 1)
        self.put(fold(text))
        if sends:
            await self._submit("send")

    def _save_draft(self) -> None:
        self._draft_waits = False
        if self._drafts is not None:
            before = self._recall.before_search
            self._drafts.save(self.typed if before is None else before)

    async def on_unmount(self) -> None:
        """Save the draft: who leaves with something half typed finds it again."""
        if self._drafts is not None:
            self._save_draft()
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await self._drafts.settled()
