"""Mistral: content in parts, ids of nine characters, padding, and Mistral's own SDK reading the same bytes."""

from typing import Any

import msgspec
import pytest
from loopback import (
    WEATHER,
    LoopbackServer,
    MemoryClient,
    check_any_cut,
    check_truncation,
    cut,
    framed,
    own_fixtures,
    read,
    recorded,
    sse,
)
from tests.counts import in_cells
from validators import check_mistral

from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Document,
    Image,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.providers.mistral import MistralStreamFn
from swink.stream import Done, Error, StreamOptions

MODEL = ModelSpec("mistral", "mistral-small-latest")
FN = MistralStreamFn(api_key="key")
RECORDED = {path.name: framed(path, done=True) for path in recorded("mistral")}
BODIES = {path.stem: path.read_bytes() for path in own_fixtures("mistral")} | RECORDED
DONE = sse({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}, "[DONE]")


async def sent(messages: Any, *, model: ModelSpec = MODEL, **options: Any) -> dict[str, Any]:
    client = MemoryClient(DONE)
    result = await read(FN, model, messages, tools=[WEATHER], options=StreamOptions(http=client, **options))
    assert isinstance(result.terminal, Done), result.terminal
    check_mistral(client.sent)
    return client.sent


@in_cells("name", BODIES, every=2)
async def test_the_sdk_reads_the_same_from_the_same_bytes(name: str, server: LoopbackServer):
    server.reply(chunks=cut(BODIES[name], 300))
    result = await read(MistralStreamFn(base_url=server.url, api_key="k"), MODEL)
    said = await sdk_reads(server.url)
    assert (result.message.text, result.message.thinking) == (said["text"], said["thinking"])
    assert [(call.id, call.name, call.arguments) for call in result.calls] == said["calls"]
    assert (
        result.message.stop_reason
        == {"stop": "stop", "tool_calls": "tool_use", "length": "length"}[said["finish"]]
    )
    usage, ours = said["usage"], result.terminal.usage
    assert (ours.input + ours.cache_read, ours.output, ours.total) == (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
    )
    assert [request.path.partition("#")[0] for request in server.requests] == ["/v1/chat/completions"] * 2


async def sdk_reads(url: str) -> dict[str, Any]:
    said: dict[str, Any] = {"text": "", "thinking": "", "calls": [], "finish": None, "usage": None}
    pieces: dict[int, list[Any]] = {}
    from mistralai.client import Mistral

    async with Mistral(api_key="k", server_url=url) as client:
        async for event in await client.chat.stream_async(
            model="m", messages=[{"role": "user", "content": "x"}]
        ):
            said["usage"] = event.data.usage or said["usage"]
            choice = event.data.choices[0]
            said["finish"] = choice.finish_reason or said["finish"]
            content = choice.delta.content
            for part in [] if not content else content if isinstance(content, list) else [content]:
                if isinstance(part, str):
                    said["text"] += part
                elif part.type == "thinking":
                    said["thinking"] += "".join(piece.text for piece in part.thinking)
                else:
                    said["text"] += part.text
            for call in choice.delta.tool_calls or ():
                known = pieces.setdefault(call.index or 0, [call.id, call.function.name, ""])
                known[2] += call.function.arguments
    said["calls"] = [(id, name, msgspec.json.decode(arguments)) for id, name, arguments in pieces.values()]
    return said


@pytest.mark.parametrize("name", BODIES)
async def test_any_cut_gives_the_same_events_and_none_is_a_silent_success(name: str):
    await check_any_cut(FN, MODEL, BODIES[name])
    await check_truncation(
        FN, MODEL, BODIES[name], step=1 if name not in RECORDED else max(1, len(BODIES[name]) // 60)
    )


async def test_thinking_parts_are_thinking():
    result = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(BODIES["thinking"])))
    assert result.message.content == (Thinking("Two plus two."), Text("Four, naturally."))
    assert result.terminal == Done("stop", Usage(10, 21))


async def test_the_signature_of_a_thinking_part_is_kept():
    part = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "signature": "sig"}
    body = sse(
        {
            "choices": [
                {
                    "delta": {"content": [part, {"type": "reference", "reference_ids": [1]}]},
                    "finish_reason": "stop",
                }
            ]
        }
    )
    result = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(body)))
    assert result.message.content[0] == Thinking("Hm.", "sig")


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("tool_calls", "tool_use"),
        ("error", "network"),
    ],
)
async def test_each_finish_reason_has_its_own_outcome(reason: str, outcome: str):
    body = sse({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]}, "[DONE]")
    terminal = (await read(FN, MODEL, options=StreamOptions(http=MemoryClient(body)))).terminal
    assert (terminal.stop_reason if isinstance(terminal, Done) else terminal.kind) == outcome


