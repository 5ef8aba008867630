"""While a long prompt is read, a person at a terminal sees how far it is."""

import io

import pytest

from swink.app.cli.printing import TextPrinter
from swink.events import PROMPT_PROGRESS, CustomEvent, MessageUpdate
from swink.stream import TextDelta


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, *read: tuple[int, int]) -> str:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", stderr)
    out = io.StringIO()
    printer = TextPrinter(out)
    for done, total in read:
        printer.print_event(CustomEvent(PROMPT_PROGRESS, {"done": done, "total": total}))
    printer.print_event(MessageUpdate(TextDelta(0, "Paris")))
    assert out.getvalue() == "Paris"
    return stderr.getvalue()


def test_a_long_prompt_shows_its_progress_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch):
    said = shown(monkeypatch, Terminal(), (16, 900), (512, 900), (900, 900))
    assert "reading the prompt: 16 of 900 tokens" in said
    assert "reading the prompt: 512 of 900 tokens" in said
    assert said.endswith("\r\x1b[K")


def test_a_short_prompt_and_a_pipe_show_none(monkeypatch: pytest.MonkeyPatch):
    assert shown(monkeypatch, Terminal(), (16, 40), (40, 40)) == ""
    assert shown(monkeypatch, io.StringIO(), (16, 900), (900, 900)) == ""
