"""Builds the site of the documentation into build/site, and fails on a warning: python tools/site.py.

`make docs` installs zensical and mkdocstrings apart, because they want other versions of packages.
The pages of docs/ are copied to build/docs, with what is written elsewhere or made from the code:

    pictures/                                              as `make docs` drew them in build/pictures
    pages with consoles that print something else now      as `make docs` wrote them to build/consoles
    CHANGELOG.md, CONTRIBUTING.md, benchmarks/README.md    under the names of the navigation
    models/providers/NAME.md                               what is said of a provider, and its models;
                                                           linked from the table of models/overview.md
    reference/python/MODULE.md                             every public name of the module
    llms.txt, llms-full.txt                                the pages for models: a list, and all in one file
"""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.providerpages import provider_pages  # noqa: E402

DOCS, PAGES, SITE = ROOT / "docs", ROOT / "build" / "docs", ROOT / "build" / "site"
DRAWN, PRINTED = ROOT / "build" / "pictures", ROOT / "build" / "consoles"
CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
ELSEWHERE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/README.md": "guarantees/benchmarks.md",
    "SECURITY.md": "project/security.md",
    "README.md": "index.md",
}
"""Pages that stand outside of docs/, and where the site has them."""
LINK = re.compile(r"(?<=\])\(([^)\s#]+)(#[^)\s]*)?\)")
IMPORTED = re.compile(r"^\s*from (swink[\w.]*) import (\([^)]*\)|[\w, ]+)$", re.MULTILINE)
NO_TEXT = re.compile(r"[#!<|>]|[-*] |\d+\. |::: ")
"""How a paragraph begins that is a heading, a picture, a table, a list or made by mkdocstrings."""
OUTSIDE = re.compile(
    r"""(?:\bsrc=|<link\b[^>]*\bhref=|url\(|@import\s)\s*["']?((?:https?:)?//[^"')\s>]+)""", re.IGNORECASE
)
"""What a browser would fetch from elsewhere."""


