"""Scenes that every editor plays: each has a script for the model, and what is done and seen in the editor."""

import asyncio
import base64
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asking_scenes import FETCH, directories, hosts, parts, servers, strangers, withdrawn
from editorscene import EVERYTHING, Editor, Refused, chosen

from swink.errors import ContentFiltered
from swink.messages import Document, Image, Text, Thinking, ToolCall
from swink.messages.blocks import Base64Source
from swink.stream import Done
from swink.testing import Pause

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FILES = {**EVERYTHING, "fs": {"readTextFile": True, "writeTextFile": True}}
TASKS = [{"text": "look", "status": "done"}, {"text": "write", "status": "in_progress"}]
ASKED = [{"question": "Which colour?", "choices": ["red", "blue"]}]


class Scene(NamedTuple):
    """What the model says, what is done in the editor, and with which arguments the agent was started."""

    replies: list[Any]
    play: Callable[[Editor, Path], Awaitable[None]]
    arguments: tuple[str, ...] = ()


async def words(editor: Editor, project: Path) -> None:
    found = await editor.initialize()
    assert found["agentInfo"]["name"] == "swink"
    session = await editor.new(project)
    ended = await editor.prompt(session, "Capital of France?")
    assert ended["stopReason"] == "end_turn"
    assert editor.words() == "Paris"
    assert editor.words("agent_thought_chunk") == "Hm."
    assert editor.updates("usage_update")[-1]["size"] == 200_000
    assert editor.updates("session_info_update")[-1]["title"] == "Capital of France?"
    assert editor.updates("available_commands_update")[-1]["availableCommands"]


async def change(editor: Editor, project: Path) -> None:
    """A change of a file, asked about with its diff, read and written through the editor."""
    asked: list[Any] = []
    path = project / "a.txt"

    def allow(parameters: Any) -> Any:
        asked.append(parameters["toolCall"])
        return chosen("y")(parameters)

    def write(parameters: Any) -> Any:
        Path(parameters["path"]).write_text(parameters["content"])
        return {}

    editor.answers["session/request_permission"] = allow
    editor.answers["fs/read_text_file"] = lambda parameters: {"content": "unsaved\n"}
    editor.answers["fs/write_text_file"] = write
    await editor.initialize(FILES)
    session = await editor.new(project)
    path.write_text("on disk\n")
    await editor.prompt(session, "Change it")
    diff = {"type": "diff", "path": str(path), "oldText": "unsaved\n", "newText": "changed\n"}
    assert asked[-1]["content"] == [diff]
    ended = editor.updates("tool_call_update")[-1]
    assert (ended["status"], ended["content"]) == ("completed", [diff])
    assert path.read_text() == "changed\n"


async def plan(editor: Editor, project: Path) -> None:
    """The list of tasks; plan mode, and the way out of it."""
    editor.answers["session/request_permission"] = chosen("y")
    await editor.initialize()
    session = await editor.new(project)
    await editor.prompt(session, "Begin")
    entries = editor.updates("plan")[-1]["entries"]
    assert [(entry["content"], entry["status"]) for entry in entries] == [
        ("look", "completed"),
        ("write", "in_progress"),
    ]
    await editor.ask("session/set_mode", sessionId=session, modeId="plan")
    await editor.prompt(session, "How?")
    modes = [each["currentModeId"] for each in editor.updates("current_mode_update")]
    assert modes == ["plan", "smart"]
    assert editor.words().endswith("The plan.Carried out.")


async def options(editor: Editor, project: Path) -> None:
    await editor.initialize()
    state = await editor.ask("session/new", cwd=str(project), mcpServers=[])
    found = {option["id"]: option for option in state["configOptions"]}
    assert found["model"]["currentValue"] == "scripted:large"
    session = state["sessionId"]
    changed = await editor.ask(
        "session/set_config_option", sessionId=session, configId="thinking", value="high"
    )
    now = {option["id"]: option["currentValue"] for option in changed["configOptions"]}
    assert now == {"model": "scripted:large", "thinking": "high"}
    with pytest.raises(Refused) as refused:
        await editor.ask("session/set_config_option", sessionId=session, configId="model", value="nothing")
    assert refused.value.code == -32602


