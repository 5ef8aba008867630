"""Hypothesis strategies for the values of the core: any JSON, block, message, paired history."""

from typing import Any

from hypothesis import strategies as st

from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Citation,
    Cost,
    CustomMessage,
    Document,
    Extension,
    Image,
    Message,
    NamedFile,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UrlSource,
    Usage,
    UserMessage,
)

words = st.text(max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 10**9)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(words, json_values, max_size=3)

maybe = st.none() | words
citations = st.builds(Citation, maybe, maybe, maybe, st.none() | counts, st.none() | counts, json_values)
texts = st.builds(Text, words) | st.builds(Text, words, st.lists(citations, max_size=2).map(tuple), maybe)
thinkings = st.builds(Thinking, words, st.none() | words, st.booleans())
tool_calls = st.builds(ToolCall, words, words, json_objects, st.none() | words, st.none() | words)
sources = (
    st.builds(Base64Source, words, words)
    | st.builds(UrlSource, words)
    | st.builds(NamedFile, words, st.none() | words)
)
images = st.builds(Image, sources)
media = images | st.builds(Document, sources, maybe) | st.builds(Audio, sources)
extensions = st.builds(Extension, words, json_values, words)
user_content = st.lists(texts | media | extensions, max_size=3).map(tuple)
assistant_content = st.lists(texts | thinkings | tool_calls | media | extensions, max_size=4).map(tuple)

extras = st.dictionaries(words, counts, max_size=2)
usages = st.builds(Usage, counts, counts, counts, counts, counts, extras, st.booleans())
costs = st.builds(Cost, numbers, numbers, numbers, numbers, numbers)
stop_reasons = st.sampled_from(["stop", "length", "tool_use", "aborted", "error", "transfer"])

user_messages = st.builds(UserMessage, user_content, numbers)
assistant_messages = st.builds(
    AssistantMessage,
    assistant_content,
    words,
    words,
    stop_reasons,
    usages,
    st.none() | costs,
    st.none() | words,
    st.none() | words,
    numbers,
)
tool_results = st.builds(ToolResultMessage, words, words, user_content, st.booleans(), json_values, numbers)
custom_messages = st.builds(CustomMessage, words.map("kind-{}".format), json_values, numbers)
messages: st.SearchStrategy[Message] = user_messages | assistant_messages | tool_results | custom_messages


@st.composite
def paired_histories(draw: st.DrawFn, max_size: int = 20, custom: bool = True) -> list[Message]:
    """A history in which every call has its result, in call order; every message says which it is."""
    history: list[Message] = []
    kinds = draw(
        st.lists(
            st.sampled_from(["user", "reply", "tools", *(["custom"] if custom else [])]), max_size=max_size
        )
    )
    for number, kind in enumerate(kinds):
        text = f"{number} " + "x" * draw(st.integers(0, 400))
        match kind:
            case "user":
                history.append(UserMessage(text))
            case "reply":
                history.append(AssistantMessage(text))
            case "custom":
                history.append(CustomMessage("note", text))
            case _:
                ids = [f"call-{number}-{index}" for index in range(draw(st.integers(1, 3)))]
                history.append(
                    AssistantMessage(
                        (Text(text), *(ToolCall(id, "tool", {"x": text}) for id in ids)),
                        stop_reason="tool_use",
                    )
                )
                for id in ids:
                    if custom and draw(st.integers(0, 9)) == 0:
                        history.append(CustomMessage("note", id))
                    history.append(ToolResultMessage(id, "tool", (Text(text),)))
    return history
