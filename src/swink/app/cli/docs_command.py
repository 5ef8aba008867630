"""`swink docs`: the pages of this version, read offline; in the wheel, or in the checkout that this is."""

import argparse
import pydoc
import re
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

import swink
from swink.app.cli.terminal import table
from swink.errors import MisuseError

_HEADING = re.compile(r"^#{1,4} +(.+?) *#*$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CHANGELOG = "project/changelog"
"""In a checkout this page is above the others; in a wheel it is among them."""


class DocsPage(Struct, frozen=True):
    """A page: its name, such as `library/tools`, its title, what it says and the headings in it."""

    name: str
    text: str

    @property
    def headings(self) -> list[str]:
        """The title first; lines of code that look like a heading are none."""
        return _HEADING.findall(_FENCED.sub("", self.text)) or [self.name]


def docs_command(arguments: argparse.Namespace) -> int:
    """Print a page, page by page on a terminal; without a topic the list of them."""
    pages = sorted(read_pages(place_of_pages()), key=lambda page: page.name)
    if arguments.topic is None:
        text = table([(page.name, page.headings[0]) for page in pages])
    else:
        text = find_page(pages, arguments.topic).text
    if sys.stdin.isatty() and sys.stdout.isatty():
        pydoc.pager(text)
    else:
        print(text.rstrip())
    return 0


def place_of_pages() -> Path:
    """Where the pages are: beside the modules in a wheel, above them in a checkout."""
    package = Path(__file__).parents[2]
    for place in (package / "docs", package.parents[1] / "docs"):
        if place.is_dir():
            return place
    raise MisuseError("the pages are not in this installation; a wheel of swink has them")


def read_pages(place: Path) -> Iterator[DocsPage]:
    """All pages below a folder, and the changelog."""
    for path in place.rglob("*.md"):
        yield DocsPage(path.relative_to(place).with_suffix("").as_posix(), path.read_text("utf-8"))
    if (changelog := place.parent / "CHANGELOG.md").is_file():
        yield DocsPage(_CHANGELOG, changelog.read_text("utf-8"))


def find_page(pages: Sequence[DocsPage], topic: str) -> DocsPage:
    """The page of that name; the folder may be left out. What else was meant is said in the error."""
    asked = topic.lower().removesuffix(".md").strip("/")
    names = {page.name: page for page in pages}
    found = [name for name in names if name == asked] or [
        name for name in names if asked in (name.rpartition("/")[2], name.removesuffix("/index"))
    ]
    match found:
        case [name]:
            return names[name]
        case [_, *_]:
            raise MisuseError(f"{topic} is the name of {len(found)} pages: {', '.join(found)}")
        case _:
            raise MisuseError(f"there is no page {topic!r}{_advice(pages, topic)}")


def _advice(pages: Sequence[DocsPage], topic: str) -> str:
    """Near names and headings with the word, else pages that say it often; and what Python explains."""
    asked = topic.lower()
    names = {page.name: page.name for page in pages}
    names |= {page.name.rpartition("/")[2]: page.name for page in pages}
    near = [names[name] for name in get_close_matches(asked, names, 3, 0.6)]
    near += [page.name for page in pages if any(asked in heading.lower() for heading in page.headings)]
    if not near:
        times = {page.name: _FENCED.sub("", page.text).lower().count(asked) for page in pages}
        near = [name for name in sorted(times, key=lambda name: -times[name])[:3] if times[name]]
    shown = ", ".join(dict.fromkeys(near[:6]))
    python = f"; in Python, help(swink.{topic}) explains it" if topic in swink.__all__ else ""
    return (f"; near it: {shown}" if shown else "; swink docs lists them") + python
