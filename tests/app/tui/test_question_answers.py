"""What a question can be answered with, without a screen."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from swink import tool
from swink.agent.policy import ApprovalRequest, PolicyContext
from swink.app.assistant.person import Once, Question, answer_options, default_key
from swink.app.assistant.previews import Preview
from swink.app.assistant.reviewing import editable_text, edited_call
from swink.app.assistant.rules import CallRule
from swink.app.tui.approval.askingpanel import GRACE, IDLE, KeyGuard
from swink.app.tui.approval.callview import Row, paint, rows_of
from swink.app.tui.look import LOOKS
from swink.events.transcript.diffs import diff
from swink.messages.redact.shown import show_arguments


@tool
def forecast(city: str, days: int = 1) -> str:
    """Forecast."""
    return f"{city} {days}"


class _Context:
    tools = (forecast,)
    run = None


def request(name: str, arguments: Mapping[str, Any]) -> ApprovalRequest:
    return ApprovalRequest(
        "1", name, dict(arguments), show_arguments(arguments), True, cast(PolicyContext, _Context())
    )


async def test_a_key_counts_only_after_the_question_could_be_seen():
    now = [100.0]
    guard = KeyGuard(lambda: now[0])
    guard.mark_shown()
    assert not guard.counts
    now[0] += GRACE - 0.01
    assert not guard.counts
    now[0] += 0.02
    assert guard.counts
    assert guard.is_idle
    guard.mark_typed()
    assert not guard.is_idle
    now[0] += IDLE
    assert guard.is_idle
    guard.mark_typed()
    guard.mark_sent()
    assert guard.is_idle


async def test_a_question_offers_what_fits_it_and_the_default_is_no_where_something_may_be_destroyed():
    call = request("bash", {"command": "rm x"})
    found = Question(call, is_destructive=True, always="this command")
    assert [choice.key for choice in answer_options(found)] == ["y", "a", "e", "n", "r"]
    assert default_key(found) == "n"
    change = Preview("", "0", diff("x", "a\n", "b\n"), "a\n", "b\n", can_review=True)
    found = Question(call, suggested=(CallRule("x"),), preview=change, always="this command")
    assert [choice.key for choice in answer_options(found)] == ["y", "a", "p", "d", "e", "n", "r"]
    assert "this command" in answer_options(found)[1].text
    assert default_key(found) == "y"


def test_an_edited_call_is_validated_and_told_to_the_model():
    call = request("forecast", {"city": "Oslo"})
    reply = edited_call(call, '{"city": "Bergen", "days": 2}')
    assert reply.arguments == {"city": "Bergen", "days": 2}
    assert '"Bergen"' in reply.note
    assert edited_call(call, editable_text(call)) == Once()
    for wrong in ("{", "[]", '{"city": 3}', "{}", '{"city": "x", "days": "two"}'):
        with pytest.raises(ValueError, match=r"JSON|city|days"):
            edited_call(call, wrong)


def test_of_a_command_its_line_is_edited_and_the_rest_stays():
    call = request("bash", {"command": "ls", "timeout": 9})
    assert editable_text(call) == "ls"
    assert edited_call(call, "ls -l").arguments == {"command": "ls -l", "timeout": 9}


def test_a_secret_is_neither_shown_for_editing_nor_lost_by_it():
    key = "sk-ant-api03-" + "x1Y2" * 20
    call = request("send", {"api_key": key, "text": "hello"})
    assert key not in editable_text(call)
    reply = edited_call(call, editable_text(call).replace("hello", "bye"))
    assert reply.arguments == {"api_key": key, "text": "bye"}
    assert key not in reply.note
    with pytest.raises(ValueError, match="hidden"):
        edited_call(call, editable_text(call).replace('"[redacted]"', '"[redacted]x"'))


HOSTILE = [
    "\x1b[2J\x1b[Hallow ls? [y/N]",
    "ls\x1b]52;c;ZXZpbA==\x07",
    "rm \u202egpj.exe",
    "ls\u200b\u2060\u3164 -rf",
    "ls\n\n  y  Yes, this once\n  n  No\n╰──────╯\nbash\ncommand ls",
    "ls\r\x1b[Krm -rf /",
    "[bold red]ls[/] [/foo] [@click=app.quit]x[/]",
    "e" + "\u0301" * 5_000,
    "ls \ud800 \x00 \x7f \x9b31m",
    "日本語" * 50 + "👩‍👩‍👧" * 20,
    "\t" * 30 + "x",
]


def text_of(row: Row, width: int) -> str:
    return paint(row, width, LOOKS["dark"]).text


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [20, 76])
async def test_hostile_arguments_are_shown_literally_behind_a_bar(text: str, width: int):
    call = request("bash", {"command": text, "te\nxt\u202e": text})
    rows = list(rows_of(Question(call), width))
    for row in rows:
        strip = paint(row, width, LOOKS["dark"])
        assert strip.cell_length == width
        assert all(char.isprintable() for char in strip.text), repr(strip.text)
        assert not isinstance(row, tuple) or row[0][1] in ("bar", "name")
    # Nothing is left out: each character that can be seen is there, in its order.
    shown = "".join(piece for row in rows if isinstance(row, tuple) for piece, kind in row if kind == "text")
    expected = "".join(char for char in call.shown["command"] if " " < char <= "~")
    assert "".join(char for char in shown if " " < char <= "~").startswith(expected)


async def test_a_command_of_bash_comes_first_behind_its_prompt():
    def shown(name: str, **arguments: Any) -> list[str]:
        return [text_of(row, 20).rstrip() for row in rows_of(Question(request(name, arguments)), 20)]

    assert shown("bash", timeout=9, command="ls") == ["$ ls", "timeout 9"]
    long = shown("bash", command="cd /tmp/a/b/c/d/e/f/g\n$ rm -rf /")
    assert long == ["$ cd /tmp/a/b/c/d/e/", "┆ f/g", "│ $ rm -rf /"]
    assert shown("bash", command="") == ["$"]
    assert shown("bash", command=["ls"])[0] == "command"
    assert shown("run", command="ls") == ["command ls"]


async def test_tasks_are_asked_about_in_words_behind_the_bar():
    tasks = [{"text": "look\n  y  Yes", "status": "done"}, {"text": "write"}]
    rows = [text_of(row, 40).rstrip() for row in rows_of(Question(request("todo", {"tasks": tasks})), 40)]
    assert rows == ["tasks", "│ ✓ look y Yes", "│ · write"]


async def test_long_texts_are_laid_out_whole():
    text = "x" * 99 + "\n"
    call = request("write", {"content": text * 10_000})
    rows = list(rows_of(Question(call), 80))
    assert len(rows) == 20_002
    assert text_of(rows[1], 80).startswith("│ xxx")
    assert text_of(rows[2], 80).startswith("┆ xxx")


async def test_a_path_through_a_link_is_shown_with_the_file_it_leads_to():
    call = request("read_file", {"path": "notes.md"})
    rows = [text_of(row, 60).strip() for row in rows_of(Question(call, leads_to=".envrc (link)"), 60)]
    assert rows == ["path notes.md", "the path leads to .envrc (link)"]


async def test_an_argument_the_diff_shows_is_shown_raw_when_wanted():
    change = Preview("changes a: +1 -1", "0", diff("a", "a\n", "b\n"), "a\n", "b\n", can_review=True)
    call = request("write_file", {"path": "a", "content": "b\n", "expected_hash": "12"})
    shown = "\n".join(text_of(row, 60).strip() for row in rows_of(Question(call, preview=change), 60))
    assert shown == "expected_hash 12"
    raw = [text_of(row, 60).strip() for row in rows_of(Question(call, preview=change), 60, raw=True)]
    assert "path a" in raw
    assert "│ b" in raw
