"""A conversation begun with one provider goes on with any other: every ordered pair gives a request that the target accepts."""

import base64
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from adapters import ADAPTERS, EVERY, KEY, AdapterCase
from frames import framed_events
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from loopback import OWN_FIXTURES, WEATHER, LoopbackServer, MemoryClient, Tool, read
from msgspec.structs import replace
from tests.counts import MORE, crossed, tried
from validators import calls_and_results, check_request

from swink import Agent
from swink import Tool as SwinkTool
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Citation,
    Document,
    Extension,
    FileSource,
    Image,
    LlmMessage,
    NamedFile,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UrlSource,
    UserMessage,
)
from swink.stream import Done, Error, StreamOptions

PNG = "iVBORw0KGgo="
INLINE = Image(Base64Source(PNG, "image/png"))
AS_DATA_URL = Image(UrlSource(f"data:image/png;base64,{PNG}"))
ON_THE_WEB = Image(UrlSource("https://example.com/cat.png"))
NO_WEB_IMAGES = ("ollama", "bedrock")
TOOLS = [WEATHER, Tool("clock", "The time.", {"type": "object"})]

# Which replies of each provider have the most to carry over: thinking, signatures, parallel calls, what hosted tools did.
REPLIES = {
    "anthropic": [
        "anthropic/thinking_and_calls",
        "anthropic/web_search",
        "anthropic/cited_document",
        "anthropic/code_execution",
        "anthropic/compaction",
        "anthropic/mcp_connector",
        "anthropic/programmatic_call",
    ],
    "openai": ["openai/parallel_calls", "openai/reasoning"],
    "openai-responses": ["responses/reasoning_and_calls", "responses/hosted"],
    "azure-responses": ["responses/reasoning_and_calls"],
    "xai-responses": ["responses/reasoning_and_calls"],
    "azure": ["azure/text"],
    "xai": ["xai/reasoning_call"],
    "mistral": ["mistral/thinking", "mistral/calls"],
    "ollama": ["ollama/thinking", "ollama/calls", "ollama/calls-with-ids"],
    "gemini": [
        "gemini/thinking",
        "gemini/parallel-calls",
        "gemini/calls-without-ids",
        "gemini/grounding",
        "gemini/code-execution",
        "gemini/image",
        "gemini/tool-combination",
        "gemini/url-context",
    ],
    "bedrock": ["bedrock/thinking", "bedrock/parallel-calls", "bedrock/grounding", "bedrock/image"],
    "vertex": ["gemini/thinking", "gemini/parallel-calls"],
    "vertex-claude": ["anthropic/thinking_and_calls", "anthropic/web_search"],
    "proxy": [],
}
ODD_IDS = [
    "call_" + "x" * 450,
    "call:1|fc:2",
    "ид-№1 ü",
    "",
    " ",
    "a" * 64,
    "a" * 65,
    "call_1.0",
    "chatcmpl-tool-0123456789abcdef0123456789abcdef",
]

lean = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
NAMES = list(EVERY)
PAIRS = [
    (source, target)
    for source in NAMES
    for target in NAMES
    if MORE or (NAMES.index(target) - NAMES.index(source)) % len(NAMES) in (0, 1)
]
"""Every day each goes on with itself and one other, and is gone on with by one other."""


def pairs(test: Any) -> Any:
    ids = [f"{source}-{target}" for source, target in PAIRS]
    cases = [(EVERY[source], EVERY[target]) for source, target in PAIRS]
    return pytest.mark.more(pytest.mark.parametrize(("source", "target"), cases, ids=ids)(test))


targets = pytest.mark.parametrize("target", EVERY.values(), ids=EVERY)


