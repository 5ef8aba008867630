"""The panel that asks about a tool call, below the conversation and above the editor, never in the way.

choose → y, a, n: answered            Esc: back to the editor, the question stays
       → p, e, r: a field             Enter: answered    Esc: back
       → d: review, hunk by hunk      y, n, r, e, Enter  Esc: back
"""

from collections.abc import Sequence
from typing import Literal

from swink.app.assistant import person
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.reviewing import Review, Verdict, editable_text, edited_call
from swink.app.assistant.rulebook import Scope
from swink.app.assistant.rules import SEPARATOR, parse_rule
from swink.app.tui.approval.answerfield import AnswerField
from swink.app.tui.approval.answerlist import Answers, Lines, answer_lines, review_lines, trouble_lines
from swink.app.tui.approval.askingpanel import AskingPanel, KeyGuard
from swink.app.tui.approval.callview import CallView, Row, plain_rows, rows_of
from swink.app.tui.diffpainter import paint_diff, paint_hunk
from swink.errors import MisuseError
from swink.system.threads import in_thread

Stage = Literal["choose", "reason", "rule", "edit", "review", "hunk", "part"]

_WHY = "why not, for the model"
_LONG = 100_000  # characters of a call up to which it is laid out at once
_SCOPES: dict[Scope, str] = {"project": "in this project", "user": "everywhere"}
_REPLIES: dict[str, person.Reply] = {"y": person.Once(), "a": person.Always(), "n": person.Refuse()}
_HINTS = {
    "choose": "Enter takes the marked answer · Esc back to the editor",
    "reason": "Enter refuses · Esc back",
    "edit": "Enter runs it so · Ctrl+J new line · Esc back",
    "review": "← → other parts · Esc back",
    "part": "Enter leaves it out · Esc back",
    "hunk": "Enter takes these lines · Ctrl+J new line · Esc back",
}


