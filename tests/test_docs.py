"""The pages tell the truth: their links lead somewhere, what they name exists, and all their programs are run."""

import importlib
import re
import shlex
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tools.site import imports_of

import swink
from swink.app.cli.commands import parse_arguments
from tests.pages import PAGES, ROOT

NOW = [page for page in PAGES if page.name != "CHANGELOG.md"]
"""Pages that speak of the present; a changelog also names what is gone."""
TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES}
NEWEST = re.split(r"^(?=## )", TEXTS["CHANGELOG.md"], flags=re.MULTILINE)[1]
"""What the changelog says of the newest version."""
ADDED = "".join(re.findall(r"^### Added\n.*?(?=^### |\Z)", NEWEST, re.DOTALL | re.MULTILINE))
"""What is new in it: that is all of the present."""
READ = {**TEXTS, "CHANGELOG.md": NEWEST}
"""The texts that people read from beginning to end; of the changelog that is its newest version."""
LOGGERS = set(
    re.findall(
        r'getLogger\("(swink[\w.]*)"\)',
        "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")),
    )
)

ATTRIBUTES = {
    name
    for path in (ROOT / "src" / "swink" / "telemetry").glob("*.py")
    for name in re.findall(r'"(swink\.[\w.]+)"', path.read_text("utf-8"))
}
"""The names of our own attributes of spans."""


MOST_WORDS = 40
"""Of a sentence: more are two ideas."""
MOST_IN_A_PARAGRAPH = 60
"""Words of a paragraph, of an item of a list and of a cell: more are a list."""
FIGURE = re.compile(
    r"[<~-]?\d[\d.,]*(?: (?:to|and|of) \d[\d.,]*)? ?(?:×|%|µs|ms|s|MB|GB|tokens/s|of \d+)(?:,.*)?"
)
"""A cell of a table that is what somebody measured."""


def paragraphs_of(text: str) -> list[str]:
    """The paragraphs of a page, without its code; an item of a list and a cell of a table are one too."""
    text = re.sub(r"^ *```.*?^ *```[^\n]*$|<!--.*?-->", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[#|>])", text)
    return [cell for part in parts for cell in (part.split("|") if part.startswith("|") else [part])]


def sentences_of(text: str) -> list[str]:
    """The sentences of a page, without its code; an item of a list and a cell of a table end one too."""
    ends = r"(?<=[.!?])[)\"”`*]*\s+"
    return [each for part in paragraphs_of(text) for each in re.split(ends, part.strip())]


def anchors_of(path: Path) -> set[str]:
    """The fragments that a page's headings can be linked by."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands_of(text: str) -> list[list[str]]:
    """The arguments of the swink commands in a page's consoles, up to a pipe or another command."""
    consoles = re.findall(r"^```(?:sh|console)\b.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found: list[list[str]] = []
    for line in re.findall(r"^(?:\$ )?swink(?: .*)?$", "".join(consoles), re.MULTILINE):
        words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        words.whitespace_split = True
        found.append(list(iter(lambda words=words: next(words, "|"), "|"))[1:])
    return [words[: words.index("&&")] if "&&" in words else words for words in found]


def exists(name: str) -> bool:
    """Whether a dotted name is a module of swink, or something in one."""
    parts = name.split(".")
    value: Any = swink
    for number, part in enumerate(parts[1:], 2):
        try:
            value = importlib.import_module(".".join(parts[:number]))
        except ImportError:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
    return True


def test_every_page_is_in_the_navigation_once():
    text = (ROOT / "zensical.toml").read_text("utf-8")
    listed = Counter(re.findall(r'= "([\w./-]+\.md)"', text))
    written = {page.removeprefix("docs/") for page in TEXTS if page.startswith("docs/")}
    assert sorted(written - {*listed}) == []
    assert [page for page, times in listed.items() if times > 1] == []


@pytest.mark.parametrize("page", TEXTS)
def test_the_links_of_the_page_lead_somewhere(page: str):
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        file, _, fragment = target.partition("#")
        if "://" in target:
            continue
        path = (ROOT / page).parent / file if file else ROOT / page
        if not path.exists() or (fragment and fragment not in anchors_of(path)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", READ)
def test_what_the_page_names_exists(page: str):
    text = ADDED if page == "CHANGELOG.md" else READ[page]
    names = set(re.findall(r"\bswink(?:\.[A-Za-z]\w*)+", text))
    names -= LOGGERS | ATTRIBUTES | {"swink.providers", "swink.scorers", "swink.cdx.json"}
    assert not [name for name in sorted(names) if not exists(name)]
    paths = re.findall(r"`((?:swink|tests|benchmarks|examples)/[\w./-]+)`", text)
    assert not [path for path in paths if not (ROOT / path).exists() and not (ROOT / "src" / path).exists()]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in NOW])
def test_what_the_page_imports_from_swink_is_there(page: str):
    assert not [name for name in imports_of(TEXTS[page]) if not exists(name)]


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if commands_of(text)])
def test_the_commands_of_the_page_are_understood(page: str):
    for words in commands_of(TEXTS[page]):
        parse_arguments(words)  # exits where it does not understand them


