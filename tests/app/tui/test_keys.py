"""Keys of the app: what stops, what comes back, what leaves."""

from apps import Gate, app_of, screen_text, until
from tests.counts import in_cells
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from swink.app.tui import SwinkApp
from swink.messages import ToolCall


async def say(pilot: Pilot[int], app: SwinkApp, text: str) -> None:
    """Send a text; typed key by key it would take a second."""
    app.editor.insert(text)
    await pilot.press("enter")


async def test_escape_stops_the_reply_and_gives_queued_messages_back_to_the_editor():
    gate = Gate()
    app = app_of([["I begin. ", ToolCall("1", "hold", {})], "Never."], tools=[gate.tool()])
    async with app.run_test() as pilot:
        await say(pilot, app, "go")
        await gate.started.wait()
        await say(pilot, app, "wait")
        await until(pilot, lambda: "queued" in screen_text(app))
        app.editor.insert("more")
        await pilot.press("escape")
        await until(pilot, lambda: not app.driver.is_running)
        await until(pilot, lambda: "aborted" in screen_text(app))
        assert "wait" in app.editor.text
        assert "more" in app.editor.text  # what is typed is never destroyed
        assert app.driver.queued == ()
        app.leave()


async def test_ctrl_c_stops_then_clears_then_leaves():
    gate = Gate()
    app = app_of([ToolCall("1", "hold", {})], tools=[gate.tool()])
    async with app.run_test() as pilot:
        await say(pilot, app, "go")
        await gate.started.wait()
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.driver.is_running)
        app.editor.insert("text")
        await pilot.press("ctrl+c")
        assert app.editor.is_blank
        await pilot.press("up")
        assert app.editor.text == "text"  # it was not lost
        await pilot.press("ctrl+c", "ctrl+c", "ctrl+c")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 0


async def test_commands_are_obeyed_and_a_wrong_one_says_what_there_is():
    app = app_of([])
    async with app.run_test() as pilot:
        await say(pilot, app, "/thinking high")
        await until(pilot, lambda: app.driver.agent.thinking_level == "high")
        await pilot.press("f4")
        await until(pilot, lambda: app.driver.agent.thinking_level == "extra_high")
        await say(pilot, app, "/theme light")
        await until(pilot, lambda: app.look.name == "light")
        await say(pilot, app, "/nonsense")
        await until(pilot, lambda: "there is no /nonsense" in screen_text(app))
        for key in ("f1", "question_mark"):
            await pilot.press(key)
            await until(pilot, lambda: len(app.screen_stack) == 2 and "Keys" in screen_text(app))
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
        await pilot.press("a", "question_mark")
        await until(pilot, lambda: app.editor.text == "a?")
        app.leave()


async def test_a_picker_is_narrowed_by_typing_and_left_with_what_is_marked():
    app = app_of([])
    async with app.run_test() as pilot:
        app.obey("/theme")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        app.screen.query_one(Input).value = "contrast"
        await until(pilot, lambda: "1 of 5" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.look.name == "high-contrast")
        app.obey("/theme")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        app.screen.query_one(Input).value = "zzz"
        await pilot.press("enter")
        await until(pilot, lambda: "nothing fits" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.look.name == "high-contrast"
        app.leave()


async def test_leaving_plan_mode_offers_to_carry_the_plan_out():
    app = app_of(["1. Write it.", "Written."])
    async with app.run_test() as pilot:
        await pilot.press("shift+tab")
        await until(pilot, lambda: "Plan" in screen_text(app) and app.driver.is_planning)
        await say(pilot, app, "plan it")
        await until(pilot, lambda: "1. Write it." in screen_text(app) and not app.driver.is_running)
        await pilot.press("shift+tab")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("enter")
        await until(pilot, lambda: "Written." in screen_text(app))
        assert not app.driver.is_planning
        app.leave()


async def test_two_escapes_open_rewind_only_if_nothing_was_typed_between_them():
    now = 0.0
    app = app_of(["First.", "Second."], clock=lambda: now)
    async with app.run_test() as pilot:
        await say(pilot, app, "one")
        await until(pilot, lambda: "First." in screen_text(app) and not app.driver.is_running)
        await pilot.press("escape")
        await pilot.press(*"two", "enter")
        await until(pilot, lambda: "Second." in screen_text(app) and not app.driver.is_running)
        await pilot.press("escape")
        await pilot.pause(0.2)
        assert "not kept here" not in screen_text(app)
        now += 2.0
        await pilot.press("escape")
        await pilot.pause(0.2)
        assert "not kept here" not in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: "not kept here" in screen_text(app))  # what /rewind says without sessions


async def test_two_escapes_with_a_key_between_them_are_not_two_in_a_row_however_late_they_are_handled():
    app = app_of([])
    async with app.run_test() as pilot:
        for keys, is_rewind in ((("escape", "right", "escape"), False), (("escape", "escape"), True)):
            for key in keys:  # all of them before the editor sees the first
                app.post_message(Key(key, None))
            await pilot.pause(0.3)
            assert ("not kept here" in screen_text(app)) == is_rewind
            await pilot.press("right")


@in_cells("opened", ["/help", "/theme", "/model", "/permissions", "whole"], every=5)
async def test_what_is_typed_right_after_escape_is_for_the_editor_and_not_for_the_screen_that_closes(
    opened: str,
):
    app = app_of([])
    async with app.run_test() as pilot:
        app.action_whole() if opened == "whole" else app.obey(opened)
        await until(pilot, lambda: len(app.screen_stack) == 2 and app.screen.is_mounted)
        await pilot.pause(0.2)
        for key in ("escape", "a", "b"):  # all of them before the screen sees the first
            app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await until(pilot, lambda: app.editor.text == "ab")


async def test_tab_without_a_completion_does_nothing_and_what_is_typed_next_is_there():
    app = app_of([])
    async with app.run_test() as pilot:
        await pilot.press(*"one", "tab", *" two", "tab", "tab", *" three")
        assert app.editor.text == "one two three"
        assert app.editor.has_focus


async def test_what_is_typed_reaches_the_editor_wherever_the_focus_is():
    app = app_of([])
    async with app.run_test() as pilot:
        for number, widget in enumerate((app.view, None)):
            app.screen.set_focus(widget)
            await pilot.press(*"abc", "backspace")
            assert app.editor.text == "ab" * (number + 1)
            app.screen.set_focus(widget)
            await pilot.press("up")  # is no writing: the view scrolls
            assert app.focused is widget
