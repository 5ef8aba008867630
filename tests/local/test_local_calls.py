"""The real model and two tools: over 20 prompts every call parses and fits its schema, and every run ends."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jsonschema
import pytest
from talking import CALCULATE, SMOL, WEATHER, Spec, answered, ask, events_of
from tests.counts import MORE, left_to_more

from swink import Agent, tool
from swink.app.assistant.smallmodels import MOST_TOKENS, PROMPT, small_tools
from swink.local import LocalStreamFn
from swink.messages import AssistantMessage, Cost, LlmMessage, ToolCall, ToolResultMessage, UserMessage
from swink.stream import Assembly, Done, Error, LlmContext, StreamOptions, ToolCallDelta
from swink.tools.coding import coding_tools

PROMPTS = [line.split("\t") for line in (Path(__file__).parent / "prompts.txt").read_text().splitlines()]
BOTH = [WEATHER, CALCULATE]
TOOLS = {tool.name: tool for tool in BOTH}
AFTER_A_RESULT: list[LlmMessage] = [
    UserMessage("Weather in Rome?"),
    AssistantMessage((ToolCall("1", "weather", {"city": "Rome"}),)),
    ToolResultMessage("1", "weather", "14"),
]


@left_to_more
@pytest.mark.parametrize("pair", range(10))
async def test_every_call_fits_its_schema_and_every_run_ends(model: LocalStreamFn, pair: int):
    await asyncio.gather(
        *(_run(model, prompt) for _, prompt in PROMPTS[2 * pair : 2 * pair + (2 if MORE else 1)])
    )


async def _run(model: LocalStreamFn, prompt: str) -> None:
    history: list[LlmMessage] = [UserMessage(prompt)]
    message, done = await ask(model, history, tools=BOTH, tool_choice="required", max_tokens=64)
    assert isinstance(done, Done)
    assert done.stop_reason == "tool_use"
    (call,) = message.tool_calls
    jsonschema.validate(call.arguments, TOOLS[call.name].parameters_schema)
    answer, done = await ask(
        model, [*history, *answered(message, "14")], tools=BOTH, max_tokens=20 if MORE else 8
    )
    assert isinstance(done, Done)
    assert answer.text.strip() or answer.tool_calls
    assert call not in answer.tool_calls


@left_to_more
async def test_small_talk_is_answered_in_words_and_a_question_for_a_tool_by_a_call(model: LocalStreamFn):
    for prompt in ("Hello!", "Thanks a lot!") if MORE else ("Hello!",):
        message, done = await ask(model, prompt, tools=BOTH, max_tokens=40)
        assert message.text.strip(), prompt
        assert (message.tool_calls, done.stop_reason) == ((), "stop"), message.text
    message, done = await ask(model, "What is the weather in Paris?", tools=BOTH, max_tokens=40)
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("weather", {"city": "Paris"})]
    assert done.usage.total < 400  # the prompt counts once, though it was looked at before


def test_there_are_twenty_prompts_for_both_tools():
    assert len({prompt for _, prompt in PROMPTS}) == 20
    assert {name for name, _ in PROMPTS} == set(TOOLS)


@left_to_more
async def test_a_named_tool_is_called_whatever_was_asked(model: LocalStreamFn):
    message, _ = await ask(
        model, "What is the weather in Paris?", tools=BOTH, tool_choice="calculate", max_tokens=64
    )
    assert [call.name for call in message.tool_calls] == ["calculate"]


async def test_required_calls_again_after_a_result_and_what_the_limit_cuts_off_stays_incomplete(
    model: LocalStreamFn,
):
    message, done = await ask(model, AFTER_A_RESULT, tools=[WEATHER], tool_choice="required", max_tokens=9)
    assert isinstance(done, Done)
    assert done.stop_reason == "length"
    assert len(message.tool_calls) == 1
    assert message.tool_calls[0].partial_json is not None


@left_to_more
async def test_required_calls_again_after_a_result(model: LocalStreamFn):
    again, _ = await ask(model, AFTER_A_RESULT, tools=BOTH, tool_choice="required", max_tokens=64)
    assert len(again.tool_calls) == 1


async def test_none_forbids_calls(model: LocalStreamFn):
    message, _ = await ask(model, "Weather in Rome?", tools=[WEATHER], tool_choice="none", max_tokens=3)
    assert not message.tool_calls
    assert message.text


@left_to_more
async def test_structured_output_fits_a_nested_schema(model: LocalStreamFn):
    person = Spec(
        "person",
        "Who is meant.",
        {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "pets": {"type": "array", "items": {"$ref": "#/$defs/Pet"}, "maxItems": 1},
        },
        **{
            "$defs": {
                "Pet": {
                    "type": "object",
                    "properties": {"kind": {"enum": ["cat", "dog"]}},
                    "required": ["kind"],
                }
            }
        },
    )
    message, _ = await ask(
        model, "Anna is 31 and has a cat.", tools=[person], tool_choice="person", max_tokens=80
    )
    (call,) = message.tool_calls
    jsonschema.validate(call.arguments, person.parameters_schema)
    assert call.arguments["name"] == "Anna"


@left_to_more
async def test_arguments_arrive_as_they_are_written(model: LocalStreamFn):
    events = await events_of(model, "What is the weather in Paris?", tools=BOTH, max_tokens=64)
    assert sum(isinstance(event, ToolCallDelta) for event in events) > 3


@left_to_more
async def test_a_call_cut_off_by_the_limit_stays_incomplete(model: LocalStreamFn):
    message, done = await ask(model, "What is the weather in Paris?", tools=BOTH, max_tokens=9)
    assert isinstance(done, Done)
    assert done.stop_reason == "length"
    assert message.tool_calls[0].partial_json is not None


@left_to_more
async def test_arguments_beyond_the_grammar_are_checked_and_drawn_again_once(model: LocalStreamFn):
    fine = Spec("pick", "Pick.", {"n": {"enum": [1, 2], "not": {"const": 77}}})
    message, _ = await ask(model, "Pick.", tools=[fine], tool_choice="pick", max_tokens=40)
    assert message.tool_calls[0].name == "pick"
    hopeless = Spec("pick", "Pick.", {"n": {"enum": [1, 2], "not": {"type": "integer"}}})
    message, error = await ask(model, "Pick.", tools=[hopeless], tool_choice="pick", max_tokens=40)
    assert isinstance(error, Error)
    assert "do not fit the schema" in error.message
    assert not message.tool_calls
    assert error.usage.output > 20  # both attempts are counted


async def test_an_agent_uses_a_tool_and_gives_structured_output(model: LocalStreamFn):
    asked: list[str] = []

    @tool
    def weather(city: str) -> str:
        """Current weather."""
        asked.append(city)
        return "14 °C"

    @dataclass
    class Mood:
        mood: Literal["good", "bad"]

    agent = Agent(SMOL, stream_fn=model, tools=[weather], options=StreamOptions(max_tokens=16))
    result = await agent.run("What is the weather in Rome?")
    assert (result.stop_reason in ("stop", "length"), len(asked)) == (True, 1)
    assert result.text
    assert result.cost == Cost()
    feeling = await Agent(SMOL, stream_fn=model, options=StreamOptions(max_tokens=40)).run(
        "I am so happy!", output=Mood
    )
    assert isinstance(feeling.output, Mood)


@left_to_more
async def test_prompt_and_tools_of_small_models_fit_their_limit_and_a_change_is_a_call(
    model: LocalStreamFn, tmp_path: Path
):
    tools = small_tools(coding_tools(tmp_path))
    context = LlmContext(PROMPT, [UserMessage("Change 8080 to 9090 in config.toml.")], tools)
    assembly = Assembly()
    async for event in model(SMOL, context, StreamOptions(max_tokens=64)):
        assembly.feed(event)
    assert isinstance(assembly.terminal, Done)
    usage = assembly.terminal.usage
    assert usage.input + usage.cache_read <= MOST_TOKENS
    (call,) = assembly.message(SMOL, "tool_use", usage=usage).tool_calls
    assert (call.name, call.arguments["path"]) == ("edit_file", "config.toml")


def test_the_default_model_is_the_one_tested():
    assert str(SMOL) == "local:smollm2-135m"
