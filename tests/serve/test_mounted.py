"""An agent inside an application of FastAPI or Starlette, as the examples have it, asked over sockets."""

import runpy
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.answering import answering_model
from tests.pages import ROOT
from tests.serve.served import Client

from swink.serve.asgi import serve_app


@asynccontextmanager
async def running(name: str, place: str = "agents", **headers: str) -> AsyncGenerator[Client]:
    """An example as it stands, on a free port, from its start to its shutdown."""
    app: Any = runpy.run_path(str(ROOT / "examples" / name))["app"]
    async with app.router.lifespan_context(app), serve_app(app) as url:
        async with Client(base_url=f"{url}/{place}", headers=headers, timeout=20) as client:
            yield client


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


async def ask(client: Client) -> list[Any]:
    conversation = await client.begin()
    return await client.events(conversation, await client.start(conversation))


async def test_fastapi_lets_in_who_has_a_token_and_keeps_callers_apart():
    async with running("serve_fastapi.py") as client:
        assert (await client.post("/conversations", json={})).status_code == 401
        client.headers["authorization"] = "Bearer token-of-ada"
        conversation = await client.begin()
        events = await client.events(conversation, await client.start(conversation))
        assert "Hello ada." in str(events[-1])
        assert (await client.get("/v1/models")).json()["data"][0]["id"] == "agent"
        client.headers["authorization"] = "Bearer token-of-bob"
        assert (await client.get(f"/conversations/{conversation}/messages")).status_code == 404


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The model that the service names, on loopback: it calls the first tool, then answers."""
    with answering_model() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.parametrize(("approved", "said"), [(True, "order Oslo is paid back"), (False, "not today")])
async def test_the_service_streams_and_waits_for_a_person(model: None, approved: bool, said: str):
    async with running("fastapi_service.py", "agent") as client:
        conversation = await client.begin()
        run = await client.start(conversation, "Refund order 7")
        events: list[Any] = []
        async for _, event in client.stream_events(conversation, run):
            events.append(event)
            if event["type"] == "approval_requested":
                answer = {"call_id": event["call_id"], "approved": approved, "reason": "not today"}
                path = f"/conversations/{conversation}/runs/{run}/approvals"
                assert (await client.post(path, json=answer)).is_success
        assert "message_update" in [event["type"] for event in events]
        assert said in str((await client.messages(conversation))["messages"][2])


async def test_the_service_aborts_a_run_that_waits(model: None):
    async with running("fastapi_service.py", "agent") as client:
        conversation = await client.begin()
        run = await client.start(conversation, "Refund order 7")
        async for _, event in client.stream_events(conversation, run):
            if event["type"] == "approval_requested":
                assert (await client.post(f"/conversations/{conversation}/runs/{run}/abort")).is_success
        assert event["type"] == "agent_end"
        assert "paid back" not in str(await client.messages(conversation))


async def test_starlette_serves_an_agent_beside_a_page_of_its_own():
    async with running("serve_starlette.py") as client:
        assert "There are 12 apples." in str((await ask(client))[-1])
        front = await client.get(str(client.base_url).replace("/agents/", "/"))
        assert front.text == "The shop is open."


async def test_the_conversation_is_there_when_the_application_starts_again():
    async with running("serve_starlette.py") as client:
        conversation = await client.begin()
        await client.events(conversation, await client.start(conversation, "Any apples?"))
    async with running("serve_starlette.py") as client:
        messages = (await client.messages(conversation))["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "tool_result", "assistant"]


def test_the_example_with_authentication_has_at_most_30_lines():
    assert len((ROOT / "examples" / "serve_fastapi.py").read_text("utf-8").splitlines()) <= 30
