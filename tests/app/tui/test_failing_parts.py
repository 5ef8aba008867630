"""What goes wrong in a part of the conversation's screen is told, and the conversation goes on.

A call that was asked about in a panel that failed is not answered: it never runs, and nobody waits for ever.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from apps import app_of, screen_text, until
from tests.counts import MORE, in_cells

from swink import tool
from swink.app.assistant.forms import Form, Item
from swink.app.assistant.person import UNSHOWN
from swink.app.tui import SwinkApp
from swink.app.tui.approval import ApprovalPanel, AskingPanel, FormPanel
from swink.app.tui.approval.answerlist import Answers
from swink.app.tui.approval.callview import CallView
from swink.app.tui.editor import Editor
from swink.app.tui.editor.completer import Completer
from swink.app.tui.status import StatusBar
from swink.app.tui.terminal.failures import FailureLog
from swink.app.tui.view import TodoPanel, TranscriptView
from swink.messages import ToolCall
from swink.testing import ScriptedModel

CALL = ToolCall("1", "deploy", {"where": "moon"})


@pytest.fixture(autouse=True)
def no_failures() -> None:
    """Errors are what these tests are about."""


class Deploy:
    """A tool that counts how often it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tool(self) -> Any:
        @tool(requires_approval=True)
        def deploy(where: str) -> str:
            """Deploy it."""
            self.ran.append(where)
            return "deployed"

        return deploy


def break_down(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, times: int = 10**9) -> Iterator[int]:
    """Let a method fail, some times or always; how often it was called."""
    real = getattr(owner, name)
    count = 0

    def broken(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count <= times:
            raise ZeroDivisionError(f"broken {name}")
        return real(self, *args, **options)

    monkeypatch.setattr(owner, name, broken)
    while True:
        yield count


PLACES = [
    (ApprovalPanel, "begin_question"),
    (ApprovalPanel, "lay_out"),
    (ApprovalPanel, "show_answers"),
    (ApprovalPanel, "_rows"),
    (ApprovalPanel, "_show_title"),
    (AskingPanel, "appear"),
    (AskingPanel, "take_focus"),
    (CallView, "show_rows"),
    (CallView, "render_line"),
    (Answers, "render_line"),
]


@in_cells(("owner", "name"), PLACES, every=5)
async def test_a_call_whose_question_fails_once_is_asked_about_again(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
):
    deploy = Deploy()
    app = app_of([CALL, "I am still here."], tools=[deploy.tool()])
    async with app.run_test(size=(100, 30)) as pilot:
        panel = app.query_one(ApprovalPanel)
        next(break_down(monkeypatch, owner, name, times=1))
        app.driver.send("go on")
        await until(pilot, lambda: f"ZeroDivisionError: broken {name}" in screen_text(app))
        await until(pilot, lambda: "where" in screen_text(app) and "moon" in screen_text(app))
        await until(pilot, lambda: panel.has_focus and panel.guard.is_shown and panel.guard.counts)
        assert deploy.ran == []
        await pilot.press("y")
        await until(pilot, lambda: "I am still here." in screen_text(app))
        assert deploy.ran == ["moon"]
        await until(pilot, lambda: not panel.display and app.editor.has_focus)
    assert app.failure is None


@in_cells(("owner", "name"), [place for place in PLACES if place[1] != "take_focus"], every=5)
async def test_a_call_whose_question_always_fails_is_refused_and_the_model_is_told_why(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
):
    deploy = Deploy()
    script = ScriptedModel([CALL, "I am still here."])
    app = app_of(script, tools=[deploy.tool()])
    async with app.run_test(size=(100, 30)) as pilot:
        next(break_down(monkeypatch, owner, name))
        app.driver.send("go on")
        await until(pilot, lambda: "I am still here." in screen_text(app))
        assert deploy.ran == []
        assert UNSHOWN in str(script.calls[-1])
        assert "unexpected error: ZeroDivisionError" in screen_text(app)
        await pilot.press(*"hello")
        assert app.editor.text == "hello"
    assert app.failure is None


async def test_a_key_that_fails_answers_nothing(monkeypatch: pytest.MonkeyPatch):
    deploy = Deploy()
    app = app_of([CALL, "I am still here."], tools=[deploy.tool()])
    async with app.run_test(size=(100, 30)) as pilot:
        panel = app.query_one(ApprovalPanel)
        app.driver.send("go on")
        await until(pilot, lambda: panel.has_focus and panel.guard.is_shown and panel.guard.counts)
        next(break_down(monkeypatch, ApprovalPanel, "take_key", times=1))
        await pilot.press("y")
        await until(pilot, lambda: "broken take_key" in screen_text(app))
        assert len(app.permissions.waiting) == 1
        assert deploy.ran == []
        await until(pilot, lambda: panel.has_focus and panel.guard.is_shown and panel.guard.counts)
        await pilot.press("n")
        await until(pilot, lambda: "I am still here." in screen_text(app))
        assert deploy.ran == []


async def test_a_question_that_the_updater_cannot_reach_through_a_broken_view_is_asked(
    monkeypatch: pytest.MonkeyPatch,
):
    deploy = Deploy()
    app = app_of([CALL, "I am still here."], tools=[deploy.tool()])
    async with app.run_test(size=(100, 30)) as pilot:
        panel = app.query_one(ApprovalPanel)
        for owner, name in (
            (TranscriptView, "take_changes"),
            (TodoPanel, "take_changes"),
            (StatusBar, "show_status"),
        ):
            next(break_down(monkeypatch, owner, name))
        app.driver.send("go on")
        await until(pilot, lambda: panel.has_focus and panel.guard.is_shown and panel.guard.counts)
        await pilot.press("y")
        await until(pilot, lambda: deploy.ran == ["moon"])
        await until(pilot, lambda: not app.driver.is_running)


@in_cells("name", ["lay_out", "show_answers", "begin_question"], every=3)
async def test_a_form_that_always_fails_counts_as_not_answered(monkeypatch: pytest.MonkeyPatch, name: str):
    app = app_of(["I am still here."])
    async with app.run_test(size=(100, 30)) as pilot:
        next(break_down(monkeypatch, FormPanel, name))
        asked = app.run_worker(app.permissions.forms.ask(Form([Item("Which way?", ["left", "right"])])))
        await until(pilot, lambda: asked.is_finished)
        assert asked.result is None
        app.driver.send("hello")
        await until(pilot, lambda: "I am still here." in screen_text(app))


async def test_what_is_typed_stays_where_completions_fail(monkeypatch: pytest.MonkeyPatch):
    app = app_of(["I am still here."])
    async with app.run_test(size=(100, 30)) as pilot:
        next(break_down(monkeypatch, Completer, "look"))
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "I am still here." in screen_text(app))
        assert "hello" in screen_text(app)
        assert "ZeroDivisionError: broken look" in screen_text(app)


