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
ABOVE = {
    "project/changelog": "CHANGELOG.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/security-policy": "SECURITY.md",
}
"""Pages that in a checkout are above the others, and their files; in a wheel they are among them."""

_FEW, _MOST = 3, 6
"""Fewer near pages than this are not enough; more than that are not shown."""


class DocsPage(Struct, frozen=True):
    """A page: its name, such as `library/tools`, its title, what it says and the headings in it."""

    name: str
    text: str

    @property
    def headings(self) -> list[str]:
        """The title first; lines of code that look like a heading are none."""
        return _HEADING.findall(_FENCED.sub("", self.text)) or [self.name]

    @property
    def opening(self) -> str:
        """What stands below the title: what the page is about."""
        return self.text.partition("\n\n")[2].partition("\n\n")[0]

    @property
    def short_names(self) -> tuple[str, str]:
        """The name without its folder; of the first page of a folder, the folder."""
        return self.name.rpartition("/")[2], re.sub(r"/(index|overview)$", "", self.name)


def docs_command(arguments: argparse.Namespace) -> int:
    """Print a page, page by page on a terminal; without a topic the list of them."""
    pages = sorted(read_pages(place_of_pages()), key=lambda page: page.name)
    if not arguments.topic:
        text = table([(page.name, page.headings[0]) for page in pages])
    else:
        text = find_page(pages, " ".join(arguments.topic)).text
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
    """All pages below a folder, and those above it."""
    for path in place.rglob("*.md"):
        yield DocsPage(path.relative_to(place).with_suffix("").as_posix(), path.read_text("utf-8"))
    for name, file in ABOVE.items():
        if (path := place.parent / file).is_file():
            yield DocsPage(name, path.read_text("utf-8"))


def find_page(pages: Sequence[DocsPage], topic: str) -> DocsPage:
    """The page of that name or title, or the section of that heading; what is near is named in the error."""
    name, _, heading = topic.partition("#")
    asked = _folded(name.strip("/").removesuffix(".md"))
    for what, found in _readings(pages, asked):
        if len(found) == 1:
            wanted = _folded(heading) or (asked if what == "a heading" else "")
            return section_of(found[0], wanted) if wanted else found[0]
        if found:
            names = ", ".join(page.name for page in found)
            raise MisuseError(f"{topic} is {what} of {len(found)} pages: {names}")
    raise MisuseError(f"there is no page {topic!r}{_advice(pages, topic)}")


def _readings(pages: Sequence[DocsPage], asked: str) -> Iterator[tuple[str, list[DocsPage]]]:
    """What a topic may be, the likeliest first, and the pages that it is that of."""
    yield "the name", [page for page in pages if page.name == asked]
    yield "the name", [page for page in pages if asked in page.short_names]
    yield "the title", [page for page in pages if asked == _folded(page.headings[0])]
    yield "the folder", [page for page in pages if page.name.startswith(f"{asked}/")]
    yield "a heading", [page for page in _subjects(pages) if asked in map(_folded, page.headings[1:])]


def section_of(page: DocsPage, asked: str) -> DocsPage:
    """The part of a page below a heading, which says of which page it is; all of it if it has none such."""
    shown: list[str] = []
    level, is_code = 0, False
    for line in page.text.splitlines():
        is_code ^= line.startswith("```")
        found = None if is_code else _HEADING.match(line)
        depth = len(line) - len(line.lstrip("#"))
        if found and level and depth <= level:
            break
        if found and not level and asked in (_folded(found[1]), _anchor(found[1])):
            level = depth
        if level:
            shown.append(line)
    if not shown:
        return page
    return DocsPage(page.name, "\n".join([f"(from {page.name})", "", *shown]))


def _anchor(heading: str) -> str:
    """A heading as links to it have it."""
    return re.sub(r"[^\w-]+", "", re.sub(r"\s", "-", heading.lower()))


def _subjects(pages: Sequence[DocsPage]) -> list[DocsPage]:
    """The pages that are about something; a changelog speaks of everything."""
    return [page for page in pages if page.name != "project/changelog"]


def _folded(text: str) -> str:
    """A name, title or heading as people write it who do not look: no capitals, a hyphen for a blank."""
    return re.sub(r"[\s-]+", "-", text.lower().replace("`", ""))


def _advice(pages: Sequence[DocsPage], topic: str) -> str:
    """Near names, headings and openings with the word, else pages that say it; and what Python explains."""
    asked = topic.lower()
    names = {page.name: page.name for page in pages}
    names |= {page.name.rpartition("/")[2]: page.name for page in pages}
    near = [names[name] for name in get_close_matches(asked, names, 3, 0.6)]
    subjects = _subjects(pages)
    near += [page.name for page in subjects if any(asked in heading.lower() for heading in page.headings)]
    near += [page.name for page in subjects if asked in page.opening.lower()]
    if len(near) < _FEW:
        times = {page.name: _FENCED.sub("", page.text).lower().count(asked) for page in subjects}
        near += [name for name in sorted(times, key=lambda name: -times[name])[:_FEW] if times[name]]
    shown = ", ".join(list(dict.fromkeys(near))[:_MOST])
    python = f"; in Python, help(swink.{topic}) explains it" if topic in swink.__all__ else ""
    return (f"; near it: {shown}" if shown else "; swink docs lists them") + python
