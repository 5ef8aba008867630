"""A prompt as argument: `swink "fix the tests"`, `swink -p`, and an answer that is held to a schema."""

import json
import os

import pytest
from command_line import TOOLS, Call, Place, Provider, Screen, without_styles

from swink.app.cli.commands import make_parser, parse_arguments
from swink.app.cli.completion import walk

MODEL = ("-m", "openai:m")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        (["fix the tests"], "fix the tests"),
        (["fix", "the", "tests"], "fix the tests"),
        (["run it again"], "run it again"),  # one argument of several words is no command
        (["hello"], "hello"),
        (["-m", "openai:m", "hello"], "hello"),
        (["hello", "--plan"], "hello"),
        (["--", "run"], "run"),
        (["-m", "openai:m", "--", "--bogus"], "--bogus"),
        (["chat", "models"], "models"),
        ([], ""),
    ],
)
def test_words_that_are_no_command_begin_a_chat(words: list[str], prompt: str):
    arguments = parse_arguments(words)
    assert arguments.command == "swink.app.cli.chat:chat_command"
    assert " ".join(arguments.prompt) == prompt


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sesions", "there is no command 'sesions'; did you mean sessions? (as a prompt: swink -- sesions)"),
        ("-m openai:m sesions", "did you mean sessions? (as a prompt: swink -- sesions)"),
        ("modles list", "did you mean models? (as a prompt: swink -- modles list)"),
        ("help", "did you mean --help? (as a prompt: swink -- help)"),
        ("--plan run hi", "run is a command, and stands before all options (as a prompt: swink -- run hi)"),
    ],
)
def test_what_is_rather_a_command_is_refused_with_the_nearest(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(words.split())
    assert capsys.readouterr().err.endswith(f"{said}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["-p", "hi"],
        ["hi", "-p"],
        ["--print", "hi"],
        ["chat", "-p", "hi"],
        ["-p", "--json", "--deadline", "5", "--continue", "--plan", "hi"],
        ["--resume", "1a2b", "-p", "hi"],
    ],
)
def test_p_is_a_run_with_the_tools_of_the_directory_and_takes_its_options(words: list[str]):
    arguments = parse_arguments(words)
    assert (arguments.command, arguments.prompt) == ("swink.app.cli.run_command:run_command", ["hi"])
    assert arguments.coding


def test_p_after_two_dashes_is_a_prompt():
    assert parse_arguments(["--", "-p"]).prompt == ["-p"]


@pytest.mark.parametrize("words", [["-p", *MODEL, "What is it?"], [*MODEL, "What is it?"]])
def test_without_a_terminal_a_prompt_is_answered_with_the_tools_of_the_directory(
    place: Place, provider: Provider, words: list[str]
):
    place.write("main.py", "print(42)\n")
    provider.replies = [[Call("read_file", path="main.py")], ["It prints 42."]]
    done = place.swink(*words, stdin="This one.", env=provider.env)
    assert (done.code, done.out) == (0, "It prints 42.\n")
    assert provider.requests[0]["messages"][-1]["content"] == "What is it?\n\nThis one."
    assert "print(42)" in provider.requests[1]["messages"][-1]["content"]
    assert not place.sessions.exists()


def test_p_without_a_prompt_says_so(place: Place):
    done = place.swink("-p")
    assert done.code == 2
    assert "there is no prompt" in done.err


def test_p_goes_on_with_the_newest_session_of_the_directory(place: Place, provider: Provider):
    place.swink("run", *MODEL, "--session", "new", "My name is Ada.", env=provider.env)
    for words in (["-p", "--continue"], ["--continue"]):
        done = place.swink(*words, "Who am I?", env=provider.env)
        assert done.code == 0, done
        assert "My name is Ada." in json.dumps(provider.requests[-1])
    done = place.swink("--resume", "nosuch", "Who am I?", env=provider.env)
    assert (done.code, done.out) == (1, ""), done


def test_p_in_plan_mode_has_only_tools_that_change_nothing(place: Place, provider: Provider):
    place.write("main.py", "print(42)\n")
    assert place.swink("-p", *MODEL, "--plan", "Fix it.", env=provider.env).code == 0
    names = {tool["function"]["name"] for tool in provider.requests[0]["tools"]}
    assert "read_file" in names
    assert not names & {"write_file", "edit_file", "bash"}


