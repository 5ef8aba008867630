"""docs/library/serving.md: the paths and limits that it names are those of the application."""

import re

from msgspec.structs import fields
from tests.pages import ROOT

from swink import Agent
from swink.memory import MemoryStore
from swink.serve import ServeLimits, agent_app
from swink.serve.native import NativeDoor
from swink.serve.openai import OpenAIDoor

PAGE = (ROOT / "docs" / "library" / "serving.md").read_text("utf-8")


def test_the_page_names_every_route_of_the_native_and_the_openai_door():
    host = agent_app(lambda request: Agent("test:m"), store=MemoryStore()).host
    told = PAGE.replace("…/runs", "/conversations/{id}/runs").replace(
        "`…/follow_up`", "`POST /conversations/{id}/runs/{run}/follow_up`"
    )
    for route in (*NativeDoor(host).routes(), *OpenAIDoor(host).routes()):
        assert re.search(rf"`{route.method} {re.escape(route.path)}[`?]", told), (route.method, route.path)


def test_limits_that_the_page_names_are_limits():
    assert "approval_seconds" in {field.name for field in fields(ServeLimits)}
    assert f"every {ServeLimits().silence_seconds:.0f} seconds" in PAGE
