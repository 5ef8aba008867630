"""Scenes in which the person in the editor is asked: parts of a change, hosts, trust, the editor's own servers."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from editorscene import EVERYTHING, Editor, chosen

SERVER = Path(__file__).parents[2] / "mcp" / "bare_server.py"
LINES = [f"line {number}\n" for number in range(1, 31)]


def answering(editor: Editor, *options: str) -> list[dict[str, Any]]:
    """Answer the questions with these options, one after the other; what was asked."""
    left, asked = list(options), list[dict[str, Any]]()

    def answer(parameters: Any) -> Any:
        asked.append(parameters)
        return chosen(left.pop(0))(parameters)

    editor.answers["session/request_permission"] = answer
    return asked


def server_of_the_editor(how: str) -> dict[str, Any]:
    """A server as editors configure it."""
    command = {"command": sys.executable, "args": [str(SERVER), how]}
    return {"name": "mine", **command, "env": [{"name": "NOTE", "value": "from the editor"}]}


async def parts(editor: Editor, project: Path) -> None:
    """Of a change in two places one is taken, and the other is not."""
    asked = answering(editor, "d", "y", "n")
    await editor.initialize()
    session = await editor.new(project)
    (project / "a.txt").write_text("".join(LINES))
    await editor.prompt(session, "Change both ends")
    whole, first, second = asked
    assert "d" in [option["optionId"] for option in whole["options"]]
    assert [each["toolCall"]["toolCallId"] for each in asked] == [whole["toolCall"]["toolCallId"]] * 3
    assert first["toolCall"]["title"].startswith("Part 1 of 2 of a.txt")
    [shown] = second["toolCall"]["content"]
    assert shown["type"] == "diff"
    assert ("line 30" in shown["oldText"], "the end" in shown["newText"]) == (True, True)
    assert "line 1\n" not in shown["oldText"]
    assert [option["kind"] for option in second["options"]] == ["allow_once", "reject_once"]
    assert (project / "a.txt").read_text() == "".join(["the beginning\n", *LINES[1:]])
    ended = [each for each in editor.updates("tool_call_update") if each["status"] == "completed"][-1]
    assert ended["content"][0]["newText"] == (project / "a.txt").read_text()


async def withdrawn(editor: Editor, project: Path) -> None:
    """A turn that is cancelled while it asks ends; the question is answered by nobody and changes nothing."""

    async def cancel(parameters: Any) -> Any:
        await editor.cancel(parameters["sessionId"])
        return {"outcome": {"outcome": "cancelled"}}

    editor.answers["session/request_permission"] = cancel
    await editor.initialize()
    session = await editor.new(project)
    assert (await editor.prompt(session, "Write it"))["stopReason"] == "cancelled"
    assert not (project / "b.txt").exists()
    assert editor.updates("tool_call_update")[-1]["status"] == "failed"


async def hosts(editor: Editor, project: Path) -> None:
    """A command reaches no host that the person has not allowed; a no is told to it."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    asked = answering(editor, "n")
    await editor.initialize()
    session = await editor.new(project)
    await editor.prompt(session, "Fetch it")
    [question] = asked
    assert question["toolCall"]["title"] == "Reach far.invalid?"
    assert question["toolCall"]["kind"] == "fetch"
    assert "urlopen" in question["toolCall"]["content"][0]["content"]["text"]
    assert {option["optionId"] for option in question["options"]} == {"y", "a", "p", "n"}
    ids = [each["toolCallId"] for each in editor.updates("tool_call")]
    assert question["toolCall"]["toolCallId"] in ids
    [result] = [each for each in editor.opened[0].agent.messages if each.role == "tool_result"]
    assert "far.invalid" in result.text
    ended = [each for each in editor.updates("tool_call_update") if each["toolCallId"] == ids[-1]][-1]
    assert ended["status"] == "failed"


async def servers(editor: Editor, project: Path) -> None:
    """The editor's server starts once the folder is trusted; what it asks is a form in the editor."""
    (project / "AGENTS.md").write_text("Be brief.\n")
    asked, forms = answering(editor, "y"), list[dict[str, Any]]()

    def decline(parameters: Any) -> Any:
        forms.append(parameters)
        return {"action": "decline"}

    editor.answers["elicitation/create"] = decline
    await editor.initialize()
    session = await editor.new(project, mcpServers=[server_of_the_editor("asking")])
    assert editor.opened[0].environment.servers.owners == {}
    await editor.prompt(session, "Ask me")
    [trust] = asked
    assert "AGENTS.md" in trust["toolCall"]["content"][0]["content"]["text"]
    assert "Who are you?" in str(forms[0]["message"]) + str(forms[0]["requestedSchema"])
    [result] = [each for each in editor.opened[0].agent.messages if each.role == "tool_result"]
    assert "decline" in result.text or "cancel" in result.text


async def directories(editor: Editor, project: Path) -> None:
    """Commands write to a further directory of the editor's, and to no other one."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    for name in ("further", "other"):
        (project.parent / name).mkdir(exist_ok=True)
    await editor.initialize()
    session = await editor.new(project, additionalDirectories=[str(project.parent / "further")])
    await editor.prompt(session, "Write there")
    assert (project.parent / "further" / "a.txt").exists()
    assert not (project.parent / "other" / "a.txt").exists()


async def strangers(editor: Editor, project: Path) -> None:
    """In a folder that is not trusted no server of the editor is started, which is said."""
    (project / "AGENTS.md").write_text("Obey me.\n")
    answering(editor, "n")
    await editor.initialize(EVERYTHING)
    session = await editor.new(project, mcpServers=[server_of_the_editor("plain")])
    await editor.prompt(session, "Hello")
    assert "the MCP servers of the editor are not started" in editor.words() + str(editor.updates("notice"))
    assert editor.opened[0].environment.servers.owners == {}


FETCH = "import urllib.request as r; r.urlopen('http://far.invalid/').read()"
