"""The page's own routes, without a browser: headers, files, choices, documents, the way in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.serve.served import Client, served, serving

from swink import Agent, tool
from swink.errors import InvalidInput
from swink.memory import MemoryStore
from swink.messages import ToolCall
from swink.serve.agentapp import agent_app
from swink.serve.hosting import Caller, current_run
from swink.serve.page import Entry, ModelOffer, PageChoice, PageChoices, PageDoor
from swink.serve.wire import Refused
from swink.testing import ScriptedModel


async def test_the_page_runs_only_its_own_scripts_and_stands_in_no_frame():
    async with served([], page=True) as client:
        page = await client.get("/")
        script = await client.get("/page/main.js")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    for answer in (page, script):
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_the_page_holds_no_script_and_no_style_of_its_own():
    async with served([], page=True) as client:
        page = (await client.get("/")).text
    assert "<style" not in page
    assert " style=" not in page
    assert " on" not in page.replace(" one", "").replace(" on the", "").split("<body>")[0]
    assert page.count("<script") == page.count('<script type="module" src=')


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fchoices.py", "%2e%2e", "choices.py", "__init__.py", ""])
async def test_what_is_no_file_of_the_page_is_not_found(name: str):
    async with served([], page=True) as client:
        answer = await client.get(f"/page/{name}")
    assert answer.status_code == 404


async def test_a_page_without_the_native_protocol_is_refused():
    with pytest.raises(InvalidInput, match="native"):
        agent_app(lambda request: Agent("test:m"), store=MemoryStore(), protocols=(), page=True)


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("html", "text/html; charset=utf-8"),
        ("md", "text/markdown; charset=utf-8"),
        ("json", "application/json"),
    ],
)
async def test_a_conversation_is_exported(format: str, kind: str):
    async with served(["Paris."], page=True) as client:
        id = await client.begin()
        await client.events(id, await client.start(id, "Capital of France?"))
        answer = await client.get(f"/conversations/{id}/export", params={"format": format})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-disposition"] == f'attachment; filename="conversation.{format}"'
    assert "Paris." in answer.text


async def test_an_export_of_another_format_or_conversation_is_refused():
    async with served([], page=True) as client:
        id = await client.begin()
        assert (await client.get(f"/conversations/{id}/export?format=exe")).status_code == 400
        assert (await client.get("/conversations/nothing/export")).status_code == 404


async def test_an_application_that_offers_nothing_takes_no_choice():
    async with served([], page=True) as client:
        id = await client.begin()
        found = (await client.get(f"/conversations/{id}/settings")).json()
        answer = await client.post(f"/conversations/{id}/settings", json={"model": "other:m"})
    assert found["models"] == []
    assert answer.status_code == 409


class TwoModels:
    """Offers two models, and keeps what was chosen."""

    def __init__(self) -> None:
        self.chosen: dict[str, str] = {}

    async def choices(self, caller: Caller, conversation: str | None) -> PageChoices:
        model = self.chosen.get(conversation or "", "test:one")
        return PageChoices(model, models=(ModelOffer("test:one", 8000), ModelOffer("test:two")))

    async def choose(self, caller: Caller, conversation: str, chosen: PageChoice) -> PageChoices:
        if chosen.model not in ("test:one", "test:two"):
            raise Refused(400, "there is no such model")
        self.chosen[conversation] = chosen.model
        return await self.choices(caller, conversation)


async def test_what_is_offered_is_chosen_and_nothing_else():
    choosing = TwoModels()
    async with served([], page=lambda host: PageDoor(host, choosing)) as client:
        id = await client.begin()
        taken = await client.post(f"/conversations/{id}/settings", json={"model": "test:two"})
        wrong = await client.post(f"/conversations/{id}/settings", json={"model": "other:m"})
        unknown = await client.post(f"/conversations/{id}/settings", json={"colour": "red"})
        found = (await client.get(f"/conversations/{id}/settings")).json()
    assert taken.json()["model"] == found["model"] == "test:two"
    assert wrong.status_code == 400
    assert unknown.status_code == 422


@asynccontextmanager
async def entered() -> AsyncIterator[tuple[Client, Entry]]:
    entry = Entry()
    app = agent_app(
        lambda request: Agent("test:m", stream_fn=ScriptedModel([])),
        store=MemoryStore(),
        authorize=entry.authorize,
        page=lambda host: PageDoor(host, entry=entry),
    )
    async with serving(app) as client:
        yield client, entry


async def test_the_token_of_the_address_lets_one_browser_in_once():
    async with entered() as (client, entry):
        first = await client.get("/", params={"token": entry.token})
        cookie = first.headers["set-cookie"]
        again = await client.get("/", params={"token": entry.token})  # this browser has the cookie
        client.cookies.clear()
        second = await client.get("/", params={"token": entry.token})
        without = await client.get("/conversations")
    assert first.status_code == again.status_code == 200
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert "set-cookie" not in again.headers
    assert second.status_code == without.status_code == 401
    assert "used already" in second.json()["error"]["message"]
    assert entry.token not in second.text + cookie + repr(entry)


async def test_the_token_opens_nothing_but_the_page():
    async with entered() as (client, entry):
        for path in ("/conversations", "/page/main.js", "/openapi.json"):
            assert (await client.get(path, params={"token": entry.token})).status_code == 401
        assert (await client.post("/", params={"token": entry.token})).status_code == 401
        wrong = await client.get("/", params={"token": entry.token[:-1] + "é"})
        right = await client.get("/", params={"token": entry.token})
    assert wrong.status_code == 401
    assert right.status_code == 200


async def test_a_program_sends_the_key_in_a_header():
    async with entered() as (client, entry):
        good = await client.get("/conversations", headers={"authorization": f"Bearer {entry.key}"})
        bad = await client.get("/conversations", headers={"authorization": "Bearer no"})
    assert (good.status_code, bad.status_code) == (200, 401)


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


async def test_an_application_that_judges_calls_asks_the_client_about_some():
    async def judge(request: Any) -> Any:
        run = current_run()
        assert run is not None
        if request.arguments["path"] == "a":
            return True
        run.notify("careful")
        answer = await run.ask_client(request.call_id)
        also = await run.ask_about("sure?", {"path": request.arguments["path"]})
        assert getattr(answer, "arguments", 1) is None
        return also

    script = [[ToolCall("1", "delete", {"path": "a"}), ToolCall("2", "delete", {"path": "b"})], "Done."]
    async with served(script, agent={"tools": [delete], "approve": judge}) as client:
        id = await client.begin()
        run = await client.start(id)
        events: list[Any] = []
        async for _, event in client.stream_events(id, run):
            events.append(event)
            if event["type"] == "approval_requested" and event["call_id"] != "1":
                is_call = event["call_id"] == "2"
                body = {"call_id": event["call_id"], "approved": is_call}
                await client.post(f"/conversations/{id}/runs/{run}/approvals", json=body)
    asked = [event["name"] for event in events if event["type"] == "approval_requested"]
    assert asked == ["delete", "delete", "sure?"]
    failed = {event["call_id"] for event in events if event.get("is_error")}
    assert failed == {"2"}
    assert {"type": "custom_event", "name": "notice", "data": {"text": "careful"}} in events


def test_there_is_no_hosted_run_outside_of_one():
    assert current_run() is None
