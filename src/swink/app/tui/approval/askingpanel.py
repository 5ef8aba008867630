"""A panel that asks: below the conversation and above the editor, never in the way of who is writing."""

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from swink.app.tui.approval.answerfield import AnswerField
from swink.app.tui.approval.answerlist import Answers
from swink.app.tui.approval.callview import CallView
from swink.app.tui.look import LOOKS, Look
from swink.app.tui.terminal.failures import EnduringPart

GRACE = 0.3
"""Seconds after a question appears in which no key is an answer."""
IDLE = 1.0
"""Seconds without a key in the editor after which a question may take the focus."""
_LOW = 24  # rows of a screen below which a panel is as small as it can be


class KeyGuard:
    """When a key counts as an answer: only if the user could have seen the question."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown = float("-inf")
        self._typed = float("-inf")

    def mark_hidden(self) -> None:
        """A question is about to appear: nobody can have seen it yet."""
        self._shown = float("inf")

    def mark_shown(self) -> None:
        """A question is on the screen, or has been given the focus."""
        self._shown = self._clock()

    @property
    def is_shown(self) -> bool:
        return self._shown != float("inf")

    def mark_typed(self) -> None:
        """The user has typed in the editor."""
        self._typed = self._clock()

    def mark_sent(self) -> None:
        """What was typed has been sent: nobody is in the middle of it."""
        self._typed = float("-inf")

    @property
    def counts(self) -> bool:
        """Whether a key pressed now is an answer."""
        return self._clock() - self._shown >= GRACE

    @property
    def is_idle(self) -> bool:
        """Whether nobody is typing in the editor."""
        return self._clock() - self._typed >= IDLE


class AskingPanel(EnduringPart, Vertical, can_focus=True):
    """Shows the first question that waits; keys answer it once the user could have seen it."""

    DEFAULT_CSS = """
    AskingPanel { height: auto; display: none; border: round $border; padding: 0 1;
        background: $surface; border-title-color: $warning; border-subtitle-color: $text-muted; }
    AskingPanel.active { border: round $warning; }
    """

    class Leave(Message):
        """The person wants to write instead; `typed` was meant for the editor."""

        def __init__(self, typed: str = "") -> None:
            self.typed = typed
            super().__init__()

    def __init__(self, guard: KeyGuard) -> None:
        super().__init__()
        self.guard = guard
        self.asked: Any = None  # the question that is shown, or None
        self.is_left = False  # whether the person went back to the editor, and answers when they like
        self.is_plain = False  # whether the question is shown in the simplest form: another one failed
        self.is_laid_out = True  # whether the whole question is shown, and no word that it will be
        self._look: Look = LOOKS["dark"]
        self._width = 0

    def compose(self) -> ComposeResult:
        yield CallView()
        yield AnswerField(lambda: self.guard.counts)
        yield Answers()

    # What each panel says for itself

    @property
    def waiting(self) -> Sequence[object]:
        """The questions that wait for an answer, the first one to be shown."""
        raise NotImplementedError

    def begin_question(self) -> None:
        """Forget what belonged to the question before."""

    def take_key(self, key: str) -> bool:
        """Act on a key that counts; False if it means nothing here."""
        raise NotImplementedError

    def decline(self) -> None:
        """What is asked cannot be shown: say so to whoever asked, who waits."""
        raise NotImplementedError

    def lay_out(self, *, keep: bool = False) -> None:
        """Show the question at the present width; `keep` the place it is scrolled to."""

    def show_answers(self) -> None:
        """Show what can be answered now."""

    # What the app calls

    @property
    def is_asking(self) -> bool:
        return self.asked is not None

    @property
    def takes_keys(self) -> bool:
        """Whether keys are answers to a question here."""
        return self.is_asking and self.display and self.has_focus_within and self.screen.is_active

    @property
    def escapes(self) -> bool:
        """Whether Esc goes back to the editor now, and not a step back in the panel."""
        return self.takes_keys and self.guard.counts and not self.query_one(AnswerField).display

    def update_questions(self, *, editor_is_blank: bool = True) -> None:
        """Show the first question that waits, or nothing; it takes the focus if the editor is not in use."""
        waiting = self.waiting
        if not waiting:
            if self.is_asking:
                self.close()
            return
        if waiting[0] is not self.asked:
            self.open(waiting[0])
        is_free = editor_is_blank and self.guard.is_idle and self.screen.is_active
        if is_free and not self.is_left and not self.has_focus_within:
            self.take_focus()

    @property
    def look(self) -> Look:
        return self._look

    @look.setter
    def look(self, look: Look) -> None:
        self._look = self.query_one(CallView).look = look
        if self.is_asking:
            self.lay_out(keep=True)

    def take_focus(self) -> bool:
        """Let the keys answer; whether there is a question."""
        if not self.is_asking:
            return False
        self.is_left = False
        if not self.has_focus_within:
            if self.guard.is_shown:
                self.guard.mark_shown()
            (self.query_one(AnswerField) if self.query_one(AnswerField).display else self).focus()
        return True

    def scroll_pages(self, pages: int) -> bool:
        """Scroll what is asked by pages; False if all of it is seen."""
        view = self.query_one(CallView)
        if not self.has_focus_within or view.max_scroll_y <= 0:
            return False
        view.scroll_to(y=view.scroll_offset.y + pages * max(1, view.size.height - 1), animate=False)
        return True

    def give_up(self) -> None:
        """Something failed: nobody has answered. Ask again in plain form, and if that fails too, decline."""
        if self.asked is None:
            return
        if not self.is_plain and self.asked in self.waiting:
            try:
                self.open(self.asked, is_plain=True)
                return
            except Exception:  # what failed is told already
                pass
        self.decline()
        self.asked = None
        self.display = False
        cast("Any", self).app.call_later(self.post_message, self.Leave())  # after a focus that is on its way

    # For the panels

    def open(self, question: object, *, is_plain: bool = False) -> None:
        """Show a question; keys count from when it is painted."""
        self.asked, self.is_plain, self.is_left = question, is_plain, False
        self.begin_question()
        self.query_one(AnswerField).close()
        self.display = True
        self.guard.mark_hidden()
        self.lay_out()
        self.call_after_refresh(self.appear)

    def appear(self) -> None:
        """Let keys count from now on, if what is asked is on the screen."""
        if self.is_laid_out:
            self.guard.mark_shown()

    def close(self) -> None:
        """Disappear; the editor has the focus again if it was here."""
        self.asked = None
        had_focus = self.has_focus_within
        self.query_one(AnswerField).close()
        self.display = False
        if had_focus:
            self.post_message(self.Leave())

    def leave_field(self, *, keep: bool = False) -> None:
        """Back from the field to the answers."""
        self.query_one(AnswerField).close()
        self.focus()
        self.lay_out(keep=keep)

    def leave(self) -> None:
        """Back to the editor; the question stays, and takes the focus only if asked to."""
        self.is_left = True
        self.post_message(self.Leave())

    def show_title(self, title: str, hint: str) -> None:
        """Say in the border what is asked, and which keys there are."""
        more = "PgDn shows the rest · " if self.query_one(CallView).is_cut else ""
        self.border_title = Content(title)
        self.border_subtitle = Content(more + hint if self.has_focus_within else "Alt+A answers")

    @property
    def width(self) -> int:
        """Columns for what is asked."""
        self._width = max(20, self.content_size.width or self.screen.size.width - 4)
        return self._width

    @property
    def is_low(self) -> bool:
        return self.screen.size.height < _LOW

    @property
    def is_writing(self) -> bool:
        """Whether the person is writing in the panel's own field."""
        return self.query_one(AnswerField).has_focus

    # Events

    def on_key(self, event: events.Key) -> None:
        """A key that is an answer, or that was meant for the editor."""
        if self.is_writing or not self.is_asking:
            return
        taken = True
        if self.guard.counts:
            taken = self.take_key(event.key)
        elif event.is_printable or event.key in ("enter", "backspace"):
            # The user has not seen the question yet: the key belongs to what they were writing.
            self.post_message(self.Leave(event.character or "" if event.is_printable else ""))
        else:
            taken = event.key == "escape"
        if taken:
            event.stop()
            event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        """A pasted text is meant for the editor."""
        if not self.is_writing:
            event.stop()
            self.post_message(self.Leave(event.text))

    def on_answer_field_left(self, event: AnswerField.Left) -> None:
        event.stop()
        self.leave_field()

    def on_answer_field_too_early(self, event: AnswerField.TooEarly) -> None:
        event.stop()
        self.post_message(self.Leave(event.typed))

    def on_answers_clicked(self, event: Answers.Clicked) -> None:
        """A click is a key."""
        event.stop()
        if self.guard.counts and not self.is_writing:
            self.take_key(event.key)

    def on_resize(self, event: events.Resize) -> None:
        if self.is_asking and self.content_size.width != self._width:
            self.lay_out(keep=True)

    def on_focus(self) -> None:
        self.set_class(self.has_focus_within, "active")
        if self.is_asking:
            self.show_answers()

    on_blur = on_descendant_focus = on_descendant_blur = on_focus
