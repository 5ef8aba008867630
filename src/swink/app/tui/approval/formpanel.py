"""The form in which a person answers what the agent asks.

1–9 or ↑ ↓ Enter: a choice    t: an answer of their own    ← →: other questions    x: no answer    Esc: back

A question without choices begins with the field for the answer.
"""

from collections.abc import Sequence

from rich.style import Style

from swink.app.assistant.forms import Filling, Form, Item
from swink.app.assistant.person import Forms
from swink.app.tui.approval.answerfield import AnswerField
from swink.app.tui.approval.answerlist import Answers, Lines
from swink.app.tui.approval.askingpanel import AskingPanel, KeyGuard
from swink.app.tui.approval.callview import CallView, Row, text_rows
from swink.app.tui.escaping import visible, wrap

_OWN = "your answer"


class FormPanel(AskingPanel):
    """Shows the first form that waits."""

    def __init__(self, forms: Forms, *, guard: KeyGuard) -> None:
        super().__init__(guard)
        self.forms = forms
        self._filling = Filling(())

    @property
    def form(self) -> Form | None:
        return self.asked

    @property
    def waiting(self) -> Sequence[Form]:
        return self.forms.waiting

    def begin_question(self) -> None:
        self._filling = Filling(() if self.form is None else self.form.items)

    def open(self, question: object, *, is_plain: bool = False) -> None:
        super().open(question, is_plain=is_plain)
        self._begin_item()

    def _begin_item(self) -> None:
        """Show the next question; one that can only be answered in words, with the field for them."""
        item, field = self._filling.item, self.query_one(AnswerField)
        if item is not None and not item.choices and self._filling.answers[self._filling.at] is None:
            field.show_text("", _OWN)
            if self.has_focus_within:  # nothing takes the focus from who is writing
                field.focus()
        self.lay_out()

    def decline(self) -> None:
        if self.form is not None:
            self.forms.answer(self.form, None)

    def take_key(self, key: str) -> bool:
        filling = self._filling
        match key:
            case "escape":
                self.leave()
            case "x":
                self._send(None)
            case "t" if filling.item is not None:
                written = None if filling.item.choices else filling.answers[filling.at]
                self.query_one(AnswerField).open(written or "", _OWN)
                self.show_answers()
            case "up" | "k" | "down" | "j":
                filling.move(1 if key in ("down", "j") else -1)
                self.lay_out()
            case "left" | "right":
                filling.turn(1 if key == "right" else -1)
                self._begin_item()
            case "enter" if filling.item is not None and not filling.item.choices:
                return self.take_key("t")
            case "enter":
                self._after(filling.confirm())
            case "space" if filling.item is not None and filling.item.several:
                self._after(filling.choose(filling.marked))
            case _ if key.isdecimal() and key != "0":
                self._after(filling.choose(int(key) - 1))
            case _:
                return False
        return True

    def on_answer_field_accepted(self, event: AnswerField.Accepted) -> None:
        event.stop()
        self.query_one(AnswerField).close()
        self.focus()
        self._after(bool(event.text.strip()) and self._filling.write(event.text.strip()))

    def _after(self, ready: bool) -> None:
        if ready:
            self._send([answer or "" for answer in self._filling.answers])
        else:
            self._begin_item()

    def _send(self, answers: list[str] | None) -> None:
        if self.form is not None:
            self.forms.answer(self.form, answers)
            self.close()

    def lay_out(self, *, keep: bool = False) -> None:
        if self.form is None:
            return
        filling, width = self._filling, self.width
        rows: list[Row] = []
        if filling.item is not None:
            rows += text_rows(filling.item.question, width - 1, "notice")
        else:
            for item, answer in zip(filling.items, filling.answers, strict=True):
                rows += text_rows(item.question, width - 1, "name")
                rows += text_rows(answer or "", width - 1, "text", first="→ ", rest="  ")
        most = 4 if self.is_low else max(3, self.screen.size.height - 12 - len(self._lines()))
        self.query_one(CallView).show_rows(rows, most, keep=keep)
        self.show_answers()

    def show_answers(self) -> None:
        self.query_one(Answers).show_lines(self._lines())
        filling = self._filling
        count = len(filling.items)
        where = f" · {filling.at + 1} of {count}" if count > 1 and filling.item is not None else ""
        if self.query_one(AnswerField).display:
            hint = "Enter takes it · Ctrl+J new line · Esc back"
        elif filling.item is None:
            hint = "Enter sends it · ← back · Esc to the editor"
        else:
            several = "Space takes one more · " if filling.item.several else ""
            others = "← → other questions · " if count > 1 else ""
            hint = f"{several}Enter takes it · {others}Esc to the editor"
        asker = "the agent" if self.form is None else visible(self.form.asker)
        self.show_title(f"{asker[0].upper()}{asker[1:]} asks{where}", hint)

    def _lines(self) -> Lines:
        look, filling = self.look, self._filling
        if self.query_one(AnswerField).display:
            return []
        lines: Lines = []
        if filling.item is not None:
            for number, choice in enumerate(filling.item.choices):
                lines += self._choice(filling.item, number, choice)
            offer = "write another answer" if filling.item.choices else "write the answer"
            lines.append(_line("t", offer, look.accent, look.text))
        else:
            lines.append(_line("enter", "send the answers", look.accent, look.strong))
        return [*lines, _line("x", "do not answer", look.accent, look.dim)]

    def _choice(self, item: Item, number: int, choice: str) -> Lines:
        look, filling = self.look, self._filling
        is_marked = number == filling.marked and self.has_focus_within
        is_taken = number in filling.taken[filling.at]
        key = str(number + 1)
        box = ("☑ " if is_taken else "☐ ") if item.several else ("✓ " if is_taken else "")
        style = look.strong if is_marked else look.text
        rows = wrap(box + visible(choice).replace("\n", " "), max(8, self.width - 5))
        lines: Lines = [[("    ", look.text, key), (row, style, key)] for row in rows]
        lines[0][:1] = [("▸ " if is_marked else "  ", look.accent, key), (f"{key} ", look.accent, key)]
        return lines


def _line(key: str, text: str, accent: Style, style: Style) -> list[tuple[str, Style, str]]:
    return [("  ", style, key), (f"{key.replace('enter', 'Enter')} ", accent, key), (text, style, key)]
