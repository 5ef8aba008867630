"""YAML with line numbers.

It is read as version 1.2 says, which is what JSON and editors do: `no`, `on` and dates are texts. Anchors,
aliases and merge keys work; a text that stands for far more than it holds is refused.
"""

import re
from math import isfinite
from typing import Any, cast

from msgspec import Struct

from swink.eval.linenumbers import DEEPEST, LONGEST_NUMBER, Lined, Unreadable, twice
from swink.system.extras import install_command

_MOST_REPEATED = 1_000_000


def read_yaml(text: str) -> Lined:
    """What a YAML text holds; raises `Unreadable`, and `ImportError` with the command that installs YAML."""
    try:
        import yaml
    except ImportError:
        advice = f"install it with: {install_command('eval')} (JSON needs nothing)"
        raise ImportError(f"case files in YAML need PyYAML; {advice}") from None
    untyped = cast(Any, yaml)
    loader = getattr(untyped, "CSafeLoader", untyped.SafeLoader)
    reader = _YamlEvents()
    try:
        for event in untyped.parse(text, Loader=loader):
            reader.feed(event)
    except untyped.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Unreadable(line, f"a character that YAML does not allow: {error.reason}") from None
    except untyped.YAMLError as error:
        raise _yaml_trouble(error, text) from None
    return reader.found


def _yaml_trouble(error: Any, text: str) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    written = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
    if "cannot start any token" in str(error.problem):
        if "\t" in written[: mark.column + 1]:
            return Unreadable(line, "a tab; indent with spaces")
        sign = written[mark.column : mark.column + 1]
        return Unreadable(line, f"cannot read {sign!r} here; put it in quotes")
    if "mapping values are not allowed" in str(error.problem):
        return Unreadable(line, 'a second ": " here; put the text in quotes, or check the indentation')
    context = f" {error.context}" if error.context else ""
    since = f" that begins on line {error.context_mark.line + 1}" if context and error.context_mark else ""
    told = f"{error.problem}{context}{since}"
    return Unreadable(line, f"not YAML: {told}; check the indentation and the quotes")


_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAG = "tag:yaml.org,2002:"


class _Frame(Struct):
    """A mapping or sequence that has begun."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    line: int
    size: int = 1
    key: str | None = None
    key_line: int = 0
    lines: dict[Any, int] = {}
    merged: list[tuple[int, Any]] = []
    merging: bool = False

    @property
    def wants_key(self) -> bool:
        return isinstance(self.value, dict) and self.key is None and not self.merging


class _YamlEvents:
    """The parser's events, one after the other, made into data."""

    def __init__(self) -> None:
        self.found = Lined(None, 1, {}, [])
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._repeated = 0
        self._documents = 0

    def feed(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match type(event).__name__:
            case "ScalarEvent":
                self._scalar(event, line)
            case "MappingStartEvent" | "SequenceStartEvent" as kind:
                self._begin(event, line, {} if kind.startswith("Mapping") else [])
            case "MappingEndEvent" | "SequenceEndEvent":
                self._end()
            case "AliasEvent":
                self._alias(event.anchor, line)
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise Unreadable(line, "a second document (---); a case file has one")
            case _:
                pass

    def _scalar(self, event: Any, line: int) -> None:
        if self._frames and (frame := self._frames[-1]).wants_key:
            frame.key_line = line
            if event.value == "<<" and event.implicit[0]:
                frame.merging = True
            else:
                frame.key = event.value
                self._keep(event.anchor, event.value, 1)
            return
        value = _scalar_value(event, line)
        self._keep(event.anchor, value, 1)
        self._add(value, line, 1)

    def _begin(self, event: Any, line: int, value: dict[str, Any] | list[Any]) -> None:
        if len(self._frames) >= DEEPEST:
            raise Unreadable(line, f"nested deeper than {DEEPEST} levels")
        if event.tag not in (None, "!", f"{_TAG}map", f"{_TAG}seq"):
            raise _unknown_tag(event.tag, line)
        self._refuse_as_key(line)
        self._frames.append(_Frame(value, event.anchor, line))

    def _end(self) -> None:
        frame = self._frames.pop()
        for line, source in frame.merged:
            self._merge(frame, source, line)
        self.found.lines[id(frame.value)] = frame.lines
        self._keep(frame.anchor, frame.value, frame.size)
        self._add(frame.value, frame.line, frame.size)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            raise Unreadable(line, f"*{anchor} stands for nothing: there is no &{anchor} that ends before it")
        self._refuse_as_key(line)
        value, size = self._anchors[anchor]
        self._repeated += size
        if self._repeated > _MOST_REPEATED:
            raise Unreadable(line, f"the aliases (*{anchor}) of this file stand for too much; write fewer")
        self._add(value, line, size)

    def _refuse_as_key(self, line: int) -> None:
        if self._frames and self._frames[-1].wants_key:
            raise Unreadable(line, "a key is a text; put it in quotes if it holds brackets, '*' or '{'")

    def _keep(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size

    def _add(self, value: Any, line: int, size: int) -> None:
        if not self._frames:
            self.found.data, self.found.first = value, line
            return
        frame = self._frames[-1]
        frame.size += size
        if isinstance(frame.value, list):
            frame.lines[len(frame.value)] = line
            frame.value.append(value)
        elif frame.merging:
            frame.merged.append((frame.key_line, value))
            frame.merging = False
        else:
            key = cast(str, frame.key)
            if key in frame.value:
                self.found.problems.append((frame.key_line, twice(key, frame.lines[key])))
            frame.value[key] = value
            frame.lines[key] = frame.key_line
            frame.key = None

    def _merge(self, frame: _Frame, source: Any, line: int) -> None:
        """What `<<` brings, where the mapping itself says nothing."""
        own = cast("dict[str, Any]", frame.value)
        for item in cast("list[Any]", source) if isinstance(source, list) else [source]:
            if not isinstance(item, dict):
                raise Unreadable(line, "<< takes a mapping, e.g. <<: *defaults")
            for key, value in cast("dict[str, Any]", item).items():
                if key not in own:
                    own[key], frame.lines[key] = value, line


def _scalar_value(event: Any, line: int) -> Any:
    text: str = event.value
    tag = event.tag
    if tag not in (None, "!"):
        if tag == f"{_TAG}str":
            return text
        if tag not in {f"{_TAG}{kind}" for kind in ("int", "float", "bool", "null")}:
            raise _unknown_tag(tag, line)
    elif not event.implicit[0]:
        return text  # quoted
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if len(text) <= LONGEST_NUMBER:
        if _WHOLE.fullmatch(text):
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if _REAL.fullmatch(text) and isfinite(value := float(text)):
            return value
    if _ENDLESS.fullmatch(text):
        raise Unreadable(line, f"{text} is no number that can be used; write a finite one")
    return text


def _unknown_tag(tag: str, line: int) -> Unreadable:
    return Unreadable(line, f"the tag {tag.replace(_TAG, '!!')} is not supported; remove it")