async def sent(
    target: AdapterCase, messages: Sequence[LlmMessage], *, fn: Any = None, **options: Any
) -> dict[str, Any]:
    """The body that a target is sent for a history; it must be acceptable, and its answer must be read."""
    client = MemoryClient(b"".join(target.text), headers={"content-type": target.media_type})
    options = {"cache": True, **options}
    result = await read(
        fn or target.make("https://provider.example", KEY),
        target.model,
        messages,
        system="Be brief.",
        tools=TOOLS,
        options=StreamOptions(http=client, **options),
    )
    assert isinstance(result.terminal, Done), result.terminal
    check_request(target, client.sent)
    return client.sent


async def replies_of(source: AdapterCase) -> list[AssistantMessage]:
    """What the adapter of a provider really makes of its streams."""
    if source.name in _replies:
        return _replies[source.name]
    made: list[AssistantMessage] = []
    for name in REPLIES[source.name]:
        path = OWN_FIXTURES / f"{name}.txt"
        body = framed_events(path) if source.name == "bedrock" else path.read_bytes()
        client = MemoryClient(body, headers={"content-type": source.media_type})
        fn = source.make("https://provider.example", KEY)
        result = await read(fn, source.model, tools=TOOLS, options=StreamOptions(http=client))
        assert isinstance(result.terminal, Done), result.terminal
        made.append(result.message)
    if not made:  # a proxy passes on what others said
        client = MemoryClient(b"".join(source.calls))
        made.append(
            (
                await read(
                    source.make("https://p.example", KEY),
                    source.model,
                    options=StreamOptions(http=client),
                )
            ).message
        )
    _replies[source.name] = made
    return made


_replies: dict[str, list[AssistantMessage]] = {}


def results_for(message: AssistantMessage) -> list[LlmMessage]:
    """A result for every call, of every sort."""
    sorts: list[tuple[Any, bool]] = [
        ("18 °C", False),
        ([Text("Here."), INLINE], False),
        ([], False),
        ("error: no such city", True),
        ([INLINE], True),
    ]
    return [
        ToolResultMessage(call.id, call.name, *sorts[number % len(sorts)], details={"private": "never-sent"})
        for number, call in enumerate(message.tool_calls)
    ]


async def history_of(source: AdapterCase, tmp_path: Path) -> list[LlmMessage]:
    """A conversation that the source really had, with everything that can go wrong in one."""
    picture = tmp_path / "picture.bin"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    provider, model = source.model.provider, source.model.model_id
    history: list[LlmMessage] = [
        UserMessage([Text("Look at these."), INLINE, AS_DATA_URL, Image(FileSource(str(picture)))])
    ]
    for reply in await replies_of(source):
        history += [
            reply,
            *results_for(reply),
            UserMessage([Text(" "), Text("Go on."), Extension("something", {"x": 1})]),
        ]
    paper = Document(Base64Source(base64.b64encode(b"A paper on swink.").decode(), "text/plain"), "Paper")
    cited = Text(
        "As it says.", (Citation("https://x.example", "X", data={"private": "never-sent"}),), "never-sent"
    )
    first, second, third = ODD_IDS[:3]  # which go back as they are to the provider that made them
    history += [
        AssistantMessage([Text("")], provider, model),
        UserMessage([Text("Read this."), paper]),
        AssistantMessage(
            [Extension("elsewhere", {"id": "never-sent"}, "web search: swink"), cited], "elsewhere", model
        ),
        UserMessage("Anyone there?"),
        AssistantMessage([Thinking("only", "c2ln"), Thinking("", "b3BhcXVl", True)], provider, model),
        AssistantMessage([], provider, model, "error", error_message="boom", error_kind="network"),
        UserMessage("Again."),
        AssistantMessage(
            [Thinking("cut"), Text("par"), ToolCall(first, "weather", {}, '{"ci')],
            "elsewhere",
            model,
            "aborted",
        ),
        UserMessage("And again."),
        AssistantMessage(
            [ToolCall(id, "weather", {"city": id}) for id in (first, second, third)],
            "elsewhere",
            model,
            "tool_use",
        ),
        *[ToolResultMessage(id, "weather", id) for id in (second, first, third)],
        AssistantMessage([ToolCall(first, "clock", {})], "elsewhere", model, "tool_use"),
        ToolResultMessage(first, "clock", "noon"),
        ToolResultMessage("stray", "clock", "never asked for"),
        UserMessage("Thanks."),
    ]
    return history


