"""docs/reference/cli.md says what the command line does."""

import argparse
import re
from pathlib import Path
from typing import Any, get_args

import msgspec

from swink.app.cli.commands import make_parser
from swink.app.cli.completion import walk
from swink.app.cli.jsonlines import RunResult, encode_line
from swink.events import AgentEvent, CompactionReport, MessageUpdate, NestedEvent
from swink.messages import Cost, Message, ToolResult, Usage
from swink.models.keys.accounts import ACCOUNTS
from swink.stream.protocol import Update

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text("utf-8")


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


def documented_fields(row: str) -> set[str]:
    """The names that a row of the tables about JSON has, besides the one that it is about."""
    (fields,) = re.findall(rf"^\| `{row}` \|(.*)\|$", TEXT.partition("## JSON")[2], re.M)
    return {*re.findall(r"`(\w+)`", fields)}


def tagged(union: Any) -> dict[str, set[str]]:
    return {kind.__struct_config__.tag: {*kind.__struct_fields__} for kind in get_args(union)}


def test_every_field_of_the_json_lines_is_in_the_docs_and_no_other():
    inside = {
        "tool_execution_update": {"nested_event", *NestedEvent.__struct_fields__},
        "tool_execution_end": {*ToolResult.__struct_fields__},
        "context_compacted": {*CompactionReport.__struct_fields__},
        "message_update": set[str](),
    }
    kinds = tagged(AgentEvent) | tagged(Update) | tagged(Message)
    kinds |= {"result": {*RunResult.__struct_fields__}}
    kinds |= {"usage": {*Usage.__struct_fields__}, "cost": {*Cost.__struct_fields__}}
    for kind, fields in kinds.items():
        assert documented_fields(kind) == fields | inside.get(kind, set()), kind


def test_the_json_lines_have_the_names_that_the_docs_have():
    line = msgspec.json.decode(encode_line(RunResult("", "error")))
    assert {*line} == documented_fields("result") | {"type"}
    assert {*line["usage"]} == documented_fields("usage")
    for kind in get_args(Update):
        values = {name: 0 if name == "index" else "x" for name in kind.__struct_fields__}
        delta = msgspec.json.decode(encode_line(MessageUpdate(kind(**values))))["delta"]
        assert {*delta} == documented_fields(delta["type"]) | {"type"}
