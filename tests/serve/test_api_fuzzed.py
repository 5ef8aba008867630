"""The native API against its description: schemathesis makes requests of it, fitting ones and wrong ones.

Whatever is asked, the status and the body are those that /openapi.json promises for the path.
"""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.counts import MORE, cell_of_more
from tests.later import Later

from swink import Agent, tool
from swink.memory import MemoryStore
from swink.serve.agentapp import agent_app
from swink.serve.asgi import serve_app
from swink.serve.hosting import ServeLimits
from swink.serve.native import NativeDoor
from swink.testing import ScriptedModel

schemathesis = Later("schemathesis")
checks = Later("schemathesis.checks")

DAILY = ("POST /conversations/{id}/runs",)
COUNT = 60 if MORE else 2
HELD = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
UNSAID = ("POST /conversations", "POST /conversations/{id}/fork", "POST /conversations/{id}/runs")
"""No schema says what an id may be, how many messages there are, and whether there is something to go on with."""


class Fuzzed:
    """A served agent, one of its conversations with one of its runs, and what it says that it answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        with httpx.Client(base_url=url) as client:
            self.described = client.get("/openapi.json").json()
            self.id = client.post("/conversations", json={}).json()["id"]
            self.run = client.post(f"/conversations/{self.id}/runs", json={"input": "Hi"}).json()["run_id"]
        self.ids = {"id": self.id, "run": self.run}


@tool(requires_approval=True)
def drop(what: str) -> str:
    """Drop something."""
    return f"dropped {what}"


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Fuzzed]:
    started, url, done = threading.Event(), [""], asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        limits = ServeLimits(runs=100_000, runs_per_caller=100_000, approval_seconds=0.2)
        app = agent_app(
            lambda request: Agent("test:m", stream_fn=ScriptedModel(["Hello."] * 1_000), tools=[drop]),
            store=MemoryStore(),
            limits=limits,
        )
        async with serve_app(app) as url[0]:
            started.set()
            await done.wait()
            await app.aclose()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(60)
    try:
        yield Fuzzed(url[0])
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()


OPERATIONS = [f"{each.method} {each.path}" for each in NativeDoor(cast(Any, None)).routes()]


@pytest.mark.more
@pytest.mark.parametrize("operation", [each if each in DAILY else cell_of_more(each) for each in OPERATIONS])
def test_every_answer_is_one_that_the_description_has(fuzzed: Fuzzed, operation: str):
    method, path = operation.split()
    described = fuzzed.described["paths"][path][method.lower()]
    may_be_wrong = "requestBody" in described or any(
        each["in"] == "query" for each in described["parameters"]
    )
    asked = schemathesis.openapi.from_dict(fuzzed.described)[path][method]
    modes = [schemathesis.GenerationMode.POSITIVE, *[schemathesis.GenerationMode.NEGATIVE] * may_be_wrong]
    cases = st.one_of([asked.as_strategy(generation_mode=mode) for mode in modes])
    names = HELD if operation in UNSAID else (*HELD, "positive_data_acceptance")
    held = [checks.CHECKS.get_one(name) for name in names]

    @settings(max_examples=COUNT * len(modes), deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=cases, is_known=st.booleans())
    def ask(case: Any, is_known: bool) -> None:
        if is_known and method != "DELETE":
            case.path_parameters = {name: fuzzed.ids[name] for name in case.path_parameters or {}}
        case.validate_response(case.call(base_url=fuzzed.url, timeout=20), checks=held)

    ask()
