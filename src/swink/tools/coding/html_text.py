"""HTML as text a model can read: headings, lists, links and code stay recognisable, everything else is prose.

The scanner is our own because the standard library's takes quadratic time on hostile pages and blocks the
program meanwhile. This one looks at every character a bounded number of times.
"""

import re
from collections.abc import Callable, Iterator
from html import unescape
from urllib.parse import urljoin

from msgspec import Struct

_DROPPED = frozenset({
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "head", "select",
    "button", "textarea",
})  # fmt: skip
_RAW = {name: re.compile(f"</{name}", re.I | re.A) for name in ("script", "style")}
_BLOCKS = frozenset({
    "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol", "dl", "dt",
    "dd", "table", "tr", "form", "fieldset", "blockquote", "figure", "figcaption", "details", "summary",
    "address", "hr", "li", "pre",
})  # fmt: skip
_LINES = frozenset({"tr", "li", "dt", "dd"})
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,40})")
_ATTRIBUTE = re.compile(r"""\s(href|alt)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", re.I)
_MAX_TAG = 4096
_MAX_TITLE = 500
_LONG_NUMBER = re.compile(r"&#[0-9]{9,}+;?")


class _Tag(Struct, frozen=True):
    name: str
    attributes: str = ""
    is_end: bool = False

    def attribute(self, name: str) -> str:
        for found in _ATTRIBUTE.finditer(self.attributes):
            if found[1].lower() == name:
                return _unescape(found[2] or found[3] or found[4] or "")
        return ""


def html_to_text(
    html: str, base: str = "", *, limit: int = 1 << 20, check_stop: Callable[[], None] = lambda: None
) -> tuple[str, str]:
    """The title of a page and about `limit` characters of its text; `check_stop` may raise to end it."""
    reader = _Reader(base)
    for token in _tokenize(html):
        check_stop()
        if isinstance(token, str):
            reader.text(token)
        elif token.is_end:
            reader.end(token)
        else:
            reader.start(token)
        if reader.size > limit:
            break
    text = "\n".join([line.rstrip(" \t") for line in "".join(reader.parts).split("\n")])
    return " ".join("".join(reader.title).split()), re.sub(r"\n{3,}", "\n\n", text).strip()


def _unescape(text: str) -> str:
    """Text with character references replaced; overlong numbers, which would raise, become U+FFFD."""
    return unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


def _tokenize(html: str) -> Iterator[_Tag | str]:
    """Tags and the text between them."""
    at = 0
    while (start := html.find("<", at)) >= 0:
        if start > at:
            yield _unescape(html[at:start])
        tag = _TAG.match(html, start)
        if html.startswith(("<!", "<?"), start):
            close = "-->" if html.startswith("<!--", start) else ">"
            end = html.find(close, start + 2)
            at = len(html) if end < 0 else end + len(close)
        elif tag is None:
            yield "<"
            at = start + 1
        else:
            at = _find_tag_end(html, tag.end())
            name = tag[2].lower()
            yield _Tag(name, html[tag.end() : at - 1], bool(tag[1]))
            if name in _RAW and not tag[1]:
                close = _RAW[name].search(html, at)
                at = len(html) if close is None else close.start()
    if at < len(html):
        yield _unescape(html[at:])


_REST_OF_TAG = re.compile(r"""(?:[^>"']+|"[^"]*"|'[^']*')*+>""")


def _find_tag_end(html: str, at: int) -> int:
    """Where a tag ends: at a `>` outside of quotes; if there is none near, at any `>`, or at its name."""
    first = html.find(">", at, at + _MAX_TAG)
    if first < 0:
        return at
    found = _REST_OF_TAG.match(html, at, at + _MAX_TAG)
    return found.end() if found else first + 1


class _Reader:
    """Collects the text of a page, tag by tag."""

    def __init__(self, base: str) -> None:
        self.parts: list[str] = []
        self.size = 0
        self.title: list[str] = []
        self._base = base
        self._dropping: dict[str, None] = {}  # the dropped elements we are in, outermost first
        self._in_title = False
        self._pre = 0
        self._links: list[str] = []

    def start(self, tag: _Tag) -> None:
        if tag.name == "title":
            self._in_title = not self.title
        elif tag.name in _DROPPED:
            self._dropping.setdefault(tag.name)
        elif not self._dropping:
            self._open(tag)

    def end(self, tag: _Tag) -> None:
        if tag.name == "title":
            self._in_title = False
        elif tag.name in self._dropping:
            while self._dropping.popitem()[0] != tag.name:
                pass
        elif not self._dropping:
            self._close(tag.name)

    def text(self, text: str) -> None:
        if self._in_title:
            if len(self.title) < _MAX_TITLE:
                self.title.append(text[:_MAX_TITLE])
        elif self._pre and not self._dropping:
            self._add(text)
        elif not self._dropping and (flowing := re.sub(r"\s+", " ", text)):
            if not self.parts or self.parts[-1][-1:] in " \n":
                flowing = flowing.removeprefix(" ")
            if flowing:
                self._add(flowing)

    def _open(self, tag: _Tag) -> None:
        if tag.name in _BLOCKS or tag.name in _HEADINGS:
            self._break(1 if tag.name in _LINES else 2)
        match tag.name:
            case "li":
                self._add("- ")
            case "pre":
                self._add("```\n")
                self._pre += 1
            case "td" | "th":
                self._add("| " if not self.parts or self.parts[-1].endswith("\n") else " | ")
            case "br":
                self._add("\n")
            case "a":
                self._links.append(tag.attribute("href"))
            case "img" if text := tag.attribute("alt"):
                self._add(f"[image: {text}]")
            case "code" if not self._pre:
                self._add("`")
            case name if name in _HEADINGS:
                self._add(_HEADINGS[name])
            case _:
                pass

    def _close(self, name: str) -> None:
        if name == "pre" and self._pre:
            self._pre -= 1
            self._add("\n```\n")
        elif name == "a" and self._links:
            link = _make_absolute(self._base, self._links.pop())
            if link and self.parts and self.parts[-1][-_MAX_TITLE:].strip():
                self._add(f" <{link}>")
        elif name == "code" and not self._pre:
            self._add("`")
        elif name in _HEADINGS or name in _BLOCKS:
            self._break(1 if name in _LINES else 2)

    def _add(self, text: str) -> None:
        self.parts.append(text)
        self.size += len(text)

    def _break(self, lines: int) -> None:
        if self.parts:
            self._add("\n" * lines)


def _make_absolute(base: str, link: str) -> str:
    """Where a link leads, if that is a page."""
    try:
        whole = urljoin(base, link)
    except ValueError:
        return ""
    return whole if whole.startswith(("http://", "https://")) else ""
