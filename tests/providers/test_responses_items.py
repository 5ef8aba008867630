"""The items of the Responses API: each comes back to the model that wrote it as it came, whatever its type."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import MemoryClient, check_types, own_fixtures, read, sse
from tests.counts import tried

from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Citation,
    Document,
    Extension,
    Image,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.codec import decode_messages, encode_messages
from swink.providers.responses import ResponsesStreamFn
from swink.providers.responses.conversation import ResponsesConversation
from swink.providers.responses.dialect import OPENAI, XAI
from swink.providers.responses.stream import ITEMS, ResponsesDecoder
from swink.stream import Assembly, BlockWriter, Done, Error, Start, StreamOptions

MODEL = ModelSpec("openai-responses", "gpt-5.4", "high")
HOSTED = next(path for path in own_fixtures("responses") if path.stem == "hosted").read_bytes()
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}
ACTION = {"type": "exec", "command": ["ls"], "env": {}}
KEPT: list[dict[str, Any]] = [
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
    {"type": "computer_call", "id": "cu_1", "call_id": "c1", "pending_safety_checks": [], "status": "completed", "action": {"type": "screenshot"}},
    {"type": "tool_search_call", "id": "ts_1", "arguments": {"paths": ["crm"]}, "call_id": None, "execution": "server", "status": "completed"},
    {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server", "status": "completed", "tools": []},
    {"type": "program", "id": "pr_1", "call_id": "c2", "code": "1", "fingerprint": "f"},
    {"type": "program_output", "id": "po_1", "call_id": "c2", "result": "1", "status": "completed"},
    {"type": "shell_call_output", "id": "so_1", "call_id": "c3", "output": [], "max_output_length": None},
    {"type": "mcp_list_tools", "id": "ml_1", "server_label": "maps", "tools": [], "error": "offline"},
    {"type": "web_search_call", "id": "ws_1", "status": "failed", "action": {"type": "find_in_page", "pattern": "x", "url": "https://a.b"}},
    {"type": "configuration_update", "id": "cf_1", "reasoning": {"effort": "low"}},
]  # fmt: skip
"""Items that come back unchanged and need nothing from here."""

WAITING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "custom": (
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "c1", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "c1"},
    ),
    "shell": (
        {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"},
        {"type": "shell_call_output", "call_id": "c1"},
    ),
    "local shell": (
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "action": ACTION, "status": "completed"},
        {"type": "local_shell_call_output", "id": "c1"},
    ),
    "patch": (
        {"type": "apply_patch_call", "id": "ap_1", "call_id": "c1", "operation": {"type": "delete_file", "path": "a"}, "status": "completed"},
        {"type": "apply_patch_call_output", "call_id": "c1"},
    ),
    "tool search": (
        {"type": "tool_search_call", "id": "ts_1", "call_id": "c1", "arguments": {}, "execution": "client", "status": "completed"},
        {"type": "tool_search_output", "call_id": "c1"},
    ),
    "approval": (
        {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}", "name": "locate", "server_label": "maps"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
    ),
}  # fmt: skip
"""Calls that an application has to answer, and how the answer names them."""


def body_of(*items: Any, **end: Any) -> bytes:
    """A response of these items, each whole."""
    done = [
        {"type": "response.output_item.done", "output_index": at, "item": item}
        for at, item in enumerate(items)
    ]
    return sse(*done, {"type": "response.completed", "response": {"status": "completed", **end}}, names=True)


def replied(*items: Any, model: ModelSpec = MODEL, **end: Any) -> AssistantMessage:
    """The message that a response of these items becomes."""
    writer = BlockWriter()
    ResponsesDecoder(writer, StreamOptions()).feed(body_of(*items, **end))
    assembly = Assembly()
    for event in (Start(), *writer.take(), writer.terminal):
        assembly.feed(event)
    assert isinstance(writer.terminal, Done)
    return assembly.message(model, writer.terminal.stop_reason, usage=writer.terminal.usage)


def resent(*messages: Any, model: ModelSpec = MODEL, dialect: Any = OPENAI) -> list[dict[str, Any]]:
    """The input items that a history becomes, as JSON."""
    history = ResponsesConversation(model, dialect)
    for message in messages:
        history.add(message)
    return msgspec.json.decode(msgspec.json.encode(history.items))


async def sent(*messages: Any, fn: Any = None, model: ModelSpec = MODEL, **options: Any) -> dict[str, Any]:
    client = MemoryClient(body_of(MESSAGE))
    fn = fn or ResponsesStreamFn(api_key="key")
    result = await read(fn, model, messages, options=StreamOptions(http=client, **options))
    assert isinstance(result.terminal, Done), result.terminal
    return client.sent


# --- the round trip --------------------------------------------------------------------------------------------------


async def test_what_the_sdk_would_send_back_is_what_goes_back():
    """The SDK's way is `input += response.output`."""
    from openai.types.responses import Response
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    last = HOSTED.decode().rstrip().rpartition("data: ")[2]
    output = Response.model_validate(json.loads(last)["response"]).output
    fn = ResponsesStreamFn(api_key="key")
    reply = await read(fn, MODEL, options=StreamOptions(http=MemoryClient(HOSTED)))
    body = await sent(UserMessage("x"), reply.message, UserMessage("y"), fn=fn)
    check_types(ResponseCreateParamsStreaming, body)
    expected = [item.to_dict(exclude_none=True, mode="json") for item in output]
    drawn: Any = next(item for item in expected if item["type"] == "image_generation_call")
    expected.remove(drawn)  # nothing is stored, so that the API takes the image as an input alone
    for item in expected:
        for part in item.get("content", ()):
            del part["logprobs"]
    *items, image = body["input"][1:-1]
    assert [without_none(item) for item in items] == expected
    assert image["content"][1]["image_url"] == f"data:image/png;base64,{drawn['result']}"


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


