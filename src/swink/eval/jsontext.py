"""JSON with line numbers."""

import json
import re
from bisect import bisect_right
from math import isfinite
from typing import Any

from swink.eval.linenumbers import DEEPEST, LONGEST_NUMBER, Lined, Unreadable, twice

_BLANK = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(
    r"""[ \t\r\n]* (?: (?P<mark>[\[\]{},:]) | "(?P<text>(?:[^"\\\x00-\x1f]|\\.)*+)" | (?P<word>[A-Za-z]+)
    | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![0-9A-Za-z.]) )""",
    re.VERBOSE,
)
_WORDS = {"true": True, "false": False, "null": None}
_HINTS = dict.fromkeys("/#", "; JSON has no comments")
_HINTS["'"] = '; JSON has texts in "double quotes"'
_HINTS['"'] = "; the text that begins here does not end on its line"


def read_json(text: str) -> Lined:
    """What a JSON text holds; raises `Unreadable`."""
    return _Reader(text).read()


class _Reader:
    """A JSON text that is read from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._start = 0
        self._word = ""
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._found = Lined(None, 1, {}, [])

    def read(self) -> Lined:
        kind = self._token()
        self._found.first = self._line()
        self._found.data = self._value(kind, 0)
        if self._text[self._at :].strip(" \t\r\n"):
            self._token()
            raise Unreadable(self._line(), "there is more after the end of the JSON value; remove it")
        return self._found

    def _line(self) -> int:
        """The line of the token that was read last."""
        return bisect_right(self._breaks, self._start - 1) + 1

    def _token(self) -> str:
        """The next mark, or the kind of the value that stands there."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            blank = _BLANK.match(self._text, self._at)
            self._start = blank.end() if blank else self._at
            character = self._text[self._start : self._start + 1]
            if not character:
                raise Unreadable(self._line(), "the file ends too early")
            raise Unreadable(self._line(), f"cannot read {character!r} here{_HINTS.get(character, '')}")
        kind = match.lastgroup or ""
        self._start, self._at = match.start(kind), match.end()
        self._word = match[kind]
        return self._word if kind == "mark" else kind

    def _value(self, kind: str, depth: int) -> Any:
        match kind:
            case "text":
                return self._string()
            case "number":
                return self._number()
            case "word" if self._word in _WORDS:
                return _WORDS[self._word]
            case "word":
                text = f'{self._word} is no JSON value; write texts as "{self._word}"'
                raise Unreadable(self._line(), text)
            case "[" | "{" if depth >= DEEPEST:
                raise Unreadable(self._line(), f"nested deeper than {DEEPEST} levels")
            case "[":
                return self._list(depth + 1)
            case "{":
                return self._dict(depth + 1)
            case _:
                raise Unreadable(self._line(), f"a value is missing before {kind!r}")

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        lines = self._found.lines[id(items)] = {}
        if (kind := self._token()) == "]":
            return items
        while True:
            lines[len(items)] = self._line()
            items.append(self._value(kind, depth))
            if (kind := self._token()) == "]":
                return items
            self._expect(kind, ",", "',' or ']'")
            kind = self._token()

    def _dict(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        lines = self._found.lines[id(items)] = {}
        if (kind := self._token()) == "}":
            return items
        while True:
            line = self._line()
            self._expect(kind, "text", 'a key in "double quotes"')
            key = self._string()
            self._expect(self._token(), ":", f"':' after {key!r}")
            if key in items:
                self._found.problems.append((line, twice(key, lines[key])))
            lines[key] = line
            items[key] = self._value(self._token(), depth)
            if (kind := self._token()) == "}":
                return items
            self._expect(kind, ",", "',' or '}'")
            kind = self._token()

    def _expect(self, kind: str, wanted: str, named: str) -> None:
        if kind != wanted:
            raise Unreadable(self._line(), f"{named} is missing before {self._word[:40]!r}")

    def _string(self) -> str:
        if "\\" not in self._word:
            return self._word
        try:
            text: str = json.loads(f'"{self._word}"')
        except ValueError:
            raise Unreadable(self._line(), "a backslash in the text that means nothing; write \\\\") from None
        if re.search("[\ud800-\udfff]", text):
            raise Unreadable(self._line(), "half of a character in the text: a lone \\ud800 to \\udfff")
        return text

    def _number(self) -> int | float:
        if len(self._word) > LONGEST_NUMBER:
            raise Unreadable(self._line(), "a number of so many digits cannot be used; write it as a text")
        value = json.loads(self._word)
        if not isfinite(value):
            raise Unreadable(self._line(), f"{self._word} is too large a number")
        return value
