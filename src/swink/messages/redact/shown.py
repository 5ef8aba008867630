"""What a person sees of a call before it runs: its arguments without secrets, and with nothing else hidden.

A secret is hidden only where that cannot hide what a machine will act on: a value that a shell would expand,
a path, the name of a program, and everything that merely looks like a secret stay readable. Characters that a
terminal does not show, or shows in another order than they are read, are escaped.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from swink.messages.redact import MARK, redact_value, secret_spans
from swink.messages.redact.commandsecrets import find_options
from swink.messages.redact.keyformats import find_formats

_PLAIN = re.compile(r"[\w+/=%.:,@-]+", re.A)
"""Characters that no shell gives a meaning to, quoted or not: only a value of these is hidden."""
_PLAIN_IN_QUOTES = {
    '"': re.compile(r"[\w+/=%.:,@^~ -]+", re.A),
    "'": re.compile(r"[\w+/=%.:,@^~! -]+", re.A),
}
_QUOTED = re.compile(
    r"""(?:[^"'\\#`$<]|\\.|(?<![\s;|&()])\#|(?:\A|(?<=[\s;|&()]))\#[^\n]*|\$(?!['"({])|<(?![<(]))*+
    (?:"((?:[^"\\`$]|\\.|\$(?![({]))*+)(?:"|\Z)|'([^']*+)(?:'|\Z))""",
    re.S | re.X,
)
"""A quoted part, as long as no substitution or here-document before it changes what a quote means."""
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
    r"|host)s?[\"']?\s*[=:]\s*[\"']?\Z|alias\.[\w-]*=[\"']?\Z",
    re.I,
)
_BEFORE_A_COMMAND = re.compile(r"""[\n;|&(){}`!<>]|\$""")
_COMMAND_LINE = re.compile(r"[\n;|&(`]")
_REDIRECTION = re.compile(r"\d*(?:&>>?|(?<![=-])[<>]{1,3}[&|]?)[ \t]*[^\s<>]+(?=\s)")
_REDIRECTED = re.compile(r"(?<![=-])[<>][&|]?[ \t]*[^\s<>]*\Z")
_JSON = re.compile(r"""["']:["']?\Z""")
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
    r"|(?:\A|[;&|\n({`])[ \t]*set[ \t]+(?:--[ \t]|[^-+\s;|&])"
    r"|(?<![\w./-])(?:read(?![\w.-])[^|&;\n]{0,80}<<<|let[ \t])|\(\("
    r"|\|[ \t]*(?:sudo[ \t]+)?(?:\S{0,80}/)?(?:at|batch|crontab|ssh|su|sudo[ \t]+-\w*[is])(?![\w.-])"
    rf"|\|[^|&;\n]{{0,80}}?{_INTERPRETER}"
    rf"|{_INTERPRETER}[^|&;\n]{{0,80}}?(?:<|\s-[A-Za-z]*[cerEp](?!\w)|\s--(?:eval|exec|command|print)(?!\w))"
    r"|(?:\A|[;&|\n({`]|\b(?:then|do|else)\b)[ \t]*(?:\w+=[^\s;|&]*[ \t]+)*(?:\.[ \t]|[\"']?[$`])"
)
"""A text that runs another part of itself: nothing in it is mere data."""
_READS_BACK = re.compile(
    r"[$<>]\(|`|\$\{\w*[^\w}]|\$\w+\[|\$\{?(?:[\d@*]|_(?!\w)|BASH_|argv|history)|(?<!\w)IFS="
    r"|![!$^*:#?-]|(?<![\w$])!\w|(?m:^\^)|(?<![\w./-])(?:fc|history|complete)[ \t]+[-|]|/proc/"
    r"|(?<![\w.-])(?:printenv|compgen|[gmn]?awk|g?sed)(?![\w.-])"
    r"|(?<![\w.-])(?:env|set|(?:export|declare|typeset|readonly)[ \t]+-\w*p)[ \t]*[|>]"
)
"""What makes a part of the text, of the environment or of the history a part of a command."""
_SETS_A_VARIABLE = re.compile(r"(?<![\w./-])(?:read|for|foreach|select|getopts|printf[ \t]+-v)(?![\w.-])")
_READS_ENVIRONMENT = re.compile(r"environ|getenv|process\.env|(?<![A-Za-z])ENV[\[{.]", re.I)
_STARTS_PROGRAMS = re.compile(r"system|popen|exec|spawn|subprocess|eval")
_LOOP = re.compile(r"(?<![\w./-])(?:while|until|for|function)(?![\w./-])|\(\)")
_RUNS_A_FILE = re.compile(rf"(?<![\w./-])chmod(?![\w.-])|(?<![\w./-])\.{{1,2}}/|{_INTERPRETER}")
_EXPANSION = re.compile(r"(?:\$(?:env:)?\{?[#!]?(?:env:)?|[%!])([A-Za-z_]\w*)")
_ASSIGNED = re.compile(r"(?<!\w)([A-Za-z_]\w*)(?:\[\w*\])?\+?=(?:\()?([\"']?)")
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
    texts = list(_texts(arguments, ""))
    if any(_COMMAND_KEY.search(name) and _reads_back(text) for name, text in texts):
        return cast("dict[str, Any]", _show(arguments, "", None, secret=False))
    expanded = frozenset(name for _, text in texts for name in _EXPANSION.findall(text))
    return cast("dict[str, Any]", _show(arguments, "", expanded, secret=False))


def escape_invisible(text: str) -> str:
    r"""The text with invisible and reordering characters written as `\u202e`; line ends and tabs stay."""
    if _ASCII_PRINTABLE.fullmatch(text):
        return text
    return "".join([char if _is_visible(char) else char.encode("unicode-escape").decode() for char in text])


def _show(value: object, name: str, expanded: frozenset[str] | None, *, secret: bool) -> object:
    """A value as people see it; `expanded` are the variables that the call uses, None for any."""
    match value:
        case Mapping():
            shown: dict[str, object] = {}
            for key, item in cast("Mapping[object, object]", value).items():
                key = str(key)
                is_used = expanded is None or key in expanded or _COMMAND_NAME.search(key) is not None
                hides = not is_used and (secret or _is_secret(key, item))
                shown[_show_name(key)] = _show(item, key, expanded, secret=hides)
            return shown
        case list() | tuple():
            items = cast("Sequence[object]", value)
            is_command = not secret and _COMMAND_KEY.search(name) is not None
            if is_command and all(isinstance(item, str) for item in items):
                return _show_words(cast("Sequence[str]", items), name, expanded)
            return [_show(item, name, expanded, secret=secret) for item in items]
        case str():
            return _show_text(value, name, expanded, secret=secret)
        case _:
            return MARK if secret and value is not None and not isinstance(value, bool) else value


def _texts(value: object, name: str) -> Iterator[tuple[str, str]]:
    """All texts of a call, each with the name that it stands under; a list of texts is one more."""
    match value:
        case Mapping():
            for key, item in cast("Mapping[object, object]", value).items():
                yield from _texts(item, str(key))
        case list() | tuple():
            items = cast("Sequence[object]", value)
            yield name, " ".join(item for item in items if isinstance(item, str))
            for item in items:
                yield from _texts(item, name)
        case str():
            yield name, value
        case _:
            pass


def _show_name(name: str) -> str:
    """The name of an argument in one line; no two names are shown alike."""
    return escape_invisible(name.replace("\\", "\\\\")).replace("\n", "\\n").replace("\t", "\\t")


def _is_secret(name: str, value: object) -> bool:
    """Whether the name of an argument says so, whatever the value looks like."""
    return bool(value) and redact_value({name: "x" if isinstance(value, str) else value}) == {name: MARK}


def _show_text(text: str, name: str, expanded: frozenset[str] | None, *, secret: bool) -> str:
    if secret and text and not _EVALUATED.intersection(text) and not _NAMES_A_PLACE.match(text):
        return MARK
    return _masked(text, _hidden(text, name, expanded))


def _show_words(words: Sequence[str], name: str, expanded: frozenset[str] | None) -> list[str]:
    """A list of texts, read as the words of one command: an option may name the word after it."""
    hidden = deque(_hidden(" ".join(words), name, expanded))
    shown: list[str] = []
    start = 0
    for word in words:
        inside: list[tuple[int, int]] = []
        while hidden and hidden[0][0] < start + len(word):
            first, last = hidden.popleft()
            if start <= first and last <= start + len(word):
                inside.append((first - start, last - start))
        shown.append(_masked(word, inside))
        start += len(word) + 1
    return shown


def _masked(text: str, hidden: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    position = 0
    for start, end in hidden:
        parts += [escape_invisible(text[position:start]), MARK]
        position = end
    return "".join([*parts, escape_invisible(text[position:])])


def _hidden(text: str, name: str, expanded: frozenset[str] | None) -> list[tuple[int, int]]:
    """The parts of a text that are secrets and mere values."""
    spans = secret_spans(text) if expanded is not None else []
    if expanded is None or not spans or _runs_itself(text):
        return []
    keys = {start for start, _ in find_formats(text)}
    options = {start for start, _ in find_options(text)}
    quoted = _quoted_parts(text)
    outside = _outside(text, quoted)
    starts = list(quoted)
    hidden: list[tuple[int, int]] = []
    for start, end in spans:
        scheme = _SCHEME.match(text, start, end)
        start = scheme.end() if scheme else start
        part = starts[at - 1] if (at := bisect_right(starts, start)) else -1
        alphabet = _PLAIN_IN_QUOTES[text[part - 1]] if end <= quoted.get(part, -1) else _PLAIN
        if (
            alphabet.fullmatch(text, start, end)
            and not (text.startswith("@", end) and "@" in text[start:end])  # which of them ends a login?
            and not _NAMES_A_PLACE.match(text, start, end)
            # A shell takes a quoted part for one word, and the program that gets it may be a shell as well.
            and not (start in options and _is_in_command_name(outside[max(0, start - _ROOM) : start]))
            and all(start in options or _may_hide(text, read, start, end, name) for read in (text, outside))
            and (start in keys or not _is_expanded(text, start, expanded))
        ):
            hidden.append((start, end))
    return hidden


def _runs_itself(text: str) -> bool:
    """Whether a command runs, or decodes and runs, another part of its own text."""
    if _RUNS_TEXT.search(text) or _reads_back(text):
        return True
    written = 0 if _LOOP.search(text) else text.find(">")
    return ">" in text and _RUNS_A_FILE.search(text, written) is not None


def _reads_back(text: str) -> bool:
    """Whether a command may take a value from its own text or from the environment, and run it."""
    return (
        _READS_BACK.search(text) is not None
        or ("$" in text and _SETS_A_VARIABLE.search(text) is not None)
        or (_READS_ENVIRONMENT.search(text) is not None and _STARTS_PROGRAMS.search(text) is not None)
    )


def _quoted_parts(text: str) -> dict[int, int]:
    """Where the quoted parts of a command begin and end, as far as it is certain that they are quoted."""
    parts: dict[int, int] = {}
    position = 0
    while (found := _QUOTED.match(text, position)) is not None:
        start, end = found.span(found.lastindex or 0)
        parts[start] = end
        position = found.end()
    return parts


def _outside(text: str, quoted: Mapping[int, int]) -> str:
    """The text with letters in place of all that is quoted."""
    parts: list[str] = []
    position = 0
    for start, end in quoted.items():
        parts += [text[position:start], "q" * (end - start)]
        position = end
    return "".join([*parts, text[position:]])


def _is_expanded(text: str, start: int, expanded: frozenset[str]) -> bool:
    """Whether a value is assigned, by itself or in a longer one, to a variable that the call uses."""
    before = text[max(0, start - _ROOM) : start] if expanded else ""
    return any(
        assigned[1] in expanded and not _ends(before[assigned.end() :], assigned[2])
        for assigned in _ASSIGNED.finditer(before)
    )


def _ends(rest: str, quote: str) -> bool:
    """Whether the value of an assignment ends within what follows its `=`."""
    return quote in rest if quote else re.search(r"[\s;|&]", rest) is not None


def _may_hide(text: str, read: str, start: int, end: int, name: str) -> bool:
    """Whether a part of a text is a mere value: not evaluated by a shell, no name of a place or program.

    `read` is the text as a shell reads it.
    """
    value, before, near = (
        text[start:end],
        read[max(0, start - _ROOM) : start],
        text[max(0, start - _NEAR) : start],
    )
    if _COMMAND_KEY.search(name) and _is_in_command_name(before):
        return False
    if ("." in value and len(value) < _LONG) or text[end : end + 1] in ("/", ".", "("):
        return False
    if _NAMED_VALUE.search(near):
        return not _NAMES_A_PROGRAM.search(near)
    if near.endswith("/"):
        return _IN_AN_ADDRESS.search(text, max(0, start - _ROOM), start) is not None
    if len(text) < end + _ROOM and value == text.strip():
        return not _COMMAND_KEY.search(name)
    return _is_argument(before, is_whole=start <= _ROOM)


def _is_in_command_name(before: str) -> bool:
    """Whether what follows is, or belongs to, the name of a command or the target of a redirection."""
    line = _REDIRECTION.sub(" ", _COMMAND_LINE.split(before)[-1])
    if _REDIRECTED.search(line) or (line.lstrip()[:1] in _QUOTES and line.count(line.lstrip()[0]) % 2):
        return True
    words = line.split()
    word = words.pop() if words and not line[-1].isspace() else ""
    is_first = all(word in _RESERVED or _ASSIGNMENT.match(word) for word in words)
    return is_first and not _ASSIGNMENT.match(word) and not _JSON.search(word)


def _is_argument(before: str, *, is_whole: bool) -> bool:
    """Whether what follows would be the argument of a command that does not run its arguments."""
    *others, line = _BEFORE_A_COMMAND.split(before)
    whole = line.split()[: None if line[-1:].isspace() else -1]  # without the word that the value belongs to
    words = [word for word in whole if word not in _RESERVED and not _ASSIGNMENT.match(word)]
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
