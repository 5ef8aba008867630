"""What a local model is asked: calls read back as they arrive, phases that always end, histories in plain turns."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talking import CALCULATE, WEATHER, Spec
from tests.counts import tried

from swink.errors import StreamError
from swink.local.callgrammar import CallParser, call_grammar, call_text
from swink.local.describe import describe_tools
from swink.local.gguf import GgufHead
from swink.local.prompt import (
    MAX_CALLS,
    NO_IMAGE,
    Answer,
    Choice,
    ForcedCall,
    Native,
    Output,
    chat_messages,
    native_tools,
    wanted_reply,
)
from swink.messages import (
    AssistantMessage,
    Audio,
    Document,
    Image,
    LlmMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.stream import LlmContext, OutputSchema, StreamOptions

TOOLS = [WEATHER, CALCULATE]
NATIVE = GgufHead(chat_template="{{ tools }}")
CHANNELS = GgufHead(chat_template="{{ tools }}<|channel|>")
OSLO = ToolCall("1", "weather", {"city": "Oslo"})


def context(*messages: LlmMessage, system: str = "", tools: list[Spec] = TOOLS) -> LlmContext:
    return LlmContext(system, messages, tools)


def rounds(*calls: ToolCall) -> list[LlmMessage]:
    """A question, then each call with its result."""
    history: list[LlmMessage] = [UserMessage("?")]
    for call in calls:
        history += [AssistantMessage((call,)), ToolResultMessage(call.id, call.name, "ok")]
    return history


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@tried(40, 500)
@given(
    st.sampled_from(["weather", "a-b_c", 'odd "name"']),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3),
    st.data(),
)
def test_a_call_is_read_back_however_it_is_cut(name: str, arguments: dict[str, object], data: st.DataObject):
    text = call_text(ToolCall("1", name, arguments))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    parser = CallParser()
    read = "".join(
        parser.feed(text[start:end]) for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
    )
    assert parser.name == name
    assert parser.complete
    assert json.loads(read) == arguments


def test_a_call_that_is_cut_off_is_not_complete():
    parser = CallParser()
    assert parser.feed('{"tool":"weather","arguments":{"city":"Os') == '{"city":"Os'
    assert (parser.name, parser.complete) == ("weather", False)


def test_only_tools_with_keywords_beyond_the_grammar_are_checked_afterwards():
    odd = Spec("odd", "", {"x": {"type": "array", "uniqueItems": True}})
    assert set(call_grammar([WEATHER, odd]).unsure) == {"odd"}


def test_the_model_chooses_between_a_call_and_words_and_knows_which_calls_it_made():
    both = (WEATHER, CALCULATE)
    assert wanted_reply(context(UserMessage("?")), StreamOptions()) == Choice(both)
    made = ("weather", '{"city":"Oslo"}')
    assert wanted_reply(context(*rounds(OSLO)), StreamOptions()) == Choice(both, (made,))
    assert wanted_reply(context(*rounds(OSLO), UserMessage("and?")), StreamOptions()) == Choice(both)
    assert wanted_reply(context(UserMessage("?"), tools=[]), StreamOptions()) == Answer()


def test_tool_choice_forbids_forces_and_names():
    asked = context(*rounds(OSLO))
    assert wanted_reply(asked, StreamOptions(tool_choice="none")) == Answer(after_calls=True)
    assert wanted_reply(asked, StreamOptions(tool_choice="required")) == ForcedCall((WEATHER, CALCULATE))
    assert wanted_reply(asked, StreamOptions(tool_choice="calculate")) == ForcedCall((CALCULATE,))
    with pytest.raises(StreamError, match=r"'other'.*weather, calculate"):
        wanted_reply(asked, StreamOptions(tool_choice="other"))


@pytest.mark.parametrize("choice", [None, "auto", "required"])
@pytest.mark.parametrize("head", [GgufHead(), NATIVE, CHANNELS])
def test_every_run_ends_even_if_the_model_always_calls(choice: str | None, head: GgufHead):
    history: list[LlmMessage] = [UserMessage("?")]
    for turn in range(MAX_CALLS + 1):
        wanted = wanted_reply(context(*history), StreamOptions(tool_choice=choice), head)
        if isinstance(wanted, Answer) or wanted == Native((WEATHER, CALCULATE), "none"):
            return
        history += rounds(ToolCall(str(turn), "weather", {"city": "Oslo"}))[1:]
    pytest.fail("it never came to an answer")


def test_required_calls_that_differ_end_as_well():
    calls = [ToolCall(str(turn), "weather", {"city": str(turn)}) for turn in range(MAX_CALLS)]
    assert wanted_reply(context(*rounds(*calls[:-1])), StreamOptions(tool_choice="required")) == ForcedCall(
        (WEATHER, CALCULATE)
    )
    assert wanted_reply(context(*rounds(*calls)), StreamOptions(tool_choice="required")) == Answer(
        after_calls=True
    )


def test_a_named_tool_is_forced_again_but_varied_when_the_model_repeats_itself():
    assert wanted_reply(context(*rounds(OSLO, OSLO)), StreamOptions(tool_choice="weather")) == ForcedCall(
        (WEATHER,), varied=True
    )


def test_a_template_that_knows_tools_leaves_the_choice_to_the_model_until_it_repeats_itself():
    both = (WEATHER, CALCULATE)
    once, twice = context(*rounds(OSLO)), context(*rounds(OSLO, OSLO))
    assert wanted_reply(once, StreamOptions(), NATIVE) == Native(both)
    assert wanted_reply(twice, StreamOptions(), NATIVE) == Native(both, "none")
    assert wanted_reply(once, StreamOptions(tool_choice="none"), NATIVE) == Native(both, "none")
    assert wanted_reply(context(*rounds(OSLO), tools=[]), StreamOptions(), NATIVE) == Answer()


def test_a_forced_call_is_ours_to_constrain_unless_the_template_has_channels():
    asked = context(*rounds(OSLO))
    assert wanted_reply(asked, StreamOptions(tool_choice="required"), NATIVE) == ForcedCall(
        (WEATHER, CALCULATE)
    )
    assert wanted_reply(asked, StreamOptions(tool_choice="weather"), NATIVE) == ForcedCall((WEATHER,))
    assert wanted_reply(asked, StreamOptions(tool_choice="required"), CHANNELS) == Native(
        (WEATHER, CALCULATE), "required"
    )
    assert wanted_reply(asked, StreamOptions(tool_choice="weather"), CHANNELS) == Native(
        (WEATHER,), "required"
    )


def test_native_tools_go_without_the_keywords_that_llama_cpp_fails_on():
    tool = Spec(
        "x",
        "X.",
        {
            "pattern": {"type": "string", "pattern": "(?=a)", "maxLength": 5000},
            "e": {"enum": [{"format": 1}]},
        },
    )
    (sent,) = native_tools([tool])
    assert sent["function"]["parameters"]["properties"] == {
        "pattern": {"type": "string"},
        "e": {"enum": [{"format": 1}]},
    }


def test_a_history_becomes_plain_turns_that_alternate():
    history = [*rounds(OSLO), UserMessage("Thanks."), AssistantMessage((Thinking("hm"), Text("Welcome.")))]
    shown = chat_messages(context(*history, system="Be brief."), Answer(), StreamOptions())
    assert shown[0]["content"].startswith(
        "Be brief.\n\nYou have these tools:\n- weather(city: string): Current weather of a city."
    )
    examples, talk = shown[1:-4], shown[-4:]
    assert [turn["role"] for turn in shown[1:]] == ["user", "assistant"] * (len(shown) // 2)
    called = {"role": "assistant", "content": '{"tool":"weather","arguments":{"city":"blue"}}'}
    asked = examples[examples.index(called) - 1]
    assert asked == {"role": "user", "content": "Current weather of a city, city: blue."}
    assert [turn["content"] for turn in talk] == [
        "?",
        '{"tool":"weather","arguments":{"city":"Oslo"}}',
        "weather returned: ok\n\nThanks.",
        "Welcome.",
    ]


def test_with_tools_forbidden_they_are_not_mentioned():
    assert chat_messages(context(UserMessage("?")), Answer(), StreamOptions(tool_choice="none")) == [
        {"role": "user", "content": "?"}
    ]


def test_native_histories_keep_calls_and_results_apart():
    shown = chat_messages(context(*rounds(OSLO), system="S"), Native(tuple(TOOLS)), StreamOptions())
    assert [turn["role"] for turn in shown] == ["system", "user", "assistant", "tool"]
    assert shown[2]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city":"Oslo"}'}
    assert shown[3] == {"role": "tool", "tool_call_id": "1", "name": "weather", "content": "ok"}


def test_an_image_from_the_user_is_an_error_and_one_from_a_tool_is_mentioned():
    picture = Image.from_url("https://x/x.png")
    with pytest.raises(StreamError, match="takes no images"):
        chat_messages(context(UserMessage((Text("look"), picture))), Answer(), StreamOptions())
    history = [*rounds(OSLO)[:-1], ToolResultMessage("1", "weather", (picture,))]
    assert NO_IMAGE in chat_messages(context(*history), Answer(), StreamOptions())[-1]["content"]


def test_text_documents_are_read_and_other_media_are_refused():
    notes = Document.from_bytes(b"Buy milk.", title="notes.txt")
    shown = chat_messages(context(UserMessage((Text("Sum up."), notes))), Answer(), StreamOptions())
    assert shown[-1]["content"] == "Sum up.\n\nnotes.txt:\nBuy milk."
    history = [*rounds(OSLO)[:-1], ToolResultMessage("1", "weather", (notes,))]
    assert "Buy milk." in chat_messages(context(*history), Answer(), StreamOptions())[-1]["content"]
    for block in (Document.from_bytes(b"%PDF-1.7"), Audio.from_url("https://x/x.mp3")):
        with pytest.raises(StreamError, match="takes no"):
            chat_messages(context(UserMessage((block,))), Answer(), StreamOptions())


def test_an_output_schema_is_described():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    asked = LlmContext("S", [UserMessage("?")], output=OutputSchema("n", schema))
    wanted = wanted_reply(asked, StreamOptions())
    assert wanted == Output(schema)
    shown = chat_messages(asked, wanted, StreamOptions())
    assert shown[0]["content"] == "S\n\nReply with JSON of this form: {n: integer}"


def test_tools_are_described_in_few_words():
    tool = Spec(
        "plan",
        "Plan a trip.\n\nLong story.",
        {
            "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}, "description": "Where to."},
            "fast": {"type": ["boolean", "null"]},
        },
        required=["stops"],
        **{
            "$defs": {
                "Stop": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "by": {"enum": ["train", "bus"]}},
                }
            }
        },
    )
    line = describe_tools([tool]).splitlines()[1]
    assert (
        line
        == '- plan(stops: [{city: string, by: "train"|"bus"}] (Where to.), fast?: boolean|null): Plan a trip.'
    )
    assert describe_tools([]) == ""
