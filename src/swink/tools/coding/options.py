"""Options: how a program reads its arguments, by a declared table of options and the rules of getopt_long.

    -abc            options of one letter without a value
    -n=number       one with a value, attached or as the next word
    --all           an option without a value
    --lines=number  one with a value, after `=` or as the next word
    --color?=text   one with a value that may be left out, after `=` only
    -I?=text        the same with one letter, where the value is attached
    -#              a number as an option, as in `head -5`

What is not declared is refused, abbreviations (`--outp=x`) too, and so is a separate value that looks like an
option: a version of the program that takes no value there would take it for one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal["none", "text", "number", "path"]

_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?[A-Za-z%]{0,3}")
_COUNT = re.compile(r"-\d{1,9}")


class OptionTable(Struct, frozen=True):
    """The options a program may be given.

    `permutes` if some systems stop looking for options at the first operand; `attaches` if a letter with a
    value may be joined with other letters or with its value, as getopt allows.
    """

    options: Mapping[str, Kind]
    optional: frozenset[str]
    counts: bool
    permutes: bool = True
    attaches: bool = True


class Arguments(Struct, frozen=True):
    """A program's arguments: options with their values, operands, and values that are paths.

    `late` are the words after the first operand: some programs stop looking for options there.
    """

    options: Mapping[str, tuple[str, ...]]
    operands: tuple[str, ...]
    paths: tuple[str, ...]
    late: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(name in self.options for name in names)


def declare_options(declaration: str, *, permutes: bool = True, attaches: bool = True) -> OptionTable:
    """The options that a text declares."""
    options: dict[str, Kind] = {}
    optional: set[str] = set()
    counts = False
    for item in declaration.split():
        name, _, kind = item.partition("=")
        if item == "-#":
            counts = True
        else:
            bare = name.removesuffix("?")
            names = [bare] if bare.startswith("--") else [f"-{letter}" for letter in bare[1:]]
            options.update(dict.fromkeys(names, _kind(kind)))
            optional.update(names if name.endswith("?") else ())
    return OptionTable(options, frozenset(optional), counts, permutes, attaches)


def _kind(name: str) -> Kind:
    match name:
        case "":
            return "none"
        case "text" | "number" | "path":
            return name
        case _:
            raise ValueError(f"no kind of value {name!r}")


def read_arguments(known: OptionTable, words: Sequence[str]) -> Arguments | None:
    """What the words mean; None if one of them is not declared."""
    reader = _Reader(known, words)
    return reader.arguments() if reader.read() else None


class _Reader:
    def __init__(self, known: OptionTable, words: Sequence[str]) -> None:
        self._known = known
        self._waiting = list(reversed(words))
        self._options: dict[str, list[str]] = {}
        self._operands: list[str] = []
        self._paths: list[str] = []
        self._late: list[str] = []

    def arguments(self) -> Arguments:
        options = {name: tuple(values) for name, values in self._options.items()}
        return Arguments(options, tuple(self._operands), tuple(self._paths), tuple(self._late))

    def read(self) -> bool:
        while self._waiting:
            word = self._waiting.pop()
            if word == "--":
                self._operands += reversed(self._waiting)
                return True
            if self._operands and self._known.permutes:
                self._late.append(word)
            if word == "-" or not word.startswith("-"):
                self._operands.append(word)
            elif word.startswith("--"):
                if not self._long(word):
                    return False
            elif self._known.counts and _COUNT.fullmatch(word):
                self._options.setdefault("-#", []).append(word[1:])
            elif not self._short(word[1:]):
                return False
        return True

    def _long(self, word: str) -> bool:
        name, equals, value = word.partition("=")
        kind = self._known.options.get(name)
        if kind is None or (kind == "none" and equals):
            return False
        if kind == "none" or (name in self._known.optional and not equals):
            self._options.setdefault(name, [])
            return True
        return self._take(name, kind, value if equals else None)

    def _short(self, letters: str) -> bool:
        for position, letter in enumerate(letters):
            name = f"-{letter}"
            kind = self._known.options.get(name)
            if kind is None:
                return False
            attached = letters[position + 1 :]
            if kind != "none" and len(letters) > 1 and not self._known.attaches:
                return False
            if kind != "none" and (attached or name not in self._known.optional):
                return self._take(name, kind, attached or None)
            self._options.setdefault(name, [])
        return True

    def _take(self, name: str, kind: Kind, value: str | None) -> bool:
        """Keep an option's value, which is the next word if it is not attached."""
        if value is None:
            if not self._waiting:
                return False
            value = self._waiting.pop()
            if value.startswith("-") and not _NUMBER.fullmatch(value):
                return False
            if self._operands and self._known.permutes:
                self._late.append(value)
        if kind == "number" and not _NUMBER.fullmatch(value):
            return False
        if kind == "path":
            self._paths.append(value)
        self._options.setdefault(name, []).append(value)
        return True
