"""What adapters keep of a conversation changes nothing: a kept one is sent as a new adapter would send it."""

import asyncio
from typing import Any

import pytest
from adapters import ADAPTERS, KEY, Adapter
from hypothesis import given
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, read
from tests.counts import tried

from swink.engine.history import History
from swink.messages import (
    AssistantMessage,
    Base64Source,
    Citation,
    Document,
    Extension,
    Image,
    LlmMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.stream import StreamOptions

KEPT = list(ADAPTERS.values())
words = st.text("ab ö\n", min_size=1, max_size=6)
media = st.sampled_from(
    (Document.from_bytes(b"a note", title="note"), Image(Base64Source("iVBORw0KGgo=", "image/png")))
)


def replies(adapter: Adapter) -> st.SearchStrategy[list[LlmMessage]]:
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


def pieces(adapter: Adapter) -> st.SearchStrategy[list[LlmMessage]]:
    asked = st.builds(lambda text: [UserMessage(text)], words.filter(str.strip))
    if adapter.name not in ("mistral", "ollama", "xai"):
        shown = st.builds(
            lambda text, block: [UserMessage((Text(text), block))], words.filter(str.strip), media
        )
        asked = asked | shown
    return asked | replies(adapter)


async def sent(fn: Any, adapter: Adapter, messages: Any) -> Any:
    client = MemoryClient(b"")
    await read(fn, adapter.model, messages, system="S", tools=[WEATHER], options=StreamOptions(http=client))
    return client.sent


@pytest.mark.parametrize("adapter", KEPT, ids=repr)
@tried(2, 60)
@given(st.data())
def test_a_conversation_that_is_kept_is_sent_as_a_new_one(adapter: Adapter, data: st.DataObject):
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
