"""The screens above the conversation, by keys: what they show, what each key does, and how they are left."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apps import app_of, screen_text, until
from test_conversation_screens import preview, rows
from test_conversations import Desk
from tests.counts import in_cells
from textual.containers import VerticalScroll
from textual.events import Key
from textual.widgets import OptionList

from swink.app.assistant.permissions import Permissions
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.toolcalls import SessionTrust
from swink.app.assistant.trust import Trust
from swink.app.tui import SwinkApp
from swink.app.tui.approval import KeyGuard
from swink.app.tui.look import LOOKS
from swink.app.tui.screens.familytree import FamilyTree
from swink.app.tui.screens.help import Help
from swink.app.tui.screens.permissionscreen import PermissionsScreen
from swink.app.tui.screens.trustquestion import TrustQuestion

SIZE = (90, 24)


async def left_with(app: SwinkApp, pilot: Any, screen: Any, *keys: str) -> Any:
    """What a screen is left with after some keys; the conversation has the focus again."""
    asked = app.run_worker(app.ask(screen))
    await until(pilot, lambda: app.screen is screen and screen.is_mounted)
    await pilot.pause()
    await pilot.press(*keys)
    await until(pilot, lambda: asked.is_finished)
    await until(pilot, lambda: len(app.screen_stack) == 1 and app.editor.has_focus)
    return asked.result


@in_cells("key", ["escape", "q", "f1", "question_mark"], every=2)
async def test_the_help_shows_the_users_own_keys_scrolls_and_is_left_by_each_of_its_keys(key: str):
    app = app_of([])
    async with app.run_test(size=SIZE) as pilot:
        app.push_screen(Help({"stop": "f9"}))
        await until(pilot, lambda: "help (Esc leaves)" in screen_text(app))
        shown = screen_text(app)
        assert "Keys: the reply" in shown
        assert "F9" in shown
        box = app.screen.query_one(VerticalScroll)
        await pilot.press("end")
        await until(pilot, lambda: "/worktree" in screen_text(app) and box.scroll_y > 0)
        await pilot.press("x", "y")  # means nothing here, and is not written in the editor
        await pilot.press(key)
        await until(pilot, lambda: len(app.screen_stack) == 1 and app.editor.has_focus)
        assert app.editor.text == ""


def permissions_in(tmp_path: Path) -> Permissions:
    rules = RuleBook(tmp_path, path=tmp_path / "permissions")
    rules.add((parse_rule("bash(git status *)"),), "project")
    rules.add((parse_rule("weather"),), "user")
    permissions = Permissions(rules=rules)
    permissions.trusted[SessionTrust("push")] = None
    return permissions


async def test_permissions_are_shown_by_kind_and_removed_one_by_one_until_none_is_left(tmp_path: Path):
    app, permissions = app_of([]), permissions_in(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        app.push_screen(PermissionsScreen(permissions, LOOKS["dark"]))
        await until(pilot, lambda: "saved rules" in screen_text(app))
        shown = screen_text(app)
        titles = ["asked about", "always allowed in this session", "saved rules"]
        places = [shown.index(text) for text in (*titles, "bash(git status *)")]
        assert places == sorted(places)
        for key in ("d", "delete", "backspace"):
            options = app.screen.query_one(OptionList)
            await until(pilot, lambda: options.highlighted is not None)
            left = len(permissions.trusted) + len(permissions.rules.rules)
            await pilot.press("home")
            for _ in range(options.option_count):
                if len(permissions.trusted) + len(permissions.rules.rules) < left:
                    break
                await pilot.press(key)
                await pilot.pause(0.05)
                await pilot.press("down")
        await until(pilot, lambda: "no rules yet" in screen_text(app))
        assert not permissions.trusted
        assert not permissions.rules.rules
        await pilot.press("d", "q")  # there is nothing more to remove
        await until(pilot, lambda: len(app.screen_stack) == 1 and app.editor.has_focus)


async def test_rules_that_cannot_be_written_stay_and_the_screen_says_why(tmp_path: Path):
    app, permissions = app_of([]), permissions_in(tmp_path)
    permissions.trusted.clear()
    file = tmp_path / "permissions"
    async with app.run_test(size=SIZE) as pilot:
        app.push_screen(PermissionsScreen(permissions, LOOKS["dark"]))
        await until(pilot, lambda: "saved rules" in screen_text(app))
        kept = file.read_text()
        file.unlink()
        file.mkdir()
        await pilot.press("d")
        await until(
            pilot, lambda: "Isadirectory" in "".join(screen_text(app).split())
        )  # however it is wrapped
        assert isinstance(app.screen, PermissionsScreen)
        file.rmdir()
        file.write_text(kept)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


def trust_question(tmp_path: Path, clock: Callable[[], float], **fields: Any) -> TrustQuestion:
    return TrustQuestion(Trust(tmp_path, "unasked", **fields), ["AGENTS.md"], KeyGuard(clock))


ANSWERS = [(["y"], "y"), (["n"], "n"), (["enter"], "y"), (["escape"], None), (["up", "enter"], "n")]


async def test_a_folder_is_trusted_by_its_letter_or_by_the_marked_answer(tmp_path: Path):
    now = [0.0]
    app = app_of([])
    async with app.run_test(size=SIZE) as pilot:
        for keys, answer in ANSWERS:
            screen = trust_question(tmp_path, lambda: now[0])
            asked = app.run_worker(app.ask(screen))
            await until(pilot, lambda: app.screen is screen and "AGENTS.md" in screen_text(app))
            await pilot.press(*keys, "y", "x")  # before anybody can have read it
            assert app.screen is screen
            now[0] += 1.0
            screen.query_one(OptionList).highlighted = 0
            await pilot.press("x", *keys)
            await until(pilot, lambda: asked.is_finished)
            assert asked.result == answer, keys


@in_cells("keys", [("enter", "y"), ("enter", "enter")], every=2)
async def test_an_answer_that_is_given_twice_at_once_leaves_the_screen_below_as_it_is(
    keys: tuple[str, str], tmp_path: Path
):
    now = [0.0]
    app = app_of([])
    async with app.run_test(size=SIZE) as pilot:
        below = trust_question(tmp_path, lambda: now[0])
        app.run_worker(app.ask(below))
        await until(pilot, lambda: app.screen is below)
        asked = app.run_worker(app.ask(trust_question(tmp_path, lambda: now[0])))
        await until(pilot, lambda: app.screen is not below and "AGENTS.md" in screen_text(app))
        now[0] += 1.0
        for key in keys:
            app.post_message(Key(key, "\r" if key == "enter" else None))
        await until(pilot, lambda: asked.is_finished)
        await pilot.pause()
        assert app.screen is below


async def test_the_family_of_a_conversation_marks_it_previews_each_and_leaves_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, "Blue.", "Wide.")
    await desk.say("The sky")
    first = desk.conversations.meta
    await desk.conversations.fork()
    await desk.say("And the sea?")
    second = desk.conversations.meta
    assert first is not None
    assert second is not None
    app = SwinkApp(desk.driver, Permissions(), sessions=desk.conversations)

    def tree(current: str) -> FamilyTree:
        return FamilyTree(LOOKS["dark"], desk.store, current)

    async with app.run_test(size=SIZE) as pilot:
        asked = app.run_worker(app.ask(tree(second.id)))
        await until(pilot, lambda: len(rows(app)) == 2 and "And the sea?" in preview(app))
        await pilot.press("up")
        await until(pilot, lambda: "Blue." in preview(app) and "And the sea?" not in preview(app))
        await pilot.press("enter")
        await until(pilot, lambda: asked.is_finished)
        assert asked.result == first.id
        assert await left_with(app, pilot, tree(second.id), "escape") is None
        asked = app.run_worker(app.ask(tree("20200101_000000_none")))
        await until(pilot, lambda: "none" in screen_text(app) and rows(app) == [])
        await pilot.press("enter", "escape")
        await until(pilot, lambda: asked.is_finished)
        assert asked.result is None
        await asyncio.sleep(0)
