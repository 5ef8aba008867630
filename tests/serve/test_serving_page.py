"""docs/library/serving.md, http-api.md and openai-api.md: the paths and limits that they name are those of the application."""

import re

from msgspec.structs import fields
from tests.pages import ROOT

from swink import Agent
from swink.memory import MemoryStore
from swink.serve import ServeLimits, agent_app
from swink.serve.native import NativeDoor
from swink.serve.openai import OpenAIDoor

PAGES = [ROOT / "docs" / "library" / f"{name}.md" for name in ("serving", "http-api", "openai-api")]
PAGE = "".join(page.read_text("utf-8") for page in PAGES)


def test_the_pages_name_every_route_of_the_native_and_the_openai_door():
    host = agent_app(lambda request: Agent("test:m"), store=MemoryStore()).host
    told = PAGE.replace("…/runs", "/conversations/{id}/runs").replace(
        "`…/follow_up`", "`POST /conversations/{id}/runs/{run}/follow_up`"
    )
    for route in (*NativeDoor(host).routes(), *OpenAIDoor(host).routes()):
        assert re.search(rf"`{route.method} {re.escape(route.path)}[`?]", told), (route.method, route.path)


def test_limits_that_the_pages_name_are_limits():
    assert "approval_seconds" in {field.name for field in fields(ServeLimits)}
    assert f"every {ServeLimits().silence_seconds:.0f} seconds" in PAGE
