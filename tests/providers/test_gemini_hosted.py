"""Gemini: hosted tools, what a reply cites, media both ways, native structured output, and the way back of every part."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, assemble, own_fixtures, sse
from tests.counts import tried
from validators import check_gemini

from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Capabilities,
    Document,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.providertools import (
    CodeExecution,
    FileSearch,
    HostedTool,
    ImageGeneration,
    Location,
    McpConnector,
    ProviderTool,
    WebFetch,
    WebSearch,
)
from swink.providers.gemini import GeminiStreamFn
from swink.providers.gemini.conversation import SKIP_VALIDATION
from swink.providers.gemini.grounding import Grounding
from swink.stream import BlockAdded, Done, Error, LlmContext, OutputSchema, StreamOptions

MODEL = ModelSpec("gemini", "gemini-3-pro-preview")
OLDER = ModelSpec("gemini", "gemini-2.5-flash")
FIXTURES = {path.stem: path.read_bytes() for path in own_fixtures("gemini")}
SEARCH = (WebSearch(),)


async def ask(
    body: bytes = FIXTURES["text"],
    *,
    messages: list[LlmMessage] | None = None,
    model: ModelSpec = MODEL,
    tools: Any = (),
    hosted: tuple[HostedTool, ...] = (),
    output: OutputSchema | None = None,
    **options: Any,
) -> Any:
    """One reply, and the body it was asked with as `sent`."""
    client = MemoryClient(body)
    context = LlmContext("", messages or [UserMessage("Hello")], tools, hosted, output)
    fn = GeminiStreamFn(api_key="k")
    events = [event async for event in fn(model, context, StreamOptions(http=client, **options))]
    got = assemble(events, model)
    sent = client.sent if client.requests else None
    if sent is not None:
        check_gemini(sent)
    return got, sent


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}


# --- The way back ------------------------------------------------------------------------------------------------


def parts_of(body: bytes) -> list[dict[str, Any]]:
    """The parts of a reply as they came, neighbours without a signature joined, as nothing keeps them apart."""
    events = [json.loads(line.removeprefix("data: ")) for line in body.decode().splitlines() if line.strip()]
    found = [
        part
        for event in events
        for candidate in event.get("candidates", [])
        for part in candidate.get("content", {}).get("parts", [])
    ]
    joined: list[dict[str, Any]] = []
    for part in found:
        if part.keys() <= {"text", "thought"}:
            kind = part.get("thought", False)
            if (
                joined
                and joined[-1].keys() <= {"text", "thought"}
                and joined[-1].get("thought", False) == kind
            ):
                joined[-1] = {**joined[-1], "text": joined[-1]["text"] + part["text"]}
                continue
            if not part["text"]:
                continue
        if "functionCall" in part:
            part = {**part, "functionCall": {"args": {}, **part["functionCall"]}}
        joined.append(part)
    return joined


async def sent_back(got: Any, model: ModelSpec = MODEL) -> list[dict[str, Any]]:
    results = [ToolResultMessage(call.id, call.name, "ok") for call in got.calls]
    _, sent = await ask(
        messages=[UserMessage("Hello"), got.message, *results, UserMessage("Go on")], model=model
    )
    return [
        {name: value for name, value in part.items() if value != SKIP_VALIDATION}
        for part in sent["contents"][1]["parts"]
    ]


@pytest.mark.parametrize("name", sorted(FIXTURES.keys() - {"streamed-arguments", "blocked-prompt", "safety"}))
async def test_every_part_goes_back_as_it_came(name: str):
    got, _ = await ask(FIXTURES[name], hosted=SEARCH)
    assert await sent_back(got) == parts_of(FIXTURES[name])


signatures = st.sampled_from(["c2ln", "bmF0dXJl"])
contents = st.one_of(
    st.builds(lambda text: {"text": text}, st.sampled_from(["one ", "zwölf", "🦊 x"])),
    st.builds(lambda text: {"text": text, "thought": True}, st.sampled_from(["hm ", "ah"])),
    st.just({"functionCall": {"id": "a", "name": "weather", "args": {"city": "Oslo"}}}),
    st.just({"inlineData": {"mimeType": "image/png", "data": "Zm94"}}),
    st.just({"inlineData": {"mimeType": "audio/wav", "data": "bGE="}}),
    st.just({"inlineData": {"mimeType": "video/mp4", "data": "bW92aWU="}}),
    st.just({"executableCode": {"language": "PYTHON", "code": "1"}}),
    st.just({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
    st.just({"toolCall": {"id": "t", "toolType": "URL_CONTEXT", "args": {}}}),
)
parts = st.one_of(
    contents,
    st.builds(lambda part, signature: {**part, "thoughtSignature": signature}, contents, signatures),
    st.builds(lambda signature: {"text": "", "thoughtSignature": signature}, signatures),
    st.builds(lambda signature: {"text": "\n", "thoughtSignature": signature}, signatures),
)


@tried(30, 1000)
@given(st.lists(parts, min_size=1, max_size=6), st.booleans())
async def test_any_parts_go_back_as_they_came(given_parts: list[dict[str, Any]], grounded: bool):
    given_parts = json.loads(json.dumps(given_parts))
    for number, part in enumerate(given_parts):
        if "functionCall" in part:
            part["functionCall"]["id"] = f"fc-{number}"
    if all(part.get("thought") for part in given_parts):
        given_parts = [*given_parts, {"text": "end"}]
    body = sse(*(chunk(part) for part in given_parts), chunk(finish="STOP"))
    got, _ = await ask(body, hosted=SEARCH if grounded else ())
    assert isinstance(got.terminal, Done)
    assert await sent_back(got) == parts_of(body)


async def test_what_another_model_made_is_left_out():
    got, _ = await ask(FIXTURES["image"])
    assert await sent_back(got, OLDER) == [{"text": "Here is a fox: "}]


async def test_beside_the_content_stood_what_is_no_part():
    got, _ = await ask(FIXTURES["url-context"], hosted=SEARCH)
    assert [block.type_name for block in got.message.content[1:]] == ["gemini", "gemini"]
    assert await sent_back(got) == [{"text": "The page says hello."}]


# --- What a reply cites ------------------------------------------------------------------------------------------


async def test_citations_count_characters_and_stand_on_the_text():
    got, _ = await ask(FIXTURES["grounding"], hosted=SEARCH)
    [text] = [block for block in got.message.content if isinstance(block, Text)]
    cited = [(found.url, text.text[found.start : found.end]) for found in text.citations]
    assert cited == [
        ("https://a.example/1", "Zürich won 2 – 1."),
        ("https://a.example/1", "The 🏆 went to Bern."),
        ("https://b.example/2", "The 🏆 went to Bern."),
    ]
    assert text.citations[0].title == "a.example"


async def test_searches_are_shown_and_counted():
    got, _ = await ask(FIXTURES["grounding"], hosted=SEARCH)
    shown = got.message.content[-1]
    assert isinstance(shown, Extension)
    assert shown.shown == "web search: zürich score; cup winner 2026, 2 results"
    assert shown.data["groundingMetadata"]["searchEntryPoint"] == {
        "renderedContent": "<div>suggestions</div>"
    }
    assert got.message.usage.extra == {"reasoning": 3, "web_search": 2}
    older, _ = await ask(FIXTURES["grounding"], hosted=SEARCH, model=OLDER)
    assert older.message.usage.extra == {"reasoning": 3, "web_search": 1}  # billed by the request


async def test_code_is_shown_counted_and_whole():
    got, _ = await ask(FIXTURES["code-execution"], hosted=(CodeExecution(),))
    shown = [block.shown for block in got.message.content if isinstance(block, Extension)]
    assert shown == ["code: print(41 + 17)", "code execution, ok: 58"]
    assert got.message.usage.extra == {"code_execution": 1}
    assert [type(event) for event in got.events].count(BlockAdded) == 2


async def test_pages_that_were_read_are_shown_and_counted():
    got, _ = await ask(FIXTURES["url-context"], hosted=(WebFetch(),))
    assert [block.shown for block in got.message.content if isinstance(block, Extension)] == [
        "search: grounded, 1 results",
        "web fetch: https://a.example/, https://b.example/ (paywall)",
    ]
    assert got.message.usage.extra == {"web_fetch": 2}
    assert got.message.content[0].citations[0].url == "https://a.example/"


@tried(40, 1_000)
@given(st.lists(st.text("aé🦊 ", min_size=1, max_size=8), min_size=1, max_size=4), st.data())
def test_a_segment_is_found_whatever_characters_are_before_it(texts: list[str], data: st.DataObject):
    whole = "".join(texts)
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start + 1, len(whole)))
    segment = {"startIndex": len(whole[:start].encode()), "endIndex": len(whole[:end].encode())}
    grounding = Grounding()
    grounding.take(
        groundingMetadata={
            "groundingChunks": [{"web": {"uri": "u"}}],
            "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}],
        }
    )
    [(number, citation)] = grounding.citations(texts)
    before = sum(map(len, texts[:number]))
    assert before + citation.start == start
    assert before + citation.end == min(end, before + len(texts[number]))


@pytest.mark.parametrize(
    "metadata",
    [
        {"groundingSupports": [{"segment": {"text": "elsewhere"}, "groundingChunkIndices": [0, 7, "x"]}]},
        {"groundingSupports": "no list", "groundingChunks": [None, {"other": 1}]},
        {"groundingSupports": [{"segment": None, "groundingChunkIndices": None}]},
        {"webSearchQueries": [5, None], "groundingChunks": {"a": 1}},
    ],
)
async def test_metadata_of_another_shape_harms_no_reply(metadata: dict[str, Any]):
    body = sse(chunk({"text": "Hi"}), chunk(finish="STOP", groundingMetadata=metadata))
    got, _ = await ask(body, hosted=SEARCH)
    assert isinstance(got.terminal, Done)
    assert got.message.text == "Hi"


async def test_a_grounded_reply_that_breaks_off_keeps_its_text():
    body = FIXTURES["grounding"]
    got, _ = await ask(body[: body.index(b'"to Bern.')], hosted=SEARCH)
    assert isinstance(got.terminal, Error)
    assert got.message.text == "Zürich won 2 – 1. The 🏆 went "


# --- Asking for hosted tools -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tool", "asked"),
    [
        ("gemini-3-pro-preview", WebSearch(), {"googleSearch": {}}),
        ("gemini-1.5-pro", WebSearch(), {"googleSearchRetrieval": {}}),
        ("gemini-2.5-flash", WebFetch(), {"urlContext": {}}),
        ("gemini-2.5-flash", CodeExecution(), {"codeExecution": {}}),
        (
            "gemini-2.5-flash",
            FileSearch(("manuals",), 5),
            {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/manuals"], "topK": 5}},
        ),
        (
            "gemini-3-pro-preview",
            McpConnector("docs", "https://mcp.example/mcp", "hush"),
            {
                "mcpServers": [
                    {
                        "name": "docs",
                        "streamableHttpTransport": {
                            "url": "https://mcp.example/mcp",
                            "headers": {"Authorization": "Bearer hush"},
                        },
                    }
                ]
            },
        ),
        ("gemini-3-pro-preview", ProviderTool("gemini", {"googleMaps": {}}), {"googleMaps": {}}),
    ],
)
async def test_hosted_tools_in_googles_words(model: str, tool: HostedTool, asked: dict[str, Any]):
    _, sent = await ask(model=ModelSpec("gemini", model), hosted=(tool,))
    assert sent["tools"] == [asked]
    assert "toolConfig" not in sent


async def test_functions_and_hosted_tools_together_from_gemini_3_on():
    _, sent = await ask(tools=[WEATHER], hosted=(WebSearch(), CodeExecution()), tool_choice="auto")
    assert [next(iter(tool)) for tool in sent["tools"]] == [
        "functionDeclarations",
        "googleSearch",
        "codeExecution",
    ]
    assert sent["toolConfig"] == {
        "functionCallingConfig": {"mode": "AUTO"},
        "includeServerSideToolInvocations": True,
    }


@pytest.mark.parametrize(
    ("model", "hosted", "tools", "says"),
    [
        (OLDER, (WebSearch(),), [WEATHER], "gemini-2.5-flash does not take WebSearch together with tools"),
        (MODEL, (ImageGeneration(),), (), "gemini has no hosted ImageGeneration; it has WebSearch"),
        (MODEL, (ProviderTool("openai", {"type": "x"}),), (), "no hosted ProviderTool of openai"),
        (MODEL, (WebSearch(allowed_domains=("a.example",)),), (), "no allowed_domains with WebSearch"),
        (MODEL, (WebFetch(blocked_domains=("a.example",)),), (), "no blocked_domains with WebFetch"),
        (MODEL, (McpConnector("d", "https://m.example", allowed_tools=("x",)),), (), "no allowed_tools"),
    ],
)
async def test_what_google_cannot_do_is_refused_by_name(
    model: ModelSpec, hosted: tuple[HostedTool, ...], tools: Any, says: str
):
    got, sent = await ask(model=model, hosted=hosted, tools=tools)
    assert sent is None
    assert isinstance(got.terminal, Error)
    assert says in got.terminal.message


async def test_a_setting_that_google_has_not_is_reported(caplog: pytest.LogCaptureFixture):
    await ask(hosted=(WebSearch(max_uses=3, location=Location("CH")),))
    assert "'WebSearch.max_uses'" in caplog.text
    assert "'WebSearch.location'" in caplog.text


async def test_extra_merges_deep_and_its_tools_stand_beside_ours(caplog: pytest.LogCaptureFixture):
    _, sent = await ask(
        tools=[WEATHER],
        hosted=SEARCH,
        temperature=0.5,
        extra={
            "tools": [{"googleMaps": {}}],
            "toolConfig": {"retrievalConfig": {"languageCode": "de"}},
            "generationConfig": {"temperature": 2, "topK": 5},
            "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        },
    )
    assert [next(iter(tool)) for tool in sent["tools"]] == [
        "functionDeclarations",
        "googleSearch",
        "googleMaps",
    ]
    assert sent["toolConfig"] == {
        "retrievalConfig": {"languageCode": "de"},
        "includeServerSideToolInvocations": True,
    }
    assert sent["generationConfig"] == {
        "temperature": 0.5,
        "topK": 5,
        "thinkingConfig": {"thinkingLevel": "LOW"},
    }
    assert sent["safetySettings"][0]["threshold"] == "BLOCK_NONE"
    _, sent = await ask(tools=[WEATHER], extra={"tools": {"googleMaps": {}}})
    assert [next(iter(tool)) for tool in sent["tools"]] == ["functionDeclarations"]
    assert "extra.tools" in caplog.text


# --- Media -------------------------------------------------------------------------------------------------------


async def test_images_and_sound_in_replies_are_blocks():
    got, _ = await ask(FIXTURES["image"])
    assert [block for block in got.message.content if isinstance(block, Image)] == [
        Image(Base64Source("Zm94", "image/png")),
        Image(Base64Source("Zm94Mg==", "image/jpeg")),
    ]
    assert Thinking("Sketching.") in got.message.content
    spoken = chunk(
        {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "bGE="}}, finish="STOP"
    )
    got, _ = await ask(sse(spoken))
    assert got.message.content == (Audio(Base64Source("bGE=", "audio/L16;codec=pcm;rate=24000")),)


async def test_documents_and_sound_go_out_as_data_or_address():
    asked = UserMessage(
        [
            Document(Base64Source("JVBERg==", "application/pdf"), "terms.pdf"),
            Document.from_url("https://x.example/a.pdf"),
            Document.from_bytes(b"plain words"),
            Audio(Base64Source("bGE=", "audio/wav")),
        ]
    )
    _, sent = await ask(messages=[asked])
    assert sent["contents"][0]["parts"] == [
        {"text": "terms.pdf:"},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x.example/a.pdf"}},
        {"inlineData": {"mimeType": "text/plain", "data": "cGxhaW4gd29yZHM="}},
        {"inlineData": {"mimeType": "audio/wav", "data": "bGE="}},
    ]


# --- Options and output ------------------------------------------------------------------------------------------


async def test_the_output_is_held_to_a_schema_while_the_model_thinks():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    _, sent = await ask(
        model=ModelSpec("gemini", MODEL.model_id, "high"), output=OutputSchema("answer", schema)
    )
    assert sent["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
    }


@pytest.mark.parametrize(
    ("model", "knows", "tools", "native"),
    [
        ("gemini-2.5-flash", True, (), True),
        ("gemini-2.5-flash", True, [WEATHER], False),
        ("gemini-3-pro-preview", True, [WEATHER], True),
        ("gemini-2.5-flash-image", False, (), False),
        ("gemini-9", None, (), False),
    ],
)
def test_native_output_where_the_catalog_knows_it(model: str, knows: bool | None, tools: Any, native: bool):
    spec = ModelSpec("gemini", model, capabilities=Capabilities(json_schema=knows))
    assert GeminiStreamFn(api_key="k").native_output(spec, LlmContext("", [], tools)) is native


async def test_the_options_that_google_has():
    _, sent = await ask(top_p=0.9, stop=("END",), seed=7, service_tier="flex")
    config = sent["generationConfig"]
    assert (config["topP"], config["stopSequences"], config["seed"]) == (0.9, ["END"], 7)
    assert sent["serviceTier"] == "flex"


async def test_a_message_that_an_older_version_stored_still_goes_out():
    stored = AssistantMessage(
        [Thinking("", "text:c2ln", True), Text("Hi"), Thinking("", "empty:c2ln", True)],
        "gemini",
        MODEL.model_id,
    )
    _, sent = await ask(messages=[UserMessage("Hello"), stored, UserMessage("Go on")])
    assert sent["contents"][1]["parts"] == [{"text": "Hi"}]


async def test_a_hosted_use_without_its_result_is_left_out_of_a_reply_that_was_cut_off():
    parts: list[dict[str, Any]] = [
        {"executableCode": {"code": "1", "language": "PYTHON"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {"id": "a", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
        {"toolResponse": {"id": "a", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
        {"toolCall": {"id": "b", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
        {"executableCode": {"code": "2", "language": "PYTHON"}},
    ]
    content = [Extension("gemini", part) for part in parts]
    for reason, kept in (("aborted", parts[:4]), ("stop", parts)):
        reply = AssistantMessage(content, MODEL.provider, MODEL.model_id, reason)
        _, sent = await ask(messages=[UserMessage("Hi"), reply, UserMessage("Well?")])
        assert sent["contents"][1]["parts"] == kept
