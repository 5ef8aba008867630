"""Expressions: the harmless part of the small languages that arguments are written in.

They are those of find, test, printf, sed, awk and jq.
"""

import re
from collections.abc import Sequence

from swink.tools.coding.shellcontext import ShellContext

_FIND_PLAIN = frozenset({
    "-not", "-o", "-or", "-a", "-and", "-prune", "-print", "-print0", "-ls", "-quit", "-empty", "-depth",
    "-d", "-mount", "-xdev", "-true", "-false", "-readable", "-writable", "-executable", "-noleaf", "-nouser",
    "-nogroup", "-daystart", "!", "(", ")", ",",
})  # fmt: skip
_FIND_TEXT = frozenset({
    "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype",
    "-type", "-xtype", "-maxdepth", "-mindepth", "-size", "-mtime", "-mmin", "-ctime", "-cmin", "-atime",
    "-amin", "-newermt", "-newerct", "-newerat", "-user", "-group", "-uid", "-gid", "-perm", "-links",
    "-inum", "-lname", "-ilname", "-printf", "-used", "-fstype",
})  # fmt: skip
_FIND_PATH = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})

_TEST_PATH = frozenset(f"-{letter}" for letter in "abcdefghkprsuwxLNOGS")
_INTEGER = re.compile(r"-?\d{1,18}")

_FORMAT = re.compile(r"(?:[^%\\]|\\[abefnrtv\\\"'0-7x]|%%|%[-+ #0]*\d{0,4}(?:\.\d{0,4})?[sdiouxXcbqeEfgG])*")

_ADDRESS = r"(?:\d{1,9}|\$|/[^/\\\[\n]+/)"
_PRINT = rf"{_ADDRESS}(?:,\+?{_ADDRESS})? ?[pqd=]"
_BETWEEN_SLASHES = r"/(?:[^/\\\[\n]|\\[^\n/])*/(?:[^/\\\n]|\\[^\n/])*/"
_BETWEEN_BARS = r"\|(?:[^|\\\[\n]|\\[^\n|])*\|(?:[^|\\\n]|\\[^\n|])*\|"
_SUBSTITUTE = rf"(?:{_ADDRESS}(?:,{_ADDRESS})?)?s(?:{_BETWEEN_SLASHES}|{_BETWEEN_BARS})[gpI0-9]*"
_SED = re.compile(rf"(?:{_PRINT}|{_SUBSTITUTE})(?:; ?(?:{_PRINT}|{_SUBSTITUTE}))*;?")

_FIELD = r"(?:\$(?:\d{1,4}|NF)|NR|NF|FNR|\d{1,9}|\"[^\"\\\n]*\")"
_CONDITION = (
    rf"(?:{_FIELD} ?(?:==|!=|<=|>=|<|>) ?{_FIELD}|(?:{_FIELD} ?!?~ ?)?/[^/\\\[\n]+/"
    r"|length ?[<>]=? ?\d{1,9})"
)
_TALLY = r"(?:sum|total|count|n|s|c)"
_AWK = re.compile(
    rf" ?(?:{_CONDITION}(?: ?(?:&&|\|\|) ?{_CONDITION})*)? ?"
    rf"(?:\{{ ?print(?: {_FIELD}(?:(?: ?, ?| ){_FIELD})*)? ?;? ?\}})? ?"
    rf"|\{{ ?{_TALLY} ?\+= ?{_FIELD} ?;? ?\}} ?END ?\{{ ?print {_TALLY} ?\}}"
)

_JQ = re.compile(r"(?i)\b(?:import|include|modulemeta|env|get_search_list)\b|\$__")


def find_only_lists(words: Sequence[str], shell: ShellContext) -> bool:
    """Whether `find` would only name files, beneath directories inside."""
    if list(words) in (["--version"], ["--help"]):
        return True
    waiting = list(reversed(words))
    while waiting and waiting[-1] in ("-P", "-O0", "-O1", "-O2", "-O3"):
        waiting.pop()
    # In some versions a word of the expression may be followed by more directories.
    while waiting:
        word = waiting.pop()
        if word in _FIND_PLAIN:
            continue
        if word in _FIND_TEXT | _FIND_PATH:
            if not waiting:
                return False
            value = waiting.pop()
            if word in _FIND_PATH and not shell.reaches(value):
                return False
        elif word.startswith("-") or not shell.holds(word):
            return False
    return True


def test_only_looks(words: Sequence[str], shell: ShellContext) -> bool:
    """Whether `test` evaluates nothing: no variables (`-v` runs commands in subscripts), no shell options."""
    match words:
        case [] | [_] | ["!", _] | ["-z" | "-n", _] | ["!", "-z" | "-n", _] | [_, "=" | "==" | "!=", _]:
            return True
        case [operator, operand] | ["!", operator, operand] if operator in _TEST_PATH:
            return shell.reaches(operand)
        case [left, "-nt" | "-ot" | "-ef", right]:
            return shell.reaches(left) and shell.reaches(right)
        case [left, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge", right]:
            return all(_INTEGER.fullmatch(number) for number in (left, right))
        case _:
            return False


def printf_only_prints(words: Sequence[str]) -> bool:
    """Whether `printf` would assign nothing: neither by `-v` nor by `%n`."""
    return bool(words) and not words[0].startswith("-") and _FORMAT.fullmatch(words[0]) is not None


def is_harmless_sed(script: str) -> bool:
    """Whether a sed script only prints, deletes, quits and substitutes: sed can also write and run."""
    return _SED.fullmatch(script) is not None


def is_harmless_awk(program: str) -> bool:
    """Whether an awk program only prints fields or their sum: awk can also write and run."""
    return _AWK.fullmatch(program) is not None


def is_harmless_jq(program: str) -> bool:
    """Whether a jq program reads nothing but its input."""
    return _JQ.search(program) is None