async def sessions(editor: Editor, project: Path) -> None:
    """List, fork, close, load, resume, delete."""
    await editor.initialize()
    session = await editor.new(project)
    await editor.prompt(session, "One")
    forked = (await editor.ask("session/fork", sessionId=session, cwd=str(project), mcpServers=[]))[
        "sessionId"
    ]
    await editor.prompt(forked, "Two")
    listed = (await editor.ask("session/list", cwd=str(project)))["sessions"]
    assert {each["sessionId"] for each in listed} == {session, forked}
    await editor.ask("session/close", sessionId=forked)
    before = len(editor.frames)
    await editor.ask("session/load", sessionId=forked, cwd=str(project), mcpServers=[])
    del editor.frames[:before]
    assert editor.words("user_message_chunk") == "OneTwo"
    assert editor.words() == "Ja.Nein."
    await editor.ask("session/close", sessionId=session)
    before = len(editor.updates("user_message_chunk"))
    await editor.ask("session/resume", sessionId=session, cwd=str(project), mcpServers=[])
    assert len(editor.updates("user_message_chunk")) == before
    await editor.prompt(session, "Three")
    await editor.ask("session/delete", sessionId=session)
    listed = (await editor.ask("session/list", cwd=str(project)))["sessions"]
    assert [each["sessionId"] for each in listed] == [forked]


async def cancel(editor: Editor, project: Path) -> None:
    await editor.initialize()
    session = await editor.new(project)
    came = asyncio.Event()
    editor.heard = lambda frame: came.set() if "'par'" in str(frame) else None
    turn = asyncio.ensure_future(editor.prompt(session, "Capital of France?"))
    await came.wait()
    await editor.cancel(session)
    assert (await turn)["stopReason"] == "cancelled"


async def form(editor: Editor, project: Path) -> None:
    """What the agent asks is a form; the answer goes back to it."""
    asked: list[Any] = []

    def fill_in(parameters: Any) -> Any:
        asked.append(parameters)
        return {"action": "accept", "content": {"question_1": "blue"}}

    editor.answers["elicitation/create"] = fill_in
    await editor.initialize()
    session = await editor.new(project)
    await editor.prompt(session, "Paint it")
    assert "Which colour?" in asked[0]["message"]
    (result,) = [each for each in editor.opened[0].agent.messages if each.role == "tool_result"]
    assert "→ blue" in result.text


async def attachments(editor: Editor, project: Path) -> None:
    """Files, pictures and resources of a prompt reach the model."""
    await editor.initialize()
    session = await editor.new(project)
    note = {"uri": f"file://{project}/note.txt", "mimeType": "text/plain", "text": "remember"}
    paper = {
        "uri": "file:///paper.pdf",
        "mimeType": "application/pdf",
        "blob": base64.b64encode(b"%PDF-1.4\n").decode(),
    }
    said = [
        {"type": "text", "text": "Look: "},
        {"type": "image", "mimeType": "image/png", "data": PIXEL},
        {"type": "resource", "resource": note},
        {"type": "resource", "resource": paper},
        {"type": "resource_link", "uri": f"file://{project}/a.txt", "name": "a.txt"},
    ]
    await editor.ask("session/prompt", sessionId=session, prompt=said)
    message = editor.opened[0].agent.messages[0]
    kinds = [type(block) for block in message.content]
    assert kinds == [Text, Image, Text, Document, Text]
    assert "remember" in message.text
    assert f"@{project}/a.txt" in message.text


async def login(editor: Editor, project: Path) -> None:
    found = await editor.initialize()
    session = await editor.new(project)
    await editor.ask("logout")
    for refusing in (editor.new(project), editor.prompt(session, "Hello")):
        with pytest.raises(Refused) as refused:
            await refusing
        assert refused.value.code == -32000
    await editor.ask("authenticate", methodId=found["authMethods"][0]["id"])
    assert (await editor.prompt(session, "Hello"))["stopReason"] == "end_turn"


async def rewind(editor: Editor, project: Path) -> None:
    """Back to before a prompt with the files of then, and forward again."""
    editor.answers["session/request_permission"] = chosen("y")
    await editor.initialize()
    session = await editor.new(project)
    await editor.prompt(session, "Write it")
    assert (project / "b.txt").read_text() == "two"
    await editor.prompt(session, "/rewind")
    assert "1  Write it" in editor.words() + str(editor.updates("notice"))
    await editor.prompt(session, "/rewind 1")
    assert not (project / "b.txt").exists()
    await editor.prompt(session, "/redo")
    assert (project / "b.txt").read_text() == "two"
    await editor.prompt(session, "/export talk.md")
    assert "Write it" in (project / "talk.md").read_text()


async def compaction(editor: Editor, project: Path) -> None:
    """The context is made smaller, and another model taken."""
    await editor.initialize()
    session = await editor.new(project)
    for number in range(6):
        await editor.prompt(session, f"Number {number}: {LONG}")
    await editor.prompt(session, "/compact")
    if editor.knows_everything:
        assert [each["status"] for each in editor.updates("compaction_update")] == [
            "in_progress",
            "completed",
        ]
        assert editor.updates("compaction_summary_chunk")
    else:
        assert "left the context" in editor.words()
    await editor.prompt(session, "/model scripted:other")
    assert editor.updates("config_option_update")[-1]["configOptions"][0]["currentValue"] == "scripted:other"