async def test_a_whole_conversation_is_sent_exactly_so():
    history = [
        UserMessage("x"),
        AssistantMessage(
            (
                Thinking("Hm.", "sig"),
                Text("Looking."),
                ToolCall("AbCdEfGh0", "weather", {"city": "Oslo"}),
                ToolCall("AbCdEfGh1", "weather", {}),
            ),
            "mistral",
            "mistral-small-latest",
        ),
        ToolResultMessage("AbCdEfGh0", "weather", (Text("18 °C"), Image(Base64Source("QUJD", "image/png")))),
        ToolResultMessage("AbCdEfGh1", "weather", ""),
        UserMessage("Thanks."),
    ]
    body = await sent(history, max_tokens=9, temperature=0.1, tool_choice="required", session_id="s1")
    assert body == {
        "model": "mistral-small-latest",
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "signature": "sig"},
                    {"type": "text", "text": "Looking."},
                ],
                "tool_calls": [
                    {
                        "id": "AbCdEfGh0",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                    },
                    {
                        "id": "AbCdEfGh1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": "{}"},
                    },
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "AbCdEfGh0",
                "content": [
                    {"type": "text", "text": "18 °C"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                ],
            },
            {"role": "tool", "tool_call_id": "AbCdEfGh1", "content": "(no output)"},
            {"role": "assistant", "content": "OK."},
            {"role": "user", "content": "Thanks."},
        ],
        "reasoning_effort": "none",
        "stream": True,
        "max_tokens": 9,
        "temperature": 0.1,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Current weather.",
                    "parameters": WEATHER.parameters_schema,
                },
            }
        ],
        "tool_choice": "required",
        "prompt_cache_key": "s1",
    }


async def test_references_and_thinking_go_back_in_their_places():
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Oslo"},
        {"type": "reference", "reference_ids": [0]},
        {"type": "text", "text": "."},
    ]
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": [part]}, "finish_reason": None}]} for part in content
    ]
    body = sse(*pieces, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]")
    reply = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(body)))
    again = await sent([UserMessage("x"), reply.message, UserMessage("y")])
    assert again["messages"][1]["content"] == content


async def test_documents_and_sound_are_parts():
    pdf = Document(Base64Source("JVBERg==", "application/pdf"), "plan.pdf")
    page, sound = Document.from_url("https://x/y.pdf"), Audio(Base64Source("QUJD", "audio/mpeg"))
    body = await sent([UserMessage([pdf, page, sound])])
    assert body["messages"][0]["content"] == [
        {
            "type": "document_url",
            "document_url": "data:application/pdf;base64,JVBERg==",
            "document_name": "plan.pdf",
        },
        {"type": "document_url", "document_url": "https://x/y.pdf", "document_name": "document"},
        {"type": "input_audio", "input_audio": "QUJD"},
    ]


async def test_ids_are_mapped_the_same_way_each_time_and_stay_apart():
    calls = tuple(ToolCall(f"call_{number}", "weather", {}) for number in range(50))
    history = [
        UserMessage("x"),
        AssistantMessage(calls),
        *(ToolResultMessage(call.id, "weather", "18") for call in calls),
    ]
    first, second = await sent(history), await sent(history)
    assert first == second
    ids = [call["id"] for call in first["messages"][1]["tool_calls"]]
    assert len(set(ids)) == 50
    assert ids == [message["tool_call_id"] for message in first["messages"][2:]]


@pytest.mark.parametrize(
    ("model_id", "level", "expected"),
    [
        ("magistral-medium-latest", "low", {"prompt_mode": "reasoning"}),
        ("mistral-small-latest", "high", {"reasoning_effort": "high"}),
        ("mistral-small-latest", "off", {"reasoning_effort": "none"}),
        ("mistral-large-latest", "off", {}),
        ("mistral-large-latest", "high", {}),
    ],
)
async def test_thinking_is_asked_for_in_the_models_own_way(
    model_id: str, level: Any, expected: dict[str, str]
):
    body = await sent("x", model=ModelSpec("mistral", model_id, level))
    assert {key: body[key] for key in ("prompt_mode", "reasoning_effort") if key in body} == expected


async def test_the_key_comes_from_its_own_variable():
    result = await read(MistralStreamFn(), MODEL)
    assert isinstance(result.terminal, Error)
    assert "MISTRAL_API_KEY" in result.terminal.message
    assert repr(MistralStreamFn(api_key="sekret")) == "MistralStreamFn(base_url='https://api.mistral.ai')"


async def test_a_picture_of_another_models_reply_does_not_follow_a_result_either():
    picture = Image(Base64Source("iVBORw0KGgo=", "image/png"))
    calls = [ToolCall("AbCdEfGh1", "weather", {}), ToolCall("AbCdEfGh2", "weather", {})]
    results = [ToolResultMessage(call.id, "weather", "18") for call in calls]
    drawn = AssistantMessage([picture, *calls], "elsewhere", "m", "tool_use")
    for history in ([drawn, *results], [drawn, *results, AssistantMessage([picture], "elsewhere", "m")]):
        body = await sent([UserMessage("Hi"), *history])
        roles = [message["role"] for message in body["messages"]]
        assert roles[:6] == ["user", "assistant", "tool", "tool", "assistant", "user"]
