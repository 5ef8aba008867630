"""A served agent on loopback, and a client of it that reads server-sent events."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from swink import Agent
from swink.memory import MemoryStore
from swink.serve.agentapp import AgentApp, agent_app
from swink.serve.asgi import serve_app
from swink.testing import ScriptedModel


class Client(httpx.AsyncClient):
    """A client of the native door."""

    app: AgentApp

    async def begin(self, **body: Any) -> str:
        answer = await self.post("/conversations", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["id"]

    async def start(self, id: str, text: str | None = "Hello", **headers: str) -> str:
        body = {} if text is None else {"input": text}
        answer = await self.post(f"/conversations/{id}/runs", json=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return answer.json()["run_id"]

    async def events(
        self, id: str, run: str, after: int | None = None, **query: str
    ) -> list[tuple[int, Any]]:
        """Every event of a run after that one, until its end."""
        return [event async for event in self.stream_events(id, run, after, **query)]

    async def stream_events(
        self, id: str, run: str, after: int | None = None, **query: str
    ) -> AsyncIterator[tuple[int, Any]]:
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        path = f"/conversations/{id}/runs/{run}/events"
        async with self.stream("GET", path, headers=headers, params=query) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"] == "text/event-stream"
            number = 0
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    number = int(line[4:])
                elif line.startswith("data: "):
                    yield number, json.loads(line[6:])

    async def messages(self, id: str) -> dict[str, Any]:
        answer = await self.get(f"/conversations/{id}/messages")
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def serving(app: AgentApp, **headers: str) -> AsyncIterator[Client]:
    """The application on a free port, with a client; the application is shut down at the end."""
    async with serve_app(app) as url, Client(base_url=url, headers=headers, timeout=20) as client:
        client.app = app
        try:
            yield client
        finally:
            await app.aclose()


@asynccontextmanager
async def served(
    script: list[Any], agent: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Client]:
    """An agent with a script, which goes on from run to run, over a store in memory."""
    model = ScriptedModel(script)
    options.setdefault("store", MemoryStore())
    app = agent_app(lambda request: Agent("test:m", stream_fn=model, **(agent or {})), **options)
    async with serving(app) as client:
        yield client


def types(events: list[tuple[int, Any]]) -> list[str]:
    return [event["type"] for _, event in events]


def text_of(message: dict[str, Any]) -> str:
    return "".join([block.get("text", "") for block in message["content"]])
