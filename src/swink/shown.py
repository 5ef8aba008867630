"""What a person sees of a call before it runs: its arguments without secrets, and with nothing else hidden.

A secret is hidden only where hiding it cannot hide what a machine will act on: a value that a shell would expand, a path,
the name of a program, and everything that merely looks like a secret stay readable. Characters that a terminal does not
show, or shows in another order than they are read, are escaped.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, cast

from swink.redact import MARK, redact_value, secret_spans

_PLAIN = re.compile(r"[\w+/=%.:,-]+", re.A)
_NAMES_A_PLACE = re.compile(r"[/.~@-]|.*(?://|\.\.)")
_LONG = 20
"""Characters from which on a value with dots in it is rather a key than the name of a file."""
_ROOM = 500
"""Characters before a value that say what it is."""
_SCHEME = re.compile(r"(?:bearer|basic|token|digest)[ \t]+", re.I)
# A space after `=` ends an assignment, and what follows is a command.
_NAMED_VALUE = re.compile(r"""(?:["']?=["']?|["']?[ \t]*:[ \t]*["']?(?:(?:bearer|basic|token|digest)[ \t]+)?)\Z""", re.I)
_NAMES_A_PROGRAM = re.compile(
    r"(?:askpass|command|cmd|helper|process|program|script|file|path|exec|shell|editor|pager|hook|proxy|url|host)s?[\"']?\s*[=:]\s*[\"']?\Z",
    re.I,
)
_BEFORE_A_COMMAND = re.compile(r"""[\n;|&(){}`!<>]|\$""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_RUNS_ITS_ARGUMENTS = re.compile(
    r"(?:.*/)?(?:\w*sh|env|sudo|doas|su|exec|xargs|parallel|nice|ionice|nohup|time|timeout|command|builtin|source|\.|eval|setsid|stdbuf|watch|find|"
    r"python[\d.]*|node|deno|bun|perl|ruby|php|lua|make|npx|uvx?|chmod|ln|cp|mv|install|trap|alias)"
)
_IN_AN_ADDRESS = re.compile(r"""(?:\A|[\s"'=])https?://[^\s"']*\Z""", re.I)
_COMMAND_KEY = re.compile(r"command|cmd|script|code|program|shell|exec|arg|line|input|stdin|patch|content|hook", re.I)
_EVALUATED = frozenset("$`;|&<>(){}[]*?!#~\\\"'\n\r\t")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SHOWN_CONTROLS = frozenset("\n\t")
_ASCII_PRINTABLE = re.compile(r"[\n\t -~]*")


def shown_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a call's arguments for people."""
    return cast("dict[str, Any]", _shown(arguments, "", secret=False))


def escaped(text: str) -> str:
    r"""The text with every character that is invisible, or moves others about, as `\u202e`; line ends and tabs stay."""
    if _ASCII_PRINTABLE.fullmatch(text):
        return text
    return "".join([char if _is_visible(char) else char.encode("unicode-escape").decode() for char in text])


def _shown(value: object, name: str, *, secret: bool) -> object:
    match value:
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {escaped(str(key)): _shown(item, str(key), secret=secret or _is_secret(str(key), item)) for key, item in items}
        case list() | tuple():
            return [_shown(item, name, secret=secret) for item in cast("Sequence[object]", value)]
        case str():
            return _shown_text(value, name, secret=secret)
        case _:
            return MARK if secret and value is not None and not isinstance(value, bool) else value


def _is_secret(name: str, value: object) -> bool:
    """Whether the name of an argument says so, whatever the value looks like."""
    return bool(value) and redact_value({name: "x" if isinstance(value, str) else value}) == {name: MARK}


def _shown_text(text: str, name: str, *, secret: bool) -> str:
    if secret and text and not _EVALUATED.intersection(text) and not _NAMES_A_PLACE.match(text):
        return MARK
    parts: list[str] = []
    position = 0
    for start, end in secret_spans(text):
        scheme = _SCHEME.match(text, start, end)
        start = scheme.end() if scheme else start
        if _may_hide(text, start, end, name):
            parts += [escaped(text[position:start]), MARK]
            position = end
    return "".join([*parts, escaped(text[position:])])


def _may_hide(text: str, start: int, end: int, name: str) -> bool:
    """Whether a part of a text is a mere value: no shell evaluates it, and no program takes it for a place or a program."""
    value, before = text[start:end], text[max(0, start - _ROOM) : start]
    if not _PLAIN.fullmatch(value) or _NAMES_A_PLACE.match(value) or not any(char.isdigit() for char in value):
        return False
    if ("." in value and len(value) < _LONG) or text[end : end + 1] in ("/", ".", "("):
        return False
    if _NAMED_VALUE.search(before):
        return not _NAMES_A_PROGRAM.search(before)
    if before.endswith("/"):
        return _IN_AN_ADDRESS.search(before) is not None
    if value == text.strip():
        return not _COMMAND_KEY.search(name)
    return _is_argument(before, is_whole=start <= _ROOM)


def _is_argument(before: str, *, is_whole: bool) -> bool:
    """Whether what follows would be the argument of a command that does not run its arguments."""
    *others, line = _BEFORE_A_COMMAND.split(before)
    words = [word.strip("\"'") for word in line.split()]
    command = next((word for word in words if not _ASSIGNMENT.match(word)), None)
    return command is not None and bool(others or is_whole) and not _RUNS_ITS_ARGUMENTS.fullmatch(command)


def _is_visible(char: str) -> bool:
    if " " <= char <= "~" or char in _SHOWN_CONTROLS:
        return True
    kind = unicodedata.category(char)
    if kind[0] in "CZ" or char in _INVISIBLE:
        return False
    # Variation selectors change how the character before them looks, or carry hidden text.
    return not ("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef")
