"""What goes wrong in a screen, a command or a painter costs that, and never the conversation."""

from collections.abc import Sequence

import pytest
from apps import app_of, screen_text, until
from rich.text import Text
from tests.counts import in_cells
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList

from swink.app.assistant.snapshots.rewinding import FileChange
from swink.app.tui.commands.commandtable import COMMANDS, SlashCommand
from swink.app.tui.look import LOOKS
from swink.app.tui.screens.changedfiles import ChangedFiles
from swink.app.tui.screens.listscreen import ListRow, ListScreen
from swink.app.tui.screens.modelpicker import ModelPicker
from swink.app.tui.screens.picker import Picker
from swink.app.tui.view import painters
from swink.models import catalog


@pytest.fixture(autouse=True)
def no_failures() -> None:
    """Errors are what these tests are about."""


PLACES = ("compose", "mount", "key", "worker", "timer", "callback", "render")


class Broken(ModalScreen[None]):
    """A screen that fails in one place."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def compose(self) -> ComposeResult:
        yield Paper(self.place)
        self.break_in("compose")

    def on_mount(self) -> None:
        self.break_in("mount")
        if self.place == "worker":
            self.run_worker(self.work())
        elif self.place == "timer":
            self.set_timer(0.001, lambda: self.break_in("timer"))
        elif self.place == "callback":
            self.call_after_refresh(self.break_in, "callback")

    def on_key(self) -> None:
        self.break_in("key")

    async def work(self) -> None:
        self.break_in("worker")

    def break_in(self, place: str) -> None:
        if place == self.place:
            raise ZeroDivisionError(f"broken in {place}")


class Paper(Widget):
    """A widget of the broken screen."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def render_line(self, y: int) -> Strip:
        if self.place == "render":
            raise ZeroDivisionError("broken in render")
        return Strip.blank(self.size.width)


@in_cells("place", PLACES, every=3)
async def test_a_screen_that_fails_is_closed_with_a_notice_and_the_conversation_goes_on(place: str):
    app = app_of(["I am still here."])
    async with app.run_test(size=(120, 24)) as pilot:
        asked = app.run_worker(app.ask(Broken(place)))
        if place == "key":
            await until(pilot, lambda: isinstance(app.screen, Broken))
            await pilot.press("x")
        await until(pilot, lambda: f"ZeroDivisionError: broken in {place}" in screen_text(app))
        await until(pilot, lambda: asked.is_finished)
        assert len(app.screen_stack) == 1
        assert asked.result is None
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "I am still here." in screen_text(app))
    assert app.failure is None


async def test_a_command_that_fails_unexpectedly_says_so_and_the_conversation_goes_on(
    monkeypatch: pytest.MonkeyPatch,
):
    def broken(context: object, rest: str) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.setitem(COMMANDS, "/broken", SlashCommand("/broken", "", "", broken))
    app = app_of(["I am still here."])
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.press(*"/broken", "enter", "enter")
        await until(
            pilot, lambda: "/broken failed unexpectedly: ZeroDivisionError: broken" in screen_text(app)
        )
        app.driver.send("hello")
        await until(pilot, lambda: "I am still here." in screen_text(app))


async def test_a_reply_that_cannot_be_painted_is_named_and_the_others_are_shown(
    monkeypatch: pytest.MonkeyPatch,
):
    real = painters.paint_markdown

    def broken(text: str, *rest: object) -> object:
        if "first" in text:
            raise RecursionError
        return real(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(painters, "paint_markdown", broken)
    app = app_of(["the first", "the second"])
    async with app.run_test(size=(120, 24)) as pilot:
        for number, said in enumerate(("cannot be shown: RecursionError", "the second")):
            app.driver.send(f"prompt {number}")
            await until(pilot, lambda: said in screen_text(app))
        assert "prompt 0" in screen_text(app)


@in_cells("way", ["/model", "f5"], every=2)
async def test_every_known_model_can_be_picked(way: str):
    names = {str(spec) for spec in catalog.models()}
    app = app_of([])
    async with app.run_test(size=(100, 30)) as pilot:
        await (pilot.press("f5") if way == "f5" else pilot.press(*"/model", "escape", "enter"))
        await until(pilot, lambda: isinstance(app.screen, ModelPicker))
        await until(pilot, lambda: f"{len(names) + 1} models" in screen_text(app))
        app.screen.query_one(Input).value = "vertex:claude-opus-4-5"
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 1)
        await pilot.press("enter")
        await until(pilot, lambda: str(app.driver.agent.model) == "vertex:claude-opus-4-5")
    assert app.failure is None


async def test_the_completion_of_model_offers_each_name_once():
    app = app_of([])
    choices = COMMANDS["/model"].choices
    assert choices is not None
    offered = [*choices(app)]
    assert len(offered) == len({*offered}) > 500


async def test_a_list_of_equal_rows_is_shown_and_the_row_that_was_marked_is_taken():
    class Twins(ListScreen[str]):
        async def rows(self, typed: str) -> Sequence[ListRow]:
            return [ListRow(key, Text(f"row {key}")) for key in ("a", "a", "", "[b]", "a")]

        async def preview(self, id: str) -> Text:
            return Text(f"preview of {id!r}")

        def take_row(self, id: str) -> None:
            self.dismiss(id)

    app = app_of([])
    async with app.run_test(size=(100, 30)) as pilot:
        asked = app.run_worker(app.ask(Twins(LOOKS["dark"])))
        await until(pilot, lambda: "preview of 'a'" in screen_text(app))
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: "preview of '[b]'" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: asked.is_finished)
        assert asked.result == "[b]"


@in_cells("choices", [{}, {"": ""}, {"[b]": "]["}, {"a\nb": "\x1b[31m"}, {"x" * 500: "y" * 500}], every=3)
async def test_a_picker_shows_any_choices(choices: dict[str, str]):
    app = app_of([])
    async with app.run_test(size=(40, 12)) as pilot:
        asked = app.run_worker(app.ask(Picker("odd", choices)))
        await until(pilot, lambda: isinstance(app.screen, Picker) and bool(app.screen.query(Input)))
        await pilot.press("down", "up", "enter", "escape")
        await until(pilot, lambda: asked.is_finished)
        assert asked.result == next(iter(choices), None)
    assert app.failure is None


async def test_a_changed_file_may_have_any_name():
    changes = [(FileChange(name, "x", None), None) for name in (" all ", "all", "[b]")]  # type: ignore[arg-type]
    app = app_of([])
    async with app.run_test(size=(100, 30)) as pilot:
        asked = app.run_worker(app.ask(ChangedFiles(LOOKS["dark"], changes)))
        await until(pilot, lambda: "3 files" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: asked.is_finished)
    assert app.failure is None
