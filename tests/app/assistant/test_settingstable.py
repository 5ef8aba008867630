"""The table of settings: the page shows it as the code has it, and messages are made of it."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from swink.app.assistant.settings import KNOWN, UserSettings, load_settings
from swink.app.assistant.settingstable import ANY, TEXTS, page_table, setting_rows, takes

PAGE = Path(__file__).parents[3] / "docs" / "coding-agent" / "settings.md"


def test_the_page_shows_the_settings_that_there_are():
    """With UPDATE_PAGES=1 it writes them there."""
    before = PAGE.read_text("utf-8")
    start, end = "<!-- settings -->\n", "<!-- end -->"
    head, _, rest = before.partition(start)
    page = f"{head}{start}\n{page_table(UserSettings)}\n\n{end}{rest.partition(end)[2]}"
    if os.environ.get("UPDATE_PAGES"):
        PAGE.write_text(page, "utf-8")
    else:
        assert page == before, (
            "UPDATE_PAGES=1 pytest tests/app/assistant/test_settingstable.py writes it anew"
        )


def test_every_setting_has_a_row_and_no_text_is_left_over():
    names = {row.name for row in setting_rows(UserSettings)}
    assert {name.split(".")[0] for name in names} == {*KNOWN}
    assert {*TEXTS} == names | {*KNOWN}
    assert all(row.meaning and row.takes for row in setting_rows(UserSettings))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "swink").mkdir()
    return tmp_path / "swink" / "config.toml"


@pytest.mark.parametrize("name", [name for name in TEXTS if "." not in name])
def test_the_example_of_every_message_is_a_setting_without_problems(file: Path, name: str):
    example = takes(UserSettings, name).partition(", e.g. ")[2].replace(" and below it ", "\n")
    whole = {"providers": 'base_url = "http://x"', "diagnostics": 'files = "*.c"'}
    file.write_text(f"{example}\n{whole.get(name, '')}\n")
    assert name in tomllib.loads(file.read_text())
    assert load_settings().problems == ()


@pytest.mark.parametrize(
    "name", [name for name in TEXTS if "." in name and "and below" not in TEXTS[name][1]]
)
def test_the_example_of_every_row_is_what_it_takes(file: Path, name: str):
    *tables, last = (f"x{ANY.lower()}" if part == ANY else part for part in name.split("."))
    beside = {"kind": '"openai"', "base_url": '"http://x"'} if name.startswith("providers") else {}
    if name.startswith("diagnostics.NAME."):
        beside = {"command": '"x"', "files": '"x"'}
    lines = "\n".join(f"{key} = {value}" for key, value in {**beside, last: TEXTS[name][1]}.items())
    file.write_text(f"[{'.'.join(tables)}]\n{lines}\n")
    assert load_settings().problems == ()


def test_a_default_is_shown_as_the_file_would_have_it():
    rows = {
        row.name: row.default for row in setting_rows(UserSettings) if row.default and ANY not in row.name
    }
    for name, default in rows.items():
        *tables, last = name.split(".")
        settings: Struct = UserSettings(Path())
        for table in tables:
            settings = getattr(settings, table)
        kept = msgspec.json.decode(msgspec.json.encode(getattr(settings, last)))
        assert tomllib.loads(f"x = {default}") == {"x": kept}


def test_types_are_told_in_words(monkeypatch: pytest.MonkeyPatch):
    class Some(Struct):
        one: Literal["a", "b"] | tuple[str, ...] = "a"
        two: Annotated[int, Meta(ge=0)] | None = None

    monkeypatch.setitem(TEXTS, "one", ("", '"a"'))
    monkeypatch.setitem(TEXTS, "two", ("", "2"))
    assert takes(Some, "one") == 'one of a, b, or a list of texts, e.g. one = "a"'
    assert takes(Some, "two") == "a number of at least 0, without quotes, e.g. two = 2"
