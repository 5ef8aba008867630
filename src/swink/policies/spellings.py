"""Spellings: the ways in which a path can be written, and the parts of a string that may be one."""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

Kind = Literal["path", "text", "other"]

_PATH_WORD = re.compile(
    r"(?:file)?paths?|pathname|file(?:name)?s?|dirs?|director(?:y|ies)|folders?|globs?|root|cwd|work(?:dir"
    r"|space)|location|source|src"
    r"|dest(?:ination)?|dst|target|out(?:put)?"
)
_PROSE_WORDS = frozenset({"content", "contents", "text", "body", "message", "description"})
_OTHER_TEXT_WORDS = """
command cmd code script query sql prompt task question answer response reply instructions title subject
pattern regex regexp match filter selector search term keyword keywords xpath expression formula equation
latex find replace replacement old new stdin snippet markdown html note notes comment reason summary thought
"""
_TEXT_WORDS = _PROSE_WORDS | frozenset(_OTHER_TEXT_WORDS.split())

_URL = re.compile(
    r"(?!file:|view-source:|jar:)(?:[a-z][a-z0-9+.\-]+://[^\s/\\.~$%]|(?:mailto|data):[^\s/\\.])", re.I
)
_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.\-]+):(?P<rest>//.*)", re.I | re.S)
_FILE = re.compile(r"(?:[a-z\-]+:)?file:(?://(?P<host>[^/\\]*))?(?P<path>.*)", re.I | re.S)
_DRIVE = re.compile(r"[A-Za-z]:(?:[/\\]|$)|[/\\]{2}[?.][/\\]")
_VARIABLE = re.compile(
    r"\$(?:env:)?(\w+)|\$\{(?:env:)?(\w+)(?::?[-=]([^}]*)|[:%#/^,+?][^}]*)?\}|%(\w+)%", re.I
)
_DOTS = re.compile(r"(?:^|(?<=[/\\]))\s*(\.{1,2})\s*(?=[/\\]|$)")
_CLIMBS = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)")
_PIECES = re.compile(r"[=,;:|<>@()\[\]{}\"'`&!+\s]+")
_BASE64 = re.compile(r"(?:sha\d+-)?[A-Za-z0-9+/]{40,}={0,2}")
_NAME = re.compile(r"[/\\~=]|\w\.\w|^-")
_OPTION = re.compile(r"-{1,2}\w[\w-]*?(?=[/~\\$%]|\.\.[/\\])")
_SLASHES = str.maketrans(
    dict.fromkeys("\u2044\u2215\u29f8\u2571\uff0f", "/") | dict.fromkeys("\u29f5\u2216\ufe68\uff3c", "\\")
)
_DEEPEST = 5  # how often a path is decoded; one that is encoded more often is refused


class PathPart(Struct, frozen=True):
    """A piece of a string that may be a path: `certain`, or only if something of that name exists."""

    text: str
    certain: bool


def kind_of(name: str, outer: Kind) -> Kind:
    """The kind of a value, by the name of its argument; `outer` if the name says nothing."""
    # targetFile, target_file, target-file
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    for word in reversed(words):  # a content_file is a file, a file_content is content
        if word in _PROSE_WORDS:
            return "text"
        if _PATH_WORD.fullmatch(word):
            return "path"
    return "text" if _TEXT_WORDS.intersection(words) else outer


def parts_of(text: str, kind: Kind) -> Iterator[PathPart]:
    """The parts of a string that are judged."""
    whole = text.strip()
    if kind == "text":
        if "\n" not in whole and not _URL.match(whole):
            yield from (PathPart(item, False) for item in (whole, *whole.split("\0")) if item)
        return
    # URLs are included: a tool that takes one for a path follows its dots.
    yield PathPart(text, kind == "path" or (len(whole.split()) == 1 and _is_meant(whole)))
    words = whole.split()
    items = [item for line in re.split(r"[\r\n\t,;|]", whole) if (item := line.strip())]
    is_command = all(word.startswith("-") or is_explicit(word) for word in words)
    if kind == "path" or is_command or all(map(_NAME.search, words)):
        yield from _tokens((*words, *items), certain=True)
    else:
        single = [item for item in items if len(item.split()) == 1]
        # Among phrases a word is prose or code, and a path only if something of that name exists.
        yield from _tokens(single, certain=len(single) == len(items))


def _tokens(tokens: Iterable[str], *, certain: bool) -> Iterator[PathPart]:
    """Words and items of a list, and what follows `=`, `@`, a colon or an option in them."""
    for token in dict.fromkeys(tokens):
        yield PathPart(token, certain and _is_meant(token))
        if _URL.match(token) or _BASE64.fullmatch(token):
            continue
        for piece in _PIECES.split(token):
            if piece and piece != token:
                yield PathPart(piece, certain and _is_meant(piece))
        if (option := _OPTION.match(token)) is not None:
            yield PathPart(token[option.end() :], certain)


def _is_meant(word: str) -> bool:
    """Whether a word that is an absolute path can hardly be anything else, as base64 and LaTeX can."""
    return _BASE64.fullmatch(word) is None and not re.match(r"\\(?!\\)", word)


def is_explicit(path: str) -> bool:
    """Whether a path may lead elsewhere by its own text: it is absolute, or climbs with `..`."""
    if path.startswith(("/", "\\", "~")) or os.path.isabs(path):
        return True
    return _DRIVE.match(path) is not None or _CLIMBS.search(path) is not None


def spellings_of(text: str, *, backslashes: bool = True) -> set[str]:
    """The path as it stands and as a tool might read it: trimmed, decoded, normalised, expanded."""
    found = {text}
    for change in _CHANGES:
        found |= {change(spelling) for spelling in found}
    if backslashes:
        found |= {spelling.replace("\\", "/") for spelling in found}
    # A drive or a network share is outside, on a system whose paths have none.
    return {"/" if os.sep == "/" and _DRIVE.match(spelling) else spelling for spelling in found if spelling}


def _decode(text: str) -> str:
    for _ in range(_DEEPEST):
        decoded = unquote(text)
        if decoded == text:
            return text
        text = decoded
    return "/"


def _normalise(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text.translate(_SLASHES))
    return "".join([char for char in text if unicodedata.category(char) != "Cf"])


def _strip_scheme(text: str) -> str:
    if (file := _FILE.match(text)) is not None:
        host, path = file["host"] or "", file["path"]
        if host.lower() not in ("", "localhost", "127.0.0.1", ".", ".."):
            return f"//{host}{path}"
        return host + path if host.startswith(".") else path
    if _URL.match(text) is None and (url := _SCHEME.match(text)) is not None:
        return url["rest"][2:]
    return text


def _trim(text: str) -> str:
    text = text.strip().strip("\"'`").strip()
    return _DOTS.sub(r"\1", text) if ".." in text else text


def _expand(text: str) -> str:
    """The path with `~` and variables filled in; an unset variable is empty, as in a shell."""
    if "$" in text or "%" in text:
        if text.startswith(("$(", "`")) and "/" in text:
            return "/"  # only a shell knows
        values = os.environ
        filled = _VARIABLE.sub(lambda at: values.get(at[1] or at[2] or at[4], at[3] or ""), text)
        text = filled or text
    if text.startswith(("~+", "~-")):
        return "/"
    return os.path.expanduser(text) if text.startswith("~") and "\0" not in text else text


_CHANGES: tuple[Callable[[str], str], ...] = (_decode, _normalise, _trim, _strip_scheme, _trim, _expand)
