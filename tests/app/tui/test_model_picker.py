"""The list of models: what stands first, what is shown of each, favourites, and what typing leaves."""

from pathlib import Path
from typing import Any

import pytest
from apps import app_of, screen_text, until
from tests.counts import in_cells
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from swink.app.assistant import modellist
from swink.app.assistant.modellist import FAVOURITES, RECENT, ModelMemory, model_rows, narrowed, recall
from swink.app.tui import SwinkApp
from swink.app.tui.screens.modelpicker import ModelPicker
from swink.messages import Price
from swink.models import catalog

CURRENT = "anthropic:claude-sonnet-4-6"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return tmp_path / "XDG_STATE_HOME"


async def opened(pilot: Pilot[Any], app: SwinkApp) -> list[str]:
    await pilot.press("f5")
    await until(pilot, lambda: isinstance(app.screen, ModelPicker) and "models ·" in screen_text(app))
    return screen_text(app).split("\n")


def row_of(app: SwinkApp, name: str) -> str:
    return next((line for line in screen_text(app).split("\n") if name in line), "")


def test_the_current_and_recent_models_stand_first_then_favourites_then_providers_with_a_key():
    memory = ModelMemory(("openai:gpt-5", CURRENT, "acme:own"), ("xai:grok-4", "openai:gpt-5"))
    rows = model_rows(CURRENT, memory)
    assert [row.name for row in rows[:4]] == [CURRENT, "openai:gpt-5", "acme:own", "xai:grok-4"]
    groups = [*dict.fromkeys(row.group for row in rows)]
    assert groups[:2] == [RECENT, FAVOURITES]
    assert groups.index("openai") < groups.index("anthropic: no key") < groups.index("xai: no key")
    names = [row.name for row in rows]
    assert len(names) == len({*names})
    assert {str(spec) for spec in catalog.models()} <= {*names}
    assert [row.name for row in rows if row.is_favourite] == ["openai:gpt-5", "xai:grok-4"]


def test_an_unknown_price_is_a_question_mark_and_a_price_of_nothing_is_none():
    rows = {row.name: row for row in model_rows("acme:own", ModelMemory())}
    assert modellist.shown_price(rows["acme:own"].price) == ("?", "?")
    assert modellist.shown_window(rows["acme:own"].window) == "?"
    assert modellist.shown_price(Price()) == ("$0", "$0")
    assert modellist.shown_price(Price(0.25, 1.5)) == ("$0.25", "$1.5")
    assert [modellist.shown_window(size) for size in (8_192, 200_000, 1_000_000, 1_050_000)] == [
        *("8k", "200k", "1M", "1.1M"),
    ]


def test_words_that_are_typed_narrow_it_in_any_order():
    rows = model_rows(CURRENT, ModelMemory())
    assert [row.name for row in narrowed(rows, "4-6 SONNET anthropic:")] == [CURRENT]
    assert narrowed(rows, "no such model") == []
    assert narrowed(rows, " ") == rows


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"recent": 3}', b"\xff"])
def test_a_broken_memory_remembers_nothing(own_state: Path, content: bytes):
    modellist.note_taken(CURRENT)
    assert recall() == ModelMemory((CURRENT,))
    (own_state / "swink" / "models.json").write_bytes(content)
    assert recall() == ModelMemory()


def test_without_a_place_to_keep_it_nothing_is_kept_and_nothing_fails(
    own_state: Path, monkeypatch: pytest.MonkeyPatch
):
    own_state.write_text("a file in the way")
    modellist.note_taken(CURRENT)
    assert recall() == ModelMemory()


def test_the_last_five_models_are_recent_each_once():
    memory = ModelMemory()
    for name in "abcabdefg":
        memory = memory.taken(name)
    assert memory.recent == ("g", "f", "e", "d", "b")


@in_cells("size", [(60, 15), (80, 24), (200, 60)], every=3)
async def test_each_model_is_one_line_with_window_and_price_in_columns(size: tuple[int, int]):
    app = app_of([], model="openai:" + "a-very-long-name-" * 20)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: row_of(app, "a-very-long-name").rstrip("│ ").endswith("?"))
        lines = screen_text(app).split("\n")
        long = [line for line in lines if "a-very-long-name" in line]
        assert len(long) == 1
        assert "…" in long[0]
        assert "$0" not in long[0]
        assert "current and recent" in screen_text(app)
        columns = {line.rindex("$") for line in lines if "openai:gpt-4o " in line or "openai:gpt-4 " in line}
        assert len(columns) <= 1
        await pilot.resize_terminal(70, 20)
        await until(pilot, lambda: "…" in row_of(app, "a-very-long-name"))


async def test_the_columns_fit_a_list_that_gets_its_width_later_than_its_screen():
    app = app_of([], model=CURRENT)
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(pilot, app)
        app.screen.query_one(OptionList).styles.width = 60
        await until(pilot, lambda: "$3" in row_of(app, CURRENT)[:66])


async def test_a_favourite_is_marked_kept_and_unmarked_again():
    app = app_of([], model=CURRENT)
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(pilot, app)
        await pilot.press(*"xai:grok-4", "ctrl+f")
        await until(pilot, lambda: recall().favourites != ())
        (marked,) = recall().favourites
        await until(pilot, lambda: "★" in row_of(app, marked))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await opened(pilot, app)
        await until(pilot, lambda: "favourites" in screen_text(app) and "★" in row_of(app, marked))
        await pilot.press("down", "ctrl+f")
        await until(pilot, lambda: recall().favourites == ())


async def test_what_was_taken_stands_first_the_next_time():
    app = app_of([], model=CURRENT)
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(pilot, app)
        app.screen.query_one(Input).value = "openai:gpt-4o-mini"
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: "the model is now openai:gpt-4o-mini" in screen_text(app))
        app.obey(f"/model {CURRENT}")
        await until(pilot, lambda: f"the model is now {CURRENT}" in screen_text(app))
        lines = await opened(pilot, app)
        first = next(number for number, line in enumerate(lines) if "current and recent" in line)
        assert f"● {' ' * 2}{CURRENT}" in lines[first + 1]
        assert "openai:gpt-4o-mini" in lines[first + 2]
        await pilot.press("pagedown", "pageup", "up", "down")
        app.screen.query_one(Input).value = "nothing of this kind"
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: "nothing fits what is typed" in screen_text(app))
        assert isinstance(app.screen, ModelPicker)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert str(app.driver.agent.model) == CURRENT
