"""A session begun in the editor goes on in the terminal interface, and the other way round: the real programs."""

from command_line import Call, Place, Provider
from editor_process import MODEL, Process
from terminal import Terminal
from tests.counts import left_to_more

TASKS = [{"text": "write the file", "status": "done"}, {"text": "change the file", "status": "pending"}]
REPLIES = [
    [Call("todo", tasks=TASKS)],
    [Call("write_file", path="a.txt", content="one\n")],
    ["It is written."],
    [Call("edit_file", path="a.txt", edits=[{"old": "one", "new": "two"}])],
    ["It is changed."],
]


def terminal_of(place: Place, provider: Provider, *arguments: str) -> Terminal:
    given = ("--model", MODEL, "--approve", "off", *arguments)
    return Terminal(place, *given, env=provider.env, size=(100, 40))


def leave(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    assert terminal.wait_for_end() == 0


@left_to_more
def test_a_session_of_the_editor_goes_on_in_the_terminal_interface(place: Place, provider: Provider):
    place.trust()
    provider.replies = [*REPLIES, ["It is three."]]
    editor = Process(place, "--approve", "off", env=provider.env)
    session = editor.open(place)
    editor.prompt(session, "Write a file")
    editor.prompt(session, "Change that file")
    assert editor.updates("session_info_update")[-1]["title"] == "Write a file"
    editor.leave()
    with terminal_of(place, provider, "--resume") as terminal:
        terminal.wait_for("Enter resume", "Write a file")
        terminal.press("enter")
        terminal.wait_for("▌ Write a file", "It is written.", "▌ Change that file", "It is changed.")
        terminal.wait_for("Tasks 1/2", "change the file")
        terminal.type("/rewind\r")
        terminal.wait_for("Enter goes back", "Write a file", "a.txt")
        terminal.press("enter")  # the last prompt
        terminal.wait_for("conversation and 1 file")
        terminal.press("enter")
        terminal.wait_for("1 file is restored")
        assert (place.here / "a.txt").read_text() == "one\n"
        terminal.press(*["backspace"] * len("Change that file"))  # which may be said in other words now
        terminal.wait_for("Ask anything")
        leave(terminal)
    with terminal_of(place, provider, "--resume", session) as terminal:
        terminal.wait_for("It is changed.")
        terminal.type("And three?\r")
        terminal.wait_for("It is three.", "idle")
        leave(terminal)
    again = Process(place, "--approve", "off", env=provider.env)
    again.load(place, session)
    assert again.words("user_message_chunk") == "Write a fileChange that fileAnd three?"
    again.leave()


@left_to_more
def test_a_session_of_the_terminal_interface_goes_on_in_the_editor(place: Place, provider: Provider):
    place.trust()
    provider.replies = [*REPLIES, ["It is three."]]
    with terminal_of(place, provider) as terminal:
        terminal.wait_for("idle")
        terminal.type("Write a file\r")
        terminal.wait_for("It is written.", "idle")
        terminal.type("Change that file\r")
        terminal.wait_for("It is changed.", "idle")
        leave(terminal)
    editor = Process(place, "--approve", "off", env=provider.env)
    editor.ask("initialize", protocolVersion=1)
    [listed] = editor.ask("session/list", cwd=str(place.here))["sessions"]
    assert listed["title"] == "Write a file"
    session = listed["sessionId"]
    editor.ask("session/load", sessionId=session, cwd=str(place.here), mcpServers=[])
    assert editor.words("user_message_chunk") == "Write a fileChange that file"
    assert "It is written." in editor.words()
    kinds = [each["kind"] for each in editor.updates() if each["sessionUpdate"] == "tool_call"]
    assert kinds == ["think", "edit", "edit"]
    [plan] = editor.updates("plan")
    assert [(each["content"], each["status"]) for each in plan["entries"]] == [
        ("write the file", "completed"),
        ("change the file", "pending"),
    ]
    editor.prompt(session, "/rewind 2")
    assert (place.here / "a.txt").read_text() == "one\n"
    editor.prompt(session, "/redo")
    assert (place.here / "a.txt").read_text() == "two\n"
    editor.prompt(session, "And three?")
    editor.leave()
    with terminal_of(place, provider, "--continue") as terminal:
        terminal.wait_for("▌ Change that file", "▌ And three?", "It is three.", "Tasks 1/2")
        leave(terminal)