def test_the_plain_chat_begins_with_the_prompt(place: Place, provider: Provider):
    provider.replies = [["Hello!"], ["Fine."]]
    screen = Screen(place, *MODEL, "hi", "there", env=provider.env)
    assert "> hi there" in without_styles(screen.wait_for("Hello!\n"))
    screen.wait_for("> ")
    screen.type("how are you?\n")
    screen.wait_for("Fine.\n")
    screen.type("/quit\n")
    assert screen.end() == 0
    assert [message["content"] for message in provider.requests[1]["messages"][1:]] == [
        "hi there",
        "Hello!",
        "how are you?",
    ]


def write_schema(place: Place, schema: object = SCHEMA) -> tuple[str, ...]:
    place.write("schema.json", json.dumps(schema))
    return ("--output-schema", "schema.json")


def test_an_answer_is_held_to_a_schema_and_printed_as_json(place: Place, provider: Provider):
    provider.replies = [["It is ", "forty-two."], [Call("final_output", n="x")], [Call("final_output", n=42)]]
    done = place.swink("run", *MODEL, *write_schema(place), "How much?", env=provider.env)
    assert (done.code, json.loads(done.out)) == (0, {"n": 42})
    assert len(done.out.splitlines()) == 1
    assert len(provider.requests) == 3


def test_the_output_stands_in_the_last_line_of_json_too(place: Place, provider: Provider):
    provider.replies = [[Call("final_output", n=42)]]
    done = place.swink("run", *MODEL, "--json", *write_schema(place), "How much?", env=provider.env)
    assert (done.code, json.loads(done.out.splitlines()[-1])["output"]) == (0, {"n": 42})


def test_p_with_a_schema_may_use_tools_before_it_answers(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    weather = [Call("weather", city="Oslo")]
    provider.replies = [weather, [Call("final_output", n=18)]]
    options = (*MODEL, "--tool", "tools:weather", *write_schema(place))
    done = place.swink("-p", *options, "How warm?", env=provider.env)
    assert (done.code, json.loads(done.out)) == (0, {"n": 18})


def test_a_schema_that_is_no_object_holds_too(place: Place, provider: Provider):
    provider.replies = [[Call("final_output", value=["a"])]]
    schema = write_schema(place, {"type": "array", "items": {"type": "string"}})
    done = place.swink("run", *MODEL, *schema, "List them.", env=provider.env)
    assert (done.code, json.loads(done.out)) == (0, ["a"])


def test_a_model_that_never_answers_so_is_a_failed_run_with_nothing_on_stdout(
    place: Place, provider: Provider
):
    provider.replies = [["It is forty-two."]]
    done = place.swink("run", *MODEL, *write_schema(place), "How much?", env=provider.env)
    assert (done.code, done.out) == (1, "")
    assert "no valid output after 4 attempts; the last problem: the model gave no output" in done.err
    assert done.err.endswith("ask for a simpler schema, or take another model with --model\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory"),
        ('{"type": "object",\n}', "line 2 column 1"),
        ("[]", "it is no JSON Schema"),
        ('{"type": "objekt"}', "objekt"),
        ("[" * 100_000, "nested too deeply"),
        ('{"type": "string", "pattern": "("}', "regex"),
        ('{"$ref": "https://example.com/schema.json"}', "schema.json:"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_before_anything_is_asked(
    place: Place, provider: Provider, text: str | None, said: str
):
    if text is not None:
        place.write("schema.json", text)
    options = (*MODEL, "--output-schema", "schema.json")
    done = place.swink("run", *options, "How much?", env=provider.env)
    assert (done.code, done.out) == (2, ""), done
    assert f"--output-schema {os.path.realpath(place.here)}/schema.json: " in done.err
    assert said in done.err
    done = place.swink("run", *options, "--json", "How much?", env=provider.env)
    assert (done.code, json.loads(done.out)["error_kind"]) == (2, "misuse")
    assert provider.requests == []


def test_help_lists_the_options_of_the_chat_within_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        parse_arguments(["--help"])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    outermost, *others = walk(make_parser())
    (chat,) = (command for command in others if command.path == ("chat",))
    names = {name for option in chat.options for name in option.names} - {"--debug"}
    assert names <= {name for option in outermost.options for name in option.names}
    assert [name for name in names if name not in shown] == []
    assert shown.startswith("usage: swink [OPTION ...] [PROMPT ...]\n       swink COMMAND ...\n")
