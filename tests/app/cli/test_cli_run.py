"""`swink run`: what goes in, what comes out, and how it ends."""

import io
import json
import os
import signal
import subprocess
import sys
from typing import cast

import pytest
from command_line import (
    BREAK,
    KEY,
    STALL,
    TOOLS,
    Call,
    Done,
    Place,
    Provider,
    Refusal,
    Screen,
    without_styles,
)
from tests.counts import cell_of_more, crossed, in_cells, left_to_more

from swink import Agent, Policy
from swink.agent.policy import ApprovalRequest, PolicyContext, Rejected, Stop, Turn
from swink.app.assistant.approvalmodes import ApprovalWord
from swink.app.assistant.permissions import Permissions
from swink.app.cli.commands import make_parser, parse_arguments
from swink.app.cli.completion import walk
from swink.app.cli.printing import TextPrinter
from swink.app.cli.run_command import answer as answered
from swink.app.cli.run_command import read_prompt
from swink.events import AgentEnd, decode_agent_event
from swink.testing import ScriptedModel


def test_the_reply_goes_to_stdout_and_the_choice_of_model_to_stderr(place: Place, provider: Provider):
    done = place.swink("run", "Say", "hello", env=provider.env)
    assert (done.code, done.out) == (0, "Hello there.\n")
    assert done.err == "swink: using openai:gpt-5 (OPENAI_API_KEY is set; another with --model)\n"
    assert provider.requests[0]["messages"] == [{"role": "user", "content": "Say hello"}]
    assert provider.keys == [f"Bearer {KEY}"]


def test_a_named_model_needs_no_explanation(place: Place, provider: Provider):
    done = place.swink("run", "--model", "openai:m", "hi", env=provider.env)
    assert (done.code, done.out, done.err) == (0, "Hello there.\n", "")
    assert provider.requests[0]["model"] == "m"


def test_the_options_reach_the_provider_and_standard_input_is_added_to_the_prompt(
    place: Place, provider: Provider
):
    options = ("--system", "Be brief.", "--temperature", "0.5", "--max-tokens", "7", "--model", "openai:m")
    assert place.swink("run", *options, "Sum this up:", stdin="long text\n", env=provider.env).code == 0
    request = provider.requests[0]
    assert request["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Sum this up:\n\nlong text\n"},
    ]
    assert (request["temperature"], request["max_tokens"]) == (0.5, 7)


@pytest.mark.parametrize(
    ("words", "typed", "prompt"),
    [
        ([], "only this\n", "only this\n"),
        (["a", "b"], " \n", "a b"),
        (["a"], "b", "a\n\nb"),
        (["a"], b"\xff", "a\n\n\ufffd"),
    ],
)
def test_words_and_standard_input_make_the_prompt(
    words: list[str], typed: str | bytes, prompt: str, monkeypatch: pytest.MonkeyPatch
):
    data = typed if isinstance(typed, bytes) else typed.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_prompt(words) == prompt


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "there is no prompt"),
        (["run", "hi", "--nonsense"], "unrecognized arguments: --nonsense"),
        (
            ["run", "hi", "--model", "opnai:gpt-5"],
            "unknown provider 'opnai' in 'opnai:gpt-5'; did you mean openai:gpt-5",
        ),
        (["run", "hi", "--model", "local:smolm2"], "there is local:smollm2-135m"),
        (
            ["run", "hi", "--tool", "broken:f", "--model", "openai:m"],
            "importing broken failed: ZeroDivisionError",
        ),
    ],
)
def test_a_command_that_cannot_work_says_why_and_exits_with_2(place: Place, arguments: list[str], said: str):
    place.write("broken.py", "1 / 0")
    done = place.swink(*arguments)
    assert done.code == 2, done
    assert said in done.err
    assert done.out == ""


