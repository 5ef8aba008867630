"""The head of a Markdown file: lines of `key: value` between two lines of `---`, read with patience.

It is what people write as YAML and programs read leniently: a value goes to the end of its line, colons
included. Values may be quoted, be a list (`[a, b]`, or `- a` below), or be a text below `|` or `>`. What is
indented below any other key belongs to it and is kept as text.
"""

import json
import re
from collections.abc import Sequence

from msgspec import Struct

_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_SPLIT = re.compile(r",(?![^(]*\))")


class BadHead(ValueError):
    """A head that cannot be read: the line, and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line


class _Value(Struct, frozen=True):
    line: int
    inline: str
    below: list[str]


class AgentHead:
    """The values of a head by their keys, each with its line."""

    def __init__(self, values: dict[str, _Value], last_line: int) -> None:
        self._values = values
        self.last_line = last_line

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def line(self, key: str) -> int:
        """Where a key stands; where it is missing, the first line."""
        return self._values[key].line if key in self._values else 1

    def text(self, key: str) -> str | None:
        """A value as text; None if there is no such key."""
        value = self._values.get(key)
        if value is None:
            return None
        below = [line.strip() for line in value.below]
        if re.fullmatch(r"[|>][+-]?\d?", value.inline):
            return ("\n" if value.inline[0] == "|" else " ").join(below).strip()
        return _unquoted(" ".join([value.inline, *filter(None, below)]).strip(), value.line)

    def words(self, key: str) -> Sequence[str] | None:
        """A value as a list of words, in any of the forms; None if it is none."""
        value = self._values.get(key)
        if value is None:
            return None
        below = [line.strip() for line in value.below if line.strip()]
        if not value.inline and below:
            if not all(re.match(r"-\s", line) for line in below):
                return None
            return [_unquoted(_bare(line[1:].strip()), value.line) for line in below]
        text = self.text(key) or ""
        if text.startswith("["):
            if not text.endswith("]"):
                raise BadHead(value.line, f"{key} begins a list with [ that does not end")
            text = text[1:-1]
        words = [_unquoted(word.strip(), value.line) for word in _SPLIT.split(text)]
        return [word for word in words if word]

    def is_empty_list(self, key: str) -> bool:
        """Whether a value says that there is none."""
        return re.fullmatch(r"\[\s*\]", self._values[key].inline) is not None


def split_head(text: str) -> tuple[AgentHead, str]:
    """The head of a text and what stands below it; raises `BadHead` if there is no head, or a broken one."""
    lines = re.split(r"\r\n|\n|\r", text)
    if lines[0].rstrip() != "---":
        raise BadHead(1, "it does not begin with a line of ---, a description and another line of ---")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise BadHead(1, "the head that begins here does not end: a second line of --- is missing")
    return AgentHead(_values(lines[1:end]), end + 1), "\n".join(lines[end + 1 :]).strip()


def _values(lines: Sequence[str]) -> dict[str, _Value]:
    values: dict[str, _Value] = {}
    below: list[str] = []
    last = ""
    for number, line in enumerate(lines, 2):
        is_inside = bool(last) and (line[:1] in (" ", "\t", "") or re.match(r"-\s", line) is not None)
        if is_inside:
            below.append(line)
            continue
        if not line.strip() or line.startswith("#"):
            continue
        found = _KEY.fullmatch(line)
        if found is None:
            raise BadHead(number, f"{line[:60]!r} is not of the form key: value")
        last = found[1]
        if last in values:
            raise BadHead(number, f"{last} stands here a second time")
        below = []
        values[last] = _Value(number, _bare(found[2] or ""), below)
    return values


def _bare(text: str) -> str:
    """A value without the comment after it."""
    text = text.strip()
    if text.startswith("#"):
        return ""
    return text if text[:1] in ("'", '"') else re.split(r"\s#", text, maxsplit=1)[0].rstrip()


def _unquoted(text: str, line: int) -> str:
    if text[:1] == '"':
        found = re.match(r'"(?:[^"\\]|\\.)*"', text, re.S)
        if found is None:
            raise BadHead(line, 'a text that begins with " does not end with one')
        try:
            decoded: object = json.loads(found[0], strict=False)
        except ValueError:
            return found[0][1:-1]  # an escape of YAML's own, or none at all
        return str(decoded)
    if text[:1] == "'":
        found = re.match(r"'(?:[^']|'')*'", text, re.S)
        if found is None:
            raise BadHead(line, "a text that begins with ' does not end with one")
        return found[0][1:-1].replace("''", "'")
    return text