# --- all ordered pairs -------------------------------------------------------------------------------------------------


@pairs
async def test_a_conversation_goes_on_with_any_provider(
    source: AdapterCase, target: AdapterCase, tmp_path: Path
):
    history = await history_of(source, tmp_path)
    fn = target.make("https://provider.example", KEY)
    at = next(at for at in range(len(history) - 5, 0, -1) if history[at].role == "user")
    part = calls_and_results(target.name, await sent(target, history[: at + 1], fn=fn))
    body = await sent(target, history, fn=fn)
    # What an adapter keeps of a conversation changes nothing, and a longer history only adds.
    assert timeless(body) == timeless(await sent(target, history))
    calls, results = calls_and_results(target.name, body)
    assert (calls[: len(part[0])], results[: len(part[1])]) == part
    made = [
        call for message in history if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]
    assert [name for _, name in calls] == [call.name for call in made]
    text = json.dumps(body, ensure_ascii=False)
    assert "A paper on swink." in text or base64.b64encode(b"A paper on swink.").decode() in text
    if target.name != "proxy":
        assert len(results) == len(calls)
        assert "never-sent" not in text
        assert "never asked for" not in text


@pairs
async def test_what_a_provider_made_goes_back_to_it_alone(source: AdapterCase, target: AdapterCase):
    replies = await replies_of(source)
    history: list[LlmMessage] = [UserMessage("Hello")]
    for reply in replies:
        history += [reply, *results_for(reply)]
    sent_body = await sent(target, history)
    body = json.dumps(sent_body, ensure_ascii=False)
    blocks = [block for reply in replies for block in reply.content]
    thoughts = [block for block in blocks if isinstance(block, Thinking)]
    signed = [block for block in blocks if not isinstance(block, Image | Document | Audio | Extension)]
    signatures = [block.signature for block in signed if block.signature and len(block.signature) > 4]
    own = [block.data for block in blocks if isinstance(block, Extension) and not is_elsewhere(block.data)]
    cited = [citation.data for block in blocks if isinstance(block, Text) for citation in block.citations]
    if target.name not in (source.name, "proxy"):
        assert not [
            thought.text for thought in thoughts if len(thought.text) > 4 and thought.text.strip() in body
        ]
        assert not [signature for signature in signatures if signature in body]
        assert not [data for data in (*own, *cited) if data and holds(sent_body, data)]
    elif target.name in ("anthropic", "openai-responses", "bedrock", "gemini"):
        if target.name != "openai-responses":  # which has it in parts
            texts = [json.dumps(thought.text, ensure_ascii=False)[1:-1] for thought in thoughts]
            assert all(text in body for text in texts)
        fields = [json.loads(signature).values() for signature in signatures if signature[0] == "{"]
        opaque = [signature.removeprefix("text:").removeprefix("empty:") for signature in signatures]
        assert all(signature in body for signature in opaque if signature[0] != "{")
        assert all(holds(sent_body, value) for values in fields for value in values)
    if target.name == source.name:
        assert not [data for data in own if not holds(sent_body, data)]


def is_elsewhere(data: dict[str, Any]) -> bool:
    """Whether a block goes back in another form: a container is named beside the messages, an image that OpenAI does
    not store is an input, and what Gemini says of its sources and media stands elsewhere."""
    told = {"groundingMetadata", "urlContextMetadata", "mediaPart"} & data.keys()
    return bool(told) or data.get("type") in ("container", "image_generation_call")


def timeless(body: dict[str, Any]) -> dict[str, Any]:
    """A body without the times of messages, which a result that is made up gets anew."""
    text = re.sub(r'"timestamp": [\d.]+', '"timestamp": 0', json.dumps(body))
    return json.loads(text)


