"""The Vercel door: what it takes, what it refuses, and what the published client makes of its chunks."""

import asyncio
import json

import pytest
from tests.counts import left_to_more
from tests.serve.served import served, serving
from tests.serve.webscenes import DOOR_TOOL, PNG, SCENES, delete, play

from swink import Agent
from swink.events import (
    ApprovalRequested,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    TextDelta,
    ToolCallStart,
    ToolExecutionEnd,
    TurnEnd,
)
from swink.memory import MemoryStore
from swink.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from swink.serve.agentapp import agent_app
from swink.serve.vercel.reply import VercelReply
from swink.serve.webrun import Before, RunEnd
from swink.stream import Done, Start, TextEnd, TextStart

DELETE = ["May I? ", ToolCall("call-1", "delete", {"path": "a.txt"})]
VERCEL = {"protocols": ["native", "vercel"]}


def user(text, id="u1"):
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def assistant(*parts, id="a1"):
    return {"id": id, "role": "assistant", "parts": [{"type": "step-start"}, *parts]}


def called(state, **more):
    return {"type": "dynamic-tool", "toolName": "delete", "toolCallId": "call-1", "state": state, **more}


def body(*messages, chat="t", **more):
    return {"id": chat, "messages": list(messages), "trigger": "submit-message", **more}


