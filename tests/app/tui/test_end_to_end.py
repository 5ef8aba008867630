"""The whole program in a terminal, from the first key to the last, against a scripted provider."""

import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import KEY, STALL, Call, Place, Provider, Refusal
from terminal import Terminal, Tmux
from tests.counts import left_to_more


@pytest.fixture
def project(place: Place) -> Place:
    """A git repository with a file."""
    subprocess.run(["git", "init", "-q", "."], cwd=place.here, check=True)
    place.write("notes.txt", "one\ntwo\nthree\n")
    return place


def begin(place: Place, provider: Provider, *arguments: str, size: tuple[int, int] = (100, 30)) -> Terminal:
    terminal = Terminal(place, "--model", "openai:m", *arguments, env=provider.env, size=size)
    terminal.wait_for("idle", "Execute")
    return terminal


def leave(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0
    terminal.assert_is_as_before()


def said(provider: Provider, number: int = -1) -> str:
    """What the model was sent, as text."""
    return str(provider.requests[number]["messages"])


def test_a_write_is_shown_as_a_diff_approved_and_done(project: Place, provider: Provider):
    change = Call("edit_file", path="notes.txt", edits=[{"old": "two", "new": "2"}])
    provider.replies = [[Call("read_file", path="notes.txt")], [change], ["I changed a line."]]
    with begin(project, provider) as terminal:
        terminal.type("change the second line\r")
        terminal.wait_for("edit_file", "notes.txt", "- two", "+ 2")
        terminal.pause(0.4)  # a key within 0.3 s of the question is no answer
        terminal.press("y")
        terminal.wait_for("I changed a line.", "idle", "✓")
        assert (project.here / "notes.txt").read_text() == "one\n2\nthree\n"
        leave(terminal)
        terminal.wait_for("I changed a line.", "swink --resume ")


def test_a_server_that_fails_is_asked_again_with_a_countdown_that_esc_ends(
    project: Place, provider: Provider
):
    provider.replies = [Refusal(500, "broken")]
    with begin(project, provider) as terminal:
        terminal.type("a long task\r")
        terminal.wait_for("attempt 2 failed", "retry in ", "Esc stops")
        assert "attempt 1 failed" not in terminal.shown
        asked = len(provider.requests)
        terminal.press("escape")
        terminal.wait_for("aborted")
        terminal.wait_until_gone("retry in ")
        provider.replies = [["Done at last."]]
        terminal.type("go on\r")
        terminal.wait_for("Done at last.", "idle")
        assert len(provider.requests) == asked + 1
        assert "a long task" in said(provider)
        leave(terminal)


def test_a_fallback_is_set_with_the_model_and_stays_when_it_has_answered(project: Place, provider: Provider):
    project.configure("retries = 0\n")
    provider.replies = [Refusal(500, "broken"), ["From the second."], ["Again."]]
    with begin(project, provider) as terminal:
        terminal.type("/model fallback openai:second\r")
        terminal.wait_for("if openai:m fails for good: openai:second")
        terminal.type("hi\r")
        terminal.wait_for("openai:m does not answer; switched to openai:second", "From the second.", "idle")
        terminal.type("and?\r")
        terminal.wait_for("Again.", "idle")
        assert terminal.shown.count("does not answer") == 1
        leave(terminal)
    assert [request["model"] for request in provider.requests] == ["m", "second", "second"]


def test_a_server_of_ones_own_is_in_the_picker_and_answers(project: Place, provider: Provider):
    provider.models = ["small", "large"]
    table = f'[providers.mine]\nkind = "openai"\nbase_url = "{provider.url}"\nkey_env = "MY_KEY"\n'
    project.configure(f'default_model = "mine:small"\n\n{table}')
    with Terminal(project, env={"MY_KEY": KEY}, size=(100, 30)) as terminal:
        terminal.wait_for("idle", "mine:small")
        terminal.type("/model\r")
        terminal.wait_for("mine:large", "?        ?        ?")
        terminal.type("mine:larg")
        terminal.wait_until_gone("anthropic:")
        terminal.press("enter")
        terminal.wait_for("the model is now mine:large")
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "cost unknown", "idle")
        leave(terminal)
    with Terminal(project, size=(100, 30)) as terminal:
        terminal.wait_for("idle", "mine:small")
        terminal.type("hi\r")
        terminal.wait_for("no API key for mine: set MY_KEY")
        assert "#key" not in terminal.shown, "it is not stored"
        leave(terminal)
    assert provider.requests[-1]["model"] == "large"
    assert set(provider.keys) == {f"Bearer {KEY}"}


