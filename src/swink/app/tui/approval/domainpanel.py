"""The panel that asks about a host that commands want to reach.

y, a, i, p, n: answered    r: a field for the reason    Esc: back to the editor, the question stays
"""

from collections.abc import Sequence

from swink.app.assistant import person
from swink.app.assistant.person import DomainQuestion, Domains
from swink.app.tui.approval.answerfield import AnswerField
from swink.app.tui.approval.answerlist import Answers, Lines, answer_lines
from swink.app.tui.approval.askingpanel import AskingPanel, KeyGuard
from swink.app.tui.approval.callview import CallView, Row, argument_rows, text_rows


class DomainPanel(AskingPanel):
    """Shows the first host that waits, with the commands that want it."""

    def __init__(self, domains: Domains, *, guard: KeyGuard) -> None:
        super().__init__(guard)
        self.domains = domains
        self._marked = "n"
        self._shown: tuple[str, ...] = ()

    @property
    def question(self) -> DomainQuestion | None:
        return self.asked

    @property
    def waiting(self) -> Sequence[DomainQuestion]:
        return self.domains.waiting

    def begin_question(self) -> None:
        self._marked = "y"

    def update_questions(self, *, editor_is_blank: bool = True) -> None:
        super().update_questions(editor_is_blank=editor_is_blank)
        if self.question is not None and self._shown != tuple(self.question.commands):
            self.guard.mark_hidden()  # another command is in it, which nobody has seen yet
            self.lay_out(keep=True)
            self.call_after_refresh(self.appear)

    def take_key(self, key: str) -> bool:
        question = self.question
        assert question is not None
        keys = [option.key for option in person.domain_options(question)]
        match key:
            case "up" | "down" | "k" | "j":
                step = 1 if key in ("down", "j") else -1
                self._marked = keys[(keys.index(self._marked) + step) % len(keys)]
                self.show_answers()
            case "enter":
                return self.take_key(self._marked)
            case "escape":
                self.leave()
            case "r":
                self.query_one(AnswerField).open("", "why not, for the model")
                self.show_answers()
            case _ if key in keys:
                self._send(person.domain_reply(question, key))
            case _:
                return False
        return True

    def on_answer_field_accepted(self, event: AnswerField.Accepted) -> None:
        event.stop()
        self._send(person.Refuse(event.text.strip()))

    def _send(self, reply: person.Reply) -> None:
        if self.question is not None:
            self.domains.answer(self.question, reply)
            self.close()

    def lay_out(self, *, keep: bool = False) -> None:
        question = self.question
        if question is None:
            return
        width, self._shown = self.width - 1, tuple(question.commands)
        rows: list[Row] = text_rows(f"Reach {question.wish}?", width, "notice")
        for command in question.commands:
            rows += argument_rows("command", command, width)
        if question.index:
            hosts = ", ".join(question.index)
            rows += text_rows(f"The package index of this project: {hosts}", width, "text")
        most = 4 if self.is_low else max(3, self.screen.size.height - 11 - len(self._lines()))
        self.query_one(CallView).show_rows(rows, most, keep=keep)
        self.show_answers()

    def show_answers(self) -> None:
        if self.question is None:
            return
        self.query_one(Answers).show_lines(self._lines())
        is_writing = self.query_one(AnswerField).display
        count = len(self.waiting)
        more = f" · 1 of {count}" if count > 1 else ""
        hint = "Enter refuses · Esc back" if is_writing else "Enter takes the marked answer · Esc back"
        self.show_title(f"A command wants to reach {self.question.wish.host}{more}", hint)

    def _lines(self) -> Lines:
        if self.question is None or self.query_one(AnswerField).display:
            return []
        marked = self._marked if self.has_focus_within else ""
        options = person.domain_options(self.question)
        return answer_lines(options, marked, self.width, self.look, low=self.is_low)