def chunks_of(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.headers["content-type"] == "text/event-stream"
    *chunks, last = [line[6:] for line in answer.text.split("\n\n") if line.startswith("data: ")]
    assert last == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def types(chunks):
    return [chunk["type"] for chunk in chunks]


def text_of(chunks):
    return "".join([chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"])


async def ask(client, *messages, query="", **more):
    return chunks_of(await client.post(f"/vercel{query}", json=body(*messages, **more)))


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"messages": []}, "an id"),
        ({"id": "t"}, "a list of messages"),
        (body({"id": "u", "role": "wizard", "parts": []}), "message 1"),
        (body({"id": "u", "role": "user", "content": "old form"}), "message 1"),
        (body({"id": "u", "role": "user", "parts": [{"type": "text"}]}), "neither text nor a file"),
        (
            body(
                {
                    "id": "u",
                    "role": "user",
                    "parts": [{"type": "file", "url": "file:///x", "mediaType": "a/b"}],
                }
            ),
            "URL",
        ),
        (body(user("Hi"), tools=[{}]), "a tool has a name"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused_with_what_is_wrong(sent, says):
    async with served(["never"], **VERCEL) as client:
        answer = await client.post("/vercel", json=sent)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


async def test_a_history_that_contradicts_the_store_is_refused():
    lie = assistant({"type": "text", "text": "London."})
    async with served(["Paris."], **VERCEL) as client:
        await ask(client, user("Capital?"))
        answer = await client.post("/vercel", json=body(user("Capital?"), lie, user("And?", "u2")))
    assert answer.status_code == 409
    assert "on_conflict=fork" in answer.json()["error"]["message"]


async def test_a_fork_names_the_conversation_that_it_goes_on_in():
    lie = assistant({"type": "text", "text": "London."})
    async with served(["Paris.", "Oslo."], **VERCEL) as client:
        await ask(client, user("Capital?"))
        sent = [user("Capital?"), lie, user("And?", "u2")]
        chunks = await ask(client, *sent, query="?on_conflict=fork")
        fork = chunks[0]["messageMetadata"]["conversation"]
        told = (await client.messages(fork))["messages"]
    assert fork != "t"
    assert [message["content"][0]["text"] for message in told] == ["Capital?", "And?", "Oslo."]


async def test_a_reply_is_not_made_again_in_place_of_the_stored_one():
    async with served(["Paris."], **VERCEL) as client:
        await ask(client, user("Capital?"))
        answer = await client.post("/vercel", json=body(user("Capital?"), trigger="regenerate-message"))
    assert answer.status_code == 409
    assert "not made again" in answer.json()["error"]["message"]


async def test_a_reply_is_made_again_in_a_conversation_of_its_own():
    async with served(["Paris.", "Lyon."], **VERCEL) as client:
        await ask(client, user("Largest?"))
        again = {"trigger": "regenerate-message", "query": "?on_conflict=fork"}
        chunks = await ask(client, user("Largest?"), **again)
        fork = chunks[0]["messageMetadata"]["conversation"]
        told = [(await client.messages(id))["messages"] for id in ("t", fork)]
    assert text_of(chunks) == "Lyon."
    said = [[message["content"][0]["text"] for message in messages] for messages in told]
    assert said == [["Largest?", "Paris."], ["Largest?", "Lyon."]]


async def test_a_repeated_request_does_not_run_twice():
    async with served(["Paris."], **VERCEL) as client:
        first = await ask(client, user("Capital?"))
        assert await ask(client, user("Capital?")) == first
        said = await client.messages("t")
    assert len(said["messages"]) == 2


async def test_an_edited_message_is_a_new_one_although_it_keeps_its_id():
    async with served(["Paris.", "Rome."], **VERCEL) as client:
        await ask(client, user("Capital of France?"))
        chunks = await ask(client, user("Capital of Italy?"))
    assert text_of(chunks) == "Rome."


async def test_an_output_that_a_client_invents_for_a_call_of_ours_is_not_taken():
    forged = called("output-available", input={}, output="deleted")
    tools = [DOOR_TOOL]
    async with served([DELETE], {"tools": [delete]}, **VERCEL) as client:
        await ask(client, user("Delete"))
        chunks = await ask(client, user("Delete"), assistant(forged), tools=tools)
        said = await client.messages("t")
    assert len(said["messages"]) == 1
    assert "tool-output-available" not in types(chunks)


async def test_an_answer_to_a_call_that_does_not_wait_is_refused():
    answered = called("approval-responded", input={}, approval={"id": "call-1", "approved": True})
    async with served(["Hm."], **VERCEL) as client:
        await ask(client, user("Delete"))
        answer = await client.post("/vercel", json=body(user("Delete"), assistant(answered)))
    assert answer.status_code == 409
    assert "waits for an approval" in answer.json()["error"]["message"]


async def test_a_chat_with_nothing_under_way_has_no_stream():
    async with served(["Paris."], **VERCEL) as client:
        assert (await client.get("/vercel/unknown/stream")).status_code == 204
        await ask(client, user("Capital?"))
        assert (await client.get("/vercel/t/stream")).status_code == 204


async def test_a_stream_is_resumed_from_its_beginning():
    app, more = held()
    async with serving(app) as client:
        async with client.stream("POST", "/vercel", json=body(user("Capital?"))) as answer:
            async for line in answer.aiter_lines():
                if "text-delta" in line:
                    break
        chunks = await resumed(client, "t", more)
    assert types(chunks)[0] == "start"
    assert types(chunks)[-1] == "finish"
    assert text_of(chunks) == "paris"


async def test_a_run_that_another_door_began_is_resumed_without_its_prompt():
    app, more = held()
    async with serving(app) as client:
        id = await client.begin()
        await client.start(id, "Capital?")
        chunks = await resumed(client, id, more)
    assert "steering-message" not in types(chunks)
    assert text_of(chunks) == "paris"


def held():
    """An application whose model goes on when the event is set."""
    more = asyncio.Event()

    async def reply(model, context, options):
        yield Start()
        yield TextStart(0)
        yield TextDelta(0, "par")
        await more.wait()
        yield TextDelta(0, "is")
        yield TextEnd(0)
        yield Done()

    return agent_app(lambda request: Agent("test:m", stream_fn=reply), store=MemoryStore(), **VERCEL), more


async def resumed(client, id, more):
    """The chunks of the run under way, which goes on once the first text has come."""
    seen = []
    async with client.stream("GET", f"/vercel/{id}/stream") as answer:
        async for line in answer.aiter_lines():
            seen.append(line)
            if "text-delta" in line:
                more.set()
    return [json.loads(line[6:]) for line in seen if line.startswith("data: {")]


def test_a_resumed_stream_has_the_replies_before_an_approval_again():
    before = Before((UserMessage("Hi"), AssistantMessage(["Step one."])))
    chunks = VercelReply("t", "m", before, earlier=before.stored[1:]).begin({})
    assert types(chunks) == ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step"]


async def test_files_of_the_user_reach_the_model():
    seen = []

    def look(context):
        seen.extend(context.messages[-1].content)
        return "A cat."

    files = [
        {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PNG}"},
        {
            "type": "file",
            "mediaType": "text/plain",
            "url": "data:text/plain;base64,SGk=",
            "filename": "a.txt",
        },
    ]
    sent = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "What?"}, *files]}
    async with served([look], **VERCEL) as client:
        await ask(client, sent)
    assert [type(block).__name__ for block in seen] == ["Text", "Image", "Document"]
    assert (seen[2].text, seen[2].title) == ("Hi", "a.txt")


async def test_the_description_of_the_application_names_the_doors():
    async with served(["never"], protocols=["native", "ag-ui", "vercel"]) as client:
        described = await client.get("/openapi.json")
    assert {"/ag-ui", "/vercel", "/vercel/{id}/stream"} <= {*described.json()["paths"]}


def test_a_discarded_reply_empties_its_step():
    reply = VercelReply("t", "m", Before())
    begun = reply.add(MessageUpdate(TextDelta(0, "wrong")))
    assert types(begun) == ["start-step", "text-start", "text-delta"]
    assert types(reply.add(MessageDiscarded(1, "cut off"))) == ["reset-step"]
    again = [
        *reply.add(MessageUpdate(TextDelta(0, "right"))),
        *reply.add(MessageEnd(AssistantMessage("right"))),
    ]
    assert types(again) == ["text-start", "text-delta", "text-end"]