@in_cells(
    ("owner", "name", "keys"),
    [
        (SwinkApp, "action_toggle_fold", ["f2"]),
        (SwinkApp, "action_toggle_todo", ["ctrl+t"]),
        (TranscriptView, "cycle_thoughts", ["f3"]),
        (Editor, "action_search_history", ["ctrl+r"]),
        (Editor, "_take_key", ["x"]),
        (SwinkApp, "on_text_area_changed", ["x"]),
        (SwinkApp, "on_submitted", ["x", "enter"]),
    ],
    every=6,
)
async def test_a_key_that_fails_is_told_and_the_next_ones_work(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, keys: list[str]
):
    app = app_of(["I am still here."])
    async with app.run_test(size=(100, 30)) as pilot:
        next(break_down(monkeypatch, owner, name, times=1))
        await pilot.press(*keys)
        await until(pilot, lambda: f"ZeroDivisionError: broken {name}" in screen_text(app))
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "I am still here." in screen_text(app))
    assert app.failure is None


async def test_what_could_not_be_sent_is_back_in_the_editor(monkeypatch: pytest.MonkeyPatch):
    app = app_of([])
    async with app.run_test(size=(100, 30)) as pilot:
        next(break_down(monkeypatch, type(app.driver), "send"))
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "ZeroDivisionError: broken send" in screen_text(app))
        assert app.editor.text == "hello"


@in_cells("owner", [TranscriptView, StatusBar, Editor], every=3)
async def test_what_can_never_be_painted_is_told_without_a_flood_and_the_rest_is_shown(
    monkeypatch: pytest.MonkeyPatch, owner: type
):
    app = app_of(["I am still here."])
    async with app.run_test(size=(100, 30)) as pilot:
        painted = break_down(monkeypatch, owner, "render_line")
        next(painted)
        for _ in range(20):
            app.screen.refresh()
            app.query_one(owner).refresh()
            await pilot.pause()
            assert screen_text(app)
        told = [block for block in app.driver.transcript.blocks if "broken render_line" in str(block)]
        assert 1 <= len(told) < 6
        assert next(painted) > 10
        app.driver.send("hello")
        await until(pilot, lambda: "I am still here." in str(app.driver.transcript.blocks))
        if owner is not TranscriptView:
            await until(pilot, lambda: "I am still here." in screen_text(app))


async def test_a_timer_and_a_worker_of_the_conversation_that_fail_are_told(monkeypatch: pytest.MonkeyPatch):
    app = app_of(["I am still here."])

    def fail() -> None:
        raise ZeroDivisionError("broken timer")

    async def work() -> None:
        raise KeyError("broken worker")

    async with app.run_test(size=(100, 30)) as pilot:
        app.set_timer(0.001, fail)
        app.editor.run_worker(work())
        await until(pilot, lambda: "broken timer" in screen_text(app) and "broken worker" in screen_text(app))
        app.driver.send("hello")
        await until(pilot, lambda: "I am still here." in screen_text(app))


def test_the_same_error_is_told_ever_more_seldom_and_another_one_at_once():
    now = 0.0
    log = FailureLog(lambda: now)

    def error(kind: type[Exception]) -> Exception:
        try:
            raise kind("a secret that differs each time")
        except Exception as raised:
            return raised

    told = 0
    for _ in range(100_000 if MORE else 10_000):
        told += log.is_news(error(ValueError))
        now += 0.1
    assert 1 < told < 20
    assert log.is_news(error(KeyError))


async def test_an_error_while_the_program_begins_ends_it(monkeypatch: pytest.MonkeyPatch):
    next(break_down(monkeypatch, SwinkApp, "compose"))
    app = app_of([])
    with pytest.raises(ZeroDivisionError):
        async with app.run_test():
            pass
    assert isinstance(app.failure, ZeroDivisionError)
