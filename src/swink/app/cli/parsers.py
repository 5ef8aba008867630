"""Parsers: what the arguments of every command are made of."""

import argparse
import re
import sys
from typing import Any

from swink.app.assistant.approvalmodes import parse_approval
from swink.errors import MisuseError

TRACE = "write a trace that Perfetto and Chrome open"

_AGE = re.compile(r"(\d{1,6})(min|[hdwy])")
_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}


class CommandParser(argparse.ArgumentParser):
    """Refuses unknown arguments with its own usage; argparse shows that of the outermost parser."""

    summary = ""

    @property
    def actions(self) -> list[argparse.Action]:
        """The options, arguments and commands of this parser."""
        return self._actions

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help or usage; argparse ignores that this fails."""
        (file or sys.stderr).write(message)

    def parse_known_args(self, *args: Any, **keywords: Any) -> Any:
        """The arguments; an unknown one is reported before one that is missing."""
        required = [action for action in self._actions if action.required]
        for action in required:
            action.required = False
        _, unknown = super().parse_known_args(*args[:1])
        for action in required:
            action.required = True
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return super().parse_known_args(*args, **keywords)


def command(commands: Any, name: str, function: str, summary: str) -> argparse.ArgumentParser:
    """A command with the option that every command has; `function` is "module:name" of `name_command`."""
    parser = _parser(commands, name, summary)
    parser.add_argument("--debug", action="store_true", help="show tracebacks and the log")
    parser.set_defaults(command=_path_of(function))
    return parser


def group(commands: Any, name: str, summary: str, alone: str) -> Any:
    """A command with commands of its own; `alone` is the function that runs without any of them."""
    parser = _parser(commands, name, summary)
    parser.set_defaults(command=_path_of(alone), provider=None, json=False, debug=False)
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def with_id(commands: Any, name: str, function: str, summary: str) -> argparse.ArgumentParser:
    """A command that takes the id of a session."""
    parser = command(commands, name, function, summary)
    parser.add_argument("id", metavar="ID", help="any unique part of its id")
    return parser


def flag(parser: argparse.ArgumentParser, name: str, help: str) -> None:
    """An option without a value."""
    parser.add_argument(name, action="store_true", help=help)


def _path_of(function: str) -> str:
    return f"swink.app.cli.{function}_command"


def _parser(commands: Any, name: str, summary: str) -> CommandParser:
    sentence = f"{summary[0].upper()}{summary[1:]}."
    parser: CommandParser = commands.add_parser(name, help=summary, description=sentence, allow_abbrev=False)
    parser.summary = summary
    return parser


def number(text: str) -> int:
    """A number of at least 0."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def age(text: str) -> float:
    """The seconds of an age such as 30d; raises `ArgumentTypeError`."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; write e.g. 30d, 12h or 2w")
    return int(match[1]) * _SECONDS[match[2]]


def count(text: str) -> int:
    """A number of at least 1."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    seconds = amount(text)
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return seconds


def approval(text: str) -> str:
    """A word for how calls are approved."""
    try:
        return parse_approval(text)
    except MisuseError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def port(text: str) -> int:
    """The number of a port, 0 for a free one."""
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def amount(text: str) -> float:
    """A number of at least 0, with or without a point."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def share(text: str) -> float:
    """A share, from 0 to 1."""
    value = amount(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, e.g. 0.9")
    return value
