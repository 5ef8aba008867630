"""What goes out of a run to clients of OpenAI's protocols, event by event, and what is read of their bodies."""

import base64
import json
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.later import Later

from swink.events import MessageDiscarded, MessageEnd, MessageUpdate, TextDelta, ThinkingDelta, ToolCallStart
from swink.messages import (
    AssistantMessage,
    Audio,
    Document,
    Image,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.serve.openai.asked import AskedOfAgent, read_chat, read_responses
from swink.serve.openai.chatreply import ChatReply, whole_chat
from swink.serve.openai.responsesreply import ResponseReply, response_head, whole_response
from swink.serve.openai.spoken import (
    MessageSpoken,
    ReplyRestarted,
    RunOutcome,
    Speech,
    Spoken,
    SpokenText,
    SpokenThinking,
    WholeSpeech,
)
from swink.serve.wire import Refused

responses = Later("openai.types.responses")
completions = Later("openai.types.chat")

SPEECH: list[Speech] = [
    SpokenThinking("hm"),
    SpokenText("Let me "),
    SpokenText("see."),
    MessageSpoken(),
    SpokenText("18 °C."),
    MessageSpoken(),
]
CALL = ToolCall("call_1", "open_door", {"door": 2})
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
IMAGE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
ASKED = AskedOfAgent((UserMessage("Weather?"),))


def data_of(lines: list[bytes]) -> list[Any]:
    """The JSON of server-sent events, whose names are those in their data."""
    found: list[Any] = []
    for each in b"".join(lines).decode().split("\n\n")[:-1]:
        name, _, data = each.rpartition("data: ")
        found.append(data if data == "[DONE]" else json.loads(data))
        if name:
            assert name == f"event: {found[-1]['type']}\n"
    return found


def response_events(speech: list[Speech], outcome: RunOutcome) -> list[Any]:
    reply = ResponseReply(response_head("resp_1", "agent", ASKED), outcome.json is not None)
    lines = [*reply.start(), *(line for piece in speech for line in reply.write(piece))]
    return data_of([*lines, *reply.finish(outcome)])


# What is spoken


def test_text_after_a_discarded_attempt_that_says_something_else_fails_the_reply():
    spoken = Spoken()
    spoken.take(MessageUpdate(TextDelta(0, "The sun")))
    spoken.take(MessageDiscarded(1, "connection lost"))
    with pytest.raises(ReplyRestarted, match="ask again"):
        spoken.take(MessageUpdate(TextDelta(0, "The moon")))


def test_a_shorter_attempt_than_the_discarded_one_fails_the_reply():
    spoken = Spoken()
    spoken.take(MessageUpdate(TextDelta(0, "The sun")))
    spoken.take(MessageDiscarded(1, "connection lost"))
    spoken.take(MessageUpdate(TextDelta(0, "The")))
    with pytest.raises(ReplyRestarted):
        spoken.take(MessageEnd(AssistantMessage("The")))


def test_an_attempt_that_begins_as_the_discarded_one_is_not_said_twice():
    spoken = Spoken()
    spoken.take(MessageUpdate(ThinkingDelta(0, "hm")))
    spoken.take(MessageUpdate(TextDelta(1, "The sun")))
    spoken.take(MessageDiscarded(1, "connection lost"))
    again = [ThinkingDelta(0, "hm"), TextDelta(1, "The "), TextDelta(1, "sun sh"), TextDelta(1, "ines.")]
    said = [spoken.take(MessageUpdate(delta)) for delta in again]
    assert said == [None, None, SpokenText(" sh"), SpokenText("ines.")]
    assert spoken.take(MessageEnd(AssistantMessage("The sun shines."))) == MessageSpoken()


def test_the_tools_of_the_agent_stay_inside():
    spoken = Spoken()
    assert spoken.take(MessageUpdate(ToolCallStart(0, "call_1", "secret_tool"))) is None
    assert spoken.take(MessageEnd(ToolResultMessage("call_1", "secret_tool", "the vault is open"))) is None


def test_what_was_discarded_is_not_part_of_a_whole_reply():
    said = WholeSpeech()
    for delta in (ThinkingDelta(0, "hm"), TextDelta(1, "The sun")):
        said.take(MessageUpdate(delta))
    said.take(MessageDiscarded(1, "connection lost"))
    said.take(MessageUpdate(TextDelta(0, "The moon")))
    said.take(MessageEnd(AssistantMessage("The moon")))
    said.take(MessageUpdate(TextDelta(0, "rises.")))
    assert said.pieces == [SpokenText("The moon"), MessageSpoken(), SpokenText("rises.")]


# Chat completions


def chunks_of(reply: ChatReply, speech: list[Speech], outcome: RunOutcome) -> list[Any]:
    lines = [*reply.start(), *(line for piece in speech for line in reply.write(piece))]
    return data_of([*lines, *reply.finish(outcome)])


def test_chunks_say_what_the_whole_completion_says():
    outcome = RunOutcome(calls=(CALL,), usage=Usage(input=3, output=5, cache_read=2, cache_write=1))
    *chunks, done = chunks_of(ChatReply("agent", True, False), SPEECH, outcome)
    assert done == "[DONE]"
    read = [completions.ChatCompletionChunk.model_validate(chunk, strict=True) for chunk in chunks]
    text = "".join(choice.delta.content or "" for chunk in read for choice in chunk.choices)
    assert text == "Let me see.\n\n18 °C."
    whole = whole_chat("agent", SPEECH, outcome)
    completion = completions.ChatCompletion.model_validate(whole, strict=True)
    assert completion.choices[0].message.content == text
    assert completion.choices[0].message.reasoning_content == "hm"
    assert completion.choices[0].finish_reason == read[-2].choices[0].finish_reason == "tool_calls"
    assert whole["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"door":2}'
    assert read[-1].usage == completion.usage
    assert (completion.usage.prompt_tokens, completion.usage.total_tokens) == (6, 11)


def test_a_stream_has_no_usage_unless_it_is_asked_for():
    chunks = chunks_of(ChatReply("agent", False, False), SPEECH, RunOutcome())
    assert not [chunk for chunk in chunks if chunk != "[DONE]" and "usage" in chunk]


def test_a_structured_output_is_all_the_text_there_is():
    outcome = RunOutcome(json='{"city":"Oslo"}')
    chunks = chunks_of(ChatReply("agent", False, True), SPEECH, outcome)
    texts = [chunk["choices"][0]["delta"].get("content") for chunk in chunks if chunk != "[DONE]"]
    assert [text for text in texts if text] == ['{"city":"Oslo"}']
    assert whole_chat("agent", SPEECH, outcome)["choices"][0]["message"]["content"] == '{"city":"Oslo"}'


def test_a_reply_that_was_cut_says_so():
    outcome = RunOutcome(is_cut=True)
    assert whole_chat("agent", SPEECH, outcome)["choices"][0]["finish_reason"] == "length"
    last = response_events(SPEECH, outcome)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


# Responses


@pytest.mark.parametrize(
    "outcome", [RunOutcome(calls=(CALL, CALL)), RunOutcome(json="{}")], ids=["calls", "json"]
)
def test_every_event_of_a_response_is_one_that_the_published_package_declares(outcome: RunOutcome):
    events = response_events(SPEECH, outcome)
    declared = TypeAdapter(responses.ResponseStreamEvent)
    for event in events:
        read = declared.validate_json(json.dumps(event), strict=True)
        assert read.type == event["type"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_every_item_of_a_response_ends_as_it_stands_in_the_response():
    *events, last = response_events(SPEECH, RunOutcome(calls=(CALL,)))
    done = {
        each["output_index"]: each["item"] for each in events if each["type"] == "response.output_item.done"
    }
    added = {
        each["output_index"]: each["item"]["id"] for each in events if each["type"].endswith("item.added")
    }
    assert [done[at] for at in range(len(done))] == last["response"]["output"]
    assert {at: item["id"] for at, item in done.items()} == added
    assert [item["type"] for item in done.values()] == ["reasoning", "message", "message", "function_call"]


def test_a_whole_response_says_what_its_events_say():
    outcome = RunOutcome(calls=(CALL,), usage=Usage(input=3, output=5, extra={"reasoning": 2}))
    whole = whole_response(response_head("resp_1", "agent", ASKED), SPEECH, outcome)
    response = responses.Response.model_validate_json(json.dumps(whole), strict=True)
    assert response.output_text == "Let me see.18 °C."
    assert response.status == "completed"
    assert response.usage.output_tokens_details.reasoning_tokens == 2


def test_a_response_that_fails_ends_its_open_item_first():
    reply = ResponseReply(response_head("resp_1", "agent", ASKED))
    reply.write(SpokenText("half"))
    *_, item, failed = data_of(reply.fail("the model is gone", "network"))
    assert (item["type"], item["item"]["status"]) == ("response.output_item.done", "incomplete")
    assert failed["response"]["error"] == {"code": "server_error", "message": "the model is gone"}


# Bodies


def chat(*messages: Any, **more: Any) -> AskedOfAgent:
    return read_chat({"model": "m", "messages": list(messages), **more})


USER = {"role": "user", "content": "Hi"}
ORPHAN = {"role": "tool", "tool_call_id": "call_9", "content": "42"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "list of messages"),
        ({"messages": []}, "ends with what the user says"),
        ({"messages": [USER, {"role": "assistant", "content": "Yes"}]}, "ends with what the user says"),
        ({"messages": [USER], "n": 2}, "leave out n"),
        ({"messages": [USER], "temperature": "hot"}, "temperature is a number"),
        ({"messages": [USER], "tool_choice": "required"}, "the agent decides"),
        ({"messages": [USER], "tools": [{"type": "web_search"}]}, "a function with a name"),
        ({"messages": [ORPHAN]}, "call"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "type 'video'"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]}, "nor http"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}]}]}, "not base64"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]}]}, "PNG, JPEG"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]}, "stored file"),
    ],
)  # fmt: skip
def test_a_chat_body_that_cannot_be_asked_is_refused(body: Any, says: str):
    with pytest.raises(Refused, match=says) as refused:
        read_chat(body)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([], "ends with"),
        ({"input": 7}, "ends with"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, r"input\[0\] is no message"),
        ({"input": "Hi", "background": True}, "background"),
        ({"input": "Hi", "conversation": "conv_1"}, "previous_response_id"),
        ({"input": "Hi", "previous_response_id": 7}, "the id of a response"),
        ({"input": "Hi", "tools": [{"type": "web_search"}]}, "'web_search' is not known"),
        ({"input": "Hi", "tools": [{"type": "function"}]}, "and a name"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "42"}]}, "call"),
        (
            {"previous_response_id": "resp_1", "input": [{"role": "assistant", "content": "Yes"}, USER]},
            "the input is what is new",
        ),
    ],
)
def test_a_body_of_responses_that_cannot_be_asked_is_refused(body: Any, says: str):
    with pytest.raises(Refused, match=says) as refused:
        read_responses(body)
    assert refused.value.status == 400


