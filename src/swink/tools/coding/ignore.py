"""What git would ignore: the patterns of .gitignore files, and globs in the same language.

Ignore files and globs are untrusted input, so matching takes linear time whatever the pattern: plain names,
suffixes and prefixes are looked up in tables, and the number of other patterns per file is limited.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from swink.tools import ToolError

MAX_PATTERN = 4096
"""Characters of a pattern; no path is longer."""
MAX_COMPLEX = 500
"""Patterns of one ignore file that are more than a name with a star at one end; further ones are not used."""
MAX_BRANCHES = 500
"""Patterns that a glob with braces may stand for."""

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "digit": "0-9", "lower": "a-z", "upper": "A-Z",
    "space": r" \t-\r", "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f",
    "cntrl": r"\x00-\x1f\x7f", "graph": "!-~", "print": " -~",
}  # fmt: skip
_NEVER = r"(?!)"
_SPECIAL = re.compile(r"[*?\[\\]")
_GROUP = 50  # patterns compiled into one regular expression


class _Rule(Struct, frozen=True):
    pattern: str
    negated: bool
    by_name: bool
    directory_only: bool


class IgnoreFile:
    """The rules of one .gitignore, for paths relative to its directory; the last match decides."""

    __slots__ = ("_keeps", "_names", "_paths", "unused")

    def __init__(self, lines: Iterable[str], check_stop: Callable[[], None] = lambda: None) -> None:
        rules: list[_Rule] = []
        for line in lines:
            check_stop()
            if (rule := _parse_rule(_as_bytes(line))) is not None:
                rules.append(rule)
        numbered = list(enumerate(rules))
        self._keeps = [rule.negated for rule in rules]
        self._names = _Rules([item for item in numbered if item[1].by_name], check_stop)
        self._paths = _Rules([item for item in numbered if not item[1].by_name], check_stop)
        self.unused = self._names.unused + self._paths.unused

    def verdict(self, path: str, name: str, *, is_directory: bool) -> bool | None:
        """True: ignored. False: kept in spite of an earlier rule. None: not mentioned."""
        if not path.isascii():
            path, name = _as_bytes(path), _as_bytes(name)
        index = max(self._names.last(name, is_directory), self._paths.last(path, is_directory))
        return None if index < 0 else not self._keeps[index]


class _Rules:
    """Many patterns: the last of them, in the order of the file, that matches."""

    __slots__ = ("_complex", "_whole", "_with_prefix", "_with_suffix", "unused")

    def __init__(self, rules: list[tuple[int, _Rule]], check_stop: Callable[[], None]) -> None:
        self._whole = _Lookup()
        self._with_suffix = _Lookup()
        self._with_prefix = _Lookup()
        self.unused = 0
        others: list[tuple[int, _Rule]] = []
        for index, rule in rules:
            check_stop()
            star = rule.by_name and len(rule.pattern) > 1
            if not _SPECIAL.search(rule.pattern):
                self._whole.add(rule.pattern, index, rule)
            elif star and rule.pattern[0] == "*" and not _SPECIAL.search(rule.pattern, 1):
                self._with_suffix.add(rule.pattern[1:], index, rule)
            elif star and rule.pattern[-1] == "*" and not _SPECIAL.search(rule.pattern[:-1]):
                self._with_prefix.add(rule.pattern[:-1], index, rule)
            elif len(others) < MAX_COMPLEX:
                others.append((index, rule))
            else:
                self.unused += 1
        self._complex = _compile(others[::-1], check_stop)

    def last(self, text: str, is_directory: bool) -> int:
        found = self._whole.rules(is_directory).get(text, -1)
        if self._with_suffix.lengths:
            rules = self._with_suffix.rules(is_directory)
            found = max([found, *[rules.get(text[-length:], -1) for length in self._with_suffix.lengths]])
        if self._with_prefix.lengths:
            rules = self._with_prefix.rules(is_directory)
            found = max([found, *[rules.get(text[:length], -1) for length in self._with_prefix.lengths]])
        if not self._complex:
            return found
        marked = text + "/" if is_directory else text
        for indices, regex in self._complex:
            if indices[0] < found:
                break
            if match := regex.fullmatch(marked):
                return max(found, indices[(match.lastindex or 1) - 1])
        return found


class _Lookup:
    """Plain texts with the last rule each stands in, for directories and for anything else."""

    __slots__ = ("_directories", "_files", "lengths")

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._directories: dict[str, int] = {}
        self.lengths: dict[int, None] = {}

    def add(self, text: str, index: int, rule: _Rule) -> None:
        self._directories[text] = index
        if not rule.directory_only:
            self._files[text] = index
        if len(text) < 256:  # no name is longer
            self.lengths.setdefault(len(text))

    def rules(self, is_directory: bool) -> dict[str, int]:
        return self._directories if is_directory else self._files


def _compile(
    rules: list[tuple[int, _Rule]], check_stop: Callable[[], None]
) -> list[tuple[list[int], "re.Pattern[str]"]]:
    """The patterns in groups, last ones first: the indices of the rules and one regular expression."""
    groups: list[tuple[list[int], re.Pattern[str]]] = []
    for at in range(0, len(rules), _GROUP):
        check_stop()
        group = rules[at : at + _GROUP]
        regexes = [
            _translate(rule.pattern, is_path=not rule.by_name) + ("/" if rule.directory_only else "/?")
            for _, rule in group
        ]
        whole = re.compile("|".join(f"({regex})" for regex in regexes), re.S)
        groups.append(([index for index, _ in group], whole))
    return groups


def _as_bytes(text: str) -> str:
    """The text with one character per byte of UTF-8: git's `?` and `[…]` match bytes, not characters."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def compile_glob(pattern: str) -> "re.Pattern[str]":
    """A glob for paths: without a slash it is about the name at any depth; `{a,b}` stands for either."""
    if len(pattern) > MAX_PATTERN:
        raise ToolError(f"the glob has {len(pattern):,} characters, more than any path; use a shorter one")
    anchored = "/" in pattern.strip("/")
    branches = [_translate(branch.lstrip("/"), is_path=anchored) for branch in _expand_braces(pattern)]
    prefix = "" if anchored else "(?:.*/)?"
    return re.compile(f"{prefix}(?:{'|'.join(branches)})", re.S)


