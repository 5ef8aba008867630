"""Conversations of a served agent: whose they are, one run at a time, also on several workers."""

import asyncio
from pathlib import Path

from tests.counts import in_cells
from tests.serve.served import Client, served, serving, text_of, types

from swink import Agent, tool
from swink.errors import SessionError
from swink.memory import MemoryStore, SqliteStore
from swink.messages import ToolCall
from swink.serve.agentapp import agent_app
from swink.serve.hosting import ServeLimits
from swink.testing import Pause, ScriptedModel


def caller_of(request):
    return request.token or None


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


def app_over(store, *replies, **options):
    model = ScriptedModel(list(replies))
    return agent_app(lambda request: Agent("test:m", stream_fn=model), store=store, **options)


BAD = [
    ("POST", "/conversations", b"{", "application/json", 400),
    ("POST", "/conversations", b'{"titel": "x"}', "application/json", 422),
    ("POST", "/conversations", b'{"title": 7}', "application/json", 422),
    ("POST", "/conversations", b"title=x", "application/x-www-form-urlencoded", 415),
    ("POST", "/conversations", b'{"title": "' + b"x" * 70_000 + b'"}', "application/json", 413),
    ("POST", "/conversations", b'{"id": "../x"}', "application/json", 400),
    ("POST", "/conversations", b"[" * 5_000, "application/json", 422),
    ("PUT", "/conversations", b"{}", "application/json", 405),
    ("GET", "/nothing", b"", "", 404),
    ("GET", "/conversations?limit=many", b"", "", 400),
    ("GET", "/conversations/unknown/messages", b"", "", 404),
    ("GET", "/conversations/..%2f..%2fetc/messages", b"", "", 404),
    ("DELETE", "/conversations/unknown", b"", "", 404),
    ("POST", "/conversations/unknown/runs", b'{"input": "hi"}', "application/json", 404),
    ("GET", "/conversations/ID/runs/unknown/events", b"", "", 404),
    ("POST", "/conversations/ID/runs/unknown/abort", b"", "", 404),
    ("POST", "/conversations/ID/runs", b'{"input": ""}', "application/json", 400),
    ("POST", "/conversations/ID/runs", b"{}", "application/json", 400),
    ("POST", "/conversations/ID/runs", b'{"input": [{"type": "file"}]}', "application/json", 422),
    ("POST", "/conversations/ID/fork", b'{"at": 99}', "application/json", 400),
]


async def test_bad_requests_get_the_right_status_and_are_told_what_to_do():
    async with served(["fine"], limits=ServeLimits(body=65_536)) as client:
        id = await client.begin()
        for method, path, body, kind, status in BAD:
            headers = {"Content-Type": kind} if kind else {}
            answer = await client.request(method, path.replace("ID", id), content=body, headers=headers)
            assert answer.status_code == status, (method, path, answer.text)
            assert len(answer.json()["error"]["message"]) > 10
            assert "Traceback" not in answer.text
        run = await client.start(id)
        assert types(await client.events(id, run))[-1] == "agent_end"


async def test_requests_of_web_pages_elsewhere_and_for_other_hosts_are_refused():
    async with served(["fine"], origins=["https://good.example"]) as client:
        bad = [{"Origin": "https://bad.example"}, {"Origin": "null"}, {"Host": "rebound.example"}]
        assert [(await client.get("/conversations", headers=each)).status_code for each in bad] == [403] * 3
        good = await client.get("/conversations", headers={"Origin": "https://good.example"})
        assert good.headers["access-control-allow-origin"] == "https://good.example"
        assert (await client.get("/conversations")).headers.get("access-control-allow-origin") is None


async def test_a_caller_sees_its_own_conversations_alone_also_after_a_restart():
    store = MemoryStore()
    for _ in range(2):
        app = app_over(store, "fine", authorize=caller_of)
        async with serving(app) as client:
            anna, bert = {"Authorization": "Bearer anna"}, {"Authorization": "Bearer bert"}
            if not (listed := (await client.get("/conversations", headers=anna)).json()["conversations"]):
                assert (await client.post("/conversations", json={"id": "annas"}, headers=anna)).is_success
                listed = (await client.get("/conversations", headers=anna)).json()["conversations"]
            assert [each["id"] for each in listed] == ["annas"]
            assert (await client.get("/conversations", headers=bert)).json()["conversations"] == []
            for path in ("/conversations/annas/messages", "/conversations/never/messages"):
                assert (await client.get(path, headers=bert)).status_code == 404
            foreign = await client.post("/conversations/annas/runs", json={"input": "hi"}, headers=bert)
            assert foreign.status_code == 404
            assert (await client.delete("/conversations/annas", headers=bert)).status_code == 404
            assert (await client.get("/conversations")).status_code == 401


