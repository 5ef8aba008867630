"""Chats that are saved and taken up again: in real processes, in a real terminal."""

import json
import re
import signal

from command_line import KEY, STALL, Place, Provider, Screen, without_styles

from swink.memory.jsonl import JsonlStore
from swink.memory.store import SyncStore

RESUME = re.compile(r"swink: to go on: swink --resume (\w+)")


def stored(place: Place) -> SyncStore:
    return JsonlStore(place.sessions).sync


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
    screen.process.send_signal(signal.SIGKILL)
    assert screen.end() == -signal.SIGKILL
    screen = Screen(place, "--continue", env=provider.env)
    shown = without_styles(screen.wait_for("Hello!\n"))
    assert "> hi" in shown
    screen.wait_for("> ")
    screen.type("still there?\n")
    screen.wait_for("Again.")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    assert RESUME.search(screen.text)
    last = provider.requests[-1]
    assert [message["content"] for message in last["messages"]][-3:] == ["hi", "Hello!", "still there?"]
    assert len(stored(place).list()) == 1


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
    assert not any(KEY in path.read_text() for path in place.sessions.rglob("*") if path.is_file())
    listed = json.loads(place.swink("sessions", "list", "--json").out)
    assert [meta["directory"] for meta in listed] == [str(place.here.resolve())] * 2


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