class ApprovalPanel(AskingPanel):
    """Shows the first call that waits; its keys answer for it."""

    def __init__(self, permissions: Permissions, *, guard: KeyGuard) -> None:
        super().__init__(guard)
        self.permissions = permissions
        self.stage: Stage = "choose"
        self._marked = "y"
        self._raw = False
        self._trouble = ""
        self._scope: Scope = "project"
        self._review: Review | None = None
        self._hunk = 0

    @property
    def question(self) -> person.Question | None:
        return self.asked

    @property
    def waiting(self) -> Sequence[person.Question]:
        return self.permissions.waiting

    @property
    def escapes(self) -> bool:
        return super().escapes and self._review is None

    def update_questions(self, *, editor_is_blank: bool = True) -> None:
        super().update_questions(editor_is_blank=editor_is_blank)
        self._show_title()  # more may wait now

    def begin_question(self) -> None:
        self.stage, self._raw, self._trouble, self._review = "choose", False, "", None
        self._marked = "y" if self.question is None else person.default_key(self.question)
        self._scope = "project"

    def decline(self) -> None:
        if self.question is not None:
            self.permissions.questions.answer(self.question, person.Refuse(by=person.UNSHOWN))

    def _answer(self, reply: person.Reply) -> None:
        if self.question is None:
            return
        self.permissions.questions.answer(self.question, reply)
        if self.waiting:
            self.open(self.waiting[0])
            self.focus()
        else:
            self.close()

    def _show_title(self) -> None:
        question, count = self.question, len(self.permissions.waiting)
        if question is None:
            return
        more = f" · 1 of {count}" if count > 1 else ""
        ends = " · this may destroy something" if question.is_destructive else ""
        here, there = _SCOPES[self._scope], _SCOPES[_other(self._scope)]
        hint = _HINTS.get(self.stage, f"Enter allows and saves it {here} · Tab: {there} · Esc back")
        title = question.title or f"Run {question.request.name}?"
        self.show_title(f"{title}{ends}{more}", hint)

    def take_key(self, key: str) -> bool:
        return self._review_key(key) if self._review is not None else self._choose_key(key)

    def _choose_key(self, key: str) -> bool:
        question = self.question
        assert question is not None
        offered = person.answer_options(question)
        keys = [choice.key for choice in offered]
        match key:
            case "a" | "e" | "r" if key not in keys:
                return False
            case "up" | "down" | "k" | "j":
                step = 1 if key in ("down", "j") else -1
                self._marked = keys[(keys.index(self._marked) + step) % len(keys)]
                self.show_answers()
            case "enter":
                return self._choose_key(self._marked)
            case "escape":
                self.leave()
            case "y" | "a" | "n":
                self._answer(_REPLIES[key])
            case "r":
                self._write("reason", "", _WHY)
            case "e":
                self._write("edit", editable_text(question.request))
            case "p" if question.suggested:
                self._write("rule", SEPARATOR.join(map(str, question.suggested)))
            case "d" if question.preview is not None and question.preview.can_review:
                self._review, self._hunk, self.stage = Review(question.preview), 0, "review"
                self.lay_out()
            case "d" if question.preview is not None:
                self._raw = not self._raw
                self.lay_out()
            case _:
                return False
        return True

    def _review_key(self, key: str) -> bool:
        review = self._review
        assert review is not None
        last = len(review.verdicts) - 1
        match key:
            case "y" | "n":
                self._judge(review, key == "y")
            case "r":
                self._write("part", "", _WHY)
                return True
            case "e":
                self._write("hunk", review.proposed(self._hunk))
                return True
            case "right" | "down" | "j":
                self._hunk = min(self._hunk + 1, last)
            case "left" | "up" | "k":
                self._hunk = max(self._hunk - 1, 0)
            case "enter" if review.is_complete:
                assert self.question is not None
                self._answer(review.reply(self.question.request.name, self.question.request.arguments))
                return True
            case "enter":
                self._trouble = "some parts have no answer yet: y takes a part, n leaves it out"
                self._hunk = review.next_open or 0
            case "escape":
                self._review, self.stage = None, "choose"
            case _:
                return False
        self.lay_out()
        return True

    def _judge(self, review: Review, verdict: Verdict, reason: str = "") -> None:
        """Keep what was said of the part that is shown, and go on to the next without an answer."""
        review.judge(self._hunk, verdict, reason)
        self._hunk = review.next_open if review.next_open is not None else self._hunk

    def _write(self, stage: Stage, text: str, placeholder: str = "") -> None:
        self.stage, self._trouble = stage, ""
        self.query_one(AnswerField).open(text, placeholder)
        self.show_answers()

    def on_answer_field_turned(self, event: AnswerField.Turned) -> None:
        event.stop()
        if self.stage == "rule":
            self._scope = _other(self._scope)
            self._show_title()

    def on_answer_field_accepted(self, event: AnswerField.Accepted) -> None:
        event.stop()
        question = self.question
        if question is None:
            return
        try:
            match self.stage:
                case "reason":
                    self._answer(person.Refuse(event.text.strip()))
                case "rule":
                    rules = tuple(parse_rule(part) for part in event.text.split(SEPARATOR) if part.strip())
                    self._answer(person.ByRule(rules, self._scope) if rules else person.Once())
                case "edit":
                    self._answer(edited_call(question.request, event.text))
                case "hunk" if self._review is not None:
                    self._judge(self._review, event.text)
                    self.leave_field()
                case "part" if self._review is not None:
                    self._judge(self._review, False, event.text.strip())
                    self.leave_field()
                case _:
                    self.leave_field()
        except (MisuseError, ValueError) as error:
            self._trouble = str(error)
            self.show_answers()

    def leave_field(self, *, keep: bool = True) -> None:
        self.stage = "review" if self.stage in ("hunk", "part") else "choose"
        self._trouble = ""
        super().leave_field(keep=keep)

    def lay_out(self, *, keep: bool = False) -> None:
        """Show the call; a long one is laid out beside the event loop."""
        question = self.question
        if question is None:
            return
        width = self.width
        size = sum(len(value) for value in question.request.shown.values() if isinstance(value, str))
        self.show_answers()
        self.is_laid_out = size <= _LONG
        if self.is_laid_out:
            self.query_one(CallView).show_rows(self._rows(width), self._room, keep=keep)
        else:
            self.guard.mark_hidden()  # nobody answers what they cannot see
            self.query_one(CallView).show_rows([(("this call is long; a moment …", "notice"),)], self._room)
            self.run_worker(self._lay_out_long(question, width), exclusive=True, group="lay out")

    async def _lay_out_long(self, question: person.Question, width: int) -> None:
        rows = await in_thread(self._rows, width)
        if question is self.question:
            self.query_one(CallView).show_rows(rows, self._room)
            self.show_answers()
            self.is_laid_out = True
            self.call_after_refresh(self.appear)

    def _rows(self, width: int) -> Sequence[Row]:
        question, review = self.question, self._review
        if question is None:
            return ()
        if self.is_plain:
            return plain_rows(question, width - 1)
        if review is not None:
            return paint_hunk(review.diff.hunks[self._hunk], width - 1, self.look, path=review.diff.path)
        rows: list[Row] = list(rows_of(question, width - 1, raw=self._raw))
        if question.preview is not None and question.preview.diff is not None and not self._raw:
            rows += paint_diff(question.preview.diff, width - 1, self.look)
        return rows

    @property
    def _room(self) -> int:
        """Rows for the call: the conversation, the editor and the answers stay on the screen."""
        return max(3, self.screen.size.height - 11 - len(self._answer_lines())) if not self.is_low else 4

    def show_answers(self) -> None:
        if self.question is not None:
            self.query_one(Answers).show_lines(self._answer_lines())
            self._show_title()

    def _answer_lines(self) -> Lines:
        width = self.width
        lines = trouble_lines(self._trouble, width, self.look) if self._trouble else []
        if self.query_one(AnswerField).display or self.question is None:
            return lines
        if self._review is not None:
            return [*lines, *review_lines(self._review, self._hunk, self.look)]
        marked = self._marked if self.has_focus_within else ""
        options = person.answer_options(self.question)
        return [*lines, *answer_lines(options, marked, width, self.look, low=self.is_low)]


def _other(scope: Scope) -> Scope:
    return "user" if scope == "project" else "project"