async def terminal(editor: Editor, project: Path) -> None:
    """What a command prints is in a terminal of the editor's, while it runs and when it has ended."""
    await editor.initialize({"_meta": {"terminal_output": True}})
    session = await editor.new(project)
    await editor.prompt(session, "Run it")
    (begun,) = editor.updates("tool_call")
    assert begun["content"] == [{"type": "terminal", "terminalId": "b1"}]
    metas = [each["_meta"] for each in editor.updates("tool_call_update") if "_meta" in each]
    output = "".join(each["terminal_output"]["data"] for each in metas if "terminal_output" in each)
    assert ("one" in output, "two" in output) == (True, True)
    assert metas[-1]["terminal_exit"]["exit_code"] == 3


async def endings(editor: Editor, project: Path) -> None:
    """Why a turn ended early is said: the reply was too long, was refused, or turns are used up."""
    editor.answers["session/request_permission"] = chosen("n")
    await editor.initialize()
    session = await editor.new(project)
    (project / "a.txt").write_text("one\n")
    for said, reason in (("Long", "max_tokens"), ("Bad", "refusal"), ("Loop", "max_turn_requests")):
        assert (await editor.prompt(session, said))["stopReason"] == reason
    assert (await editor.prompt(session, "Again"))["stopReason"] == "end_turn"


async def pictures(editor: Editor, project: Path) -> None:
    """A picture that the model makes is shown, and again when the session is loaded."""
    await editor.initialize()
    session = await editor.new(project)
    await editor.prompt(session, "Draw")
    await editor.ask("session/close", sessionId=session)
    await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    shown = [each["content"] for each in editor.updates("agent_message_chunk")]
    images = [content for content in shown if content["type"] == "image"]
    assert [(image["data"], image["mimeType"]) for image in images] == [(PIXEL, "image/png")] * 2


LONG = "a long story about the sea and the ships on it, told slowly. " * 100
EDIT = ToolCall("e1", "edit_file", {"path": "a.txt", "edits": [{"old": "unsaved", "new": "changed"}]})
ENDS = ToolCall(
    "e1",
    "edit_file",
    {
        "path": "a.txt",
        "edits": [{"old": "line 1\n", "new": "the beginning\n"}, {"old": "line 30", "new": "the end"}],
    },
)
WRITE = ToolCall("w1", "write_file", {"path": "b.txt", "content": "two"})
READ = ToolCall("r1", "read_file", {"path": "a.txt"})
BOTH = ToolCall("b1", "bash", {"command": "touch ../further/a.txt; touch ../other/a.txt"})
TALKS = ToolCall("b1", "bash", {"command": "echo one; echo two; exit 3"})
FETCHED = ToolCall("b1", "bash", {"command": f'{sys.executable} -c "{FETCH}"'})
SCENES = {
    "words": Scene([[Thinking("Hm."), "Par", "is"]], words),
    "change": Scene([[EDIT], "Done."], change, ("--approve", "on")),
    "plan": Scene([[ToolCall("t1", "todo", {"tasks": TASKS})], "Begun.", "The plan.", "Carried out."], plan),
    "options": Scene([], options),
    "sessions": Scene(["Ja.", "Nein.", "Doch."], sessions),
    "cancel": Scene([["par", Pause(60), "is"]], cancel),
    "form": Scene([[ToolCall("q1", "ask_user", {"questions": ASKED})], "Blue it is."], form),
    "attachments": Scene(["Seen."], attachments),
    "login": Scene(["Hello."], login),
    "rewind": Scene([[WRITE], "Done."], rewind),
    "withdrawn": Scene([[WRITE]], withdrawn, ("--approve", "on")),
    "compaction": Scene(
        [*[f"Reply {number}: {LONG}" for number in range(6)], "The sea."],
        compaction,
    ),
    "parts": Scene([[ENDS], "Done."], parts, ("--approve", "on")),
    "hosts": Scene([[FETCHED], "It may not."], hosts, ("--approve", "off", "--network", "ask")),
    "servers": Scene([[ToolCall("m1", "mine_form", {})], "Asked."], servers, ("--approve", "off")),
    "terminal": Scene([[TALKS], "Done."], terminal, ("--approve", "off", "--sandbox", "none")),
    "endings": Scene(
        [["half", Done("length")], ContentFiltered("no"), [READ], [READ], "Well."],
        endings,
        ("--max-turns", "2"),
    ),
    "pictures": Scene([["Look: ", Image(Base64Source(PIXEL, "image/png"))]], pictures),
    "directories": Scene([[BOTH], "Done."], directories, ("--approve", "off")),
    "strangers": Scene(["Hello."], strangers),
}
