"""HTML as text a model can read: headings, lists, links and code stay recognisable, everything else is prose."""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_SKIPPED = frozenset({
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "head", "select", "button",
})  # fmt: skip
_BLOCKS = frozenset({
    "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol", "dl", "dt", "dd", "table", "tr", "form",
    "fieldset", "blockquote", "figure", "figcaption", "details", "summary", "address", "hr",
})  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_VOID = frozenset({
    "br", "img", "hr", "input", "meta", "link", "area", "base", "col", "embed", "source", "track", "wbr",
})  # fmt: skip


def html_to_text(html: str, base: str = "") -> tuple[str, str]:
    """The title of a page and its text."""
    reader = _Reader(base)
    reader.feed(html)
    reader.close()
    text = "".join(reader.parts)
    text = re.sub(r"[ \t]+\n", "\n", text)
    return " ".join(reader.title.split()), re.sub(r"\n{3,}", "\n\n", text).strip()


class _Reader(HTMLParser):
    """Collects the text of a page as the parser goes through it."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._base = base
        self._skipping: list[str] = []
        self._in_title = False
        self._pre = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title
        elif tag in _SKIPPED:
            self._skipping.append(tag)
        elif self._skipping:
            return
        elif tag in _HEADINGS:
            self._break(2)
            self.parts.append(_HEADINGS[tag])
        elif tag == "li":
            self._break(1)
            self.parts.append("- ")
        elif tag == "pre":
            self._break(2)
            self.parts.append("```\n")
            self._pre += 1
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "br":
            self.parts.append("\n")
        elif tag == "a":
            self._links.append(urljoin(self._base, dict(attrs).get("href") or ""))
        elif tag == "img" and (text := dict(attrs).get("alt")):
            self.parts.append(f"[image: {text}]")
        elif tag == "code" and not self._pre:
            self.parts.append("`")
        elif tag in _BLOCKS:
            self._break(1 if tag in ("tr", "li", "dt", "dd") else 2)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in _SKIPPED:
            if tag in self._skipping:
                del self._skipping[self._skipping.index(tag) :]
        elif self._skipping or tag in _VOID:
            return
        elif tag == "pre" and self._pre:
            self._pre -= 1
            self.parts.append("\n```\n")
        elif tag == "a" and self._links:
            link = self._links.pop()
            if link.startswith(("http://", "https://")) and "".join(self.parts[-1:]).strip():
                self.parts.append(f" <{link}>")
        elif tag == "code" and not self._pre:
            self.parts.append("`")
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._break(1 if tag in ("tr", "li", "dt", "dd") else 2)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif self._pre and not self._skipping:
            self.parts.append(data)
        elif not self._skipping and (text := re.sub(r"\s+", " ", data)):
            if text[0] == " " and (not self.parts or self.parts[-1][-1:] in " \n"):
                text = text[1:]
            if text:
                self.parts.append(text)

    def _break(self, lines: int) -> None:
        if self.parts:
            self.parts.append("\n" * lines)
