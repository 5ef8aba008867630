"""The pages of reference say what the code says."""

import re
from pathlib import Path

import pytest
from msgspec.structs import fields
from tools.variables import OF_SWINK

from swink import errors, events
from swink.app.assistant.brought import BROUGHT_ALONG
from swink.app.assistant.hookfiles import HOOK_FILES
from swink.app.assistant.instructionfiles import NAME, OTHER_NAME
from swink.app.assistant.shellsettings import PROJECT_FILE
from swink.errors import AgentError
from swink.models import catalog
from swink.models.catalog import PROVIDERS
from swink.models.data import copies
from swink.system import places
from tests.environmentreads import VARIABLE, reads_of
from tests.pages import ROOT
from tools import referencepages, site


@pytest.mark.parametrize("page", referencepages.WRITTEN)
def test_the_page_is_what_the_code_makes_of_it(page: str):
    written = (ROOT / "docs" / page).read_text("utf-8")
    assert written == referencepages.WRITTEN[page](), "run: python tools/referencepages.py"


def test_the_page_on_errors_has_the_kind_of_every_exception():
    kinds = re.findall(r"`(\w+)` \| `swink\.errors` \| `(\w+)`", referencepages.errors_page())
    own = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, AgentError)]
    assert dict(kinds) == {each.__name__: each.kind for each in own}


def test_the_page_on_events_has_every_field():
    page = referencepages.events_page()
    for field in fields(events.ToolExecutionEnd):
        assert f"`{field.name}`" in page


SOURCES = sorted((ROOT / "src" / "swink").rglob("*.py"))
ELSEWHERE = {
    "app/assistant/ownproviders.py": "key_env of the settings",
    "app/assistant/serverprograms.py": "${NAME} of .mcp.json",
    "memory/heldkeys.py": "the keys of accounts.py",
    "models/keys/accounts.py": "its own table, which the page has",
    "providers/endpoint.py": "the keys and addresses of accounts.py",
}
"""Files that read variables whose names stand elsewhere, and where."""
BY_OTHERS = {
    "getproxies": {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"},
    "gettempdir": {"TMPDIR", "TEMP", "TMP"},
    "pydoc.pager": {"PAGER"},
}
"""What functions of Python read for us."""


def shown_variables() -> set[str]:
    rows = [line for line in referencepages.variables_page().splitlines() if line.startswith("|")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row) if VARIABLE.fullmatch(name)}


def test_the_page_on_variables_names_every_variable_that_is_read():
    source = "".join(path.read_text("utf-8") for path in SOURCES)
    assert set(re.findall(r'"(SWINK_[A-Z_]+)"', source)) == set(OF_SWINK)
    read = {path.relative_to(ROOT / "src" / "swink").as_posix(): reads_of(path) for path in SOURCES}
    assert {path for path, (_, unknown) in read.items() if unknown} == set(ELSEWHERE)
    names = {name for named, _ in read.values() for name in named}
    names |= {name for function, theirs in BY_OTHERS.items() if function in source for name in theirs}
    assert sorted(names - shown_variables()) == []


def test_the_page_on_variables_names_none_that_nothing_reads():
    source = "".join(path.read_text("utf-8") for path in SOURCES)
    theirs = set[str]().union(*BY_OTHERS.values())
    assert [name for name in sorted(shown_variables() - theirs) if name not in source] == []


def test_the_page_on_variables_has_those_of_the_page_on_providers():
    keys = (
        (ROOT / "docs" / "models" / "providers.md").read_text("utf-8").partition("## Keys and addresses")[2]
    )
    assert set(re.findall(r"`([A-Z][A-Z_]+)`", keys)) <= shown_variables()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('os.environ["ONE"]', {"ONE"}),
        ('os.getenv("ONE", "no")', {"ONE"}),
        ('"ONE" in os.environ', {"ONE"}),
        ('any(map(os.environ.get, ("ONE", "TWO")))', {"ONE", "TWO"}),
        ('[os.environ.get(f"MY_{name}") for name in ("ONE", "TWO")]', {"MY_ONE", "MY_TWO"}),
        ('def first(*names): return [os.environ.get(name) for name in names]\nfirst("ONE")', {"ONE"}),
        ('NAMES = ("ONE",)\nfor name in NAMES: os.environ.pop(name)', {"ONE"}),
    ],
)
def test_a_read_of_the_environment_is_found(tmp_path: Path, line: str, names: set[str]):
    (tmp_path / "read.py").write_text(line)
    assert reads_of(tmp_path / "read.py") == (names, set())