def test_images_files_and_sound_of_a_chat_become_blocks():
    data = base64.b64encode(b"%PDF-1.7 ...").decode()
    sound = base64.b64encode(b"RIFF0000WAVEfmt ").decode()
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": IMAGE}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{data}", "filename": "a.pdf"}},
        {"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}},
    ]
    (message,) = chat({"role": "user", "content": content}).messages
    text, image, linked, document, audio = message.content
    assert text == Text("Look")
    assert image == Image.from_bytes(PNG)
    assert linked == Image.from_url("https://example.org/cat.png")
    assert document == Document.from_bytes(b"%PDF-1.7 ...", title="a.pdf")
    assert audio == Audio.from_bytes(b"RIFF0000WAVEfmt ")


def test_items_of_responses_become_the_messages_that_they_are():
    items = [
        {"role": "developer", "content": "Be brief."},
        USER,
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
        {"type": "function_call", "call_id": "call_1", "name": "open_door", "arguments": '{"door":2}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "open"},
    ]
    asked = read_responses({"input": items, "instructions": "You are a porter."})
    assert asked.instructions == "You are a porter.\n\nBe brief."
    assert asked.messages == (
        UserMessage("Hi"),
        AssistantMessage([Text("One moment."), CALL]),
        ToolResultMessage("call_1", "open_door", "open"),
    )


def test_a_client_that_chooses_no_tool_offers_none():
    function = {"name": "open_door", "parameters": {"type": "object"}}
    offered = [{"type": "function", "function": function}]
    assert [tool.name for tool in chat(USER, tools=offered).tools] == ["open_door"]
    assert chat(USER, tools=offered, tool_choice="none").tools == ()
    flat = [{"type": "function", **function}]
    assert read_responses({"input": "Hi", "tools": flat}).tools == chat(USER, tools=offered).tools


def test_the_schema_of_the_answer_is_read_from_both_bodies():
    schema = {"type": "object", "properties": {}}
    format = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    flat = {"format": {"type": "json_schema", "name": "city", "schema": schema}}
    asked = chat(USER, response_format=format).output
    assert asked is not None
    assert (asked.name, asked.schema) == ("city", schema)
    assert read_responses({"input": "Hi", "text": flat}).output == asked


def test_what_the_client_changes_of_the_model_is_read_from_both_bodies():
    asked = chat(USER, temperature=0.2, top_p=None, max_completion_tokens=9, stop=["END"], seed=4)
    assert asked.options == {"temperature": 0.2, "max_tokens": 9, "stop": ["END"], "seed": 4}
    assert read_responses({"input": "Hi", "max_output_tokens": 9, "top_p": 0.5}).options == {
        "max_tokens": 9,
        "top_p": 0.5,
    }


def test_fields_that_change_nothing_are_known_by_name():
    assert chat(USER, logprobs=True, service_tier=None, user="u").ignored == ("logprobs",)
