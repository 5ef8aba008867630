"""Parsers: what the arguments of every command are made of."""

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from math import inf
from typing import Any, cast

TRACE = "write a trace that Perfetto and Chrome open"


class CommandParser(argparse.ArgumentParser):
    """Refuses unknown arguments with its own usage; argparse shows that of the outermost parser."""

    summary = ""

    @property
    def actions(self) -> list[argparse.Action]:
        """The options, arguments and commands of this parser."""
        return self._actions

    @property
    def commands(self) -> dict[str, "CommandParser"]:
        """The commands below this one, by name."""
        for action in self._actions:
            choices: Any = action.choices
            if isinstance(choices, dict):
                return cast("dict[str, CommandParser]", choices)
        return {}

    def check_prompt(self, words: Sequence[str]) -> None:
        """Refuse a prompt that is rather a command: misspelled, or after options; `--` ends doubt."""
        why = f"there is no command {words[0]!r}" if words else ""
        match list(words):
            case [word, *_] if word in self.commands:
                why = f"{word} is a command, and stands before all options"
            case ["help" | "version" as word]:
                why += f"; did you mean --{word}?"
            case [word] if len(word.split()) == 1 and (near := _did_you_mean(word, [*self.commands])):
                why += near
            case [word, second, *_] if self._is_near(word, second):
                why += _did_you_mean(word, [*self.commands])
            case _:
                return
        self.error(f"{why} (as a prompt: {self.prog} -- {' '.join(words)})")

    def _is_near(self, word: str, second: str) -> bool:
        """Whether two words are a misspelled command and one below it."""
        return any(
            second in self.commands[name].commands for name in get_close_matches(word, self.commands, 1)
        )

    def take(self, names: str, help: str, metavar: str | None = None, **settings: Any) -> None:
        """An argument, or an option with a value."""
        self.add_argument(*names.split(), help=help, metavar=metavar, **settings)

    def flag(self, name: str, help: str) -> None:
        """An option without a value."""
        self.add_argument(name, action="store_true", help=help)

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
            options = [name for action in self._actions for name in action.option_strings]
            near = [_did_you_mean(word, options) for word in unknown if word.startswith("--")]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(near[:1])}")
        return super().parse_known_args(*args, **keywords)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = _did_you_mean(str(value), [*map(str, action.choices or ())])
            raise argparse.ArgumentError(action, f"{error.message}{near}") from None


def _did_you_mean(word: str, known: Sequence[str]) -> str:
    """The end of an error about a word, with the known one that it may stand for, if any."""
    near = get_close_matches(word.partition("=")[0].lstrip("-"), [name.lstrip("-") for name in known], n=1)
    return f"; did you mean {next(name for name in known if name.lstrip('-') == near[0])}?" if near else ""


def command(commands: Any, name: str, summary: str, function: str) -> CommandParser:
    """A command with the option that every command has; `function` is "module:name" of `name_command`."""
    parser = _parser(commands, name, summary, function)
    parser.flag("--debug", "show tracebacks and the log")
    return parser


def group(commands: Any, name: str, summary: str, alone: str) -> Callable[..., CommandParser]:
    """A command with commands of its own; `alone` is the function that runs without any of them.

    The result adds one: it takes a name, a summary and, if it is not named so in the same module, a function.
    """
    parser = _parser(commands, name, summary, alone)
    parser.set_defaults(provider=None, json=False, debug=False)
    actions = parser.add_subparsers(title="commands", metavar="COMMAND")
    module = alone.partition(":")[0]

    def add(name: str, summary: str, function: str | None = None) -> CommandParser:
        return command(actions, name, summary, function or f"{module}:{name}")

    return add


def _parser(commands: Any, name: str, summary: str, function: str) -> CommandParser:
    sentence = f"{summary[0].upper()}{summary[1:]}."
    parser: CommandParser = commands.add_parser(name, help=summary, description=sentence, allow_abbrev=False)
    parser.summary = summary
    parser.set_defaults(command=f"swink.app.cli.{function}_command")
    return parser


def number(text: str, least: int = 0, most: float = inf, what: str = "a number") -> int:
    """A number of at least 0."""
    if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def count(text: str) -> int:
    """A number of at least 1."""
    return number(text, 1, what="a number of at least 1")


def port(text: str) -> int:
    """The number of a port, 0 for a free one."""
    return number(text, most=65535, what="a port")


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    seconds = amount(text)
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return seconds


def amount(text: str) -> float:
    """A number of at least 0, with or without a point."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def share(text: str) -> float:
    """A share, from 0 to 1."""
    value = amount(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, e.g. 0.9")
    return value
