"""What adapters keep of a conversation changes nothing: a kept one is sent as a new adapter would send it."""

import asyncio
from typing import Any

import pytest
from adapters import ADAPTERS, EVERY, KEY, AdapterCase
from hypothesis import given
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, read
from tests.counts import tried

from swink.messages import (
    AssistantMessage,
    Base64Source,
    Citation,
    Document,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.history import History
from swink.providers.conversations import LARGEST, OPEN, TOGETHER
from swink.providers.openai import OpenAIStreamFn
from swink.stream import StreamOptions

KEPT = list(ADAPTERS.values())
words = st.text("ab ö\n", min_size=1, max_size=6)
media = st.sampled_from(
    (Document.from_bytes(b"a note", title="note"), Image(Base64Source("iVBORw0KGgo=", "image/png")))
)


def replies(adapter: AdapterCase) -> st.SearchStrategy[list[LlmMessage]]:
    """A reply of this model or another, with what comes after it."""

    def made(own: bool, blocks: list[Any], calls: int, stop: str) -> list[LlmMessage]:
        ids = [f"call{number}" for number in range(calls)]
        content = (*blocks, *(ToolCall(id, "weather", {"city": id}) for id in ids))
        named = (adapter.model.provider, adapter.model.model_id) if own else ("elsewhere", "other")
        results = [ToolResultMessage(id, "weather", "18") for id in ids]
        return [AssistantMessage(content, *named, "tool_use" if calls else stop), *results]

    blocks = st.one_of(
        words.map(Text),
        words.map(lambda text: Text(text, (Citation("https://x.example", data={"type": "t"}),))),
        st.builds(Thinking, words, st.none() | st.just("c2ln")),
    )
    own_block = Extension("anthropic", {"type": "container", "id": "c", "expires_at": "2999-01-01T00:00:00Z"})
    blocks = blocks | st.just(own_block)
    stops = st.sampled_from(("stop", "length", "aborted"))
    return st.builds(made, st.booleans(), st.lists(blocks, min_size=1, max_size=3), st.integers(0, 2), stops)


def pieces(adapter: AdapterCase) -> st.SearchStrategy[list[LlmMessage]]:
    asked = st.builds(lambda text: [UserMessage(text)], words.filter(str.strip))
    if adapter.name not in ("mistral", "ollama", "xai"):
        shown = st.builds(
            lambda text, block: [UserMessage((Text(text), block))], words.filter(str.strip), media
        )
        asked = asked | shown
    return asked | replies(adapter)


async def sent(fn: Any, adapter: AdapterCase, messages: Any, model: ModelSpec | None = None) -> Any:
    client = MemoryClient(b"")
    options = StreamOptions(http=client)
    await read(fn, model or adapter.model, messages, system="S", tools=[WEATHER], options=options)
    return client.sent


@pytest.mark.parametrize("adapter", KEPT, ids=repr)
@tried(2, 60)
@given(st.data())
def test_a_conversation_that_is_kept_is_sent_as_a_new_one(adapter: AdapterCase, data: st.DataObject):
    kept = adapter.make("https://p.example", KEY)
    parts = data.draw(st.lists(pieces(adapter), min_size=3, max_size=6))
    back = data.draw(st.integers(0, len(parts) - 1))
    in_history = data.draw(st.booleans())

    async def compare() -> None:
        history = History([UserMessage("Hi")])
        for turn, part in enumerate([*parts, *parts[back:]]):
            if turn == len(parts):  # another branch of the same conversation
                history = History.of([UserMessage("Hi"), *(one for part in parts[:back] for one in part)])
            for message in part:
                history.append(message)
            messages = history.snapshot() if in_history else list(history.items)
            new = adapter.make("https://p.example", KEY)
            assert await sent(kept, adapter, messages) == await sent(new, adapter, messages)

    asyncio.run(compare())


LONG = TOGETHER + OPEN
"""Turns of three messages each, so that several pieces are joined."""
PICTURE = Image(Base64Source("QUJD" * (LARGEST // 4), "image/png"))

adapters = pytest.mark.parametrize("adapter", EVERY.values(), ids=EVERY)


def turns(model: ModelSpec, count: int) -> list[LlmMessage]:
    history: list[LlmMessage] = []
    for number in range(count):
        id = f"call{number:05}"
        question: list[Any] = [Text(f"Question {number}"), *([PICTURE] if number == 9 else [])]
        call = ToolCall(id, "weather", {"city": f"City {number}"})
        history += [
            UserMessage(question, timestamp=1.0),
            AssistantMessage([Text("Hm."), call], model.provider, model.model_id, "tool_use", timestamp=1.0),
            ToolResultMessage(id, "weather", "18 °C", timestamp=1.0),
        ]
    return history


def fresh(adapter: AdapterCase) -> Any:
    return adapter.make("https://provider.example", KEY)


@adapters
async def test_a_long_conversation_that_is_kept_is_sent_as_a_new_one(adapter: AdapterCase):
    history, fn = History(), fresh(adapter)
    for at, message in enumerate(turns(adapter.model, LONG)):
        history.append(message)
        if at % 3 == 2 and at % 60 < 9:
            body = await sent(fn, adapter, history.snapshot())
            assert body == await sent(fresh(adapter), adapter, list(history.items)), at


@adapters
async def test_requests_at_once_branches_and_a_cancelled_one_do_not_disturb_each_other(adapter: AdapterCase):
    whole, fn = turns(adapter.model, 8), fresh(adapter)
    other: list[LlmMessage] = [*whole[:9], UserMessage("Something else", timestamp=1.0)]
    await sent(fn, adapter, whole[:9])
    asking = asyncio.ensure_future(sent(fn, adapter, whole))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    bodies = await asyncio.gather(*(sent(fn, adapter, asked) for asked in (whole, other, whole)))
    wanted = [await sent(fresh(adapter), adapter, asked) for asked in (whole, other, whole)]
    assert list(bodies) == wanted


async def test_a_message_far_back_gets_its_cache_mark_whether_it_is_kept_or_not():
    model, adapter = ModelSpec("openrouter", "anthropic/claude-sonnet-4.5"), ADAPTERS["openai"]
    asked = turns(model, LONG)
    history = History()
    for message in asked[:4] + [message for message in asked[4:] if message.role != "user"]:
        history.append(message)
    fn = OpenAIStreamFn(preset="openrouter", api_key="k")
    for _ in range(2):
        body = await sent(fn, adapter, history.snapshot(), model)
        marked = [at for at, message in enumerate(body["messages"]) if "cache_control" in str(message)]
        assert marked == [0, 1, 4]
    assert body == await sent(OpenAIStreamFn(preset="openrouter", api_key="k"), adapter, history.items, model)
