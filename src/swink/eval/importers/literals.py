"""Literals: values that BFCL has models write as Java or JavaScript source, read as its checker reads them.

What cannot be read as its type stays a text, and then fits no expected value of another type.
"""

import re
from typing import Any

_WHOLE = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_JAVA_LIST = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)")
_JAVA_ADDED = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}", re.DOTALL)
_JAVA_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{(.*?)\}")
_JAVA_MAP = re.compile(r"new\s+HashMap<.*?>\s*\(\)(?:\s*\{\s*\{?\s*(.*?)\s*\}?\s*\})?", re.DOTALL)
_SCRIPT_ARRAY = re.compile(r"\[(.*)\]|new\s+Array\((.*)\)", re.DOTALL)
_SCRIPT_PAIR = re.compile(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)")

JAVA: dict[str, type] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": bool,
    **dict.fromkeys(("char", "String", "any"), str),
    **dict.fromkeys(("Array", "ArrayList", "Queue", "Stack"), list),
    **dict.fromkeys(("HashMap", "Hashtable"), dict),
}
"""What a type of Java is here."""
JAVASCRIPT: dict[str, type] = {
    **dict.fromkeys(("integer", "Bigint"), int),
    "float": float,
    "Boolean": bool,
    **dict.fromkeys(("String", "any"), str),
    "array": list,
    "dict": dict,
}
"""What a type of JavaScript is here."""


def read_java(text: str, kind: str, inner: str | None = None) -> Any:
    """A value of a type of Java; `inner` is the type of the items of a list."""
    match kind:
        case "byte" | "short" | "integer" if _WHOLE.fullmatch(text):
            return int(text)
        case "long" if _WHOLE.fullmatch(text[:-1]) and text[-1:] in "lL":
            return int(text[:-1])
        case "float" if _DECIMAL.fullmatch(text[:-1]) and text[-1:] in "fF":
            return float(text[:-1])
        case "double" if _DECIMAL.fullmatch(text):
            return float(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case "ArrayList":
            return _java_list(text, inner)
        case "Array" if found := _JAVA_ARRAY.search(text):
            return [_java_item(item, inner) for item in _items(found[1])]
        case "HashMap" if found := _JAVA_MAP.search(text):
            pairs = re.findall(r"put\(\"(.*?)\",\s*(.*?)\)", found[1] or "")
            return {key: _guess(value.strip(), java=True) for key, value in pairs}
        case _:
            return text


def read_javascript(text: str, kind: str, inner: str | None = None) -> Any:
    """A value of a type of JavaScript; `inner` is the type of the items of an array."""
    match kind:
        case "String" if _is_quoted(text):
            return text[1:-1]
        case "integer" if _WHOLE.fullmatch(text):
            return int(text)
        case "float" if re.fullmatch(r"-?\d+(\.\d+)?", text):
            return float(text)
        case "Bigint" if _WHOLE.fullmatch(text[:-1]) and text.endswith("n"):
            return int(text[:-1])
        case "Boolean" if text in ("true", "false"):
            return text == "true"
        case "array":
            return _script_array(text.strip(), inner)
        case "dict":
            return _script_object(text.strip())
        case _:
            return text


def _java_list(text: str, inner: str | None) -> Any:
    def read(item: str) -> Any:
        return item[1:-1] if inner in ("char", "String") else _java_item(item, inner)

    if found := _JAVA_LIST.search(text):
        return [read(item) for item in _items(found[1])]
    if found := _JAVA_ADDED.search(text):
        return [read(item.strip()) for item in re.findall(r"add\((.+?)\)", found[1])]
    return [] if re.search(r"new\s+ArrayList<\w*>\(\)", text) else text


def _java_item(text: str, inner: str | None) -> Any:
    return read_java(text, inner) if inner else _guess(text, java=True)


def _script_array(text: str, inner: str | None) -> Any:
    found = _SCRIPT_ARRAY.match(text)
    if found is None:
        return text
    items = found[1] if found[1] is not None else found[2]
    if items.lstrip().startswith("["):
        return [[_guess(item) for item in _items(row)] for row in re.findall(r"\[(.*?)\]", items)]
    if items.lstrip().startswith("{"):
        return [_script_object(item) for item in re.findall(r"\{.*?\}", items)]
    return [read_javascript(item, inner) if inner else _guess(item) for item in _items(items)]


def _script_object(text: str) -> Any:
    if not (text.startswith("{") and text.endswith("}")):
        return text
    found: dict[str, Any] = {}
    for key, value in _SCRIPT_PAIR.findall(text[1:-1]):
        value = value.strip()
        name = key.strip().strip("'\"")
        if value.startswith("["):
            found[name] = _script_array(value, None)
        elif value.startswith("{"):
            found[name] = _script_object(value)
        else:
            found[name] = _guess(value.strip("'\""))
    return found


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] and text[0] in "'\""


def _guess(text: str, *, java: bool = False) -> Any:
    """A value whose type is not known."""
    if text in ("true", "false"):
        return text == "true"
    if _is_quoted(text):
        return text[1:-1]
    if java and re.fullmatch(r"-?\d+[lL]|-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]", text):
        return int(text[:-1]) if text[-1] in "lL" else float(text[:-1])
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