def main() -> int:
    prepare()
    command = [str(ROOT / ".venv" / "docs" / "bin" / "zensical"), "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    problems = [line for line in done.stdout.splitlines() if re.search(r"warning|error", line, re.I)]
    if done.returncode or problems:
        print(done.stdout)
        return 1
    for page in PAGES.rglob("*.md"):  # llms.txt links to them
        shutil.copy(page, SITE / page.relative_to(PAGES))
    outside = [f"{file.relative_to(SITE)}: {address}" for file, address in outside_addresses()]
    print(*outside, f"{len(list(SITE.rglob('*.html')))} pages in {SITE.relative_to(ROOT)}", sep="\n")
    return 1 if outside else 0


def prepare() -> None:
    """Put the pages into build/docs, as zensical.toml names them."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES)
    if (PRINTED / "docs").exists():
        shutil.copytree(PRINTED / "docs", PAGES, dirs_exist_ok=True)
    for picture in PAGES.glob("pictures/*"):
        if (drawn := DRAWN / picture.name).exists():
            shutil.copy(drawn, picture)
    for source, page in ELSEWHERE.items():
        if not (PAGES / page).exists():
            (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(
                next(root / source for root in (PRINTED, ROOT) if (root / source).exists()), PAGES / page
            )
    sources = {page: source for source, page in ELSEWHERE.items() if not (DOCS / page).exists()}
    for path in sorted(PAGES.rglob("*.md")):
        page = path.relative_to(PAGES).as_posix()
        path.write_text(relinked(path.read_text("utf-8"), sources.get(page, f"docs/{page}"), page), "utf-8")
    (PAGES / "models" / "providers").mkdir()
    for name, text in provider_pages().items():
        (PAGES / "models" / "providers" / f"{name}.md").write_text(text, "utf-8")
    overview = PAGES / "models" / "overview.md"
    overview.write_text(with_provider_links(overview.read_text("utf-8")), "utf-8")
    for _, page in pages_of(CONFIGURATION["nav"]):
        if page.startswith("reference/python/"):
            path = PAGES / page
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(reference_of(path.stem), "utf-8")
    (PAGES / "llms.txt").write_text(listing(), "utf-8")
    whole = [(PAGES / page).read_text("utf-8").strip() for page in written_pages()]
    (PAGES / "llms-full.txt").write_text("\n\n---\n\n".join(whole) + "\n", "utf-8")


def relinked(text: str, source: str, page: str) -> str:
    """A page whose links lead to where the site has their targets; other files are copied to files/."""

    def target_of(match: re.Match[str]) -> str:
        address, fragment = match[1], match[2] or ""
        target = os.path.normpath(os.path.join(os.path.dirname(source), address))
        if "://" in address or not (ROOT / target).exists():
            return match[0]
        if target in ELSEWHERE:
            place = ELSEWHERE[target]
        elif target.startswith("docs/"):
            place = target.removeprefix("docs/")
        else:
            place = f"files/{target}"
            (PAGES / place).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / target).is_dir():
                return ""
            shutil.copy(ROOT / target, PAGES / place)
        return f"({os.path.relpath(place, os.path.dirname(page) or '.')}{fragment})"

    return LINK.sub(target_of, unescaped(text))


def unescaped(text: str) -> str:
    """A page without the backslash before a bar in code of a table: GitHub wants it, the site shows it."""
    return re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), row[0]),
        text,
        flags=re.MULTILINE,
    )


def with_provider_links(text: str) -> str:
    """The page with the table of all providers, each linked to its page, which the site alone has."""
    return re.sub(r"^\| `([a-z-]+)` \|", r"| [`\1`](providers/\1.md) |", text, flags=re.MULTILINE)


def pages_of(entries: Any, section: str = "") -> Iterator[tuple[str, str]]:
    """The pages of the navigation in their order, each with the section it belongs to."""
    for entry in entries:
        for title, value in entry.items():
            if isinstance(value, str):
                yield section or title, value
            else:
                yield from pages_of(value, section or title)


def written_pages() -> list[str]:
    """The pages that people wrote, in the order of the navigation."""
    made = ("reference/python/", "models/providers/")
    pages = [page for _, page in pages_of(CONFIGURATION["nav"]) if not page.startswith(made)]
    return [page for page in pages if page != ELSEWHERE["CHANGELOG.md"]]


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: `__all__`, or what is ours in it."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not isinstance(getattr(module, name, None), ModuleType)]
    own = [name for name, value in vars(module).items() if not name.startswith("_") and is_ours(value)]
    if not hasattr(module, "__path__"):
        own = [name for name in own if vars(module)[name].__module__ == module.__name__]
    return own


def is_ours(value: Any) -> bool:
    return callable(value) and str(getattr(value, "__module__", "")).startswith("swink")


def reference_of(module: str) -> str:
    """The page of a module: what it says of itself, and each of its public names."""
    loaded = importlib.import_module(module)
    names = public_names(loaded)
    lead = (loaded.__doc__ or "").strip().partition("\n\n")[0]
    entries = [f"::: {module}.{name}\n" for name in sorted(names, key=str.lower)]
    below = [
        f"::: {name}\n    options:\n      show_root_full_path: true\n      inherited_members: false\n"
        for name in sorted(taught_names(), key=str.lower)
        if page_of(name) == module
    ]
    return "\n".join([f"# {module}\n", lead.replace("\n", " ") + "\n", *entries, *below])


@cache
def taught_names() -> set[str]:
    """The names of modules that have no page of their own, as far as pages and examples use them."""
    from swink.models.catalog import PROVIDERS

    found = {target.partition("#")[0].replace(":", ".") for target in PROVIDERS.values()}
    for path in (ROOT / "README.md", *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.py")):
        text = path.read_text("utf-8")
        found.update(imports_of(text))
        found |= set(re.findall(r"\bswink(?:\.[a-z]\w*)+\.[A-Z]\w+", text))
    listed = [(page, name) for page in modules() for name in public_names(importlib.import_module(page))]
    known = [value_of(f"{page}.{name}") for page, name in listed]
    # What swink.app holds is the program, and no interface.
    values = {name: value_of(name) for name in sorted(found) if not name.startswith("swink.app.")}
    return {
        name
        for name, value in values.items()
        if not isinstance(value, ModuleType) and not any(value is one for one in known)
    }


def imports_of(text: str) -> Iterator[str]:
    """The names that programs of a page import from swink."""
    for module, names in IMPORTED.findall(text):
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", re.sub(r" as \w+", "", names)))


def modules() -> list[str]:
    """The modules that have a page."""
    pages = [page for _, page in pages_of(CONFIGURATION["nav"])]
    return [Path(page).stem for page in pages if page.startswith("reference/python/")]


def page_of(name: str) -> str:
    """The module whose page has a name: the nearest above it."""
    return max((page for page in modules() if name.startswith(f"{page}.")), key=len)


def value_of(name: str) -> Any:
    """What a dotted name means."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def listing() -> str:
    """llms.txt: what this is, and a line for each page with its first sentence."""
    lines = [f"# {CONFIGURATION['site_name']}", "", f"> {CONFIGURATION['site_description']}"]
    last = ""
    for section, page in pages_of(CONFIGURATION["nav"]):
        if section != last:
            lines += ["", f"## {section}", ""]
            last = section
        title, lead = headline(PAGES / page)
        lines.append(f"- [{title}]({page}): {lead}")
    return "\n".join(lines) + "\n"


def headline(page: Path) -> tuple[str, str]:
    """The title of a page, and its first sentence."""
    title, _, rest = page.read_text("utf-8").strip().partition("\n")
    rest = re.sub(r"^```.*?^```$|<!--.*?-->", "", rest, flags=re.DOTALL | re.MULTILINE)
    paragraphs = [part for part in rest.split("\n\n") if part.strip() and not NO_TEXT.match(part.strip())]
    text = " ".join(paragraphs[0].split()) if paragraphs else ""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return title.lstrip("# "), re.split(r"(?<=\.)\s", text)[0].rstrip(":")


def outside_addresses() -> Iterator[tuple[Path, str]]:
    """What the built pages would fetch from elsewhere: nothing, as they are read offline."""
    for file in SITE.rglob("*"):
        if file.suffix in (".html", ".css"):
            yield from ((file, address) for address in OUTSIDE.findall(file.read_text("utf-8")))


if __name__ == "__main__":
    sys.exit(main())
