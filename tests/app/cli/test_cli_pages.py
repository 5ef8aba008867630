"""`swink docs`: the pages without a network."""

import os
import pty
import tomllib
from pathlib import Path

import pytest
from tests.pages import ROOT

from swink.app.cli import main
from swink.app.cli.docs_command import ABOVE, DocsPage, find_page, place_of_pages, read_pages, section_of
from swink.errors import MisuseError

PAGES = [
    DocsPage("coding-agent/tui", "# The terminal\n\n## Keys\n\n```sh\n# nothing\n```\n"),
    DocsPage("library/tools", "# Tools\n\n## Approval of calls\n\nA Budget.\n"),
    DocsPage("library/index", "# The library\n"),
    DocsPage("project/index", "# The project\n"),
]
TITLED = [
    DocsPage("coding-agent/agents", "# Agents\n\n## Keys\n\n## Sub-agents\n\n## Rules\n"),
    DocsPage("library/memory", "# Sessions\n\n## `Rules`\n"),
    DocsPage("tutorial/5-sessions", "# 5. Approvals and sessions\n\n## Sessions\n"),
    DocsPage("coming-from/overview", "# Coming from elsewhere\n"),
    DocsPage("coming-from/codex", "# Coming from codex\n"),
    DocsPage("models/keys", "# Settings\n\n## Configuration files\n"),
    DocsPage("models/local", "# Settings\n\nThe `config.toml`.\n\nMore.\n"),
    DocsPage("project/changelog", "# Changelog\n\n## Models\n\n## Sub-agents\n\nconfig config config\n"),
]


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("tool", "there is no page 'tool'; near it: library/tools; in Python, help(swink.tool) explains it"),
        (
            "Agent",
            "there is no page 'Agent'; swink docs lists them; in Python, help(swink.Agent) explains it",
        ),
        ("budget", "there is no page 'budget'; near it: library/tools"),
        ("libary/tools", "there is no page 'libary/tools'; near it: library/tools"),
        ("approval", "there is no page 'approval'; near it: library/tools"),
        ("nothing", "there is no page 'nothing'; swink docs lists them"),
        ("zebra", "there is no page 'zebra'; swink docs lists them"),
        ("index", "index is the name of 2 pages: library/index, project/index"),
    ],
)
def test_a_topic_that_is_no_page_leads_to_the_nearest_ones(topic: str, said: str):
    with pytest.raises(MisuseError) as raised:
        find_page(PAGES, topic)
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("settings", "settings is the title of 2 pages: models/keys, models/local"),
        ("rules", "rules is a heading of 2 pages: coding-agent/agents, library/memory"),
        ("models", "models is the folder of 2 pages: models/keys, models/local"),
        ("config", "there is no page 'config'; near it: models/keys, models/local"),
    ],
)
def test_a_word_that_leads_to_several_pages_names_them(topic: str, said: str):
    with pytest.raises(MisuseError) as raised:
        find_page(TITLED, topic)
    assert str(raised.value) == said


@pytest.mark.parametrize("topic", ["tools", "Tools", "library/tools", "library/tools.md"])
def test_a_page_is_found_by_its_name_with_or_without_its_folder(topic: str):
    assert find_page(PAGES, topic) is PAGES[1]


def test_a_folder_is_the_name_of_its_first_page():
    assert find_page(PAGES, "library") is PAGES[2]


@pytest.mark.parametrize("topic", ["coming-from", "coming from", "Coming From"])
def test_a_folder_with_an_overview_is_the_name_of_that_and_a_blank_is_a_hyphen(topic: str):
    assert find_page(TITLED, topic).name == "coming-from/overview"


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("sessions", "library/memory"),
        ("coming from codex", "coming-from/codex"),
        ("keys", "models/keys"),
        ("sub-agents", "coding-agent/agents"),
        ("Sub agents", "coding-agent/agents"),
        ("configuration files", "models/keys"),
    ],
)
def test_a_name_comes_before_a_title_and_a_title_before_a_heading(topic: str, name: str):
    assert find_page(TITLED, topic).name == name


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("sessions", "library/memory"),
        ("sub-agents", "coding-agent/environment"),
        ("coming from", "coming-from/overview"),
        ("contributing", "project/contributing"),
        ("security", "guarantees/security"),
        ("security policy", "project/security-policy"),
    ],
)
def test_words_of_people_lead_to_a_page_of_this_version(topic: str, name: str):
    assert find_page(list(read_pages(ROOT / "docs")), topic).name == name


