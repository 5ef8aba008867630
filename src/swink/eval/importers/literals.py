"""Literals: values that BFCL has models write as Java or JavaScript source, read no better than BFCL does.

A comma always separates items, also inside quotes; the first closing bracket closes; the value of an entry
and a list in a list stand on one line. What cannot be read as its type stays a text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_WHOLE = re.compile(r"-?\d+")
_FIXED = re.compile(r"-?\d+(\.\d+)?")
_SCIENTIFIC = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_JAVA_NUMBERS = {
    **dict.fromkeys(("byte", "short", "integer"), (_WHOLE, "")),
    "long": (_WHOLE, "lL"),
    "float": (_SCIENTIFIC, "fF"),
    "double": (_SCIENTIFIC, ""),
}
_SCRIPT_NUMBERS = {"integer": (_WHOLE, ""), "Bigint": (_WHOLE, "n"), "float": (_FIXED, "")}


def types_by_name(*names: str) -> dict[str, type]:
    """A table of types by the names that a language has for each: of str, int, float, bool, list and dict."""
    kinds = zip((str, int, float, bool, list, dict), names, strict=True)
    return {name: kind for kind, known in kinds for name in known.split()}


_JAVA_LISTS, _JAVA_MAPS = "ArrayList Array Stack Queue", "HashMap Hashtable"
JAVA = types_by_name(
    "String char any", "integer long short byte", "double float", "boolean", _JAVA_LISTS, _JAVA_MAPS
)
"""What a type of Java is here."""
JAVASCRIPT = types_by_name("String any", "integer Bigint", "float", "Boolean", "array", "dict")
"""What a type of JavaScript is here."""


def read_java(text: str, kind: str, inner: str | None = None) -> Any:
    """A value of a type of Java; `inner` is the type of the items of a list."""
    match kind:
        case "boolean":
            return _boolean(text)
        case "ArrayList":
            return _java_list(text, inner)
        case "Array":
            return _java_array(text, inner)
        case "HashMap":
            return _java_map(text)
        case _:
            return _number(text, kind, _JAVA_NUMBERS)


def read_javascript(text: str, kind: str, inner: str | None = None) -> Any:
    """A value of a type of JavaScript; `inner` is the type of the items of an array."""
    match kind:
        case "String":
            return _unquoted(text)
        case "Boolean":
            return _boolean(text)
        case "array":
            return _script_array(text.strip(), inner)
        case "dict":
            return _script_object(text.strip())
        case _:
            return _number(text, kind, _SCRIPT_NUMBERS)


def _java_list(text: str, inner: str | None) -> Any:
    """`new ArrayList<…>()` with `Arrays.asList(…)` inside, or with `{{ add(…); }}` behind it, or empty."""
    made = re.search(r"new\s+ArrayList<\w*>\(", text)
    if made is None:
        return text
    inside = text[made.end() :]
    if inside.startswith(")"):
        block = inside[1:].lstrip()
        added = block.partition("}}")[0] if block.startswith("{{") else ""
        items = [item.strip() for item in _enclosed(added, "add(", ")") if item]
    elif listed := next(_enclosed(inside, "Arrays.asList(", "))"), ""):
        items = _items(listed)
    else:
        return text
    if inner in ("String", "char"):
        return [item[1:-1] for item in items]
    return [_java_item(item, inner) for item in items]


def _java_array(text: str, inner: str | None) -> Any:
    """The items of `new int[]{1, 2}`, or the text."""
    made = re.search(r"new\s+\w+\[\]\s*(?={)", text)
    listed = next(_enclosed(text[made.end() :], "{", "}"), None) if made else None
    return text if listed is None else [_java_item(item, inner) for item in _items(listed)]


def _java_map(text: str) -> Any:
    """`new HashMap<…>()`, with `{{ put("key", value); }}` behind it or empty."""
    made = re.search(r"new\s+HashMap<", text)
    types, called, block = text[made.end() :].partition("()") if made else ("", "", "")
    if not called or not types.rstrip().endswith(">"):
        return text
    entries, closed, _ = block.partition("}")
    if not closed or not entries.lstrip().startswith("{"):
        return {}
    pairs = [entry.partition('",') for entry in _enclosed(entries, 'put("', ")")]
    return {key: _guess(value.strip(), java=True) for key, comma, value in pairs if comma}


def _java_item(text: str, inner: str | None) -> Any:
    return read_java(text, inner) if inner else _guess(text, java=True)


def _script_array(text: str, inner: str | None) -> Any:
    """`[1, 2]` or `new Array(1, 2)`, also with arrays or objects in it."""
    if text.startswith("["):
        items, closed, _ = text[1:].rpartition("]")
    elif made := re.match(r"new\s+Array\(", text):
        items, closed, _ = text[made.end() :].rpartition(")")
    else:
        return text
    match items.lstrip()[:1]:
        case _ if not closed:
            return text
        case "[":
            return [[_guess(item) for item in _items(row)] for row in _enclosed(items, "[", "]")]
        case "{":
            return [_script_object(f"{{{entries}}}") for entries in _enclosed(items, "{", "}")]
        case _:
            return [read_javascript(item, inner) if inner else _guess(item) for item in _items(items)]


def _script_object(text: str) -> Any:
    """`{'a': 1, b: [2]}`; a piece between commas that has no colon belongs to the value before it."""
    if not (text.startswith("{") and text.endswith("}")):
        return text
    entries: list[str] = []
    for piece in text[1:-1].split(","):
        if entries and ":" not in piece[1:]:
            entries[-1] += f",{piece}"
        else:
            entries.append(piece)
    found: dict[str, Any] = {}
    for entry in entries:
        key, colon, value = entry.partition(":")
        if colon:
            found[key.strip().strip("'\"")] = _script_value(value.strip())
    return found


def _script_value(text: str) -> Any:
    match text[:1]:
        case _ if "\n" in text:
            return text
        case "[":
            return _script_array(text, None)
        case "{":
            return _script_object(text)
        case _:
            return _guess(text.strip("'\""))


def _enclosed(text: str, opening: str, closing: str) -> Iterator[str]:
    """What stands between the marks, each time, where it stands on one line."""
    _, opened, rest = text.partition(opening)
    while opened:
        body, closed, rest = rest.partition(closing)
        if closed and "\n" not in body:
            yield body
        _, opened, rest = rest.partition(opening)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _boolean(text: str) -> bool | str:
    return text == "true" if text in ("true", "false") else text


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _number(text: str, kind: str, known: Mapping[str, tuple[re.Pattern[str], str]]) -> Any:
    """The number, if the text is one of this kind, with one of the letters that its kind ends in."""
    if kind not in known:
        return text
    pattern, letters = known[kind]
    end = len(text) - bool(letters)
    if text[end:] not in letters or not pattern.fullmatch(text, 0, max(end, 0)):
        return text
    try:
        return (int if pattern is _WHOLE else float)(text[:end])
    except ValueError:  # it has more digits than Python reads
        return text


def _guess(text: str, *, java: bool = False) -> Any:
    """A value whose type is not known."""
    plain = _unquoted(text)
    if plain != text:
        return plain
    for kind in ("boolean", "long", "float") if java else ("boolean",):
        value = read_java(text, kind)
        if value is not text:
            return value
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