async def test_while_a_run_goes_on_another_is_refused_or_queued_as_asked():
    async with served([["one", Pause(0.3)], "two"]) as client:
        id = await client.begin()
        first = await client.start(id, "first")
        path = f"/conversations/{id}/runs"
        assert (await client.post(path, json={"input": "no"})).status_code == 409
        queued = await client.post(path, json={"input": "second", "when_busy": "queue"})
        events = await client.events(id, queued.json()["run_id"])
        assert types(await client.events(id, first))[-1] == "agent_end"
        said = await client.messages(id)
    assert types(events)[0] == "agent_start"
    assert [text_of(each) for each in said["messages"]] == ["first", "one", "second", "two"]


async def test_a_repeated_request_with_a_key_does_not_run_twice_also_on_another_worker(tmp_path: Path):
    runs: list[str] = []
    async with SqliteStore(tmp_path / "a.db") as one, SqliteStore(tmp_path / "a.db") as other:
        async with serving(app_over(one, "fine")) as client, serving(app_over(other)) as second:
            id = await client.begin()
            for each in (client, client, second, second):
                runs.append(await each.start(id, "once", **{"Idempotency-Key": "k1"}))
                assert types(await each.events(id, runs[-1]))[-1] == "agent_end"
            path, key = f"/conversations/{id}/runs", {"Idempotency-Key": "k1"}
            changed = await second.post(path, json={"input": "something else"}, headers=key)
            said = await second.messages(id)
    assert len(set(runs)) == 1
    assert changed.status_code == 422
    assert [text_of(each) for each in said["messages"]] == ["once", "fine"]


async def test_two_workers_never_run_one_conversation_and_the_other_one_tells_its_events(tmp_path: Path):
    async with SqliteStore(tmp_path / "a.db") as one, SqliteStore(tmp_path / "a.db") as other:
        async with (
            serving(app_over(one, ["a", Pause(0.5), "b"])) as client,
            serving(app_over(other)) as second,
        ):
            id = await client.begin()
            run = await client.start(id)
            refused = await second.post(f"/conversations/{id}/runs", json={"input": "me too"})
            told = await second.events(id, run)
            assert told == await client.events(id, run)
    assert refused.status_code == 409
    assert types(told)[-1] == "agent_end"


async def test_an_approval_that_nobody_gives_is_put_off_and_its_answer_begins_another_run():
    call = ToolCall("c1", "delete", {"path": "a.txt"})
    limits = ServeLimits(approval_seconds=0.05)
    async with served([call, "done"], {"tools": [delete]}, limits=limits) as client:
        id = await client.begin()
        run = await client.start(id)
        events = await client.events(id, run)
        waiting = (await client.messages(id))["pending"]
        answer = {"call_id": "c1", "approved": True}
        again = await client.post(f"/conversations/{id}/runs/{run}/approvals", json=answer)
        await client.events(id, again.json()["run_id"])
        said = await client.messages(id)
    assert events[-1][1]["reason"] == "approval"
    assert [call["call_id"] for call in waiting] == ["c1"]
    assert [text_of(each) for each in said["messages"][2:]] == ["deleted a.txt", "done"]
    assert said["pending"] == []


