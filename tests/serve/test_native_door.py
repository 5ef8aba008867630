"""The native door: conversations, runs, events that are taken up again, and what may be said to a run."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.serve.served import served, text_of, types

from swink import tool
from swink.memory import MemoryStore, SqliteStore
from swink.messages import ToolCall
from swink.serve.hosting import ServeLimits, current_run
from swink.testing import Pause

SLOW = ["par", Pause(30), "is"]


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@pytest.mark.parametrize("rules", [[f"delete({n})" for n in range(21)], ["x" * 1_001]])
async def test_rules_that_the_door_would_not_take_back_are_not_offered(rules):
    async def approve(request):
        current_run().offer_rules(request.call_id, rules, rules.extend)
        return True

    script = [ToolCall("1", "delete", {"path": "a.txt"}), "Done."]
    async with served(script, {"tools": [delete], "approve": approve}) as client:
        id = await client.begin()
        events = await client.events(id, await client.start(id))
    assert not any(event.get("name") == "approval_rules" for _, event in events)
    assert types(events)[-1] == "agent_end"


async def test_a_run_is_started_and_its_events_are_read():
    async with served(["Paris."]) as client:
        id = await client.begin()
        run = await client.start(id, "Capital of France?")
        events = await client.events(id, run)
        said = await client.messages(id)
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert types(events)[0] == "agent_start"
    assert types(events)[-1] == "agent_end"
    assert [text_of(message) for message in said["messages"]] == ["Capital of France?", "Paris."]
    assert said["running"] is None


async def test_the_next_run_may_begin_as_soon_as_the_end_was_told(tmp_path: Path):
    async with SqliteStore(tmp_path / "a.db") as store, served(["fine"] * 3, store=store) as client:
        give_back = store.sync.backend.give_back

        def slowly(*values):
            time.sleep(0.1)  # a disk that is busy
            return give_back(*values)

        store.sync.backend.give_back = slowly
        id = await client.begin()
        for _ in range(3):
            run = await client.start(id)
            async for _, event in client.stream_events(id, run):
                if event["type"] == "agent_end":
                    break


async def test_events_are_taken_up_after_any_of_them():
    async with served([["a", "b", "c"]]) as client:
        id = await client.begin()
        run = await client.start(id)
        events = await client.events(id, run)
        for after in range(len(events) + 1):
            assert await client.events(id, run, after) == events[after:]


async def test_a_client_that_leaves_does_not_end_the_run():
    arrived = asyncio.Event()

    def reply(context):
        arrived.set()
        return ["par", Pause(0.05), "is"]

    async with served([reply]) as client:
        id = await client.begin()
        run = await client.start(id)
        async for _, event in client.stream_events(id, run):
            if event["type"] == "message_update":
                break
        events = await client.events(id, run, 0)
    assert text_of(events[-1][1]["messages"][-1]) == "paris"


async def test_a_client_that_wants_it_ends_the_run_by_leaving():
    async with served([SLOW]) as client:
        id = await client.begin()
        run = await client.start(id)
        async for _, event in client.stream_events(id, run, abort_on_disconnect="1"):
            if event["type"] == "message_update":
                break
        events = await client.events(id, run)
    assert events[-1][1]["stop_reason"] == "aborted"


async def test_abort_keeps_what_arrived():
    async with served([SLOW]) as client:
        id = await client.begin()
        run = await client.start(id)
        async for _, event in client.stream_events(id, run):
            if event["type"] == "message_update":
                await client.post(f"/conversations/{id}/runs/{run}/abort")
        said = await client.messages(id)
    assert text_of(said["messages"][-1]) == "par"


async def test_a_steer_is_heard_by_the_next_turn_and_a_follow_up_by_the_one_after():
    async with served([[Pause(0.3), "one"], "two", "three"]) as client:
        id = await client.begin()
        run = await client.start(id)
        for way in ("steer", "follow_up"):
            answer = await client.post(f"/conversations/{id}/runs/{run}/{way}", json={"message": way})
            assert answer.status_code == 200, answer.text
        events = await client.events(id, run)
    assert [text_of(message) for message in events[-1][1]["messages"]] == [
        "Hello",
        "one",
        "steer",
        "two",
        "follow_up",
        "three",
    ]


async def test_an_approval_is_asked_over_the_stream_and_answered_by_a_request():
    call = ToolCall("c1", "delete", {"path": "a.txt"})
    async with served([call, "done"], {"tools": [delete]}) as client:
        id = await client.begin()
        run = await client.start(id)
        seen = []
        async for _, event in client.stream_events(id, run):
            seen.append(event["type"])
            if event["type"] == "approval_requested":
                assert event["shown"] == {"path": "a.txt"}
                answer = await client.post(
                    f"/conversations/{id}/runs/{run}/approvals", json={"call_id": "c1", "approved": True}
                )
                assert answer.status_code == 200, answer.text
        said = await client.messages(id)
    assert "approval_resolved" in seen
    assert text_of(said["messages"][2]) == "deleted a.txt"


async def test_a_rejection_tells_the_model_why():
    call = ToolCall("c1", "delete", {"path": "a.txt"})
    async with served([call, "done"], {"tools": [delete]}) as client:
        id = await client.begin()
        run = await client.start(id)
        async for _, event in client.stream_events(id, run):
            if event["type"] == "approval_requested":
                body = {"call_id": "c1", "approved": False, "reason": "keep it"}
                await client.post(f"/conversations/{id}/runs/{run}/approvals", json=body)
        said = await client.messages(id)
    assert "keep it" in text_of(said["messages"][2])


async def test_an_answer_to_a_call_that_does_not_wait_is_refused():
    async with served(["fine"]) as client:
        id = await client.begin()
        answer = {"call_id": "c1", "approved": True}
        assert (await client.post(f"/conversations/{id}/approvals", json=answer)).status_code == 409
        assert (await client.post("/conversations/other/approvals", json=answer)).status_code == 404


async def test_a_call_that_waits_after_a_restart_is_answered_without_the_run_that_asked():
    store, call = MemoryStore(), ToolCall("c1", "delete", {"path": "a.txt"})
    limits = ServeLimits(approval_seconds=0.01)
    async with served([call], {"tools": [delete]}, store=store, limits=limits) as client:
        id = await client.begin()
        await client.events(id, await client.start(id))
    async with served(["done"], {"tools": [delete]}, store=store) as client:
        answer = {"call_id": "c1", "approved": True}
        run = (await client.post(f"/conversations/{id}/approvals", json=answer)).json()["run_id"]
        events = await client.events(id, run)
        said = await client.messages(id)
    assert types(events)[-1] == "agent_end"
    assert [text_of(each) for each in said["messages"][2:]] == ["deleted a.txt", "done"]


@pytest.mark.parametrize("path", ["/conversations", "/openapi.json", "/nothing"])
async def test_an_answer_to_head_has_no_body_that_the_next_request_would_get(path):
    async with served(["never"]) as client:
        refused = await client.head(path)
        answer = await client.get("/conversations")
    assert refused.status_code in (404, 405)
    assert answer.json() == {"conversations": []}


async def test_a_body_that_only_says_it_is_compressed_is_no_json():
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    async with served(["never"]) as client:
        answer = await client.post("/conversations", content=b"none of it", headers=headers)
    assert answer.status_code == 400
    assert "no JSON" in answer.json()["error"]["message"]


async def test_a_name_that_no_caller_can_have_is_not_let_in():
    async with served(["never"], authorize=lambda request: request.token) as client:
        answer = await client.get("/conversations", headers={"Authorization": "Bearer a\tb"})
    assert answer.status_code == 401
