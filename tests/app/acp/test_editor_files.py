"""Files that the editor has open: what is not saved is read, judged and changed; the editor follows."""

from pathlib import Path
from typing import Any

from editorscene import EVERYTHING, Editor, chosen, serving

from swink.messages import ToolCall

FILES = {**EVERYTHING, "fs": {"readTextFile": True, "writeTextFile": True}}
READING = {**EVERYTHING, "fs": {"readTextFile": True, "writeTextFile": False}}
READ = ToolCall("c1", "read_file", {"path": "a.txt"})
EDIT = ToolCall("c2", "edit_file", {"path": "a.txt", "edits": [{"old": "unsaved", "new": "changed"}]})


def open_buffer(editor: Editor, path: Path, text: str) -> dict[str, str]:
    """A window of the editor with a file; saving writes it."""
    buffers = {str(path): text}

    def read(parameters: Any) -> Any:
        found = buffers.get(parameters["path"])
        return {"content": Path(parameters["path"]).read_text() if found is None else found}

    def write(parameters: Any) -> Any:
        buffers[parameters["path"]] = parameters["content"]
        Path(parameters["path"]).write_text(parameters["content"])
        return {}

    editor.answers["fs/read_text_file"], editor.answers["fs/write_text_file"] = read, write
    return buffers


async def test_what_is_not_saved_is_read_and_changed(project: Path):
    path = project / "a.txt"
    async with serving([[READ], [EDIT], "Done."], "--approve", "on") as editor:
        await editor.initialize(FILES)
        session = await editor.new(project)
        path.write_text("on disk\n")
        buffers = open_buffer(editor, path, "unsaved\n")
        asked: list[Any] = []

        def allow(parameters: Any) -> Any:
            asked.append(parameters["toolCall"])
            return chosen("y")(parameters)

        editor.answers["session/request_permission"] = allow
        await editor.prompt(session, "Change it")
        read = [each for each in editor.updates("tool_call_update") if each["toolCallId"] == "c1"][-1]
        assert read["content"][0]["content"]["text"].startswith("unsaved")
        diff = {"type": "diff", "path": str(path), "oldText": "unsaved\n", "newText": "changed\n"}
        assert diff in asked[-1]["content"]
        assert path.read_text() == buffers[str(path)] == "changed\n"


async def test_a_file_that_is_not_saved_is_not_changed_behind_the_editor(project: Path):
    path = project / "a.txt"
    async with serving([[EDIT], "Well."], "--approve", "off") as editor:
        await editor.initialize(READING)
        session = await editor.new(project)
        path.write_text("on disk\n")
        open_buffer(editor, path, "unsaved\n")
        await editor.prompt(session, "Change it")
        ended = editor.updates("tool_call_update")[-1]
        assert ended["status"] == "failed"
        assert "not saved" in ended["content"][0]["content"]["text"]
        assert path.read_text() == "on disk\n"


async def test_an_editor_that_refuses_to_read_leaves_the_file_on_disk(project: Path):
    path = project / "a.txt"
    async with serving([[READ], "Done."], "--approve", "off") as editor:
        await editor.initialize(FILES)
        session = await editor.new(project)
        path.write_text("on disk\n")

        async def refuse(parameters: Any) -> None:
            asked = next(
                each for each in reversed(editor.frames) if each.get("method") == "fs/read_text_file"
            )
            editor.send({"id": asked["id"], "error": {"code": -32002, "message": "no such window"}})

        editor.answers["fs/read_text_file"] = refuse
        await editor.prompt(session, "Read it")
        assert "on disk" in editor.updates("tool_call_update")[-1]["content"][0]["content"]["text"]


async def test_a_file_that_the_editor_changes_while_saving_is_noted(project: Path):
    write = ToolCall("c1", "write_file", {"path": "a.txt", "content": "x=1\n"})
    async with serving([[write], "Done."], "--approve", "off") as editor:
        await editor.initialize(FILES)
        session = await editor.new(project)
        open_buffer(editor, project / "b.txt", "")

        def format_it(parameters: Any) -> Any:
            Path(parameters["path"]).write_text("x = 1\n")
            return {}

        editor.answers["fs/write_text_file"] = format_it
        await editor.prompt(session, "Write it")
        (result,) = [each for each in editor.opened[0].agent.messages if each.role == "tool_result"]
        assert "changed the file again" in result.text


async def test_an_editor_that_answers_null_has_taken_the_change_over(project: Path):
    write = ToolCall("c1", "write_file", {"path": "a.txt", "content": "one\n"})
    async with serving([[write], "Done."], "--approve", "off") as editor:
        await editor.initialize(FILES)
        session = await editor.new(project)
        open_buffer(editor, project / "b.txt", "")

        async def take_over(parameters: Any) -> None:
            asked = next(each for each in editor.frames if each.get("method") == "fs/write_text_file")
            editor.send({"id": asked["id"], "result": None})

        editor.answers["fs/write_text_file"] = take_over
        await editor.prompt(session, "Write it")
        (result,) = [each for each in editor.opened[0].agent.messages if each.role == "tool_result"]
        assert "did not take over" not in result.text


async def test_commands_are_told_once_as_long_as_they_are_the_same(project: Path):
    async with serving(["Hello."]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        await editor.prompt(session, "Hi")
        assert len(editor.updates("available_commands_update")) == 1
