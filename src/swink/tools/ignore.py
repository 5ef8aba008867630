"""What git would ignore: the patterns of .gitignore files, and globs in the same language."""

import re
from collections.abc import Iterable

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "space": r"\s", "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": r"\x00-\x1f\x7f", "graph": "!-~", "print": " -~",
}  # fmt: skip


_NEVER = r"(?!)"


class IgnoreFile:
    """The rules of one .gitignore, for paths relative to its directory; the last rule that matches decides."""

    __slots__ = ("_keeps", "_names", "_paths")

    def __init__(self, lines: Iterable[str]) -> None:
        rules = [rule for line in lines if (rule := _rule(line)) is not None]
        self._keeps = [negated for negated, _, _ in rules]
        self._names = _Alternatives([(index, regex) for index, (_, by_name, regex) in enumerate(rules) if by_name])
        self._paths = _Alternatives([(index, regex) for index, (_, by_name, regex) in enumerate(rules) if not by_name])

    def verdict(self, path: str, name: str, *, is_directory: bool) -> bool | None:
        """True: ignored. False: kept in spite of an earlier rule. None: not mentioned."""
        mark = "/" if is_directory else ""
        index = max(self._names.last(name + mark), self._paths.last(path + mark))
        return None if index < 0 else not self._keeps[index]


class _Alternatives:
    """Many patterns as one: the last of them, in the order of the file, that matches."""

    __slots__ = ("_indices", "_regex")

    def __init__(self, patterns: list[tuple[int, str]]) -> None:
        patterns = patterns[::-1]
        self._indices = [index for index, _ in patterns]
        self._regex = re.compile("|".join(f"({regex})" for _, regex in patterns), re.S) if patterns else None

    def last(self, text: str) -> int:
        if self._regex is None or (match := self._regex.fullmatch(text)) is None:
            return -1
        return self._indices[(match.lastindex or 1) - 1]


def glob_regex(pattern: str) -> "re.Pattern[str]":
    """A glob for paths: without a slash it is about the name at any depth; `{a,b}` stands for either."""
    anchored = "/" in pattern.strip("/")
    branches = [_translate(branch.lstrip("/"), is_path=anchored) for branch in _braces(pattern)]
    prefix = "" if anchored else "(?:.*/)?"
    return re.compile(f"{prefix}(?:{'|'.join(branches)})", re.S)


def _rule(line: str) -> tuple[bool, bool, str] | None:
    """(negated, about names only, regex) of a line; None for an empty line, a comment, or a pattern git would not use."""
    line = line.rstrip("\r\n")
    stripped = re.sub(r"(?<!\\)((?:\\\\)*) +$", r"\1", line)
    if not stripped or stripped.startswith("#"):
        return None
    negated = stripped.startswith("!")
    pattern = stripped[1:] if negated else stripped
    directory_only = pattern.endswith("/")
    if directory_only:
        pattern = pattern[:-1]
    by_name = "/" not in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    regex = _translate(pattern, is_path=not by_name)
    return negated, by_name, regex + ("/" if directory_only else "/?")


_DOUBLE_STAR = re.compile(r"(?:(?<=^)|(?<=/))\*\*(?=/|$)")


def _translate(pattern: str, *, is_path: bool) -> str:
    """A glob as a regular expression; in a path `*` and `?` stop at slashes and `**` does not."""
    chapters: list[str] = [""]  # what stands between the double stars of a path
    runs: list[str] = [""]  # what stands between the stars of one name
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if is_path and (stars := _DOUBLE_STAR.match(pattern, at)):
            at = stars.end() + 1  # past the slash too: `**/` is any directories, none included
            if at > len(pattern):
                return _starry(chapters) + ".+"
            if chapters[-1] or len(chapters) == 1:
                chapters.append("")
        elif char == "*":
            at += len(pattern[at:]) - len(pattern[at:].lstrip("*"))
            runs.append("")
        elif char == "[":
            regex, at = _bracket(pattern, at)
            runs[-1] += regex
        elif char == "\\":
            at += 2
            runs[-1] += re.escape(pattern[at - 1 : at]) if at <= len(pattern) else _NEVER
        elif char == "/":
            at += 1
            chapters[-1] += _starred(runs) + "/"
            runs = [""]
        else:
            at += 1
            runs[-1] += "[^/]" if char == "?" else re.escape(char)
    return _starry(chapters[:-1], chapters[-1] + _starred(runs))


# Of several stars all but the last take the first fit for good: it leaves the most to the rest, and nothing is tried twice.


def _starry(chapters: list[str], last: str | None = None) -> str:
    """A path with double stars between its chapters."""
    if not chapters:
        return last or ""
    first, *middle = chapters
    return first + "".join(f"(?>(?:[^/]+/)*?{chapter})" for chapter in middle if chapter) + ("" if last is None else f"(?:.*/)?{last}")


def _starred(runs: list[str]) -> str:
    """A name with stars between its runs."""
    first, *others = runs
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{run})" for run in middle) + (f"[^/]*{last}" if any(runs) else "[^/]+")


def _bracket(pattern: str, start: int) -> tuple[str, int]:
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
        low, at = _member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(pattern, at + 1)
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


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1


def _braces(pattern: str) -> list[str]:
    """Every reading of `{a,b}`; braces without a comma, or unbalanced, stand for themselves."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    return [branch for choice in found[1].split(",") for branch in _braces(pattern[: found.start()] + choice + pattern[found.end() :])]