async def test_a_shutdown_pauses_a_run_and_the_next_process_goes_on_with_it():
    @tool
    async def look() -> str:
        """Look for something."""
        looking.set()
        await asyncio.sleep(0.2)
        return "seen"

    looking, store = asyncio.Event(), MemoryStore()

    def app(*replies):
        model = ScriptedModel(list(replies))
        return agent_app(lambda request: Agent("test:m", stream_fn=model, tools=[look]), store=store)

    async with serving(app(ToolCall("c1", "look"))) as client:
        id = await client.begin()
        run = await client.start(id)
        await looking.wait()
    async with serving(app("It is there.")) as client:
        events = await client.events(id, run)
        said = await client.messages(id)
    assert [text_of(each) for each in said["messages"]] == ["Hello", "", "seen", "It is there."]
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert [types(events).count(each) for each in ("agent_start", "agent_end")] == [1, 1]
    assert types(events).count("turn_start") == types(events).count("turn_end") == 2
    assert [event["turn"] for _, event in events if event["type"] == "turn_start"] == [1, 2]


async def test_a_shutdown_puts_off_what_is_asked_and_keeps_what_waits():
    store, call = MemoryStore(), ToolCall("c1", "delete", {"path": "a.txt"})

    def app(*replies):
        model = ScriptedModel(list(replies))
        return agent_app(lambda request: Agent("test:m", stream_fn=model, tools=[delete]), store=store)

    async with serving(app(call)) as client:
        id = await client.begin()
        run = await client.start(id)
        async for _, event in client.stream_events(id, run):
            if event["type"] == "approval_requested":
                break
        body = {"input": "after that", "when_busy": "queue"}
        queued = (await client.post(f"/conversations/{id}/runs", json=body)).json()["run_id"]
    async with serving(app("fine")) as client:
        assert (await client.events(id, run))[-1][1]["reason"] == "approval"
        assert types(await client.events(id, queued))[-1] == "agent_end"
        said = await client.messages(id)
    assert [text_of(each) for each in said["messages"]][-2:] == ["after that", "fine"]


async def test_too_many_runs_of_a_caller_are_refused_and_more_may_come_later():
    async with served([["a", Pause(30)], "b"], limits=ServeLimits(runs_per_caller=1)) as client:
        one, other = await client.begin(), await client.begin()
        run = await client.start(one)
        assert (await client.post(f"/conversations/{other}/runs", json={"input": "x"})).status_code == 429
        await client.post(f"/conversations/{one}/runs/{run}/abort")
        await client.events(one, run)
        assert types(await client.events(other, await client.start(other)))[-1] == "agent_end"


async def test_a_store_that_takes_nothing_more_ends_the_run_with_an_error_and_keeps_what_was():
    store = MemoryStore()
    append, full = store.sync.backend.append, False

    def failing(*values, **options):
        if full:
            raise SessionError("no space left on device")
        return append(*values, **options)

    store.sync.backend.append = failing

    def second(context):
        nonlocal full
        full = True
        return "lost"

    async with serving(app_over(store, "kept", second)) as client:
        id = await client.begin()
        await client.events(id, await client.start(id, "one"))
        events = await client.events(id, await client.start(id, "two"))
        said = await client.messages(id)
    assert events[-1][1]["type"] == "agent_end"
    assert [text_of(each) for each in said["messages"]][:2] == ["one", "kept"]


async def test_conversations_are_forked_searched_and_deleted():
    async with served(["Paris.", "Rome."]) as client:
        id = await client.begin(title="Capitals")
        await client.events(id, await client.start(id, "France?"))
        await client.events(id, await client.start(id, "Italy?"))
        forked = (await client.post(f"/conversations/{id}/fork", json={"at": 2})).json()["id"]
        found = (await client.get("/conversations", params={"search": "Rome"})).json()["conversations"]
        said = await client.messages(forked)
        assert (await client.delete(f"/conversations/{id}")).status_code == 204
        left = (await client.get("/conversations")).json()["conversations"]
    assert [text_of(each) for each in said["messages"]] == ["France?", "Paris."]
    assert [each["id"] for each in found] == [id]
    assert [each["id"] for each in left] == [forked]


@in_cells("leave_after", range(1, 8), every=3)
async def test_a_client_may_leave_at_any_event_and_come_back(leave_after: int):
    async with served([["a", "b"]]) as client:
        assert isinstance(client, Client)
        id = await client.begin()
        run = await client.start(id)
        seen: list = []
        while not seen or seen[-1][1]["type"] != "agent_end":
            after = seen[-1][0] if seen else None
            async for event in client.stream_events(id, run, after):
                seen.append(event)
                if len(seen) % leave_after == 0:
                    break
        assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
        assert seen == await client.events(id, run)