async def test_a_conversation_that_was_saved_and_read_again_goes_back_the_same():
    fn = ResponsesStreamFn(api_key="key")
    reply = (await read(fn, MODEL, options=StreamOptions(http=MemoryClient(HOSTED)))).message
    (saved,) = decode_messages(encode_messages([reply]))
    assert saved == reply
    assert resent(saved) == resent(reply)


async def test_hosted_tools_are_blocks_with_a_line_for_people_and_citations_are_of_the_text():
    fn = ResponsesStreamFn(api_key="key")
    reply = (await read(fn, MODEL, options=StreamOptions(http=MemoryClient(HOSTED)))).message
    assert [block.shown for block in reply.content if isinstance(block, Extension)] == [
        "web search: weather Oslo, 1 source",
        "opened https://yr.no/oslo",
        "file search: climate, 1 result",
        "ran code: print(9*2)",
        "maps: 1 tool",
        "maps: locate",
        "drew an image: A plot",
    ]
    (image,) = [block for block in reply.content if isinstance(block, Image)]
    assert isinstance(image.source, Base64Source)
    assert image.source.media_type == "image/png"
    text = reply.content[-1]
    assert isinstance(text, Text)
    page, plot, paper = text.citations
    assert (page.url, page.title, text.text[page.start : page.end]) == (
        "https://yr.no/oslo",
        "Oslo",
        "[yr.no]",
    )
    assert (plot.title, paper.title, plot.start) == ("plot.png", "climate.pdf", 0)


@pytest.mark.parametrize("item", KEPT, ids=lambda item: item["type"])
def test_an_item_that_is_no_content_of_ours_comes_back_unchanged(item: dict[str, Any]):
    assert resent(replied(REASONING, item, MESSAGE)) == [REASONING, item, MESSAGE]


@pytest.mark.parametrize(
    "item",
    [None, "text", 7, ["a"], {}, {"type": 5, "name": {}}, {"id": 1, "content": {"a": [None]}}],
    ids=repr,
)
def test_items_of_any_shape_are_read_past(item: Any):
    reply = replied(item, MESSAGE)
    kept = [item] if isinstance(item, dict) and item else []
    assert reply.text == "Done."
    assert resent(reply) == [*kept, MESSAGE]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "type", "ü"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@tried(15, 500)
@given(st.lists(st.dictionaries(st.sampled_from(["id", "name", "x", "status", "action"]), _JSON), max_size=3))
def test_unknown_items_come_back_equal_and_in_order(items: list[dict[str, Any]]):
    new = [{"type": "brand_new_call", **item} for item in items]
    assert resent(replied(REASONING, *new, MESSAGE)) == [REASONING, *new, MESSAGE]


def test_messages_keep_phase_annotations_and_parts():
    note = {"type": "url_citation", "start_index": 0, "end_index": 2, "url": "https://a.b", "title": "A"}
    message = {
        **MESSAGE,
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "One.", "annotations": [note]},
            {"type": "output_text", "text": "Two.", "annotations": []},
        ],
    }
    reply = replied(REASONING, message, {**MESSAGE, "id": "msg_2", "phase": "final_answer"})
    assert [block.citations for block in reply.content if isinstance(block, Text)] == [
        (Citation("https://a.b", "A", None, 0, 2, note),),
        (),
        (),
    ]
    assert resent(reply) == [REASONING, message, {**MESSAGE, "id": "msg_2", "phase": "final_answer"}]


def test_a_call_comes_back_as_it_was_written_unless_its_arguments_were_changed():
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "functions.add:0",
        "name": "add",
        "namespace": "math",
        "status": "completed",
        "arguments": '{"a": 1,  "b": 2}',
    }
    reply = replied(REASONING, call)
    result = ToolResultMessage("functions.add:0", "add", "3")
    assert resent(reply, result)[:2] == [REASONING, call]
    (made,) = reply.tool_calls
    changed = msgspec.structs.replace(made, arguments={"a": 1, "b": 3})
    other = msgspec.structs.replace(reply, content=(reply.content[0], changed))
    assert resent(other)[1]["arguments"] == '{"a":1,"b":3}'


def test_the_result_of_a_call_that_a_program_made_names_the_program():
    caller = {"type": "program", "caller_id": "call_p"}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "caller": caller}
    result = resent(replied(REASONING, call), ToolResultMessage("c", "f", "3"))[-1]
    assert result == {"type": "function_call_output", "call_id": "c", "output": "3", "caller": caller}


