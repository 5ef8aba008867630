"""What a page or a document hides from people: comments, invisible elements, attributes and titles."""

import re
from collections.abc import Iterator

_ROOM = 4000
_STYLED = re.compile(
    r"<[a-z][\w-]{0,30}\s[^<>]{0,400}?(?:display\s*:\s*none|visibility\s*:\s*hidden"
    r"|font-size\s*:\s*[01](?:px|pt|em|%)?\s*[;\"']|opacity\s*:\s*0(?![.\d])"
    r"|color\s*:\s*(?:#fff(?:fff)?\b|white|transparent)|left\s*:\s*-\d{3,}|(?<=\s)hidden\b|aria-hidden"
    r"|type=.text/plain)[^<>]{0,200}>([^<]{4,4000})",
    re.I,
)
_ATTRIBUTE = re.compile(
    r"\s(?:alt|title|content|aria-label|data-[\w-]{1,30}|placeholder)\s?=\s?(?:\"([^\"<>]{10,2000})\""
    r"|'([^'<>]{10,2000})')",
    re.I,
)
_LINK_TITLE = re.compile(r"\]\([^\s()]{0,500}\s+[\"']([^\"'\n]{10,1000})[\"']\)")
_MARKDOWN_COMMENT = re.compile(
    r"^\[[^\]\n]{1,40}\]:\s?(?:#|<>|https?://\S{1,200})\s?[(\"']([^\n]{4,2000})", re.M
)
_TAGS = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007e])[\U000e0020-\U000e007e]{4,}")


def find_hidden(text: str) -> Iterator[str]:
    """The hidden parts of a text, each cut after a few thousand characters."""
    yield from _comments(text)
    if "<" in text and ("=" in text or "hidden" in text):
        yield from (match[1] for match in _STYLED.finditer(text))
        yield from (match[1] or match[2] for match in _ATTRIBUTE.finditer(text))
    if "](" in text:
        yield from (match[1] for match in _LINK_TITLE.finditer(text))
    if "]:" in text:
        yield from (match[1] for match in _MARKDOWN_COMMENT.finditer(text))


def has_invisible_words(text: str) -> bool:
    """Whether text is written in tag characters, which nobody sees and nothing but flags has a use for."""
    return not text.isascii() and _TAGS.search(text) is not None


def _comments(text: str) -> Iterator[str]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start + 4)
        end = len(text) if end < 0 else end
        yield text[start + 4 : min(end, start + _ROOM)]
        start = text.find("<!--", end)
