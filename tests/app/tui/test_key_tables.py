"""Keys and commands: tables from which the program, the help and the pages are made."""

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from swink.app.tui import SwinkApp
from swink.app.tui.commands import COMMANDS, find_command, listed
from swink.app.tui.keys import EDITOR_KEYS, GROUPS, KEYS, keymap
from swink.app.tui.screens.help import key_name, sections
from swink.errors import MisuseError


def test_every_key_has_an_action_of_the_app():
    missing = [
        key.name for key in KEYS if not hasattr(SwinkApp, f"action_{key.binding().action.partition('(')[0]}")
    ]
    assert missing == []


def test_the_key_for_an_editor_outside_brings_the_text_back_and_the_command_sends_it():
    written: list[bool] = []
    editor = SimpleNamespace(action_write_outside=lambda sends=False: written.append(sends))
    desk = SimpleNamespace(editor=editor)
    action = next(key.binding().action for key in KEYS if key.name == "edit_outside")
    getattr(SwinkApp, f"action_{action.partition('(')[0]}")(desk)
    COMMANDS["/editor"].action(desk, "")
    assert written == [False, True]


def test_no_key_does_two_things():
    keys = [each for key in KEYS for each in key.keys.split(",")]
    assert sorted(keys) == sorted(set(keys))


def test_settings_name_actions_and_a_wrong_name_is_told_with_the_right_ones():
    keys, wrong = keymap({"exit": "ctrl+x", "leave": "ctrl+x"})
    assert keys == {"leave": "ctrl+x"}, "the rest applies"
    assert wrong.keys() == {"exit"}
    assert re.search(r"exit.*leave", wrong["exit"])
    assert len({key.name for key in KEYS}) == len(KEYS)


@pytest.mark.parametrize(
    "key", ["", "ctrl+", "a", "A", "?", "space", "shift+a", "ctl+x", "ctrl+nokey", "f9,"]
)
def test_a_key_that_is_none_or_is_needed_to_write_is_refused(key: str):
    keys, wrong = keymap({"leave": key})
    assert keys == {}
    assert "leave" in wrong["leave"]


@pytest.mark.parametrize("key", ["f9", "ctrl+x", "alt+.", "ctrl+underscore", "ctrl+full_stop", "alt+space"])
def test_other_keys_are_taken(key: str):
    assert keymap({"leave": key}) == ({"leave": key}, {})


def test_every_key_of_ours_could_be_chosen():
    ours = {key.name: key.keys for key in KEYS}
    assert keymap(ours) == (ours, {})


def test_the_help_has_every_key_and_every_command():
    rows = {name: help for _, rows in sections({}) for name, help in rows}
    assert all(key_name(key.keys) in rows for key in KEYS)
    assert all(f"{each.name} {each.usage}".strip() in rows for each in COMMANDS.values())
    assert all(each.help for each in COMMANDS.values())


def test_the_help_shows_the_keys_that_the_user_chose():
    rows = {help: name for _, rows in sections({"leave": "ctrl+x"}) for name, help in rows}
    assert rows["leave"] == "Ctrl+X"


@pytest.mark.parametrize(
    "name",
    [
        "/help",
        "/model",
        "/thinking",
        "/system",
        "/plan",
        "/compact",
        "/usage",
        "/reset",
        "/new",
        "/sessions",
        "/resume",
        "/fork",
        "/rewind",
        "/export",
        "/editor",
        "/permissions",
        "/theme",
        "/copy",
        "/quit",
        "/context",
        "/diff",
        "/mcp",
        "/agents",
        "/reload",
        "/btw",
        "#approve",
        "#keys",
        "#key",
    ],
)
def test_there_is_a_command(name: str):
    assert find_command(name).name


def test_a_mistyped_command_names_the_nearest():
    with pytest.raises(MisuseError, match="did you mean /model"):
        find_command("/modle")
    with pytest.raises(MisuseError, match="/help"):
        find_command("/zzzzzz")


PAGE = Path(__file__).parents[3] / "docs" / "coding-agent" / "keys.md"


def spelled(usage: str) -> str:
    return f" {usage}".replace("|", "\\|") if usage else ""


def tables() -> dict[str, str]:
    """The tables of the page, as the program knows them."""
    keys = ["| name | key | what it does |", "|---|---|---|"]
    for group in GROUPS.values():
        keys += [f"| `{key.name}` | {key_name(key.keys)} | {key.help} |" for key in group]
    keys += [f"| | {name} | {help} |" for name, help in EDITOR_KEYS]
    commands = ["| command | what it does |", "|---|---|"]
    commands += [f"| `{each.name}{spelled(each.usage)}` | {each.help} |" for each in listed()]
    return {"keys": "\n".join(keys), "commands": "\n".join(commands)}


def test_the_page_shows_the_keys_and_commands_that_there_are():
    """With UPDATE_PAGES=1 it writes them there."""
    before = page = PAGE.read_text("utf-8")
    for name, table in tables().items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        head, _, rest = page.partition(start)
        page = f"{head}{start}\n{table}\n\n{end}{rest.partition(end)[2]}"
    if os.environ.get("UPDATE_PAGES"):
        PAGE.write_text(page, "utf-8")
    else:
        assert page == before, "UPDATE_PAGES=1 pytest tests/app/tui/test_key_tables.py writes them anew"
