"""What a person sees of a call before it runs: its arguments without secrets, and with nothing else hidden.

A secret is hidden only where that cannot hide what a machine will act on: a value that a shell would expand,
a path, the name of a program, and everything that merely looks like a secret stay readable. Characters that a
terminal does not show, or shows in another order than they are read, are escaped.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from swink.redact import MARK, redact_value, secret_spans
from swink.redact.keyformats import find_formats

_PLAIN = re.compile(r"[\w+/=%.:,-]+", re.A)
_NAMES_A_PLACE = re.compile(r"[/.~@-]|.*(?://|\.\.)")
_LONG = 20
"""From this length on a value with dots in it is taken for a key, not for the name of a file."""
_ROOM = 500
"""How many characters before a value are searched for the command that it is an argument of."""
_NEAR = 64
"""How many characters before a value are searched for its name."""
_SCHEME = re.compile(r"(?:bearer|basic|token|digest)[ \t]+", re.I)
# A space after `=` ends an assignment, and what follows is a command.
_NAMED_VALUE = re.compile(
    r"""(?:["']?=["']?|["']?[ \t]*:[ \t]*["']?(?:(?:bearer|basic|token|digest)[ \t]+)?)\Z""", re.I
)
_NAMES_A_PROGRAM = re.compile(
    r"(?:askpass|command|cmd|helper|process|program|script|file|path|exec|shell|editor|pager|hook|proxy|url"
    r"|host)s?[\"']?\s*[=:]\s*[\"']?\Z",
    re.I,
)
_BEFORE_A_COMMAND = re.compile(r"""[\n;|&(){}`!<>]|\$""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[\w*\])?\+?=")
_QUOTES = frozenset("\"'\\")
_RUNS_ITS_ARGUMENTS = re.compile(
    r"(?:.*/)?(?:\w*sh|env|sudo|doas|su|exec|xargs|parallel|nice|ionice|nohup|time|timeout|command|builtin"
    r"|source|\.|eval|setsid|stdbuf|watch|find|"
    r"python[\d.]*|node|deno|bun|perl|ruby|php|lua|make|npx|uvx?|chmod|ln|cp|mv|install|trap|alias|function"
    r"|coproc|enable|hash|"
    r"flock|[sl]trace|gdb|valgrind|perf|chroot|unshare|nsenter|setpriv|capsh|runuser|pkexec|sg|busybox"
    r"|toybox|[gmn]?awk|sed|ed|ex|vim?|nvim|emacs|"
    r"tmux|screen|script|expect|unbuffer|entr|at|batch|crontab|systemd-run|dbus-run-session|xvfb-run"
    r"|fakeroot|proot|firejail|bwrap|"
    r"taskset|chrt|numactl|setarch|linux(?:32|64)|catchsegv|prlimit|cgexec|direnv|pipx|poetry|hatch|tox|nox"
    r"|conda|cargo|go|java|dotnet|wine|cmd|"
    r"powershell|osascript|qemu-.*|ld.*\.so.*)"
)
_RESERVED = frozenset({"if", "while", "until", "then", "do", "else", "elif", "in", "!", "time"})
_RUNS_WHAT_FOLLOWS = re.compile(
    r"run|exec|foreach|start|spawn|call|apply|-{1,2}(?:[cex]|[\w-]*(?:exec|command|eval|run|cmd|shell"
    r"|program|script)[\w-]*)"
)
_INTERPRETER = (
    r"(?<![\w.-])(?:(?:ba|da|z|k|c|tc|fi|a|mk|ya|r|pw|s)?sh|python[\d.]*|pypy[\d.]*|node(?:js)?|deno|bun"
    r"|perl|ruby|php|lua|tclsh|busybox)"
    r"(?![\w.-])"
)
_RUNS_TEXT = re.compile(
    r"(?<![\w./-])(?:eval|source|exec|xargs|parallel|trap|alias|mapfile|readarray|(?:declare|local"
    r"|typeset)\s+-\w*n)(?![\w.-])"
    rf"|\|[^|&;\n]{{0,80}}?{_INTERPRETER}"
    rf"|{_INTERPRETER}[^|&;\n]{{0,80}}?(?:<|\s-[A-Za-z]*[cerEp](?!\w)|\s--(?:eval|exec|command|print)(?!\w))"
    r"|(?:\A|[;&|\n({`]|\b(?:then|do|else)\b)[ \t]*(?:\w+=[^\s;|&]*[ \t]+)*(?:\.[ \t]|[\"']?[$`])"
    r"|\$\{!"
)
"""A text that runs another part of itself: nothing in it is mere data."""
_RUNS_A_FILE = re.compile(rf"(?<![\w./-])chmod(?![\w.-])|(?<![\w./-])\.{{1,2}}/|{_INTERPRETER}")
_EXPANSION = re.compile(r"\$\{?#?([A-Za-z_]\w*)")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\+?=[\"']?\Z")
_COMMAND_NAME = re.compile(r"command|cmd|script|exec|program|shell|helper|hook|argv", re.I)
_IN_AN_ADDRESS = re.compile(r"""(?:\A|[\s"'=])https?://[^\s"']*\Z""", re.I)
_COMMAND_KEY = re.compile(
    r"command|cmd|script|code|program|shell|exec|arg|line|input|stdin|patch|content|hook", re.I
)
_EVALUATED = frozenset("$`;|&<>(){}[]*?!#~\\\"'\n\r\t")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U00016fe4")
_SHOWN_CONTROLS = frozenset("\n\t")
_ASCII_PRINTABLE = re.compile(r"[\n\t -~]*")


def show_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a call's arguments for people."""
    expanded = frozenset(name for text in _texts(arguments) for name in _EXPANSION.findall(text))
    return cast("dict[str, Any]", _show(arguments, "", expanded, secret=False))


def escape_invisible(text: str) -> str:
    r"""The text with invisible and reordering characters written as `\u202e`; line ends and tabs stay."""
    if _ASCII_PRINTABLE.fullmatch(text):
        return text
    return "".join([char if _is_visible(char) else char.encode("unicode-escape").decode() for char in text])


def _show(value: object, name: str, expanded: frozenset[str], *, secret: bool) -> object:
    match value:
        case Mapping():
            shown: dict[str, object] = {}
            for key, item in cast("Mapping[object, object]", value).items():
                key = str(key)
                is_used = key in expanded or _COMMAND_NAME.search(key) is not None
                hides = not is_used and (secret or _is_secret(key, item))
                shown[_show_name(key)] = _show(item, key, expanded, secret=hides)
            return shown
        case list() | tuple():
            return [_show(item, name, expanded, secret=secret) for item in cast("Sequence[object]", value)]
        case str():
            return _show_text(value, name, expanded, secret=secret)
        case _:
            return MARK if secret and value is not None and not isinstance(value, bool) else value


def _texts(value: object) -> Iterator[str]:
    match value:
        case Mapping():
            for item in cast("Mapping[object, object]", value).values():
                yield from _texts(item)
        case list() | tuple():
            for item in cast("Sequence[object]", value):
                yield from _texts(item)
        case str():
            yield value
        case _:
            pass


def _show_name(name: str) -> str:
    """The name of an argument in one line; no two names are shown alike."""
    return escape_invisible(name.replace("\\", "\\\\")).replace("\n", "\\n").replace("\t", "\\t")


def _is_secret(name: str, value: object) -> bool:
    """Whether the name of an argument says so, whatever the value looks like."""
    return bool(value) and redact_value({name: "x" if isinstance(value, str) else value}) == {name: MARK}


def _show_text(text: str, name: str, expanded: frozenset[str], *, secret: bool) -> str:
    if secret and text and not _EVALUATED.intersection(text) and not _NAMES_A_PLACE.match(text):
        return MARK
    parts: list[str] = []
    position = 0
    spans = secret_spans(text)
    if spans and _runs_itself(text):
        spans = []
    keys = {start for start, _ in find_formats(text)} if spans else set[int]()
    for start, end in spans:
        scheme = _SCHEME.match(text, start, end)
        start = scheme.end() if scheme else start
        if _may_hide(text, start, end, name) and (start in keys or not _is_expanded(text, start, expanded)):
            parts += [escape_invisible(text[position:start]), MARK]
            position = end
    return "".join([*parts, escape_invisible(text[position:])])


def _runs_itself(text: str) -> bool:
    """Whether a command runs, or decodes and runs, another part of its own text."""
    return _RUNS_TEXT.search(text) is not None or (">" in text and _RUNS_A_FILE.search(text) is not None)


def _is_expanded(text: str, start: int, expanded: frozenset[str]) -> bool:
    """Whether a value is assigned to a variable that the call uses: as a host, a path or an option."""
    assigned = _ASSIGNED.search(text, max(0, start - _NEAR), start)
    return assigned is not None and assigned[1] in expanded


def _may_hide(text: str, start: int, end: int, name: str) -> bool:
    """Whether a part of a text is a mere value: not evaluated by a shell, no name of a place or program."""
    value, before = text[start:end], text[max(0, start - _ROOM) : start]
    if (
        not _PLAIN.fullmatch(value)
        or _NAMES_A_PLACE.match(value)
        or not any(char.isdigit() for char in value)
    ):
        return False
    if ("." in value and len(value) < _LONG) or text[end : end + 1] in ("/", ".", "("):
        return False
    near = before[-_NEAR:]
    if _NAMED_VALUE.search(near):
        return not _NAMES_A_PROGRAM.search(near)
    if before.endswith("/"):
        return _IN_AN_ADDRESS.search(before) is not None
    if value == text.strip():
        return not _COMMAND_KEY.search(name)
    return _is_argument(before, is_whole=start <= _ROOM)


def _is_argument(before: str, *, is_whole: bool) -> bool:
    """Whether what follows would be the argument of a command that does not run its arguments."""
    *others, line = _BEFORE_A_COMMAND.split(before)
    words = [word for word in line.split() if word not in _RESERVED and not _ASSIGNMENT.match(word)]
    if (
        not words
        or not (others or is_whole)
        or before[: len(before) - len(line)].endswith(("<", ">"))
        or _QUOTES.intersection(words[0])
    ):
        return False
    return not _RUNS_ITS_ARGUMENTS.fullmatch(words[0]) and not any(
        _RUNS_WHAT_FOLLOWS.fullmatch(word.strip("\"'")) for word in words[1:]
    )


def _is_visible(char: str) -> bool:
    if " " <= char <= "~" or char in _SHOWN_CONTROLS:
        return True
    kind = unicodedata.category(char)
    if kind[0] in "CZ" or char in _INVISIBLE:
        return False
    # Variation selectors change how the character before them looks, or carry hidden text.
    return not ("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef")
