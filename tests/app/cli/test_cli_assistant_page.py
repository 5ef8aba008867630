"""`swink serve assistant`: the coding agent of a folder behind the native door and the page."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.serve.served import Client, text_of, types

from swink.app.cli import agentsetup, main
from swink.app.cli.assistantpage import _tell_downloads, make_app
from swink.app.cli.commands import parse_arguments
from swink.app.cli.servedassistant import ServedAssistant
from swink.messages import ToolCall
from swink.models import catalog
from swink.serve.asgi import serve_app
from swink.testing import Pause, ScriptedModel

WRITE = ToolCall("1", "write_file", {"path": "made.txt", "content": "made\n"})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and an empty folder to work in."""
    home, place = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    place.mkdir()
    for name in ("HOME", "SWINK_CONFIG_DIR", "SWINK_STATE_DIR", "SWINK_SESSIONS_DIR"):
        monkeypatch.setenv(name, str(home / name.lower()))
    monkeypatch.chdir(place)
    return place


@asynccontextmanager
async def assistant(script: list[Any], *arguments: str) -> AsyncIterator[tuple[Client, ServedAssistant]]:
    model = ScriptedModel(script)
    catalog.register_provider("scripted", lambda: model)
    given = parse_arguments(["serve", "assistant", "--page", "-m", "scripted:large", *arguments])
    app, served, entry = make_app(given)
    headers = {"authorization": f"Bearer {entry.key}"}
    async with serve_app(app) as url, Client(base_url=url, headers=headers, timeout=20) as client:
        client.app = app
        try:
            yield client, served
        finally:
            await app.aclose()
            await served.aclose()


async def answered(client: Client, id: str, run: str, **answer: Any) -> list[tuple[int, Any]]:
    """The events of a run whose questions get this answer, unless a rule answers first."""
    events: list[tuple[int, Any]] = []
    answers: dict[str, asyncio.Task[None]] = {}

    async def say(call: str) -> None:
        body = {"call_id": call, **answer}
        path = f"/conversations/{id}/runs/{run}/approvals"
        while (await client.post(path, json=body)).status_code != 200:  # the question comes after its event
            await asyncio.sleep(0.01)

    async for number, event in client.stream_events(id, run):
        events.append((number, event))
        if event["type"] == "approval_requested":
            answers[event["call_id"]] = asyncio.create_task(say(event["call_id"]))
        elif event["type"] == "approval_resolved":
            answers[event["call_id"]].cancel()
    await asyncio.wait(answers.values())
    return events


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_the_page_is_asked_before_a_file_is_written(home: Path, is_allowed: bool):
    async with assistant([[WRITE], "Done."]) as (client, _):
        id = await client.begin()
        run = await client.start(id, "Write it")
        events = await answered(client, id, run, approved=is_allowed, reason="not now")
        messages = (await client.messages(id))["messages"]
    assert types(events)[-1] == "agent_end"
    assert (home / "made.txt").exists() is is_allowed
    results = [text_of(message) for message in messages if message["role"] == "tool_result"]
    assert "not now" in results[0]  # a note on the call, or why it was refused


async def test_a_mode_that_accepts_edits_asks_nobody(home: Path):
    async with assistant([[WRITE], "Done."]) as (client, _):
        id = await client.begin()
        taken = await client.post(f"/conversations/{id}/settings", json={"mode": "edits"})
        await client.events(id, await client.start(id, "Write it"))
    assert taken.json()["mode"] == "edits"
    assert (home / "made.txt").read_text() == "made\n"


async def test_a_conversation_that_plans_offers_no_tool_that_writes():
    offered: list[list[str]] = []

    def look(context: Any) -> list[Any]:
        offered.append([tool.name for tool in context.tools])
        return ["A plan."]

    async with assistant([look, look]) as (client, _):
        id = await client.begin()
        for mode in ("plan", "smart"):
            await client.post(f"/conversations/{id}/settings", json={"mode": mode})
            await client.events(id, await client.start(id, "Go"))
    assert "write_file" not in offered[0]
    assert "write_file" in offered[1]


async def test_a_model_or_a_mode_that_there_is_not_is_refused():
    async with assistant([]) as (client, _):
        id = await client.begin()
        model = await client.post(f"/conversations/{id}/settings", json={"model": "nobody:m"})
        mode = await client.post(f"/conversations/{id}/settings", json={"mode": "wild"})
        found = (await client.get("/page/settings")).json()
    assert (model.status_code, mode.status_code) == (400, 400)
    assert found["model"] == "scripted:large"
    assert "plan" in [mode["name"] for mode in found["modes"]]


async def test_conversations_are_those_of_the_folder_in_the_terminal(home: Path):
    from swink.memory import JsonlStore

    async with assistant(["Hello."]) as (client, _):
        id = await client.begin()
        await client.events(id, await client.start(id, "Hi"))
    metas = await JsonlStore().list(directory=os.getcwd())
    assert [meta.id for meta in metas] == [id]


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org", "::"])
def test_the_assistant_is_served_on_loopback_only(host: str, capsys: pytest.CaptureFixture[str]):
    assert main(["serve", "assistant", "--host", host]) == 2
    assert "loopback" in capsys.readouterr().err


async def test_a_page_that_waits_is_told_once_that_a_model_is_being_fetched():
    async with assistant([["a", Pause(60)]]) as (client, served):
        _tell_downloads(served)
        id = await client.begin()
        run = await client.start(id)
        told: list[str] = []
        async for _, event in client.stream_events(id, run):
            if event["type"] == "message_update":
                for _ in range(2):
                    for listen in agentsetup._download_listeners:
                        listen("small", "9 MB")
                await client.post(f"/conversations/{id}/runs/{run}/abort")
            if event["type"] == "custom_event" and event["name"] == "notice":
                told.append(event["data"]["text"])
        agentsetup._download_listeners.clear()
    assert [text for text in told if "fetching" in text] == [
        "fetching local:small (9 MB), once; the answer follows"
    ]


async def test_a_rule_that_is_none_is_refused_and_the_call_still_waits(home: Path):
    async with assistant([[WRITE], "Done."]) as (client, _):
        id = await client.begin()
        run = await client.start(id, "Write it")
        async for _, event in client.stream_events(id, run):
            if event["type"] == "custom_event" and event["name"] == "approval_rules":
                path, body = f"/conversations/{id}/runs/{run}/approvals", {"call_id": "1", "approved": True}
                for wrong in ("no rule!", "deny write_file"):
                    for _ in range(3_000):  # the question is put a moment after the event
                        refused = await client.post(path, json={**body, "rules": [wrong]})
                        if refused.status_code != 409:
                            break
                        await asyncio.sleep(0.01)
                    assert refused.status_code == 400, refused.text
                await client.post(path, json={**body, "approved": False})
    assert not (home / "made.txt").exists()


async def test_a_rule_that_the_page_keeps_allows_the_next_call_without_a_question(home: Path):
    again = ToolCall("2", "write_file", {"path": "made.txt", "content": "again\n"})
    async with assistant([[WRITE], [again], "Done."]) as (client, _):
        id = await client.begin()
        events = await answered(
            client, id, await client.start(id), approved=True, rules=["write_file(*.txt)"]
        )
    asked = [event["call_id"] for _, event in events if event["type"] == "approval_resolved"]
    offered = [event["data"]["rules"] for _, event in events if event.get("name") == "approval_rules"]
    assert offered == [["write_file(made.txt)"]]
    assert (home / "made.txt").read_text() == "again\n", asked