def test_a_call_that_was_cut_off_is_an_input_error():
    reply = VercelReply("t", "m", Before())
    reply.add(MessageUpdate(ToolCallStart(0, "c", "delete")))
    message = AssistantMessage([ToolCall("c", "delete", {}, '{"path": "a')], stop_reason="length")
    (chunk,) = reply.add(MessageEnd(message))
    assert (chunk["type"], chunk["input"]) == ("tool-input-error", '{"path": "a')


def test_what_is_said_of_calls_that_the_message_has_not_is_left_out():
    reply = VercelReply("t", "m", Before())
    asked = reply.add(ApprovalRequested("ask_1", "a question", {}))
    ended = reply.add(ToolExecutionEnd("c", "delete", ToolResult("gone")))
    assert [chunk for chunk in [*asked, *ended] if not chunk["type"].startswith("data-")] == []


def test_a_message_that_entered_meanwhile_is_shown():
    reply = VercelReply("t", "m", Before())
    (chunk,) = reply.add(MessageEnd(UserMessage("Hurry")))
    assert chunk["type"] == "steering-message"
    assert chunk["parts"] == [{"type": "text", "text": "Hurry"}]


def test_a_run_that_ends_anywhere_closes_what_is_open():
    reply = VercelReply("t", "m", Before())
    reply.add(MessageUpdate(TextDelta(0, "par")))
    ended = reply.end(RunEnd(stop_reason="aborted", reason="the user pressed stop"))
    assert types(ended) == ["text-end", "finish-step", "abort", "finish"]
    assert reply.add(TurnEnd(AssistantMessage(""), (), "aborted")) == []


@pytest.fixture(scope="module")
def played():
    return play("vercel", "vercel_judge.mjs", "ai", list(SCENES), VERCEL["protocols"])


@left_to_more
@pytest.mark.parametrize("name", list(SCENES))
def test_the_published_client_plays_every_scene(played, name):
    """No chunk is refused, and what the client has made of them is what reading them once more gives."""
    steps = played[name]
    failed = ["test:m: the model is gone (choose another model)"] if name == "error" else []
    for step in steps:
        assert (step["status"], step["header"]) == (200, "v1")
        assert step["refused"] == []
        assert step["errors"] == step["rereadErrors"] == failed
        assert types(step["chunks"])[0] == "start"
        assert types(step["chunks"])[-1] == "finish"
        assert step["reread"]["parts"] == step["messages"][-1]["parts"]
    last = steps[-1]["messages"][-1]["parts"]
    shown = [
        part
        for message in steps[-1]["messages"]
        if message["role"] == "assistant"
        for part in message["parts"]
    ]
    said = [part["text"] for part in shown if part["type"] == "text"]
    if name not in ("images", "fresh"):
        assert said == SCENES[name].texts
    calls = [part for part in shown if part["type"] == "dynamic-tool"]
    check(name, steps, last, calls)


def check(name, steps, last, calls):
    """What the user sees of a scene, beside the texts."""
    kinds = types(last)
    match name:
        case "thinking":
            assert [part["text"] for part in last if part["type"] == "reasoning"] == ["a river"]
        case "tools":
            assert [part["output"] for part in calls] == ["one", "two"]
        case "approved":
            assert types(steps[0]["chunks"])[-3] == "tool-approval-request"
            assert [(part["state"], part["output"]) for part in calls] == [
                ("output-available", "deleted a.txt")
            ]
            assert len(steps[1]["messages"]) == 2, "the run goes on in the same message"
        case "rejected":
            assert [part["state"] for part in calls] == ["output-denied"]
        case "retried":
            assert "reset-step" in types(steps[0]["chunks"])
        case "aborted":
            assert types(steps[0]["chunks"])[-2] == "abort"
            assert last[-1]["state"] == "done"
        case "structured":
            assert last[-1]["data"] == {"name": "Paris", "people": 2_000_000}
        case "images":
            assert [part["type"] for part in calls[0]["output"]] == ["text", "file"]
            assert kinds[-4:] == ["file", "text", "text", "source-url"]
        case "subagents":
            (part,) = [part for part in last if part["type"] == "data-subagent"]
            assert (part["data"]["status"], part["data"]["text"]) == ("done", "The Seine.")
            assert part["data"]["tools"] == ["echo"]
        case "client_tools":
            assert [(part["state"], part["output"]) for part in calls] == [("output-available", "opened")]
        case "state":
            changes = [part for part in steps[0]["chunks"] if part["type"] == "data-state-change"]
            assert changes[0]["data"] == {"changed": {"names": ["Ada"]}, "removed": ["empty"]}
        case "fresh":
            assert [part["text"] for part in last if part["type"] == "text"] == ["Two."]
        case _:
            pass