@in_cells("path", [command.path for command in walk(make_parser()) if command.path], ids=" ".join, every=6)
def test_an_unknown_option_is_named_with_the_usage_of_its_command(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as raised:
        parse_arguments([*path, "--bogus"])
    assert raised.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"usage: swink {' '.join(path)} [-h]")
    assert shown.err.endswith(f"swink {' '.join(path)}: error: unrecognized arguments: --bogus\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --modle x hi", "unrecognized arguments: --modle; did you mean --model?"),
        ("run --modle=x hi", "unrecognized arguments: --modle=x; did you mean --model?"),
        ("run --max-turn=1 hi", "did you mean --max-turns?"),
        ("--modle x", "unrecognized arguments: --modle; did you mean --model?"),
        ("mdels", "did you mean models? (as a prompt: swink -- mdels)"),
        ("sessions serch x", "did you mean search?"),
        ("run --thinking hig hi", "did you mean high?"),
        ("run --output xml hi", "'json')"),
    ],
)
def test_a_mistyped_word_brings_the_nearest_and_one_like_no_other_brings_none(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(words.split())
    assert capsys.readouterr().err.endswith(f"{said}\n")


def test_what_is_missing_is_still_asked_for(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(["keys", "set"])
    assert capsys.readouterr().err.endswith(
        "swink keys set: error: the following arguments are required: PROVIDER\n"
    )


def test_without_a_key_the_variable_and_the_command_are_named(place: Place):
    done = place.swink("run", "--model", "anthropic:claude-sonnet-4-6", "hi")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "swink: error: no API key for anthropic: set ANTHROPIC_API_KEY, or store one with: swink keys set anthropic\n"
    )


def test_without_a_key_there_is_still_a_last_line_of_json(place: Place):
    done = place.swink("run", "--model", "anthropic:claude-sonnet-4-6", "--output", "json", "hi")
    (line,) = done.out.splitlines()
    result = json.loads(line)
    assert (done.code, result["type"], result["error_kind"]) == (2, "result", "auth")
    assert result["error"] in done.err  # the same words, of which none is about Python
    assert "ANTHROPIC_API_KEY" in result["error"]
    assert "api_key=" not in result["error"]


@pytest.mark.parametrize(
    "words",
    [
        ["chat", "--plain"],
        ["run", "--coding", "hi"],
        ["eval", "run"],
        ["eval", "simulate", "--goal", "a jacket", "--user-model", "anthropic:claude-sonnet-4-6"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_that_asks_a_model_exits_with_2_without_a_key(place: Place, words: list[str]):
    place.swink("eval", "init")
    done = place.swink(*words, "--model", "anthropic:claude-sonnet-4-6")
    assert done.code == 2, done
    assert "no API key for anthropic" in done.out + done.err


def test_a_title_cannot_be_asked_for_without_a_key(place: Place, provider: Provider):
    made = place.swink("run", "--session", "new", "--model", "openai:m", "hi", env=provider.env)
    id = made.err.rpartition("session ")[2].strip()
    done = place.swink("sessions", "rename", id, "--ask", "--model", "anthropic:claude-sonnet-4-6")
    assert done.code == 2, done
    assert "no API key for anthropic" in done.err


def test_a_refused_key_is_named_by_its_source_and_never_shown(place: Place, provider: Provider):
    provider.replies = [Refusal(401, f"Incorrect API key provided: {KEY}", "invalid_api_key")]
    done = place.swink("run", "hi", env=provider.env)
    assert done.code == 1
    assert "the key is that of OPENAI_API_KEY" in done.err
    assert KEY not in done.out + done.err


def test_a_model_the_provider_does_not_know_brings_the_nearest_names(place: Place, provider: Provider):
    provider.replies = [Refusal(404, "The model `gpt-5-mni` does not exist", "model_not_found")]
    done = place.swink("run", "--model", "openai:gpt-5-mni", "hi", env=provider.env)
    assert done.code == 1
    assert "near it are openai:gpt-5-mini" in done.err


def test_an_unreachable_provider_is_an_error_without_a_traceback(place: Place):
    done = place.swink("run", "--model", "azure:m", "hi")
    assert done.code == 2
    assert "AZURE_OPENAI_ENDPOINT" in done.err


def test_only_debug_shows_a_traceback(place: Place):
    done = place.swink("--debug", "run", "--model", "nobody:m", "hi", traceback=True)
    assert done.code == 2
    assert "UnknownModel" in done.err


def test_what_nobody_foresaw_is_one_line_too_and_a_result_in_json(place: Place):
    place.write(
        "sitecustomize.py",
        "import swink.app.assistant.modelchoice\nswink.app.assistant.modelchoice.choose_model = None\n",
    )
    done = place.swink("run", "hi", env={"PYTHONPATH": str(place.here)})
    assert done.code == 1
    assert (
        done.err
        == "swink: error: this should not happen: TypeError: 'NoneType' object is not callable; --debug shows where\n"
    )
    done = place.swink("run", "--output", "json", "hi", env={"PYTHONPATH": str(place.here)})
    assert done.code == 1
    assert json.loads(done.out)["stop_reason"] == "error"


def test_a_tool_of_the_current_directory_runs_and_is_shown_in_one_line(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    provider.replies = [["Let me look.", Call("weather", city="Oslo", password="hunter22")], ["18 degrees."]]
    done = place.swink("run", "--tool", "tools:both", "--model", "openai:m", "Weather?", env=provider.env)
    assert (done.code, done.out) == (0, "Let me look.\n18 degrees.\n")
    assert done.err == '→ weather(city="Oslo", password="[redacted]")\n'
    assert provider.requests[-1]["messages"][-1]["content"] == "18 degrees in Oslo"


@in_cells(
    ("word", "deleted", "hint"),
    [("off", True, False), ("smart", False, True), ("on", False, True), ("deny", False, False)],
    every=2,
)
def test_a_call_that_needs_approval_runs_only_if_somebody_gives_it(
    place: Place, provider: Provider, word: str, deleted: bool, hint: bool
):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("delete", path="x")], ["Done."]]
    arguments = ("run", "--tool", "tools:delete", "--approve", word, "--model", "openai:m", "Delete x")
    done = _without_terminal(place, *arguments, env=provider.env)
    assert done.code == 0
    assert (place.here / "deleted.txt").exists() == deleted
    assert ("--approve off allows such calls" in done.err) == hint


SCRIPT = {"PYTHONSAFEPATH": "1"}
"""As the `swink` script starts: without the working directory, which `python -m` puts first."""


@pytest.mark.parametrize(
    ("planted", "start"), [cell_of_more("aiohttp", SCRIPT), ("aiohttp", {}), ("urllib", SCRIPT)]
)
def test_a_file_in_the_working_directory_does_not_pass_for_a_library(
    place: Place, provider: Provider, planted: str, start: dict[str, str]
):
    place.write("tools.py", TOOLS)
    place.write(f"{planted}.py", "open('ran', 'w').write('x')\nraise SystemExit('planted')\n")
    provider.replies = [[Call("weather", city="Oslo")], ["Fine."]]
    done = place.swink(
        "run", "--tool", "tools:weather", "--model", "openai:m", "Weather?", env={**provider.env, **start}
    )
    assert (done.code, done.out.strip()) == (0, "Fine.")
    assert not (place.here / "ran").exists()


def test_a_module_here_that_an_installed_one_shadows_is_explained(place: Place):
    place.write("json.py", TOOLS)
    done = place.swink("run", "--tool", "json:weather", "--model", "openai:m", "Weather?", env=SCRIPT)
    assert done.code == 2
    assert f"comes before {place.here / 'json.py'}, so give yours another name" in done.err


@pytest.mark.parametrize(
    ("word", "required", "allowed"),
    [("off", True, True), ("smart", False, True), ("deny", False, True), ("deny", True, False)],
)
async def test_the_words_for_approvals_decide_who_is_asked(word: ApprovalWord, required: bool, allowed: bool):
    request = ApprovalRequest("c", "delete", {}, {}, required, cast(PolicyContext, None))
    verdict = await Permissions(word)(request)
    assert verdict is True if allowed else isinstance(verdict, Rejected)


def test_on_asks_for_every_call_on_the_terminal(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("weather", city="Oslo")], ["Done."]]
    arguments = ("run", "--tool", "tools:weather", "--approve", "on", "--model", "openai:m", "Weather?")
    screen = Screen(place, *arguments, env=provider.env)
    screen.wait_for("allow weather? [y/N] ")
    screen.type("y\n")
    screen.wait_for("Done.")
    assert screen.end() == 0
    assert provider.requests[-1]["messages"][-1]["content"] == "18 degrees in Oslo"


def test_the_settings_say_when_to_ask_unless_the_command_line_does(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    place.configure('approve = "off"\n')
    arguments = ("--tool", "tools:delete", "--model", "openai:m", "Delete x")
    provider.replies = [[Call("delete", path="x")], ["Done."], [Call("delete", path="x")], ["Done."]]
    assert _without_terminal(place, "run", "--approve", "deny", *arguments, env=provider.env).code == 0
    assert not (place.here / "deleted.txt").exists()
    assert _without_terminal(place, "run", *arguments, env=provider.env).code == 0
    assert (place.here / "deleted.txt").exists()
    (place.here / "deleted.txt").unlink()
    provider.replies = [[Call("delete", path="x")], ["Done."]]
    path = place.configure('approve = "always"\n')
    done = _without_terminal(place, "run", *arguments, env=provider.env)
    assert f"{path}, line 1: approve takes one of " in done.err
    assert "'always' is now 'off'; taken as 'on' until then" in done.err
    assert not (place.here / "deleted.txt").exists()


@pytest.mark.parametrize(("old", "new"), [("ask", "smart"), ("never", "deny"), ("always", "off")])
def test_an_old_word_for_approvals_is_refused_with_the_new_one(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(["run", "--approve", old, "hi"])
    shown = capsys.readouterr().err
    assert f"'{old}' is now '{new}'" in shown
    assert "on (ask for every call)" in shown


@pytest.mark.parametrize(
    ("typed", "deleted"), [("y\n", True), ("\n", False), ("\x04", False), ("y\x04\x04", False)]
)
def test_approval_is_asked_for_on_the_terminal(place: Place, provider: Provider, typed: str, deleted: bool):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("delete", path="x\x1b[2J")], ["Done."]]
    screen = Screen(
        place, "run", "--tool", "tools:delete", "--model", "openai:m", "Delete x", env=provider.env
    )
    question = screen.wait_for("[y/N] ")
    assert "\x1b[2J" not in question
    screen.type(typed)
    screen.wait_for("Done.")
    assert screen.end() == 0
    assert (place.here / "deleted.txt").exists() == deleted


def test_the_question_shows_the_whole_call_and_no_line_of_it_passes_for_the_question(
    place: Place, provider: Provider
):
    place.write("tools.py", TOOLS)
    path = "a\u202eb" + " " * 2000 + "the end\nswink: allow ls? [y/N] \rnothing"
    provider.replies = [[Call("delete", path=path)], ["Done."]]
    screen = Screen(
        place, "run", "--tool", "tools:delete", "--model", "openai:m", "Delete x", env=provider.env
    )
    question = screen.wait_for("allow delete? [y/N] ")
    assert "\\u202e" in question
    assert "\u202e" not in question
    assert "the end" in question
    assert "│ swink: allow ls? [y/N] \\rnothing" in question
    screen.type("n\n")
    screen.wait_for("Done.")
    assert screen.end() == 0


@pytest.mark.parametrize(
    ("answers", "deleted"),
    [
        (["sure", "YES"], True),
        cell_of_more(["da", "ja", "y"], True),
        cell_of_more(["sure", "n"], False),
        (["b", "c", "d"], False),
    ],
)
def test_an_answer_that_is_not_understood_is_asked_for_again(
    place: Place, provider: Provider, answers: list[str], deleted: bool
):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("delete", path="x")], ["Done."]]
    screen = Screen(
        place, "run", "--tool", "tools:delete", "--model", "openai:m", "Delete x", env=provider.env
    )
    screen.wait_for("? [y/N] ")
    for number, answer in enumerate(answers):
        if number:
            assert "please answer y, a or n: allow delete?" in screen.wait_for("[y/N] ")
        screen.type(f"{answer}\n")
    screen.wait_for("Done.")
    assert screen.end() == 0
    assert (place.here / "deleted.txt").exists() == deleted


