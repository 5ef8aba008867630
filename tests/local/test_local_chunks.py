"""Chunks of llama.cpp as stream events: every reply is valid, however it ends."""

from collections.abc import AsyncIterator
from typing import Any

from swink.local.callgrammar import CallParser
from swink.local.chunks import ChunkDecoder
from swink.messages import AssistantMessage, ModelSpec
from swink.stream import (
    Done,
    Error,
    PromptProgress,
    Start,
    TextEnd,
    ThinkingDelta,
    ThinkingStart,
    accumulate,
)

SPEC = ModelSpec("local", "test")


def chunk(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": reason}]}


async def decoded(decoder: ChunkDecoder, *chunks: dict[str, Any]) -> tuple[AssistantMessage, list[Any]]:
    events = [Start(), *(event for each in chunks for event in decoder.take_chunk(each)), *decoder.finish()]

    async def stream() -> AsyncIterator[Any]:
        for event in events:
            yield event

    return await accumulate(stream(), SPEC), events


async def test_a_call_that_the_length_cut_off_is_incomplete():
    for decoder, said in (
        (ChunkDecoder(CallParser()), {"content": '{"tool":"weather","arguments":{"city":"Os'}),
        (
            ChunkDecoder(),
            {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "weather", "arguments": '{"ci'}}]},
        ),
    ):
        message, events = await decoded(decoder, chunk(**said), chunk("length"))
        assert isinstance(events[-1], Done)
        assert events[-1].stop_reason == "length"
        assert [(call.name, call.partial_json is None) for call in message.tool_calls] == [("weather", False)]


async def test_progress_of_the_prompt_comes_before_the_reply():
    read = {**chunk(role="assistant", content=None), "prompt_progress": {"processed": 16, "total": 20}}
    message, events = await decoded(ChunkDecoder(), read, chunk(content="Paris"), chunk("stop"))
    assert events[1] == PromptProgress(16, 20)
    assert message.text == "Paris"


async def test_an_error_in_the_middle_closes_what_is_open():
    _, events = await decoded(ChunkDecoder(), chunk(content="Par"), {"error": {"message": "out of memory"}})
    assert events[-2:] == [TextEnd(0), Error("llama.cpp: out of memory", "stream")]


async def test_a_reply_without_a_reason_is_an_error_that_keeps_the_text():
    message, events = await decoded(ChunkDecoder(), chunk(content="Paris"))
    assert isinstance(events[-1], Error)
    assert message.text == "Paris"


async def test_thinking_text_and_calls_are_blocks_in_order_without_blank_text():
    message, events = await decoded(
        ChunkDecoder(),
        chunk(content="\n\n"),
        chunk(reasoning_content="hm"),
        chunk(content="Yes."),
        chunk(tool_calls=[{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{}"}}]),
        chunk(tool_calls=[{"index": 1, "id": "2", "function": {"name": "b", "arguments": "{}"}}]),
        chunk("stop"),
    )
    assert events[1] == ThinkingStart(0)
    assert [type(block).__name__ for block in message.content] == ["Thinking", "Text", "ToolCall", "ToolCall"]
    assert message.stop_reason == "tool_use"


SENTENCE = "I have to look at the file again."


async def test_thinking_that_goes_round_in_circles_ends_the_reply_and_is_shown_once():
    decoder = ChunkDecoder()
    taken = 0
    events: list[Any] = [Start()]
    for part in [chunk(reasoning_content=f"{SENTENCE}\n")] * 200:
        events += decoder.take_chunk(part)
        taken += 1
        if decoder.stuck:
            break
    assert (decoder.stuck, taken < 20) == ("thinking", True)
    events += decoder.finish()
    assert isinstance(events[-1], Done)
    assert events[-1].usage.output == taken
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == f"{SENTENCE}\n"


async def test_arguments_that_go_round_in_circles_leave_an_incomplete_call():
    native = {"index": 0, "id": "1", "function": {"name": "write", "arguments": '{"text":"'}}
    rest = {"index": 0, "function": {"arguments": f"{SENTENCE} "}}
    for decoder, chunks in (
        (
            ChunkDecoder(CallParser()),
            [chunk(content='{"tool":"write","arguments":{"text":"'), *[chunk(content=f"{SENTENCE} ")] * 60],
        ),
        (ChunkDecoder(), [chunk(tool_calls=[native]), *[chunk(tool_calls=[rest])] * 60]),
    ):
        message, events = await decoded(decoder, *chunks)
        assert decoder.stuck == "arguments"
        assert isinstance(events[-1], Done)
        assert events[-1].stop_reason == "length"
        assert message.tool_calls[0].partial_json is not None


async def test_a_repetition_that_ends_by_itself_is_shown_whole():
    text = f"{SENTENCE}\n" * 4
    message, _ = await decoded(ChunkDecoder(), *[chunk(content=char) for char in text], chunk("stop"))
    assert message.text == text


async def test_words_or_a_call_the_first_character_decides():
    words = ChunkDecoder(CallParser(), or_words=True)
    message, _ = await decoded(words, chunk(content=" "), chunk(content='No {"tool"'), chunk("stop"))
    assert (message.text, message.tool_calls, words.is_call) == ('No {"tool"', (), False)
    call = ChunkDecoder(CallParser(), or_words=True)
    message, _ = await decoded(
        call, chunk(content="\n"), chunk(content='{"tool":"a","arguments":{}}'), chunk("stop")
    )
    assert ([each.name for each in message.tool_calls], message.text, call.is_call) == (["a"], "", True)


async def test_a_grammar_that_llama_cpp_did_not_take_is_an_error():
    _, events = await decoded(ChunkDecoder(CallParser()), chunk(content="Hello there."), chunk("stop"))
    assert isinstance(events[-1], Error)
    assert "makes no grammar" in events[-1].message
