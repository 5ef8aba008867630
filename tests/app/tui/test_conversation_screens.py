"""Choosing conversations and rewinding on the screen, by keys alone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from test_conversations import THREE, Desk
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from swink.app.assistant.permissions import Permissions
from swink.app.tui import SwinkApp
from swink.app.tui.screens.listscreen import ListScreen


async def until(pilot: Pilot[int], condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    for _ in range(6_000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(screen_text(pilot.app))


def screen_text(app: object) -> str:
    strips = app.screen._compositor.render_strips()  # type: ignore[attr-defined]
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def preview(app: SwinkApp) -> str:
    return "".join(str(text.render()) for text in app.screen.query("#preview").results(Static))


def rows(app: SwinkApp) -> list[str]:
    return [
        str(options.get_option_at_index(index).prompt).strip()
        for options in app.screen.query(OptionList)
        if isinstance(app.screen, ListScreen)
        for index in range(options.option_count)
    ]


def is_marked_without_colours(app: SwinkApp) -> bool:
    """Whether the row that keys act on can be told by more than its colours."""
    strips = app.screen._compositor.render_strips()
    return any(segment.style is not None and segment.style.underline for strip in strips for segment in strip)


def app_of(desk: Desk) -> SwinkApp:
    return SwinkApp(desk.driver, Permissions(), sessions=desk.conversations)


async def test_rewind_by_keys_shows_what_it_does_and_redo_undoes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, *THREE)
    await desk.say("one", "two", "three")
    (desk.root / "a").write_text("mine")
    app = app_of(desk)
    async with app.run_test(size=(60, 15)) as pilot:
        app.obey("/rewind")
        await until(pilot, lambda: len(rows(app)) == 3)
        await until(pilot, lambda: "is different now" in preview(app))
        await pilot.press("up")
        await until(pilot, lambda: "left: changed since, not by a tool" in preview(app))
        (desk.root / "a").write_text("2")
        await pilot.press("up")
        await until(pilot, lambda: "a  goes" in preview(app))
        assert "- 2" in preview(app) or "-2" in preview(app)
        assert "rewind" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: len(rows(app)) == 3 and "conversation and 1 file" in rows(app)[0])
        await pilot.press("escape")
        await until(pilot, lambda: "one" in rows(app)[0])
        await pilot.press("down", "enter")
        await until(pilot, lambda: "conversation and 1 file" in rows(app)[0])
        await pilot.press("enter")
        await until(pilot, lambda: desk.shown() == ["one"])
        assert desk.files() == {"a": "1"}
        await until(pilot, lambda: app.editor.text == "two")
        app.obey("/rewind")
        await until(pilot, lambda: len(rows(app)) == 2 and "redo" in rows(app)[1])
        await pilot.press("enter")
        await until(pilot, lambda: desk.shown() == ["one", "two", "three"])
        assert desk.files() == {"a": "2"}
        app.obey("/diff")
        await until(pilot, lambda: rows(app) == ["1 file +1 −0", "a +1 −0  new"])
        app.use_look("plain")
        await until(pilot, lambda: is_marked_without_colours(app))
        await until(pilot, lambda: "2" in preview(app))
        await pilot.press("escape")


async def test_conversations_are_found_renamed_deleted_exported_and_resumed_by_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path, "Blue.", "Wide.", "Green.")
    await desk.say("The sky")
    await desk.conversations.new()
    await desk.say("The sea")
    await desk.conversations.new()
    await desk.say("The wood")
    app = app_of(desk)
    async with app.run_test(size=(60, 15)) as pilot:
        app.obey("/sessions")
        await until(pilot, lambda: len(rows(app)) == 3)
        await until(pilot, lambda: "> The wood" in preview(app))
        await pilot.press("d")
        await pilot.press("y")
        await pilot.press("slash", *"blue")
        await until(pilot, lambda: len(rows(app)) == 1 and "The sky" in rows(app)[0])
        await until(pilot, lambda: "«Blue»" in preview(app))
        await pilot.press("escape", "r", *"!", "enter")
        await until(pilot, lambda: any(meta.title == "The sky!" for meta in desk.store.list()))
        await pilot.press("e")
        await pilot.press("enter")
        await until(pilot, lambda: (tmp_path / "the-sky.html").exists())
        await pilot.press("d", "n")
        await pilot.press("d", "y")
        await until(pilot, lambda: len(desk.store.list()) == 2)
        await pilot.press("slash", *["backspace"] * 4, *"the")
        await until(pilot, lambda: len(rows(app)) == 2)
        await until(pilot, lambda: "│ the " in screen_text(app))  # what is searched for can be seen
        await pilot.press("down", "enter")
        await until(pilot, lambda: desk.shown() == ["The sea"])
        app.obey("/fork")
        await until(pilot, lambda: (meta := desk.conversations.meta) is not None and meta.parent is not None)
        app.obey("/tree")
        await until(pilot, lambda: len(rows(app)) == 2 and "└─" in rows(app)[1])
        await pilot.press("up", "enter")
        await until(pilot, lambda: (meta := desk.conversations.meta) is not None and meta.parent is None)
