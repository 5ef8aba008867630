"""The pages of reference say what the code says."""

import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from swink import errors, events
from swink.errors import AgentError
from swink.models.catalog import PROVIDERS
from tests.pages import ROOT
from tools import providerpages, referencepages, site


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


def test_the_page_on_variables_names_every_variable_that_is_read():
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert set(re.findall(r'"(SWINK_[A-Z_]+)"', source)) == set(referencepages.VARIABLES)


def test_each_provider_has_a_page_with_what_it_can_do_and_its_models():
    pages = providerpages.provider_pages()
    assert set(pages) == set(PROVIDERS)
    assert "`anthropic.AnthropicStreamFn`" in pages["anthropic"]
    assert "| `claude-sonnet-4-6` | 1,000,000 | 128,000 | 3 | 15 |" in pages["anthropic"]
    assert "- **Address**: `https://api.groq.com/openai/v1`" in pages["groq"]
    assert "- **Schema held by the provider**: yes, without tools" in pages["vllm"]
    for name, page in pages.items():
        assert name in providerpages.ELSEWHERE or "## What it can do" in page, name
        assert f'"models/providers/{name}.md"' in (ROOT / "zensical.toml").read_text("utf-8"), name


def test_a_bar_in_code_of_a_table_has_no_backslash_on_the_site():
    assert site.unescaped("| `a \\| b` | c \\| d |\n`e \\| f`\n") == "| `a | b` | c \\| d |\n`e \\| f`\n"


def test_the_list_for_models_has_the_first_sentence_of_a_page(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n![x](y)\n\n```python\nimport a\n\nb()\n```\n\n1. One.\n\n`a` is [it](z): b. More.\n"
    )
    assert site.headline(page) == ("A page", "`a` is it: b.")
