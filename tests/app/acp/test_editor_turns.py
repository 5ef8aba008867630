"""Turns of a session in an editor: words, calls, questions, cancellation, modes; each frame as the schema has it."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from editorscene import Refused, chosen, serving

from swink.messages import Text, Thinking, ToolCall
from swink.testing import Pause


async def test_nothing_is_answered_before_initialize(project: Path):
    async with serving([]) as editor:
        with pytest.raises(Refused) as refused:
            await editor.new(project)
        assert refused.value.code == -32600
        assert (await editor.initialize())["protocolVersion"] == 1


async def test_words_and_thoughts_arrive_as_they_are_said(project: Path):
    async with serving([[Thinking("Hm."), "Par", "is"]]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        ended = await editor.prompt(session, "Capital of France?")
        assert ended["stopReason"] == "end_turn"
        assert ended["usage"]["outputTokens"] == 10
        assert editor.words() == "Paris"
        assert editor.words("agent_thought_chunk") == "Hm."
        assert editor.updates("user_message_chunk") == []  # the editor shows what it sent
        assert editor.updates("usage_update")[-1]["size"] == 200_000
        assert editor.updates("session_info_update")[-1]["title"] == "Capital of France?"


async def test_a_call_is_asked_about_with_its_diff_and_ends_with_it(project: Path):
    asked: list[dict[str, Any]] = []
    (project / "a.txt").write_text("one\n")
    write = ToolCall("c1", "write_file", {"path": "a.txt", "content": "two\n"})
    async with serving([[write], "Done."], "--approve", "smart") as editor:
        await editor.initialize()

        def answer(parameters: dict[str, Any]) -> Any:
            asked.append(parameters)
            return chosen("y")(parameters)

        editor.answers["session/request_permission"] = answer
        session = await editor.new(project)
        await editor.prompt(session, "Change it")
        trust, call = asked
        assert [option["optionId"] for option in trust["options"]] == ["y", "a", "n"]
        diff = {"type": "diff", "path": str(project / "a.txt"), "oldText": "one\n", "newText": "two\n"}
        assert diff in call["toolCall"]["content"]
        begun = editor.updates("tool_call")[-1]
        assert begun["toolCallId"] == "c1" == call["toolCall"]["toolCallId"]
        ended = [each for each in editor.updates("tool_call_update") if each["toolCallId"] == "c1"][-1]
        assert ended["status"] == "completed"
        assert ended["content"] == [diff]
        assert (project / "a.txt").read_text() == "two\n"


async def test_a_call_that_is_refused_leaves_the_file_alone(project: Path):
    write = ToolCall("c1", "write_file", {"path": "a.txt", "content": "two\n"})
    async with serving([[write], "Well."], "--approve", "on") as editor:
        await editor.initialize()
        editor.answers["session/request_permission"] = chosen("n")
        session = await editor.new(project)
        await editor.prompt(session, "Write it")
        assert not (project / "a.txt").exists()
        assert editor.updates("tool_call_update")[-1]["status"] == "failed"


async def test_two_calls_with_the_same_id_are_two_calls(project: Path):
    (project / "a.txt").write_text("one\n")
    read = ToolCall("c1", "read_file", {"path": "a.txt"})
    async with serving([[read], [read], "Done."]) as editor:
        await editor.initialize()
        editor.answers["session/request_permission"] = chosen("n")
        session = await editor.new(project)
        await editor.prompt(session, "Read it twice")
        begun = [
            each["toolCallId"] for each in editor.updates("tool_call") if each["title"].startswith("read")
        ]
        assert len(begun) == len(set(begun)) == 2


async def test_a_cancelled_turn_keeps_what_arrived(project: Path):
    async with serving([["par", Pause(60), "is"], "Berlin"]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        came = asyncio.Event()
        editor.heard = lambda frame: came.set() if "'par'" in str(frame) else None
        turn = asyncio.ensure_future(editor.prompt(session, "Capital of France?"))
        await came.wait()
        await editor.cancel(session)
        assert (await turn)["stopReason"] == "cancelled"
        assert (await editor.prompt(session, "And of Germany?"))["stopReason"] == "end_turn"
        assert editor.words() == "parBerlin"


async def test_a_question_is_withdrawn_when_its_turn_is_cancelled(project: Path):
    write = ToolCall("c1", "write_file", {"path": "a.txt", "content": "two\n"})
    async with serving([[write]], "--approve", "on") as editor:
        await editor.initialize()
        session = await editor.new(project)

        async def never(parameters: Any) -> None:
            await editor.cancel(session)

        editor.answers["session/request_permission"] = never
        assert (await editor.prompt(session, "Write it"))["stopReason"] == "cancelled"
        assert [frame for frame in editor.frames if frame.get("method") == "$/cancel_request"]
        assert not (project / "a.txt").exists()


async def test_a_second_prompt_steers_the_turn_that_goes_on(project: Path):
    async with serving([["one", Pause(0.2)], "two"]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        came = asyncio.Event()
        editor.heard = lambda frame: came.set() if "'one'" in str(frame) else None
        first = asyncio.ensure_future(editor.prompt(session, "Count"))
        await came.wait()
        second = await editor.prompt(session, "Go on")
        assert (await first)["stopReason"] == second["stopReason"] == "end_turn"
        assert editor.words() == "onetwo"


async def test_modes_are_those_of_the_terminal_and_plan_mode_only_looks(project: Path):
    async with serving(["The plan: look.", "Carried out."]) as editor:
        await editor.initialize()
        state = await editor.ask("session/new", cwd=str(project), mcpServers=[])
        modes = state["modes"]
        assert modes["currentModeId"] == "smart"
        assert modes["availableModes"][0]["id"] == "plan"
        session = state["sessionId"]
        await editor.ask("session/set_mode", sessionId=session, modeId="plan")
        assert editor.updates("current_mode_update")[-1]["currentModeId"] == "plan"
        with pytest.raises(Refused):
            await editor.ask("session/set_mode", sessionId=session, modeId="wild")
        editor.answers["session/request_permission"] = chosen("y")
        await editor.prompt(session, "How?")
        assert editor.updates("current_mode_update")[-1]["currentModeId"] == "smart"
        assert editor.words() == "The plan: look.Carried out."
        assert "write_file" in {tool.name for tool in editor.opened[0].agent.tools[0].tools()}


async def test_another_mode_answers_a_question_that_waits(project: Path):
    write = ToolCall("c1", "write_file", {"path": "a.txt", "content": "two\n"})
    async with serving([[write], "Done."], "--approve", "on") as editor:
        await editor.initialize()
        session = await editor.new(project)

        async def never(parameters: Any) -> None:
            editor.begin("session/set_mode", sessionId=session, modeId="off")

        editor.answers["session/request_permission"] = never
        assert (await editor.prompt(session, "Write it"))["stopReason"] == "end_turn"
        assert (project / "a.txt").read_text() == "two\n"


async def test_a_saved_session_is_told_again_and_goes_on(project: Path):
    (project / "a.txt").write_text("one\n")
    read = ToolCall("c1", "read_file", {"path": "a.txt"})
    async with serving([[Text("Look:"), read], "It says one."]) as editor:
        await editor.initialize()
        editor.answers["session/request_permission"] = chosen("n")
        session = await editor.new(project)
        await editor.prompt(session, "What is in it?")
    async with serving(["Still one."]) as editor:
        await editor.initialize()
        listed = (await editor.ask("session/list"))["sessions"]
        assert [(each["sessionId"], each["cwd"]) for each in listed] == [(session, str(project))]
        editor.answers["session/request_permission"] = chosen("n")
        await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        assert editor.words("user_message_chunk") == "What is in it?"
        assert editor.words() == "Look:It says one."
        (call,) = editor.updates("tool_call")
        assert call["status"] == "completed"
        assert (await editor.prompt(session, "And now?"))["stopReason"] == "end_turn"
        assert editor.words() == "Look:It says one.Still one."


async def test_a_session_that_there_is_not_is_refused(project: Path):
    async with serving([]) as editor:
        await editor.initialize()
        with pytest.raises(Refused) as refused:
            await editor.ask("session/load", sessionId="nowhere", cwd=str(project), mcpServers=[])
        assert refused.value.code == -32002
        with pytest.raises(Refused) as refused:
            await editor.prompt("nowhere", "Hello")
        assert refused.value.code == -32002
        with pytest.raises(Refused) as refused:
            await editor.new(Path("relative"))
        assert refused.value.code == -32602


async def test_a_session_that_was_rewound_opens_as_it_went_on_and_is_listed_once(project: Path):
    async with serving(["One.", "Two.", "Another two."]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        for said in ("First", "Second", "/rewind 2", "Second, in other words"):
            await editor.prompt(session, said)
    async with serving(["Three."]) as editor:
        await editor.initialize()
        [listed] = (await editor.ask("session/list"))["sessions"]
        assert listed["sessionId"] == session
        await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        assert editor.words("user_message_chunk") == "FirstSecond, in other words"
        await editor.prompt(session, "Third")
        fork = await editor.ask("session/fork", sessionId=session, cwd=str(project), mcpServers=[])
        told = [message.text for message in editor.opened[-1].agent.messages if message.role == "user"]
        assert told == ["First", "Second, in other words", "Third"]
        await editor.ask("session/delete", sessionId=session)
        [left] = (await editor.ask("session/list"))["sessions"]
        assert left["sessionId"] == fork["sessionId"]


async def test_a_rewind_that_was_undone_leaves_the_session_as_it_was(project: Path):
    async with serving(["One.", "Two."]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        for said in ("First", "Second", "/rewind 2", "/redo"):
            await editor.prompt(session, said)
    async with serving([]) as editor:
        await editor.initialize()
        await editor.ask("session/resume", sessionId=session, cwd=str(project), mcpServers=[])
        assert [message.text for message in editor.opened[-1].agent.messages][-1] == "Two."
        assert len((await editor.ask("session/list"))["sessions"]) == 1


async def test_continuing_what_has_its_answer_is_refused_in_words_for_people(project: Path):
    async with serving(["One."]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        for said in (None, "First"):
            if said is not None:
                await editor.prompt(session, said)
            with pytest.raises(Refused, match="nothing to continue; write what is to be done"):
                await editor.prompt(session, "/continue")


async def test_a_command_that_there_is_not_is_refused_and_a_path_is_a_prompt(project: Path):
    async with serving(["A path.", "Full."]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        with pytest.raises(Refused, match=r"there is no command /rewnd; did you mean /rewind\?"):
            await editor.prompt(session, "/rewnd 1")
        with pytest.raises(Refused, match="a word before it makes it a prompt"):
            await editor.prompt(session, "/dance")
        await editor.prompt(session, "/usr/bin/env")
        await editor.prompt(session, "/tmp is full")
        assert editor.words() == "A path.Full."


async def test_a_call_is_named_by_its_file_and_not_told_twice_as_it_is(project: Path):
    write = ToolCall("c1", "write_file", {"path": "a.txt", "content": "two\n"})
    async with serving([[write], "Done."], "--approve", "off") as editor:
        await editor.initialize()
        session = await editor.new(project)
        await editor.prompt(session, "Write it")
        told = [each for each in editor.updates() if each.get("toolCallId") == "c1"]
        assert told[-1]["title"] == "write_file: a.txt"
        assert [after for before, after in pairwise(told[1:]) if before == after] == []
