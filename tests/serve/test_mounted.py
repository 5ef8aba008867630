"""An agent inside an application of FastAPI or Starlette, as the examples have it, asked over sockets."""

import runpy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.pages import ROOT
from tests.serve.served import Client

from swink.serve.asgi import serve_app


@asynccontextmanager
async def running(name: str, **headers: str) -> AsyncGenerator[Client]:
    """An example as it stands, on a free port, from its start to its shutdown."""
    app: Any = runpy.run_path(str(ROOT / "examples" / name))["app"]
    async with app.router.lifespan_context(app), serve_app(app) as url:
        async with Client(base_url=f"{url}/agents", headers=headers, timeout=20) as client:
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
