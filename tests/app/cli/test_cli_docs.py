"""docs/cli.md says what the command line does."""

import argparse
from pathlib import Path

from swink.app.cli.commands import make_parser
from swink.app.cli.completion import walk
from swink.models.keys.accounts import ACCOUNTS

TEXT = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")


def test_every_command_and_option_is_in_the_docs():
    commands = list(walk(make_parser()))
    assert [
        " ".join(command.path) for command in commands if command.path and command.path[0] not in TEXT
    ] == []
    shown = {
        name
        for command in commands
        for option in command.options
        for name in option.names
        if name.startswith("--")
    }
    obvious = {"--version", "--port", "--context", "--threads"}
    assert sorted(name for name in shown - obvious if name not in TEXT) == []


def test_every_variable_of_an_account_is_in_the_docs():
    names = {
        name for account in ACCOUNTS.values() for name in (*account.variables, account.url_variable) if name
    }
    assert sorted(name for name in names if f"`{name}`" not in TEXT) == []


def test_the_order_in_which_a_key_decides_is_the_documented_one():
    order = ", ".join(account.provider for account in ACCOUNTS.values() if account.default_model)
    assert order in TEXT


def test_every_command_explains_itself():
    parsers: list[argparse.ArgumentParser] = [make_parser()]
    while parsers:
        parser = parsers.pop()
        assert parser.description, parser.prog
        assert parser.format_help()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers.extend(action.choices.values())
