"""Conversations of attempts that passed, as training data."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.eval.runs import result, save

from swink.errors import AgentError, InvalidInput
from swink.eval import CaseResult
from swink.eval.training import Skipped, export_training, training_example
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Extension,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

KEY = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 5
PIXEL = Image.from_url("data:image/png;base64,iVBORw0KGgo=")
TOOL = {
    "name": "weather",
    "description": "The weather.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "password": {"type": "string"}},
    },
}


def talk() -> list[Message]:
    """A question, two calls at once, and the answer."""
    return [
        UserMessage("What should I wear in Oslo or Rome?"),
        AssistantMessage(
            [
                Thinking("hm"),
                Text("Let me look."),
                ToolCall("call_1", "weather", {"city": "Oslo"}),
                ToolCall("call_2", "weather", {"city": "Rome"}),
            ],
            stop_reason="tool_use",
        ),
        ToolResultMessage("call_1", "weather", "cold"),
        CustomMessage("note", {"seen": True}),
        ToolResultMessage("call_2", "weather", "warm"),
        AssistantMessage("A jacket in Oslo, none in Rome."),
    ]


def attempt(*messages: Message, **fields: Any) -> CaseResult:
    return result(transcript=messages or tuple(talk()), system_prompt="Be brief.", tools=(TOOL,), **fields)


def test_the_openai_format_has_every_message_and_the_tools():
    example = training_example(attempt())
    assert [message["role"] for message in example["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    calling = example["messages"][2]
    assert calling["content"] == "Let me look."
    assert calling["tool_calls"][0] == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
    }
    assert example["messages"][4] == {"role": "tool", "tool_call_id": "call_2", "content": "warm"}
    assert example["tools"] == [{"type": "function", "function": TOOL}]
    assert "hm" not in str(example)


def test_the_sharegpt_format_has_every_turn():
    example = training_example(attempt(), "sharegpt")
    assert [turn["from"] for turn in example["conversations"]] == [
        "human",
        "gpt",
        "function_call",
        "observation",
        "gpt",
    ]
    assert msgspec.json.decode(example["conversations"][2]["value"]) == [
        {"name": "weather", "arguments": {"city": "Oslo"}},
        {"name": "weather", "arguments": {"city": "Rome"}},
    ]
    assert msgspec.json.decode(example["conversations"][3]["value"])[1] == {
        "name": "weather",
        "content": "warm",
    }
    assert example["system"] == "Be brief."
    assert msgspec.json.decode(example["tools"])[0]["function"] == TOOL


def test_a_single_call_and_its_result_are_plain():
    example = training_example(
        attempt(
            UserMessage("Oslo?"),
            UserMessage("Now, please."),
            AssistantMessage([ToolCall("a", "weather", {"city": "Oslo"})], stop_reason="tool_use"),
            ToolResultMessage("a", "weather", "cold"),
            AssistantMessage("Cold."),
        ),
        "sharegpt",
    )
    assert [turn["value"] for turn in example["conversations"]] == [
        "Oslo?\n\nNow, please.",
        '{"name":"weather","arguments":{"city":"Oslo"}}',
        "cold",
        "Cold.",
    ]


@pytest.mark.parametrize("format", ["openai", "sharegpt"])
def test_secrets_are_removed_everywhere(format: Any):
    secret = attempt(
        UserMessage(f"My key is {KEY}"),
        AssistantMessage(
            [ToolCall("a", "weather", {"city": KEY, "password": "hunter2hunter2"})], stop_reason="tool_use"
        ),
        ToolResultMessage("a", "weather", f"used {KEY}"),
        AssistantMessage(f"Done with {KEY}"),
    )
    line = msgspec.json.encode(
        training_example(msgspec.structs.replace(secret, system_prompt=f"Use {KEY}"), format)
    ).decode()
    assert KEY not in line
    assert "hunter2" not in line
    assert line.count("[redacted]") >= 5


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([CustomMessage("note")], "no transcript"),
        ([UserMessage("Hi")], "does not end with an answer"),
        (talk()[:2], "not every tool call has its result"),
        ([*talk()[:3], *talk()[5:]], "not every tool call has its result"),
        (talk()[:5], "does not end with an answer"),
        (
            [UserMessage("Hi"), AssistantMessage("He", stop_reason="error"), AssistantMessage("Hello")],
            "failed",
        ),
        ([UserMessage("Hi"), AssistantMessage([Extension("x"), Text("Hello")])], "only its provider"),
    ],
)
def test_a_conversation_that_is_not_whole_is_refused(messages: list[Message], why: str):
    with pytest.raises(AgentError, match=why):
        training_example(attempt(*messages))


def test_an_image_is_kept_or_the_conversation_is_skipped():
    shown = attempt(UserMessage(["Look", PIXEL]), AssistantMessage("A pixel."))
    assert training_example(shown)["messages"][1]["content"][1]["type"] == "image_url"
    with pytest.raises(AgentError, match="no place for"):
        training_example(shown, "sharegpt")


def test_only_attempts_that_passed_are_written_once_each(tmp_path: Path):
    attempts = [
        attempt(),
        attempt(repeat=1),
        attempt(UserMessage("Rome?"), AssistantMessage("No idea."), repeat=2, passed=False),
        attempt(UserMessage("Hi"), repeat=3),
    ]
    export = export_training(save(tmp_path / "run", attempts), tmp_path / "data" / "out.jsonl")
    lines = (tmp_path / "data" / "out.jsonl").read_bytes().splitlines()
    assert export.written == len(lines) == 1
    assert export.skipped == (Skipped("oslo", 3, "it does not end with an answer"),)
    assert msgspec.json.decode(lines[0]) == training_example(attempt())


def test_a_run_that_cannot_be_read_leaves_the_file_as_it_was(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    path.write_text("old")
    with pytest.raises(AgentError):
        export_training(tmp_path / "nowhere", path)
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]
    assert path.read_text() == "old"


def test_an_unknown_format_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="openai"):
        export_training(tmp_path, tmp_path / "x", "alpaca")  # type: ignore[arg-type]