@left_to_more
def test_a_plan_is_made_without_writing_and_then_executed(project: Place, provider: Provider):
    provider.replies = [
        ["The plan: write it."],
        [Call("write_file", path="new.txt", content="new\n")],
        ["Done."],
    ]
    with begin(project, provider) as terminal:
        terminal.press("shift+tab")
        terminal.wait_for("Plan")
        terminal.type("plan it\r")
        terminal.wait_for("The plan: write it.", "idle")
        offered = {tool["function"]["name"] for tool in provider.requests[-1]["tools"]}
        assert "read_file" in offered
        assert not offered & {"write_file", "edit_file", "bash"}
        terminal.press("shift+tab")
        terminal.wait_for("Execute", "Send the plan for execution?")
        terminal.press("enter")
        terminal.wait_for("Run write_file?", "new.txt")
        terminal.pause(0.4)
        terminal.press("y")
        terminal.wait_for("Done.", "idle")
        assert (project.here / "new.txt").read_text() == "new\n"
        leave(terminal)


@left_to_more
def test_what_is_typed_while_it_works_steers(project: Place, provider: Provider):
    provider.replies = [[Call("bash", command="sleep 2")], ["Steered."]]
    with begin(project, provider, "--approve", "off") as terminal:
        terminal.type("go\r")
        terminal.wait_for("bash", "running")
        terminal.type("rather blue\r")
        terminal.wait_for("queued")
        terminal.wait_for("Steered.", "idle")
        assert "rather blue" in said(provider)
        leave(terminal)


@left_to_more
def test_escape_aborts_and_keeps_what_arrived(project: Place, provider: Provider):
    provider.replies = [["Once upon ", STALL], ["Again."]]
    with begin(project, provider) as terminal:
        terminal.type("tell\r")
        terminal.wait_for("Once upon", "running")
        terminal.press("escape")
        terminal.wait_for("aborted", "Once upon")
        terminal.type("go on\r")
        terminal.wait_for("Again.", "idle")
        assert "Once upon" in said(provider)
        leave(terminal)


@left_to_more
def test_a_conversation_goes_on_after_kill_9(project: Place, provider: Provider):
    provider.replies = [["The word is plum."], ["Plum."]]
    with begin(project, provider) as terminal:
        terminal.type("choose a word\r")
        terminal.wait_for("The word is plum.", "idle")
        terminal.type("half a prom")
        terminal.wait_for("half a prom")
        terminal.pause(2)
        terminal.process.kill()
        terminal.wait_for("swink --resume ")
    with Tmux(project, "--model", "openai:m", "--continue", env=provider.env) as window:
        window.wait_for("The word is plum.", "idle", "half a prom")
        window.press("Enter")
        window.wait_for("Plum.", "idle")
        assert "plum" in said(provider)
        assert "half a prom" in said(provider)
        window.press("C-q")
        window.wait_for("ended with 0")


@left_to_more
def test_sizes_that_change_all_the_time_break_nothing(project: Place, provider: Provider):
    provider.replies = [["A paragraph with some words in it.\n\n" * 200, STALL], ["Fine."]]
    sizes = random.Random(1)
    with begin(project, provider) as terminal:
        terminal.type("hi\r")
        terminal.wait_for("A paragraph")
        for _ in range(100):
            terminal.resize(sizes.randint(1, 200), sizes.randint(1, 60))
        for size in ((20, 5), (60, 15), (300, 100), (80, 24)):
            terminal.resize(*size)
            terminal.pause(0.3)
        terminal.press("escape")
        terminal.wait_for("aborted", "A paragraph with some words in it.")
        leave(terminal)