def test_another_model_gets_the_text_without_ids_items_and_reasoning():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    reply = replied(REASONING, search, {**MESSAGE, "phase": "final_answer"})
    other = resent(UserMessage("x"), reply, model=ModelSpec("openai-responses", "gpt-4.1"))
    assert other[1:] == [{**MESSAGE, "id": "msg_1"}]


def test_reasoning_that_cannot_go_back_leaves_no_ids_behind():
    """Where nothing is stored, an item that names reasoning which is not sent is refused."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    reply = replied({**REASONING, "encrypted_content": None}, {**MESSAGE, "id": "msg_9"}, call)
    assert resent(reply) == [
        {**MESSAGE, "id": "msg_0"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]


def test_reasoning_of_an_open_model_goes_back_with_its_text():
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    reply = replied(item, MESSAGE)
    assert reply.thinking == "Hm."
    assert resent(reply) == [item, MESSAGE]


@pytest.mark.parametrize("name", WAITING)
def test_a_call_that_nobody_ran_is_answered_so_that_the_conversation_goes_on(name: str):
    call, answer = WAITING[name]
    reply = replied(REASONING, call)
    _, kept, made_up, user = resent(reply, UserMessage("And now?"))
    assert kept == call
    assert made_up.items() >= answer.items()
    assert user["role"] == "user"
    own = {**answer, "output": "42"}
    assert resent(reply, UserMessage((Extension(ITEMS, own), Text("There.")))) == [
        REASONING,
        call,
        own,
        {"role": "user", "content": [{"type": "input_text", "text": "There."}]},
    ]
    if name == "custom":
        assert resent(reply, UserMessage("x"), dialect=XAI)[1:-1] == [call], "xAI ran it itself"


def test_images_that_were_drawn_go_back_as_the_provider_takes_them():
    drawn = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "QUJD"}
    reply = replied(REASONING, drawn, MESSAGE)
    message, image = resent(reply)
    assert message == MESSAGE
    assert image["role"] == "user"
    assert image["content"][1]["image_url"] == "data:image/png;base64,QUJD"
    assert resent(reply, dialect=XAI) == [REASONING, drawn, MESSAGE]


# --- usage -----------------------------------------------------------------------------------------------------------


def test_uses_of_hosted_tools_are_counted_and_a_price_in_the_reply_is_kept():
    usage: dict[str, Any] = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    search = {"type": "web_search_call", "id": "w", "action": {"type": "search"}}
    opened = {"type": "web_search_call", "id": "o", "action": {"type": "open_page", "url": "https://a.b"}}
    assert replied(search, search, opened, usage=usage).usage.extra == {"web_search": 2}
    assert replied(MESSAGE, usage=usage, service_tier="flex").usage.extra == {"service_tier_flex": 1}
    assert not replied(MESSAGE, usage=usage, service_tier="default").usage.extra
    billed = {"web_search": {"num_requests": 1}}
    assert replied(search, search, usage=usage, tool_usage=billed).usage.extra == {"web_search": 1}
    details = {"web_search_calls": 3, "x_search_calls": 2, "code_interpreter_calls": 1, "mcp_calls": 0}
    grok = {**usage, "server_side_tool_usage_details": details, "cost_in_usd_ticks": 25_000_000}
    writer = BlockWriter()
    ResponsesDecoder(writer, StreamOptions()).feed(body_of(search, usage=grok))
    assert writer.usage.extra == {"web_search": 3, "x_search": 2, "code_execution": 1}
    assert writer.cost is not None
    assert writer.cost.total == 0.0025


# --- documents and audio ---------------------------------------------------------------------------------------------


def test_documents_go_as_files_text_as_text_and_in_results_too():
    pdf = Document.from_bytes(b"%PDF-1.7 x", title="report.pdf")
    page = Document.from_url("https://a.b/c.pdf")
    note = Document.from_bytes(b"Buy milk.", title="note.txt")
    call = AssistantMessage((ToolCall("c", "f", {}),), "openai-responses", "gpt-5.4")
    (user, _, result) = resent(UserMessage((pdf, page, note)), call, ToolResultMessage("c", "f", (pdf,)))
    file = {
        "type": "input_file",
        "filename": "report.pdf",
        "file_data": "data:application/pdf;base64,JVBERi0xLjcgeA==",
    }
    assert user["content"] == [
        file,
        {"type": "input_file", "file_url": "https://a.b/c.pdf"},
        {"type": "input_text", "text": "note.txt:\n\nBuy milk."},
    ]
    assert result["output"] == [file]


async def test_audio_is_refused_with_what_to_do():
    sound = UserMessage((Audio.from_bytes(b"RIFF\0\0\0\0WAVE"), Text("What is said?")))
    result = await read(ResponsesStreamFn(api_key="k"), MODEL, [sound])
    assert isinstance(result.terminal, Error)
    assert "openai-responses takes no audio" in result.terminal.message


def test_a_summary_without_a_word_still_carries_its_item():
    reply = replied(REASONING, MESSAGE)
    assert isinstance(reply.content[0], Thinking)
    assert resent(reply) == [REASONING, MESSAGE]
