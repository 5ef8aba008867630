"""The pages of reference say what the code says."""

import re

import pytest
from msgspec.structs import fields

from swink import errors, events
from swink.errors import AgentError
from tests.pages import ROOT
from tools import referencepages


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