def test_a_command_ends_at_a_pipe_at_the_next_one_and_at_a_comment():
    text = "```console\n$ swink run 'a | b' | jq .\nswink: said\n```\n```sh\nswink init && cd a  # now\n```\n"
    assert commands_of(text) == [["run", "a | b"], ["init"]]


def test_what_the_changelog_says_to_use_instead_exists():
    rows = re.findall(r"^\| .* \| (.*) \|$", TEXTS["CHANGELOG.md"], re.MULTILINE)
    names = {name for cell in rows for name in re.findall(r"`(swink(?:\.\w+)+)`", cell)}
    assert len(names) > 8
    assert not [name for name in sorted(names) if not exists(name)]


def test_the_changelog_begins_with_this_version_and_what_it_added():
    assert NEWEST.startswith(f"## {swink.__version__}")
    assert ADDED.startswith("### Added\n")


@pytest.mark.parametrize("page", TEXTS)
def test_the_loggers_of_the_page_are_used(page: str):
    named = set(re.findall(r"(?:log|logger) `(swink[\w.]*)`|getLogger\(\"(swink[\w.]*)\"\)", TEXTS[page]))
    assert {name for pair in named for name in pair if name} <= LOGGERS


@pytest.mark.parametrize("page", TEXTS)
def test_no_page_names_a_path_of_one_machine(page: str):
    assert not re.findall(r"(?<![\w.])/(?:root|srv|work|home)/\w+", TEXTS[page])


@pytest.mark.parametrize("page", READ)
def test_no_sentence_of_the_page_has_more_than_forty_words(page: str):
    assert not [each for each in sentences_of(READ[page]) if len(each.split()) > MOST_WORDS]


@pytest.mark.parametrize("page", READ)
def test_no_paragraph_of_the_page_has_more_than_sixty_words(page: str):
    long = [part for part in paragraphs_of(READ[page]) if len(part.split()) > MOST_IN_A_PARAGRAPH]
    assert not [part for part in long if part.count("`") < 60], "make it a lead and a list"


@pytest.mark.parametrize(
    "page", [str(page.relative_to(ROOT)) for page in NOW if "guarantees" not in str(page)]
)
def test_tables_of_measurements_stand_under_guarantees(page: str):
    tables = re.findall(r"(?:^\|.*\n)+", TEXTS[page], re.MULTILINE)
    cells = [[cell.strip() for row in table.splitlines() for cell in row.split("|")] for table in tables]
    assert not [each for each in cells if sum(bool(FIGURE.fullmatch(cell)) for cell in each) > 2]


def test_sentences_are_counted_as_people_read_them():
    text = "One two. Three [four](five six)\n- seven\n\n```\neight nine\n```\n| ten | eleven twelve. |\n"
    assert [each for each in sentences_of(text) if each] == [
        "One two.", "Three [four]", "- seven", "ten", "eleven twelve.",
    ]  # fmt: skip


def headings_without_a_lead(text: str) -> list[str]:
    """The headings of a page below which something else than a sentence begins: a table, code, a list, a picture."""
    text = re.sub(r"^```.*?^```$", "```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in re.sub(r"<!--.*?-->", "", text).splitlines() if line.strip()]
    return [
        line
        for line, after in pairwise([*lines, "#"])
        if re.match(r"#+ ", line) and re.match(r"\||```|[-*] |\d+\. |!\[|#", after)
    ]


@pytest.mark.parametrize(
    "page", [page for page in TEXTS if page.startswith("docs/") and "reference/" not in page]
)
def test_every_section_of_the_page_begins_with_a_sentence(page: str):
    assert not headings_without_a_lead(TEXTS[page])


def test_a_heading_above_a_table_code_or_a_list_has_no_lead():
    text = "# One\n\nWords.\n\n## Two\n\n- an item\n\n## Three\n\n```sh\n# no heading\n```\n\n## Four\n"
    assert headings_without_a_lead(text) == ["## Two", "## Three", "## Four"]
