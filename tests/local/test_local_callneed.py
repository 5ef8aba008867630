"""When a small model has to call, when it has to answer, and which tools it may take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talking import WEATHER, Spec
from tests.counts import tried

from swink.local.callneed import Need, choose_tools, find_need, names_work, shift_likelihood
from swink.local.describe import describe_tools, example_talk
from swink.local.gguf import GgufHead
from swink.local.prompt import MAX_CALLS, Answer, Choice, Native, NativeCall, native_tools, wanted_reply
from swink.messages import AssistantMessage, LlmMessage, ToolCall, ToolResultMessage, UserMessage
from swink.stream import LlmContext, StreamOptions

TEXT = {"type": "string"}
READ = Spec("read_file", 'Read.\n\nWords: read, say\nExample: Say a.txt. {"path":"a.txt"}', {"path": TEXT})
BASH = Spec("bash", 'Run.\n\nWords: run, how many\nExample: Run ls. {"command":"ls"}', {"command": TEXT})
TOOLS = (READ, BASH)
MISSING = ("a.py does not exist", True)


def after(*results: tuple[str, bool], asked: str = "Read a.py") -> list[LlmMessage]:
    """A question, then calls that differ, with these results."""
    history: list[LlmMessage] = [UserMessage(asked)]
    for number, (text, is_error) in enumerate(results):
        call = ToolCall(str(number), "read_file", {"path": f"{number}.py"})
        history += [AssistantMessage((call,)), ToolResultMessage(call.id, call.name, text, is_error)]
    return history


@pytest.mark.parametrize(
    "text",
    [
        "What does config.toml say about the port?",
        "Which Python files are here?",
        "Where is `add` defined?",
        "Please run the tests.",
        "What is in src/swink?",
        "Is .gitignore complete?",
        "What does this project do?",
        "Ändere 8080 in config.toml zu 9090.",
        "Hello!\nNow find the tests.",
    ],
)
def test_a_message_that_names_a_file_the_folder_or_a_command_needs_a_call(text: str):
    assert names_work(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "Thanks, that is all.",
        "What is the capital of France?",
        "Is 3.14 a number, e.g. a float?",
        "What is https://example.com/index.html about?",
        "Does he/she and/or it run well?",
        "Write to me@example.org, please.",
        "It was ready. Then it ended.",
        "",
    ],
)
def test_small_talk_and_general_questions_need_none(text: str):
    assert not names_work(text)


@tried(100, 1_000)
@given(st.text(max_size=300))
def test_any_text_can_be_judged(text: str):
    names_work(text)


@pytest.mark.parametrize(
    ("messages", "need"),
    [
        (after(), "call"),
        (after(asked="Hello!"), "either"),
        (after(("text", False)), "either"),
        (after(MISSING), "call"),
        (after(MISSING, MISSING), "words"),
        (after(MISSING, ("text", False), MISSING), "call"),
        (after(("1 failed\n[exit code 1]", True)), "either"),
        (after(("pytst: command not found\n[exit code 127]", True)), "call"),
        (after(("tool call rejected: no", True)), "words"),
        (after(MISSING, ("tool call rejected", True)), "words"),
        ([*after(MISSING, MISSING), UserMessage("Then read b.py")], "call"),
        ([], "either"),
    ],
)
def test_a_wrong_call_is_repaired_once_and_a_refused_one_never(messages: list[LlmMessage], need: Need):
    assert find_need(messages, TOOLS) == need


def test_tools_that_know_nothing_of_files_are_left_to_the_model():
    assert find_need(after(), [WEATHER]) == "either"
    assert find_need(after(MISSING, MISSING), [WEATHER]) == "either"
    assert (shift_likelihood([WEATHER]), shift_likelihood(TOOLS) > 0) == (0.0, True)


def test_the_words_of_a_message_choose_among_the_tools_for_the_first_call_only():
    assert choose_tools(after(asked="What does it SAY?"), TOOLS) == (READ,)
    assert choose_tools(after(asked="How many lines has a.py?"), TOOLS) == (BASH,)
    assert choose_tools(after(asked="Read it, then run it."), TOOLS) == TOOLS
    assert choose_tools(after(asked="Is it already good?"), TOOLS) == TOOLS
    assert choose_tools(after(MISSING, asked="Run a.py"), TOOLS) == TOOLS
    assert choose_tools(after(asked="Read the weather"), [WEATHER, READ]) == (READ,)


@pytest.mark.parametrize(
    ("asked", "files"),
    [
        ("What do src/a.py and b.txt say, and a.py?", ["src/a.py", "b.txt", "a.py"]),
        ("Read notes.txt.", ["notes.txt"]),
        ("Read .env, or src/", [".env", "src/"]),
    ],
)
def test_the_first_call_reads_a_file_that_the_message_names(asked: str, files: list[str]):
    (tool,) = choose_tools(after(asked=asked), [READ])
    assert tool.parameters_schema["properties"]["path"]["enum"] == files
    assert tool.parameters_schema["required"] == ["path"]
    assert "enum" not in READ.parameters_schema["properties"]["path"]
    assert choose_tools(after(MISSING, asked=asked), [READ]) == (READ,)


def test_a_new_file_may_have_any_name_and_a_command_between_backticks_is_the_one_that_runs():
    write = Spec("write_file", "Write.", {"path": TEXT, "content": TEXT})
    assert choose_tools(after(asked="Write a test for a.py"), [write]) == (write,)
    (bash,) = choose_tools(after(asked="Please run `ls -l` and tell me."), TOOLS)
    assert bash.parameters_schema["properties"]["command"]["enum"] == ["ls -l"]
    assert choose_tools(after(asked="How many lines has `a b`?"), TOOLS) == (BASH,)


def wanted(messages: list[LlmMessage], head: GgufHead = GgufHead(), **options: str) -> object:
    return wanted_reply(LlmContext("", messages, TOOLS), StreamOptions(**options), head)  # pyright: ignore


def test_the_reply_follows_the_need():
    made = (("read_file", '{"path":"0.py"}'),)
    assert wanted(after(asked="Read this file")) == Choice((READ,), must_call=True)
    assert wanted(after(asked="Hello!")) == Choice(TOOLS)
    assert wanted(after(asked="What would you say?")) == Choice((READ,))
    assert wanted(after(MISSING)) == Choice(TOOLS, made, must_call=True)
    assert wanted(after(("text", False))) == Choice(TOOLS, made)
    assert wanted(after(MISSING, MISSING)) == Answer(after_calls=True)
    assert wanted(after(), tool_choice="none") == Answer()


def test_a_template_that_knows_tools_is_forced_repaired_and_stopped_too():
    head, made = GgufHead(chat_template="{{ tools }}"), (("read_file", '{"path":"0.py"}'),)
    assert wanted(after(asked="Read this file"), head) == NativeCall(TOOLS, (READ,))
    assert wanted(after(asked="Hello!"), head) == Native(TOOLS)
    assert wanted(after(("text", False)), head) == Native(TOOLS)
    assert wanted(after(MISSING), head) == NativeCall(TOOLS, TOOLS, made)
    assert wanted(after(MISSING, MISSING), head) == Native(TOOLS, "none")
    assert wanted(after(("tool call rejected: no", True)), head) == Native(TOOLS, "none")


def test_a_template_with_channels_is_not_forced_but_stopped():
    head = GgufHead(chat_template="{{ tools }}<|channel>")
    assert wanted(after(), head) == Native(TOOLS)
    assert wanted(after(MISSING, MISSING), head) == Native(TOOLS, "none")


def test_after_many_calls_a_template_that_knows_tools_is_not_forced_to_another():
    results = [MISSING if number % 2 else ("text", False) for number in range(MAX_CALLS)]
    assert wanted(after(*results), GgufHead(chat_template="{{ tools }}")) == Native(TOOLS)


def test_calls_that_go_wrong_and_right_in_turn_come_to_an_end():
    results = [MISSING if number % 2 else ("text", False) for number in range(MAX_CALLS)]
    assert wanted(after(*results)) == Answer(after_calls=True)


def test_examples_of_a_description_are_shown_as_calls_and_its_other_lines_are_not():
    text = describe_tools(TOOLS)
    assert '\nRun ls. {"tool":"bash","arguments":{"command":"ls"}}' in text
    assert "Words:" not in text
    assert "- bash(command: string): Run.\n" in text
    talk = example_talk(TOOLS)
    assert ("user", "Say a.txt.") in talk
    assert ("assistant", '{"tool":"read_file","arguments":{"path":"a.txt"}}') in talk


@pytest.mark.parametrize("example", ["Example: no call", "Example: broken {path}", "Example: list {[1]}"])
def test_an_example_that_is_no_call_is_left_out(example: str):
    odd = Spec("odd", f"Odd.\n\n{example}", {"path": TEXT})
    assert "Examples:" not in describe_tools([READ, odd])
    assert ("assistant", '{"tool":"odd","arguments":{"path":"blue"}}') in example_talk([odd])


def test_a_template_that_knows_tools_gets_a_description_without_such_lines():
    described = [entry["function"]["description"] for entry in native_tools([READ, WEATHER])]
    assert described == ["Read.", WEATHER.description]
