"""Chats that are saved and taken up again: in real processes, in a real terminal."""

import json
import re
import signal
from pathlib import Path

import pytest
from command_line import KEY, STALL, TOOLS, Call, Place, Provider, Screen, call, without_styles

from swink.app.assistant.sessionfacts import what_is_left
from swink.app.assistant.shell import ShellOutcome
from swink.app.cli.commands import parse_arguments
from swink.app.cli.resuming import saved_chat, saved_run
from swink.errors import MisuseError, SessionError, SessionNotFound
from swink.memory.jsonl import JsonlStore
from swink.memory.session import SyncSession
from swink.memory.store import SyncStore
from swink.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from swink.messages.records import (
    CallEnded,
    CallStarted,
    Conversation,
    MessageSaved,
    PendingApproval,
    QueueChange,
    TurnOpened,
)


@pytest.fixture
def inside(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The place, for this process too."""
    monkeypatch.chdir(place.here)
    for name in ("HOME", "XDG_CONFIG_HOME", "SWINK_SESSIONS_DIR", "PYTHON_KEYRING_BACKEND"):
        monkeypatch.setenv(name, place.environ[name])
    return place


RESUME = re.compile(r"swink: to go on: swink --resume (\w+)")


def stored(place: Place) -> SyncStore:
    return JsonlStore(place.sessions).sync


def newest(place: Place) -> SyncSession:
    """The last session, as it is stored now."""
    return stored(place).open(stored(place).list()[0].id)


def texts(place: Place, id: str) -> list[str]:
    return [message.text for message in stored(place).open(id).messages]


def test_a_chat_that_is_killed_goes_on_where_it_was(place: Place, provider: Provider):
    provider.replies = [["Hello!"], ["Once upon", STALL], ["Again."]]
    screen = Screen(place, "--model", "openai:m", "--thinking", "low", "-s", "Be brief.", env=provider.env)
    screen.wait_for("> ")
    screen.type("hi\n")
    screen.wait_for("Hello!\n")
    screen.wait_for("> ")
    screen.type("a story\n")
    screen.wait_for("Once upon")
    screen.wait_until(lambda: newest(place).messages[-1].text == "a story")
    screen.process.send_signal(signal.SIGKILL)
    assert screen.end() == -signal.SIGKILL
    screen = Screen(place, "--continue", env=provider.env)
    shown = without_styles(screen.wait_for("Hello!\n"))
    assert "openai:m" in shown
    assert "> hi" in shown
    screen.wait_for("the last prompt has no answer yet")
    screen.wait_for("finish it now? [Y/n] ")
    screen.type("\n")
    screen.wait_for("Again.")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert RESUME.search(screen.text)
    first, *_, last = provider.requests
    assert [message["content"] for message in last["messages"]] == ["Be brief.", "hi", "Hello!", "a story"]
    assert last["reasoning_effort"] == first["reasoning_effort"] == "low"
    assert len(stored(place).list()) == 1


def test_continue_and_the_list_leave_out_sessions_without_a_word(inside: Place):
    here = str(inside.here.resolve())
    talk = stored(inside).create("Talk", directory=here)
    talk.append([UserMessage("About the sea"), AssistantMessage("Yes.")])
    stored(inside).create(directory=here)
    assert [meta.messages for meta in stored(inside).list()] == [0, 2]
    saved = saved_chat(parse_arguments(["--continue"]))
    assert saved is not None
    assert saved.saved_id() == talk.id
    with pytest.raises(MisuseError, match=r"the newest: \w+ \(Talk\)$"):
        call("--resume")


def test_a_chat_that_is_left_without_a_word_leaves_nothing(place: Place, provider: Provider):
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    screen.wait_for_prompt()
    screen.type("/model openai:other\n")
    screen.wait_for("switched to openai:other")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert not RESUME.search(screen.text)
    assert not stored(place).list()


def test_the_command_that_resumes_stays_on_the_screen(place: Place, provider: Provider):
    provider.replies = [["Hello!"], ["Fine."]]
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type(f"my key is {KEY}\n")
    screen.wait_for("Hello!\n")
    screen.type("/clear\n")
    screen.wait_for("forgotten; swink --resume ")
    screen.type("other\n")
    screen.wait_for("Fine.\n")
    screen.wait_for_prompt()
    screen.type("\x03")
    screen.wait_for_prompt()
    screen.type("\x03")
    assert screen.end() == 130
    found = RESUME.search(screen.text)
    assert found is not None
    ids = [meta.id for meta in stored(place).list()]
    assert stored(place).find(found[1]) == ids[0]
    assert [texts(place, id) for id in ids] == [["other", "Fine."], ["my key is [redacted]", "Hello!"]]
    assert not any(KEY.encode() in path.read_bytes() for path in place.sessions.rglob("*") if path.is_file())
    assert {meta.directory for meta in stored(place).list()} == {str(place.here.resolve())}


def test_of_two_chats_on_one_session_the_second_goes_on_as_a_fork(place: Place, provider: Provider):
    session = stored(place).create("One", directory=str(place.here.resolve()))
    screens = [Screen(place, "--resume", session.id, "-m", "openai:m", env=provider.env) for _ in range(2)]
    for screen in screens:
        screen.wait_for("> ")
    for number, screen in enumerate(screens):
        provider.replies = [[f"Reply {number}."]]
        screen.type(f"prompt {number}\n")
        screen.wait_for(f"Reply {number}.\n")
        screen.wait_for_prompt()
    provider.replies = [["Reply 2."]]
    screens[1].type("prompt 2\n")
    screens[1].wait_for("Reply 2.\n")
    for screen in screens:
        screen.type("/quit\n")
        assert screen.end() == 0
    assert "continued elsewhere" not in screens[0].text
    assert screens[1].text.count("was continued elsewhere; this conversation goes on as a fork of it") == 1
    [fork] = [meta for meta in stored(place).list() if meta.id != session.id]
    assert fork.parent == session.id
    assert texts(place, session.id) == ["prompt 0", "Reply 0."]
    assert texts(place, fork.id) == ["prompt 1", "Reply 1.", "prompt 2", "Reply 2."]


def test_a_chat_that_cannot_be_saved_says_so_once_and_goes_on(place: Place, provider: Provider):
    place.sessions.write_text("no directory")
    provider.replies = [["One."], ["Two."], ["Three."]]
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("a\n")
    screen.wait_for("it goes on unsaved")
    screen.type("b\n")
    screen.wait_for("Two.\n")
    screen.wait_for_prompt()
    place.sessions.unlink()
    screen.type("c\n")
    screen.wait_for("being saved again")
    screen.type("/quit\n")
    assert screen.end() == 0
    assert screen.text.count("unsaved") == 1
    [meta] = stored(place).list()
    assert texts(place, meta.id) == ["a", "One.", "b", "Two.", "c", "Three."]


def test_run_goes_on_with_a_session_and_tells_its_id(inside: Place, provider: Provider):
    assert saved_run(parse_arguments(["run", "hi"])) is None
    provider.replies = [["Hello Ada."], ["Ada."]]
    first = inside.swink(
        "run", "--session", "new", "-m", "openai:m", "--output", "json", "I am Ada", env=provider.env
    )
    [meta] = stored(inside).list()
    assert json.loads(first.out.splitlines()[-1])["session"] == meta.id
    assert f"swink: session {meta.id}\n" in first.err
    second = inside.swink("run", "--session", meta.id[-7:], "Who am I?", env=provider.env)
    assert (second.code, second.out) == (0, "Ada.\n")
    assert [message["content"] for message in provider.requests[-1]["messages"]] == [
        "I am Ada",
        "Hello Ada.",
        "Who am I?",
    ]
    with pytest.raises(SessionNotFound, match=f"the nearest is {meta.id}"):
        saved_run(parse_arguments(["run", "--session", meta.id[:-1] + "zz", "hi"]))


def test_a_reply_of_run_that_is_not_saved_is_shown_and_the_run_fails(place: Place, provider: Provider):
    place.sessions.write_text("no directory")
    done = place.swink("run", "--session", "new", "-m", "openai:m", "hi", env=provider.env)
    assert (done.code, done.out) == (1, "Hello there.\n")
    assert "not being saved" in done.err


def test_a_session_is_chosen_from_a_list(inside: Place, provider: Provider):
    for title in ("Sea", "Land"):
        stored(inside).create(title).append([UserMessage(f"About {title}"), AssistantMessage("Yes.")])
    screen = Screen(inside, "--resume", "-m", "openai:m", env=provider.env)
    screen.wait_for("q to leave: ")
    screen.type("7\n")
    screen.wait_for("a number from 1 to 2")
    screen.wait_for("q to leave: ")
    screen.type("2\n")
    screen.wait_for("> About Sea")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    with pytest.raises(MisuseError, match=r"the newest: \w+ \(Land\); \w+ \(Sea\)"):
        call("--resume")
    with pytest.raises(MisuseError, match="swink run --session new"):
        call("--continue")
    with pytest.raises(MisuseError, match="swink run --session "):
        call("--resume", stored(inside).list()[0].id)


TURN = AssistantMessage(
    [ToolCall(id=str(n), name="weather", arguments={"city": f"City {n}"}) for n in range(3)]
)


def test_what_an_interrupted_turn_left_is_told():
    began = [TurnOpened(TURN), CallStarted("0"), CallStarted("1"), CallEnded("0", ToolResult("18 degrees"))]
    asked = PendingApproval("2", "weather", {}, {})
    queued = QueueChange([UserMessage("Stop!")])
    assert list(what_is_left(Conversation([*began, asked, queued]))) == [
        'weather(city="City 0"): finished',
        'weather(city="City 1"): outcome unknown',
        'weather(city="City 2"): waits for your approval',
        "1 message is still queued",
    ]
    assert list(what_is_left(Conversation(began)))[2].endswith(": not started")
    prompt = MessageSaved(UserMessage("Where is it warm?"))
    assert list(what_is_left(Conversation([prompt]))) == ["the last prompt has no answer yet"]
    assert list(what_is_left(Conversation([prompt, MessageSaved(AssistantMessage("In Oslo."))]))) == []


def test_a_command_of_the_users_own_waits_for_no_answer():
    ran = MessageSaved(UserMessage(ShellOutcome("ls", "a\n", 0, 0.1).for_model()))
    prompt, reply = MessageSaved(UserMessage("Why?")), MessageSaved(AssistantMessage("So."))
    assert list(what_is_left(Conversation([prompt, reply, ran]))) == []
    assert list(what_is_left(Conversation([prompt, ran]))) == ["the last prompt has no answer yet"]


def test_nothing_is_saved_where_that_is_switched_off(
    inside: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert saved_chat(parse_arguments([])) is not None
    assert saved_chat(parse_arguments(["--no-session"])) is None
    inside.configure("save = false\n")
    assert saved_chat(parse_arguments([])) is None
    assert saved_chat(parse_arguments(["--continue"])) is not None
    assert "no session of this directory yet" in capsys.readouterr().err
    assert not inside.sessions.exists()
    with pytest.raises(SystemExit):
        parse_arguments(["--continue", "--no-session"])
    inside.configure('save = "no"\n')
    assert saved_chat(parse_arguments([])) is None


def test_a_chat_without_a_place_to_save_in_is_unsaved(
    inside: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SWINK_SESSIONS_DIR")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert saved_chat(parse_arguments([])) is None
    assert "this conversation is not saved: " in capsys.readouterr().err
    with pytest.raises(SessionError, match="set HOME or SWINK_SESSIONS_DIR"):
        saved_chat(parse_arguments(["--continue"]))


def test_a_model_may_be_asked_for_the_title(
    inside: Place,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    inside.configure('title = "model"\n')
    provider.replies = [["Hello."], ['"A Warm Welcome"'], ["Bye."], ["Something else"]]
    screen = Screen(inside, "-m", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("hi\n")
    screen.wait_for("Hello.\n")
    screen.wait_for("> ")
    screen.type("so long\n")
    screen.wait_for("Bye.\n")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    [meta] = stored(inside).list()
    assert (meta.title, meta.turns) == ("A Warm Welcome", 2)
    assert len(provider.requests) == 3
    for name, value in provider.env.items():
        monkeypatch.setenv(name, value)
    assert call("sessions", "rename", meta.id, "--ask") == 0
    assert "asked openai:m (cost not known)" in capsys.readouterr().err
    assert stored(inside).list()[0].title == "Something else"


COUNTED = '''
import time
from pathlib import Path

def send(to: str) -> str:
    """Send something."""
    with Path("sent.txt").open("a") as file:
        file.write(f"{to}\\n")
    if to == "Bob":
        time.sleep(1e6)
    return f"sent to {to}"
'''


def test_a_tool_that_was_running_at_the_kill_is_not_run_again(place: Place, provider: Provider):
    place.write("counted.py", COUNTED)
    provider.replies = [[Call("send", to="Ann"), Call("send", to="Bob")], ["Done."]]
    options = ("--tool", "counted:send", "-m", "openai:m")
    screen = Screen(place, *options, env=provider.env)
    screen.wait_for("> ")
    screen.type("send it\n")
    sent = place.here / "sent.txt"
    screen.wait_until(lambda: sent.exists() and len(sent.read_text().splitlines()) == 2)
    screen.process.send_signal(signal.SIGKILL)
    assert screen.end() == -signal.SIGKILL
    screen = Screen(place, "--continue", *options, env=provider.env)
    shown = without_styles(screen.wait_for("finish it now? [Y/n] "))
    assert 'send(to="Bob"): outcome unknown' in shown
    screen.type("\n")
    screen.wait_for("Done.")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert sorted(sent.read_text().splitlines()) == ["Ann", "Bob"]
    results = [
        message["content"] for message in provider.requests[-1]["messages"] if message["role"] == "tool"
    ]
    assert "unknown" in results[1]


def test_an_approval_that_was_asked_at_the_kill_is_asked_again(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("delete", path="x")], ["Gone."]]
    options = ("--tool", "tools:delete", "-m", "openai:m")
    screen = Screen(place, *options, env=provider.env)
    screen.wait_for("> ")
    screen.type("delete it\n")
    screen.wait_for("allow delete? [y/N] ")
    screen.wait_until(lambda: bool(stored(place).list()) and bool(newest(place).pending))
    screen.process.send_signal(signal.SIGKILL)
    assert screen.end() == -signal.SIGKILL
    assert not (place.here / "deleted.txt").exists()
    screen = Screen(place, "--continue", *options, env=provider.env)
    assert 'delete(path="x"): waits for your approval' in without_styles(screen.wait_for("finish it now? "))
    screen.type("y\n")
    screen.wait_for("allow delete? [y/N] ")
    screen.type("y\n")
    screen.wait_for("Gone.")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert (place.here / "deleted.txt").read_text() == "x"