def _parse_rule(line: str) -> _Rule | None:
    """The rule of a line; None for an empty line, a comment, or a pattern git would not use."""
    if len(line) > MAX_PATTERN:
        return None
    line = line.rstrip("\r\n")
    stripped = line.rstrip(" ")
    if stripped != line and (len(stripped) - len(stripped.rstrip("\\"))) % 2:
        stripped += " "  # a backslash keeps the space after it
    if not stripped or stripped.startswith("#"):
        return None
    negated = stripped.startswith("!")
    pattern = stripped[1:] if negated else stripped
    directory_only = pattern.endswith("/")
    if directory_only:
        pattern = pattern[:-1]
    by_name = "/" not in pattern
    pattern = pattern.removeprefix("/")
    return _Rule(pattern, negated, by_name, directory_only) if pattern else None


_DOUBLE_STAR = re.compile(r"(?:(?<=^)|(?<=/))\*{2,}(?=/|$)")


def _translate(pattern: str, *, is_path: bool) -> str:
    """A glob as a regular expression; in a path `*` and `?` stop at slashes and `**` does not."""
    chapters: list[str] = [""]  # the parts of a path between its `**`
    runs: list[str] = [""]  # the parts of a name between its `*`
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if is_path and (stars := _DOUBLE_STAR.match(pattern, at)):
            at = stars.end() + 1  # past the slash too: `**/` is any directories, none included
            if at > len(pattern):
                return _join_at_double_stars(chapters) + ".+"
            if chapters[-1] or len(chapters) == 1:
                chapters.append("")
        elif char == "*":
            at += len(pattern[at:]) - len(pattern[at:].lstrip("*"))
            runs.append("")
        elif char == "[":
            regex, at = _parse_bracket(pattern, at)
            runs[-1] += regex
        elif char == "\\":
            at += 2
            runs[-1] += re.escape(pattern[at - 1 : at]) if at <= len(pattern) else _NEVER
        elif char == "/":
            at += 1
            chapters[-1] += _join_at_stars(runs) + "/"
            runs = [""]
        else:
            at += 1
            runs[-1] += "[^/]" if char == "?" else re.escape(char)
    return _join_at_double_stars(chapters[:-1], chapters[-1] + _join_at_stars(runs))


# All stars but the last are atomic groups: the first fit leaves the most text to the rest of the pattern, so
# trying others never helps, and matching takes linear time.


def _join_at_double_stars(chapters: list[str], last: str | None = None) -> str:
    """The regular expression for parts of a path with `**` between them."""
    if not chapters:
        return last or ""
    first, *middle = chapters
    return (
        first
        + "".join(f"(?>(?:[^/]+/)*?{chapter})" for chapter in middle if chapter)
        + ("" if last is None else f"(?:.*/)?{last}")
    )


def _join_at_stars(runs: list[str]) -> str:
    """The regular expression for parts of a name with `*` between them."""
    first, *others = runs
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{run})" for run in middle) + (f"[^/]*{last}" if any(runs) else "[^/]+")


def _parse_bracket(pattern: str, start: int) -> tuple[str, int]:
    """The class that begins at `[`, and where it ends; one that never ends matches nothing, as in git."""
    at = start + 1
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while at < len(pattern) and (pattern[at] != "]" or first):
        first = False
        if posix := re.compile(r"\[:(\w*):\]").match(pattern, at):
            if posix[1] not in _CLASSES:
                return _NEVER, len(pattern)
            items.append(_CLASSES[posix[1]])
            at = posix.end()
            continue
        low, at = _parse_member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _parse_member(pattern, at + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
            continue
        items.append(re.escape(low))
    if at >= len(pattern):
        return _NEVER, at
    body = "".join(items)
    if not body:
        return ("[^/]" if negated else _NEVER), at + 1
    return (f"[^/{body}]" if negated else f"(?!/)[{body}]"), at + 1


def _parse_member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1


def _expand_braces(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for; braces without a comma, or unbalanced, stand for themselves."""
    waiting = [pattern]
    done: dict[str, None] = {}
    size = 0
    while waiting:
        branch = waiting.pop()
        choice = next((found for found in _CHOICE.finditer(branch) if "," in found[1]), None)
        if choice is None:
            done.setdefault(branch)
            size += len(branch)
        else:
            readings = dict.fromkeys(choice[1].split(","))
            waiting += [branch[: choice.start()] + reading + branch[choice.end() :] for reading in readings]
        if len(done) + len(waiting) > MAX_BRANCHES or size > 4 * MAX_PATTERN:
            raise ToolError("the braces of the glob stand for too many patterns; use fewer of them")
    return list(done)


_CHOICE = re.compile(r"\{([^{}]*)\}")


def is_ignored(rules: Sequence[tuple[int, IgnoreFile]], path: str, name: str, is_directory: bool) -> bool:
    """Whether the innermost file with a word on a path ignores it; each counts a path from its own start."""
    for start, file in reversed(rules):
        verdict = file.verdict(path[start:], name, is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False