def holds(value: Any, part: Any) -> bool:
    """Whether some JSON has another in it, with all its fields."""
    if value == part or (isinstance(value, dict) and isinstance(part, dict) and {**value, **part} == value):
        return True
    match value:
        case dict():
            return any(holds(item, part) for item in value.values())
        case list():
            return any(holds(item, part) for item in value)
        case _:
            return False


@targets
async def test_another_model_of_the_same_provider_is_another_author(target: AdapterCase):
    provider = target.model.provider
    history = [
        UserMessage("Hi"),
        AssistantMessage(
            [Thinking("private-thought", "c2lnbmF0dXJl"), Text("Hello.")], provider, "an-older-model"
        ),
        UserMessage("?"),
    ]
    body = json.dumps(await sent(target, history))
    assert ("c2lnbmF0dXJl" in body) == (target.name == "proxy")


# --- switches during a run -----------------------------------------------------------------------------------------------

SIGNED = {
    "anthropic": "anthropic/thinking_and_calls",
    "openai-responses": "responses/reasoning_and_calls",
    "gemini": "gemini/parallel-calls",
}


def signatures_of(message: Any) -> list[str]:
    signed = [getattr(block, "signature", None) for block in message.content]
    return [signature for signature in signed if signature and len(signature) > 4]


@pytest.mark.parametrize(
    ("first", "second"),
    [("anthropic", "openai-responses"), ("openai-responses", "gemini"), ("gemini", "anthropic")],
)
async def test_signatures_go_back_to_their_provider_alone_when_a_tool_switches_models(
    first: str, second: str
):
    cases = {name: EVERY[name] for name in (first, second)}
    async with LoopbackServer() as one, LoopbackServer() as two:
        servers = {first: one, second: two}
        for name, server in servers.items():
            server.reply((OWN_FIXTURES / f"{SIGNED[name]}.txt").read_bytes())
        one.reply(b"".join(cases[first].text))
        fns = {name: cases[name].make(servers[name].url, KEY) for name in cases}

        async def ask(model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
            name = next(name for name, case in cases.items() if case.model.provider == model.provider)
            async with aclosing(fns[name](model, context, options)) as events:
                async for event in events:
                    yield event

        def switch(*_: Any) -> str:
            asked = first if len(two.requests) else second
            agent.model = cases[asked].model
            return "switched"

        tools = [SwinkTool.raw(each.name, each.description, each.parameters_schema, switch) for each in TOOLS]
        agent = Agent(cases[first].model, stream_fn=ask, tools=tools)
        result = (await agent.run("Weather?")).raise_for_error()
        for fn in fns.values():
            await fn.aclose()
    assert result.text == "Hello, world"
    replies = [message for message in result.messages if isinstance(message, AssistantMessage)]
    assert [reply.provider for reply in replies] == [
        cases[name].model.provider for name in (first, second, first)
    ]
    mine, theirs = signatures_of(replies[0]), signatures_of(replies[1])
    assert mine
    other, back = two.requests[0].body.decode(), one.requests[1].body.decode()
    assert not [signature for signature in mine if signature in other]
    assert not [signature for signature in theirs if signature in back]
    assert all(signature in back for signature in mine if signature[0] != "{")


# --- images ------------------------------------------------------------------------------------------------------------


@targets
async def test_an_image_is_sent_where_the_provider_takes_it_and_a_clear_error_where_it_does_not(
    target: AdapterCase,
):
    history = [
        UserMessage([Text("What is this?"), ON_THE_WEB]),
        AssistantMessage([ToolCall("c1", "weather", {"city": "Oslo"})], "elsewhere", "m", "tool_use"),
        ToolResultMessage("c1", "weather", [ON_THE_WEB]),
    ]
    if target.name not in NO_WEB_IMAGES:
        assert "https://example.com/cat.png" in json.dumps(await sent(target, history))
        return
    client = MemoryClient(b"".join(target.text), headers={"content-type": target.media_type})
    result = await read(
        target.make("https://p.example", KEY),
        target.model,
        history,
        options=StreamOptions(http=client),
    )
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "stream"
    assert "image" in result.terminal.message
    assert client.requests == []


@targets
async def test_an_image_file_that_is_gone_does_not_end_the_conversation(target: AdapterCase, tmp_path: Path):
    history = [UserMessage([Text("?"), Image(NamedFile(str(tmp_path / "gone.png")))])]
    client = MemoryClient(b"".join(target.text), headers={"content-type": target.media_type})
    result = await read(
        target.make("https://p.example", KEY),
        target.model,
        history,
        options=StreamOptions(http=client),
    )
    assert isinstance(result.terminal, Done)
    assert b"gone.png is a name in a saved message" in (client.requests[0].body or b"")


BLOCKS = {
    "text document": (Document(Base64Source("bm90ZXM=", "text/plain"), "Notes"), ("notes", "bm90ZXM=")),
    "PDF": (Document(Base64Source("JVBERi0x", "application/pdf"), "Paper"), ("JVBERi0x",)),
    "PDF on the web": (Document(UrlSource("https://example.com/a.pdf")), ("https://example.com/a.pdf",)),
    "sound": (Audio(Base64Source("UklGRg==", "audio/wav")), ("UklGRg==",)),
    "sound on the web": (Audio(UrlSource("https://example.com/a.wav")), ("https://example.com/a.wav",)),
}


@crossed(target=EVERY, name=[*BLOCKS])
async def test_documents_and_sound_are_sent_or_refused_by_name_and_never_dropped(
    target: AdapterCase, name: str
):
    block, marks = BLOCKS[name]
    called = AssistantMessage(
        [ToolCall("c00000001", "weather", {"city": "Oslo"})], "elsewhere", "m", "tool_use"
    )
    result = ToolResultMessage("c00000001", "weather", [Text("Here."), block])
    for history in ([UserMessage([Text("See."), block])], [UserMessage("Hi"), called, result]):
        client = MemoryClient(b"".join(target.text), headers={"content-type": target.media_type})
        fn = target.make("https://provider.example", KEY)
        terminal = (
            await read(fn, target.model, history, tools=TOOLS, options=StreamOptions(http=client))
        ).terminal
        if isinstance(terminal, Done):
            assert any(mark in json.dumps(client.sent) for mark in marks)
            check_request(target, client.sent)
        else:
            assert (terminal.kind, client.requests) == ("stream", [])
            assert any(word in terminal.message.lower() for word in ("document", "audio", "sound", "pdf"))
            assert name != "text document"


# --- any history at all ------------------------------------------------------------------------------------------------

# Surrogates too: text that a tool decoded carelessly may hold half a pair.
words = st.text(max_size=8) | st.sampled_from(["", " ", "\n", "Grüße 🦊", "a\ud83d"])
providers = st.sampled_from([*ADAPTERS, "elsewhere"])
ids = st.sampled_from([*ODD_IDS, "c1", "c2"]) | st.text(max_size=70)
names = st.sampled_from(
    ["weather", "clock", "gone", "multi_tool_use.parallel", "mcp:server/tool", "функция", "x" * 80, ""]
)
arguments = st.dictionaries(
    words.filter(lambda word: word != "text"),
    st.none() | st.integers(-9, 9) | words | st.lists(words, max_size=2),
    max_size=2,
)
cut_off = st.none() | st.sampled_from(["", '{"ci', "[1]"])
pictures = st.sampled_from([INLINE, AS_DATA_URL])
# The proxy refuses addresses that would be read with the server's rights.
plain_words = words.filter(lambda word: not word.strip().lower().startswith(("s3:", "gs:", "file:")))
extensions = st.builds(Extension, st.just("of-an-application"), plain_words)
user_content = st.lists(st.builds(Text, words) | pictures | extensions, max_size=3)
REASONING = '{"type":"reasoning","encrypted_content":"x","id":"rs","summary":[]}'


def thoughts_of(provider: str) -> st.SearchStrategy[Thinking]:
    """Thinking in the shapes that the adapter of a provider makes."""
    match provider:
        case "gemini":
            redacted = st.builds(
                Thinking, st.just(""), st.sampled_from(["c2ln", "text:c2ln", "empty:c2ln"]), st.just(True)
            )
            return redacted | st.builds(Thinking, words, st.none() | st.just("c2ln"))
        case "openai-responses":
            return st.builds(Thinking, words, st.none() | st.just(REASONING))
        case "elsewhere":
            return st.builds(Thinking, words, st.none() | words, st.booleans())
        case _:
            return st.builds(Thinking, words, st.none() | st.just("c2ln")) | st.just(
                Thinking("", "b3BhcXVl", True)
            )


@st.composite
def histories(draw: st.DrawFn) -> list[LlmMessage]:
    """Turns in any order; most calls get their result, some get none, some results come from nowhere."""
    history: list[LlmMessage] = []
    for kind in draw(st.lists(st.sampled_from(["user", "reply", "tools", "stray"]), max_size=6)):
        provider = draw(providers)
        model = draw(
            st.sampled_from([ADAPTERS[provider].model.model_id if provider in ADAPTERS else "m", "another"])
        )
        if kind == "user":
            history.append(UserMessage(draw(user_content)))
        elif kind == "stray":
            history.append(ToolResultMessage(draw(ids), "weather", draw(user_content)))
        else:
            content: list[Any] = draw(
                st.lists(st.builds(Text, words) | thoughts_of(provider) | extensions, max_size=3)
            )
            calls: list[ToolCall] = []
            if kind == "tools":
                calls = draw(
                    st.lists(
                        st.builds(ToolCall, ids, names, arguments, cut_off, st.none() | st.just("c2ln")),
                        max_size=4,
                    )
                )
                if provider != "elsewhere":  # its own go back to a provider as they came, so they are sound
                    sound = [f"{len(history):04}{at:05}" for at in range(len(calls))]
                    calls = [replace(call, id=id) for call, id in zip(calls, sound, strict=True)]
                content = draw(st.permutations([*content, *calls]))
            history.append(
                AssistantMessage(
                    content, provider, model, draw(st.sampled_from(["stop", "length", "aborted", "error"]))
                )
            )
            calls = [block for block in content if isinstance(block, ToolCall)]
            answered = calls[: draw(st.integers(0, len(calls)))]
            if len({call.id for call in calls}) == len(
                calls
            ):  # an id used twice at once is told apart by its place alone
                answered = draw(st.permutations(answered))
            history += [
                ToolResultMessage(call.id, call.name, draw(user_content), draw(st.booleans()))
                for call in answered
            ]
    return [*history, UserMessage("Go on.")]


@targets
async def test_an_empty_thought_is_left_out(target: AdapterCase):
    reply = AssistantMessage(
        (Thinking("", "c2ln", True), Thinking("")), target.model.provider, target.model.model_id
    )
    await sent(target, [UserMessage("Hi"), reply, UserMessage("Go on.")])


@tried(40, 600)
@given(history=histories())
async def test_any_history_becomes_a_request_that_every_target_accepts(history: list[LlmMessage]):
    for target in ADAPTERS.values():
        note(target.name)
        await sent(target, history)


@targets
async def test_a_history_of_nothing_but_failures_is_still_a_request(target: AdapterCase):
    history = [
        UserMessage(""),
        AssistantMessage([], "elsewhere", "m", "error"),
        ToolResultMessage("x", "weather", "y"),
        UserMessage("Hello"),
    ]
    assert "Hello" in json.dumps(await sent(target, history))
