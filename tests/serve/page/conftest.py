"""A Chromium for the tests of the page, closed before other modules: it has an event loop of its own."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.export_pages import CHROMIUM, open_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium with an empty profile; a test that wants it is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium here to look at the page with")
    with open_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