def test_every_page_of_the_checkout_is_listed_with_its_title(capsys: pytest.CaptureFixture[str]):
    assert main(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    pages = sorted(read_pages(ROOT / "docs"), key=lambda page: page.name)
    assert [line.split()[0] for line in lines] == [page.name for page in pages]
    assert all(line.endswith(page.headings[0]) for line, page in zip(lines, pages, strict=True))


def test_pages_above_the_others_are_pages_in_a_checkout_and_in_an_installation(tmp_path: Path):
    (tmp_path / "docs/project").mkdir(parents=True)
    for name in ABOVE.values():
        (tmp_path / name).write_text(f"# {name}\n")
    checkout = list(read_pages(tmp_path / "docs"))
    assert checkout == [DocsPage(page, f"# {name}\n") for page, name in ABOVE.items()]
    for page, name in ABOVE.items():
        (tmp_path / name).rename(tmp_path / "docs" / f"{page}.md")
    assert sorted(read_pages(tmp_path / "docs"), key=str) == sorted(checkout, key=str)
    assert find_page(checkout, "changelog") is checkout[0]


def test_a_wheel_is_given_the_pages_above_the_others_and_a_source_has_them_to_give():
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    given = {name: f"swink/docs/{page}.md" for page, name in ABOVE.items()}
    assert targets["wheel"]["force-include"] == given
    assert not {f"/{name}" for name in given} - {*targets["sdist"]["include"]}


def test_what_is_no_terminal_gets_the_page_as_it_is_written(capsys: pytest.CaptureFixture[str]):
    assert main(["docs", "reference/cli"]) == 0
    assert capsys.readouterr().out.strip() == (ROOT / "docs/reference/cli.md").read_text("utf-8").strip()


def test_a_terminal_gets_the_page_through_the_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = tmp_path / "seen"
    monkeypatch.setenv("PAGER", f"cat > {seen}")
    monkeypatch.setenv("TERM", "xterm")
    leader, follower = pty.openpty()
    with open(os.dup(follower)) as keyboard, open(follower, "w") as screen, open(leader, "rb", 0):
        monkeypatch.setattr("sys.stdin", keyboard)
        monkeypatch.setattr("sys.stdout", screen)
        assert main(["docs", "tools"]) == 0
    assert seen.read_text("utf-8").startswith("# ")


def test_a_page_that_is_not_there_is_a_mistake_in_the_command_line(capsys: pytest.CaptureFixture[str]):
    assert main(["docs", "zebra"]) == 2
    assert "there is no page 'zebra'" in capsys.readouterr().err


def test_an_installation_without_pages_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.app.cli.docs_command.__file__", str(tmp_path / "a/b/c/d/e.py"))
    with pytest.raises(MisuseError, match="the pages are not in this installation"):
        place_of_pages()


@pytest.mark.parametrize(
    "topic",
    [["what", "to", "back", "up"], ["library/deployment.md#what-to-back-up"], ["deployment#What to back up"]],
)
def test_a_heading_shows_its_section_alone_and_whose_it_is(
    topic: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(["docs", *topic]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("(from library/deployment)\n\n## What to back up\n")
    assert "pg_dump" in shown
    assert "## Telemetry" not in shown


def test_a_section_has_those_below_it_and_ends_before_the_next_one():
    page = DocsPage("a", "# A\n\n## B\n\n```sh\n## no heading\n```\n\n### C\n\ntext\n\n## D\n\nmore\n")
    assert section_of(page, "b").text == "(from a)\n\n## B\n\n```sh\n## no heading\n```\n\n### C\n\ntext\n"
    assert section_of(page, "none") is page