def test_a_read_of_the_environment_whose_name_stands_elsewhere_is_said(tmp_path: Path):
    (tmp_path / "read.py").write_text("os.environ.get(account.variable)")
    assert reads_of(tmp_path / "read.py") == (set(), {"account.variable"})


def test_the_page_on_files_has_every_file_of_the_four_folders():
    page = (ROOT / "docs" / "reference" / "files.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", page, re.MULTILINE))
    folders = {"config": "Settings", "data": "Data", "sessions": "Data", "state": "State", "cache": "Cache"}
    missing: list[str] = []
    for path in SOURCES:
        for folder, name in re.findall(
            r'\b(config|data|sessions|state|cache)_dir\(\) / "([\w.-]+)"', path.read_text("utf-8")
        ):
            listed = re.findall(r"`([^`]+)`", sections[folders[folder]])
            if not any(name in re.split(r"[/ ]", each) for each in listed):
                missing.append(f"{folder}: {name} of {path.name}")
    assert missing == []


def test_the_page_on_files_has_what_a_project_brings():
    page = (ROOT / "docs" / "reference" / "files.md").read_text("utf-8").partition("## Of a project")[2]
    for name in (*BROUGHT_ALONG, *HOOK_FILES, PROJECT_FILE, NAME, OTHER_NAME):
        assert f"`{name}" in page, name


def test_the_page_on_files_has_the_folders_of_each_system():
    page = (ROOT / "docs" / "reference" / "files.md").read_text("utf-8")
    drawn = re.findall(r"^    (\w+)_dir +(\S.*)$", places.__doc__ or "", re.MULTILINE)
    titles = {"config": "settings"}
    for folder, paths in drawn:
        row = next(line for line in page.splitlines() if line.startswith(f"| {titles.get(folder, folder)} |"))
        assert re.findall(r"`([~%][^`]*)`", row) == re.split(r" {2,}", paths), folder
    assert len(drawn) == 4


def test_the_page_on_prices_says_how_many_models_there_are():
    page = (ROOT / "docs" / "models" / "prices.md").read_text("utf-8")
    listing = copies.read(copies.BUILT_IN)
    entries = sum(copies.check(listing).values())
    counts = [int(each.replace(",", "")) for each in re.findall(r"about ([\d,]+) (?:models|entries)", page)]
    assert counts == [round(len(catalog.models()), -2), round(entries, -2)]


def test_the_page_on_errors_can_be_read_without_a_browser():
    page = referencepages.errors_page()
    assert "&" not in page
    assert "| `OtherRun` | `swink.eval.resultfile` | `misuse` | `BadResults` |" in page


def test_the_overview_links_to_the_page_of_every_provider_on_the_site():
    linked = site.with_provider_links(referencepages.models_page())
    assert set(re.findall(r"\| \[`[a-z-]+`\]\(providers/([a-z-]+)\.md\) \|", linked)) == set(PROVIDERS)


def test_a_bar_in_code_of_a_table_has_no_backslash_on_the_site():
    assert site.unescaped("| `a \\| b` | c \\| d |\n`e \\| f`\n") == "| `a | b` | c \\| d |\n`e \\| f`\n"


def test_the_list_for_models_has_the_first_sentence_of_a_page(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n![x](y)\n\n```python\nimport a\n\nb()\n```\n\n1. One.\n\n`a` is [it](z): b. More.\n"
    )
    assert site.headline(page) == ("A page", "`a` is it: b.")