def test_always_allows_the_tool_and_a_rule_of_the_user_needs_no_question(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    calls = [[Call("delete", path="x")], [Call("delete", path="y")], ["Done."]]
    provider.replies = [*calls, *calls]
    arguments = ("run", "--tool", "tools:delete", "--model", "openai:m", "Delete x")
    screen = Screen(place, *arguments, env=provider.env)
    assert "a allows every call of delete in this session" in screen.wait_for("allow delete? [y/N] ")
    screen.type("a\n")
    assert "[y/N]" not in screen.wait_for("Done.").partition("in this session: every call")[2]
    assert screen.end() == 0
    rules = place.configure("").with_name("permissions")
    rules.write_text("allow delete\n")
    rules.chmod(0o600)
    done = _without_terminal(place, *arguments, env=provider.env)
    assert (done.code, "approval" in done.err) == (0, False)
    rules.write_text("deny delete\n")
    provider.replies = [[Call("delete", path="x")], ["Done."]]
    assert (
        _without_terminal(place, *arguments[:1], "--approve", "off", *arguments[1:], env=provider.env).code
        == 0
    )
    assert "the user's rule: deny delete" in provider.requests[-1]["messages"][-1]["content"]


BASH = """
from pathlib import Path
from swink import tool

@tool
def bash(command: str) -> str:
    \"\"\"Run.\"\"\"
    Path("ran.txt").write_text(command)
    return "ran"
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rm f", "the user's rule: deny bash(rm *)"),
        ("x=rm; $x f", "nobody is there to approve this call: A rule denies bash(rm *), and this may run it"),
        ("make test", "ran"),
    ],
)
def test_a_denial_holds_in_mode_off_and_what_may_pass_it_by_is_refused_with_the_reason(
    place: Place, provider: Provider, line: str, reason: str
):
    place.write("tools.py", BASH)
    rules = place.configure("").with_name("permissions")
    rules.write_text("deny bash(rm *)\n")
    rules.chmod(0o600)
    provider.replies = [[Call("bash", command=line)], ["Done."]]
    arguments = ("run", "--tool", "tools:bash", "--approve", "off", "--model", "openai:m", "Go")
    done = _without_terminal(place, *arguments, env=provider.env)
    assert done.code == 0
    assert reason in provider.requests[-1]["messages"][-1]["content"]
    assert (place.here / "ran.txt").exists() == (reason == "ran")
    assert "--approve off" not in done.err


@pytest.mark.parametrize("answers", [[], ["perhaps"]])
def test_ctrl_c_at_the_question_leaves(place: Place, provider: Provider, answers: list[str]):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("delete", path="x")], ["Done."]]
    screen = Screen(
        place, "run", "--tool", "tools:delete", "--model", "openai:m", "Delete x", env=provider.env
    )
    for answer in answers:
        screen.wait_for("[y/N] ")
        screen.type(f"{answer}\n")
    screen.wait_for("[y/N] ")
    screen.type("\x03")
    assert screen.end() == 130
    assert not (place.here / "deleted.txt").exists()


def test_a_run_stopped_by_its_turns_says_so_and_exits_with_1(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("weather", city="Oslo")]]
    done = place.swink(
        "run", "--tool", "tools:weather", "--max-turns", "2", "--model", "openai:m", "hi", env=provider.env
    )
    assert done.code == 1
    assert "max turns: 2" in done.err
    assert len(provider.requests) == 2


def test_a_budget_too_small_for_the_call_stops_it_before_it_is_made(place: Place, provider: Provider):
    done = place.swink("run", "--budget", "0.000001", "--model", "openai:gpt-5", "hi", env=provider.env)
    assert done.code == 1
    assert "budget" in done.err
    assert provider.requests == []


def test_a_budget_for_a_model_without_a_price_brings_advice_for_the_command_line(
    place: Place, provider: Provider
):
    done = place.swink("run", "--budget", "1", "--model", "openai:m", "hi", env=provider.env)
    assert done.code == 1
    assert done.err == (
        "swink: error: budget: the cost of openai:m is unknown, so a cost limit cannot be kept; take a model "
        "with a price (swink models list), or --max-turns instead of --budget\n"
    )
    assert provider.requests == []


@crossed(limit=["--max-turns=1", "--budget=0.000001", "--deadline=0.000001"], output=["text", "json"])
def test_a_run_that_a_limit_stopped_says_why_once_and_exits_with_1(
    place: Place, provider: Provider, limit: str, output: str
):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("weather", city="Oslo")]]
    words = ["run", limit, "--tool", "tools:weather", "--model", "openai:gpt-5", "--output", output, "hi"]
    done = place.swink(*words, env=provider.env)
    assert done.code == 1
    assert len([line for line in done.err.splitlines() if line.startswith("swink: ")]) == 1
    assert "raise_for_error" not in done.err
    if output == "json":
        result = json.loads(done.out.splitlines()[-1])
        assert (result["error"] or result["reason"]) in done.err


def test_json_is_one_event_a_line_and_ends_with_the_result(place: Place, provider: Provider):
    done = place.swink("run", "--json", "--model", "openai:gpt-5", "hi", env=provider.env)
    assert done.code == 0
    *events, result = map(json.loads, done.out.splitlines())
    assert [event["type"] for event in (events[0], events[-1])] == ["agent_start", "agent_end"]
    deltas = [event["delta"] for event in events if event["type"] == "message_update"]
    assert "".join(delta["text"] for delta in deltas) == "Hello there."
    assert {*deltas[0]} == {"type", "index", "text"}
    (reply,) = (message for message in events[-1]["messages"] if message["role"] == "assistant")
    assert (reply["usage"], reply["cost"]) == (result["usage"], result["cost"])
    assert (result["type"], result["text"], result["stop_reason"]) == ("result", "Hello there.", "stop")
    assert result["usage"]["total"] == 15
    assert result["cost"]["total"] > 0


def test_a_failure_is_a_result_in_json_too(place: Place, provider: Provider):
    provider.replies = [Refusal(400, "no good")]
    failed = place.swink("run", "--output", "json", "--model", "openai:m", "hi", env=provider.env)
    assert failed.code == 1
    *events, result = map(json.loads, failed.out.splitlines())
    assert "no good" in result["error"]
    assert (result["usage"]["input"], result["usage"]["total"], result["cost"]["total"]) == (0, 0, 0)
    reply = events[-1]["messages"][-1]
    assert (reply["usage"], reply["cost"]) == (result["usage"], result["cost"])
    refused = place.swink("run", "--output", "json", "--model", "nobody:m", "hi")
    assert refused.code == 2
    assert json.loads(refused.out)["error_kind"] == "misuse"


def test_a_retry_is_told_and_the_reply_starts_on_a_new_line(place: Place, provider: Provider):
    provider.replies = [["Half a", BREAK], ["Whole."]]
    done = place.swink("run", "--model", "openai:m", "hi", env=provider.env)
    assert (done.code, done.out) == (0, "Half a\nWhole.\n")
    assert "starts anew" in done.err
    assert "fallback_models" not in done.err


def test_retries_and_fallbacks_are_those_of_the_settings(place: Place, provider: Provider):
    config = place.configure('retries = 1\nfallbacks = ["openai:second", "nobody:m"]\n')
    provider.replies = [Refusal(500, "broken"), Refusal(500, "broken"), ["Whole."]]
    done = place.swink("run", "--model", "openai:first", "hi", env=provider.env)
    assert (done.code, done.out) == (0, "Whole.\n")
    assert [request["model"] for request in provider.requests] == ["first", "first", "second"]
    assert done.err.count("trying again in") == 1
    assert done.err.count("openai:first does not answer; switched to openai:second") == 1
    assert f"{config}, line 2: fallbacks: unknown provider 'nobody'" in done.err


@pytest.mark.parametrize(("expected", "code"), [(True, 0), (False, 1)])
async def test_a_stop_that_a_policy_expected_is_no_failure(
    expected: bool, code: int, capsys: pytest.CaptureFixture[str]
):
    class Enough(Policy):
        def post_turn(self, ctx: PolicyContext, turn: Turn) -> Stop:
            return Stop("that is enough", expected=expected)

    agent = Agent("test:m", stream_fn=ScriptedModel(["Hello."]), policies=[Enough()])
    assert await answered(agent, "hi", TextPrinter()) == code
    out, err = capsys.readouterr()
    assert out == "Hello.\n"
    assert "that is enough" in err
    assert ("error" in err) is not expected


def test_an_interrupt_while_a_retry_is_waited_for_ends_the_run(place: Place, provider: Provider):
    provider.replies = [Refusal(500, "broken")]
    process = place.start("run", "--model", "openai:m", "--session", "new", "hi", env=provider.env)
    assert process.stderr is not None
    told = b""
    while b"trying again" not in told:
        told += os.read(process.stderr.fileno(), 1000)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert b"swink: session " in err
    assert b'"hi"' in b"".join(path.read_bytes() for path in place.sessions.glob("*.jsonl"))


@left_to_more
def test_an_interrupt_ends_the_run_and_keeps_what_was_said(place: Place, provider: Provider):
    provider.replies = [["Once upon a time", STALL]]
    process = place.start("run", "--model", "openai:m", "Tell me a story", env=provider.env)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 100) == b"Once upon a time"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert (out, err) == (b"\n", b"swink: interrupted\n")


def test_a_terminated_run_is_a_valid_history_in_json(place: Place, provider: Provider):
    provider.replies = [["Once", STALL]]
    process = place.start("run", "--output", "json", "--model", "openai:m", "hi", env=provider.env)
    assert process.stdout is not None
    lines: list[bytes] = []
    for line in process.stdout:
        lines.append(line)
        if b"text_delta" in line:
            process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    end = decode_agent_event(lines[-2])
    assert isinstance(end, AgentEnd)
    assert [message.text for message in end.messages] == ["hi", "Once"]
    assert json.loads(lines[-1])["stop_reason"] == "aborted"
    assert process.returncode == 143


@left_to_more
def test_a_reader_that_leaves_is_no_error_to_talk_about(place: Place, provider: Provider):
    provider.replies = [["word "] * 20_000]
    process = place.start("run", "--model", "openai:m", "hi", env=provider.env)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(5)
    process.stdout.close()
    assert process.wait(30) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_reply_cannot_play_tricks_on_the_terminal(place: Place, provider: Provider):
    provider.replies = [["\x1b]0;title\x07\x1b[2Jred \x9b31m", "line\n\ttab"]]
    screen = Screen(place, "run", "--model", "openai:m", "hi", env=provider.env)
    assert screen.end() == 0
    assert "]0;title[2Jred 31mline\n" in screen.text
    assert "\x1b" not in screen.text


@pytest.mark.parametrize(("no_colour", "coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals_that_want_them(place: Place, no_colour: str, coloured: bool):
    screen = Screen(place, "run", "--model", "nobody:m", "hi", env={"NO_COLOR": no_colour})
    assert screen.end() == 2
    assert "error: unknown provider" in without_styles(screen.text)
    assert ("\x1b[31m" in screen.text) == coloured
    assert ("\x1b" in screen.text) == coloured


def test_a_terminal_without_the_characters_gets_others(place: Place, provider: Provider):
    provider.replies = [["18 °C → 🌤"]]
    done = place.swink("run", "--model", "openai:m", "hi", env={**provider.env, "PYTHONIOENCODING": "ascii"})
    assert (done.code, done.out) == (0, "18 ?C ? ?\n")


def test_standard_input_that_stays_silent_is_explained(place: Place, provider: Provider):
    process = subprocess.Popen(
        [sys.executable, "-m", "swink", "run", "--model", "openai:m", "hi"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place.here,
        env={**place.environ, **provider.env},
    )
    place.started.append(process)
    assert process.stderr is not None
    assert b"reading standard input until it ends" in process.stderr.readline()
    out, _ = process.communicate(b"", timeout=30)
    assert (process.returncode, out) == (0, b"Hello there.\n")


@left_to_more
def test_standard_input_may_be_closed(place: Place, provider: Provider):
    line = f"{sys.executable} -m swink run --model openai:m hi <&-"
    done = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        cwd=place.here,
        env={**place.environ, **provider.env},
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Hello there.\n", b"")


def _without_terminal(place: Place, *arguments: str, env: dict[str, str]) -> Done:
    """In a session of its own, so that there is no terminal even where the tests have one."""
    program = place.home / "alone.py"
    program.write_text("import os, sys\nfrom swink.app.cli import main\nos.setsid()\nsys.exit(main())\n")
    return place.swink(*arguments, env=env, program=str(program))


def test_a_run_waits_for_background_agents_and_answers_with_their_reports(place: Place, provider: Provider):
    provider.replies = [
        [Call("task", task="dig", background=True)],
        ["A coin."],  # the agent, and the run itself: whoever asks first
        ["A coin."],
        ["It is a coin."],
    ]
    given = ("run", "--coding", "-m", "openai:m", "--approve", "off", "--session", "new")
    done = place.swink(*given, "go", env=provider.env)
    assert done.code == 0, done
    assert done.out.endswith("It is a coin.\n")
    assert "Background agent agent_1 (task) is done" in done.err
    last = provider.requests[-1]["messages"][-1]
    assert last["role"] == "user"
    assert "What follows is its report, not the user's words" in last["content"]
    assert "A coin." in last["content"]


def test_the_deadline_of_a_run_ends_its_background_agents_and_says_so(place: Place, provider: Provider):
    provider.replies = [[Call("task", task="dig", background=True)], [STALL]]
    given = ("run", "--coding", "-m", "openai:m", "--approve", "off", "--deadline", "2", "--session", "new")
    done = place.swink(*given, "go", env=provider.env)
    assert done.code == 1
    assert "before they were done: agent_1; /agents resume in the terminal" in done.err