@left_to_more
def test_rewinding_restores_the_conversation_and_the_files(project: Place, provider: Provider):
    provider.replies = [["Hi."], [Call("write_file", path="notes.txt", content="new\n")], ["Written."]]
    with begin(project, provider, "--approve", "off") as terminal:
        terminal.type("first\r")
        terminal.wait_for("Hi.", "idle")
        terminal.type("second\r")
        terminal.wait_for("Written.", "idle")
        terminal.press("escape")
        terminal.pause(0.3)  # or the terminal would have sent Alt+Escape
        terminal.press("escape")
        terminal.wait_for("first", "second", "changes back")
        terminal.press("enter")
        terminal.wait_for("what to take back?")
        terminal.press("enter")
        terminal.wait_until_gone("Written.")
        terminal.wait_for("Hi.", "second", "idle")
        assert (project.here / "notes.txt").read_text() == "one\ntwo\nthree\n"
        leave(terminal)


@left_to_more
@pytest.mark.parametrize("term", ["xterm", "vt100", "screen", "tmux-256color", "linux", "xterm-kitty"])
def test_terminals_of_every_kind_show_it(project: Place, provider: Provider, term: str):
    env = {**provider.env, "TERM": term, "COLORTERM": "", "NO_COLOR": "1" if term == "vt100" else ""}
    with Terminal(project, "--model", "openai:m", env=env, size=(60, 15)) as terminal:
        terminal.wait_for("idle")
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "idle")
        leave(terminal)


def test_a_dumb_terminal_gets_the_plain_chat_with_a_notice(place: Place, provider: Provider):
    env = {**provider.env, "TERM": "dumb"}
    with Terminal(place, "--model", "openai:m", env=env) as terminal:
        terminal.wait_for("plain chat", "TERM=dumb")
        terminal.type("hi\r")
        terminal.wait_for("Hello there.")
        assert "\x1b[?1049h" not in terminal.text
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0


@left_to_more
@pytest.mark.parametrize("size", [(60, 15), (20, 5), (1, 1), (300, 100)])
def test_every_size_can_be_started_with(project: Place, provider: Provider, size: tuple[int, int]):
    provider.replies = [[Call("write_file", path="a.txt", content="a\n")], ["Fine."]]
    with Terminal(project, "--model", "openai:m", env=provider.env, size=size) as terminal:
        terminal.wait_until(lambda: "no cursor" in terminal.modes)
        terminal.pause(1)
        terminal.type("hi\r")
        terminal.wait_until(lambda: len(provider.requests) == 1, "the request")
        terminal.pause(1)
        terminal.resize(100, 30)
        terminal.wait_for("Run write_file?")
        leave(terminal)


@left_to_more
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_an_idle_program_takes_no_time(project: Place, provider: Provider, size: tuple[int, int]):
    with begin(project, provider, size=size) as terminal:
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "idle")
        terminal.pause(2)
        before = terminal.cpu_seconds()
        terminal.pause(10)
        assert terminal.cpu_seconds() - before < 0.5, "of ten seconds"
        leave(terminal)


@left_to_more
def test_nothing_of_a_command_is_left_after_kill_9(project: Place, provider: Provider):
    provider.replies = [[Call("bash", command="sleep 1000 & sleep 1001")], ["Done."]]
    with begin(project, provider, "--approve", "off") as terminal:
        terminal.type("hi\r")
        terminal.wait_for("bash", "running")
        terminal.wait_until(lambda: len(sleepers(project)) >= 2, "the command")
        terminal.process.kill()
        terminal.wait_for_end()
        terminal.assert_is_as_before()
        terminal.wait_until(lambda: not sleepers(project), "the end of the command")


def sleepers(place: Place) -> list[str]:
    """The processes that sleep in a directory."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"sleep" in (entry / "cmdline").read_bytes() and (entry / "cwd").readlink() == place.here:
                found.append(entry.name)
    return found


@left_to_more
def test_an_editor_that_is_killed_leaves_the_program_as_it_was(project: Place, provider: Provider):
    editor = project.write(
        "editor.py",
        "import os, pathlib, signal, sys, tty\ntty.setraw(0)\n"
        f"pathlib.Path({str(project.here / 'seen')!r}).write_text(pathlib.Path(sys.argv[1]).read_text())\n"
        "os.write(1, b'\\x1b[?1049h\\x1b[?1000h\\x1b[?25lan editor')\nos.kill(os.getpid(), signal.SIGKILL)\n",
    )
    with Terminal(
        project,
        "--model",
        "openai:m",
        env={**provider.env, "EDITOR": f"{sys.executable} {editor}"},
    ) as terminal:
        terminal.wait_for("idle")
        terminal.type("half a prompt")
        terminal.wait_for("half a prompt")
        terminal.press("ctrl+g")
        terminal.wait_until((project.here / "seen").exists)
        terminal.wait_until(lambda: terminal.text.count("\x1b[?1049h") > 3)
        terminal.wait_for("half a prompt", "idle")
        assert (project.here / "seen").read_text().strip() == "half a prompt"
        terminal.press("enter")
        terminal.wait_for("Hello there.")
        leave(terminal)


@left_to_more
def test_a_terminal_that_takes_nothing_holds_up_neither_the_reply_nor_the_end(
    project: Place, provider: Provider
):
    provider.replies = [["many words " * 50] * 2000, ["Fine."]]
    with begin(project, provider) as terminal:
        terminal.is_stalled = True
        terminal.type("hi\r")
        terminal.wait_until(lambda: len(provider.requests) == 1, "the request")
        sessions = project.sessions
        terminal.wait_until(lambda: any("assistant" in path.read_text() for path in sessions.glob("*.jsonl")))
        terminal.process.send_signal(signal.SIGTERM)
        terminal.wait_until(lambda: terminal.process.poll() is not None, "its end")
        terminal.is_stalled = False
        assert terminal.wait_for_end() == 143
        terminal.assert_is_as_before()


@left_to_more
def test_the_first_start_asks_for_trust_and_a_key_that_is_never_shown(place: Place, provider: Provider):
    place.write("AGENTS.md", "Say please.")
    with Terminal(place, env={"OPENAI_BASE_URL": provider.url}, is_trusted=False, size=(100, 30)) as terminal:
        terminal.wait_for("Do you trust the files in this folder?", "AGENTS.md")
        terminal.pause(0.5)  # a key right after the question is no answer
        terminal.press("y")
        terminal.wait_for("An API key", "The embedded model, now")
        terminal.press("down", "down", "enter")
        terminal.wait_for("Whose key is it?", "openai")
        terminal.press("down", "enter")
        terminal.wait_for("The API key of openai")
        terminal.type(KEY)
        terminal.wait_for("•••")
        terminal.press("enter")
        terminal.wait_for("models of openai", "openai:gpt-5")
        terminal.press("enter")
        terminal.wait_for("idle", "openai:")
        terminal.type("hi\r")
        terminal.wait_until(
            lambda: "Say please." in str(provider.requests[-1:]), "the request with AGENTS.md"
        )
        terminal.wait_for("Hello there.", "idle")
        assert provider.keys[-1] == f"Bearer {KEY}"
        assert KEY not in terminal.text
        leave(terminal)
    with Terminal(place, env={"OPENAI_BASE_URL": provider.url}, is_trusted=False) as terminal:
        terminal.wait_for("idle", "openai:")  # neither question comes again
        leave(terminal)


def test_a_prompt_on_the_command_line_begins_the_conversation_and_continues_one(
    place: Place, provider: Provider
):
    provider.replies = [["Hello there."], ["Hello again."]]
    with Terminal(place, "-m", "openai:m", "fix the tests", env=provider.env) as terminal:
        terminal.wait_for("fix the tests", "Hello there.", "idle")
        leave(terminal)
    with Terminal(place, "--continue", "once", "more", env=provider.env) as terminal:
        terminal.wait_for("once more", "Hello again.", "idle")
        leave(terminal)
    said = [message["content"] for message in provider.requests[-1]["messages"][1:]]
    assert said == ["fix the tests", "Hello there.", "once more"]


@left_to_more
def test_the_first_start_without_a_key_talks_with_the_embedded_model(place: Place, weights: Path):
    with Terminal(place, size=(100, 30)) as terminal:
        terminal.wait_for("The embedded model, now")
        terminal.press("enter")
        terminal.wait_for("idle", "local:smollm2-135m")
        terminal.type("Say hello.\r")
        terminal.wait_for("running")
        terminal.wait_for("idle", "tokens in")
        leave(terminal)
