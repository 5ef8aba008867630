"""What goes wrong between an editor and the agent: wrong lines, ends in the midst, large prompts, two editors, cancels."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from editorscene import Refused, at_work, chosen, serving
from tests.counts import MORE, left_to_more

from swink.agent import Agent
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.messages import ToolCall
from swink.testing import Pause, ScriptedModel

WRITE = ToolCall("c1", "write_file", {"path": "a.txt", "content": "two\n"})


def said_in(session: str) -> list[str]:
    """What a saved session has, as the terminal opens it."""
    saved = SavedConversation(open_store(), open_store().read(session))
    return [message.text for message in saved.session.messages]


async def test_wrong_lines_get_an_error_and_the_next_one_works(project: Path):
    async with serving(["Hello."]) as editor:
        lines = [b"{", b"[]", b"\xff", b"7", b'{"id": 1}', b'{"id": {}, "method": "initialize"}', b"", b" \r"]
        for line in lines:
            editor._send(line + b"\n")
        await editor.initialize()
        codes = [frame["error"]["code"] for frame in editor.frames if frame.get("error")]
        assert codes == [-32700, -32600, -32700, -32600, -32600, -32700]
        with pytest.raises(Refused) as refused:
            await editor.ask("session/dance")
        assert refused.value.code == -32601
        with pytest.raises(Refused) as refused:
            await editor.ask("session/new", cwd=7)
        assert refused.value.code == -32602
        editor.tell("session/unheard", sessionId="x")
        editor.tell("session/cancel", sessionId="nowhere")
        editor.tell("session/cancel")
        editor.send({"id": 999, "result": {}})  # an answer to nothing
        session = await editor.new(project)
        assert (await editor.prompt(session, "Hi"))["stopReason"] == "end_turn"


async def test_an_id_that_is_in_use_is_refused(project: Path):
    async with serving([["one", Pause(60)]]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        turn = editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Hi"}])
        while not editor.words():
            await asyncio.sleep(0.01)
        editor.send({"id": 3, "method": "session/list", "params": {}})
        with pytest.raises(Refused) as refused:
            await turn
        assert refused.value.code == -32600
        await editor.cancel(session)


async def test_a_request_that_is_cancelled_ends_its_turn(project: Path):
    async with serving([["one", Pause(60)]]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        turn = editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Hi"}])
        while not editor.words():
            await asyncio.sleep(0.01)
        editor.tell("$/cancel_request", requestId=editor._count)
        with pytest.raises(Refused) as refused:
            await turn
        assert refused.value.code == -32800
        assert editor.opened[0].agent.messages[-1].stop_reason == "aborted"


async def test_an_editor_that_leaves_in_the_midst_of_a_line_loses_nothing(project: Path):
    async with serving([["par", Pause(60), "is"]]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Capital?"}])
        while not editor.words():
            await asyncio.sleep(0.01)
        editor._send(b'{"jsonrpc": "2.0", "id": 9, "method": "session/pro')
        editor.leave()
    assert said_in(session) == ["Capital?", "par"]


async def test_an_editor_that_leaves_while_it_is_asked_refuses_the_call(project: Path):
    async with serving([[WRITE]], "--approve", "on") as editor:
        await editor.initialize()
        session = await editor.new(project)
        asked = asyncio.Event()

        async def never(parameters: Any) -> None:
            asked.set()

        editor.answers["session/request_permission"] = never
        editor.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Write"}])
        await asked.wait()
        editor.leave()
    assert not (project / "a.txt").exists()


@left_to_more
async def test_a_prompt_of_ten_megabytes_arrives_whole(project: Path):
    text = "x" * (10 << 20)
    model = ScriptedModel(["Long."])
    async with serving(model) as editor:
        await editor.initialize()
        session = await editor.new(project)
        await editor.prompt(session, text)
        assert editor.opened[0].agent.messages[0].text == text
        assert editor.words() == "Long."


async def test_an_editor_that_does_not_read_holds_up_its_own_run_alone(project: Path):
    pieces = [f"{number:06} " * 20 for number in range(20_000 if MORE else 4_000)]
    async with at_work([pieces]) as (source, sink, opened):

        def send(number: int, method: str, **parameters: Any) -> None:
            os.write(
                sink, json.dumps({"id": number, "method": method, "params": parameters}).encode() + b"\n"
            )

        reader = os.fdopen(os.dup(source), "rb")

        async def read() -> dict[str, Any]:
            return json.loads(await asyncio.to_thread(reader.readline))

        send(1, "initialize", protocolVersion=1)
        assert "result" in await read()
        send(2, "session/new", cwd=str(project), mcpServers=[])
        session = (await read())["result"]["sessionId"]
        send(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Count"}])
        while not opened[0].agent.is_running:
            await asyncio.sleep(0.01)
        words = ""
        while "result" not in (frame := await read()):
            update = frame["params"]["update"]
            if update["sessionUpdate"] == "agent_message_chunk" and update["content"]["text"][:1] == "0":
                words += update["content"]["text"]
        assert words == "".join(pieces)
        reader.close()


@pytest.mark.more
async def test_an_editor_that_leaves_without_reading_holds_up_nothing(project: Path):
    pieces = [f"{number:06} " * 20 for number in range(20_000)]
    async with at_work([pieces]) as (source, sink, opened):
        for number, method, parameters in (
            (1, "initialize", {"protocolVersion": 1}),
            (2, "session/new", {"cwd": str(project), "mcpServers": []}),
        ):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
            os.write(sink, json.dumps(message).encode() + b"\n")
        while not opened:
            await asyncio.sleep(0.01)
        assert opened[0].saved is not None
        said = {"sessionId": opened[0].saved.meta.id, "prompt": [{"type": "text", "text": "Count"}]}
        message = {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": said}
        os.write(sink, json.dumps(message).encode() + b"\n")
        agent = opened[0].agent
        while (reply := agent.streaming_message) is None or len(reply.text) < 2_500_000:
            await asyncio.sleep(0.01)
    assert said_in(opened[0].saved.meta.id)[0] == "Count"


async def test_two_editors_with_one_session_go_apart(project: Path):
    async with serving(["One."]) as editor:
        await editor.initialize()
        session = await editor.new(project)
        await editor.prompt(session, "Begin")
    model = ScriptedModel(["Two.", "Three."])
    async with serving(model) as first, serving(model) as second:
        for editor in (first, second):
            await editor.initialize()
            await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        await first.prompt(session, "Mine")
        await second.prompt(session, "Yours")
        (told,) = [
            each["title"] for each in second.updates("notice") if "continued elsewhere" in each["title"]
        ]
        fork = told.rpartition(" ")[2]
    assert said_in(session) == ["Begin", "One.", "Mine", "Two."]
    assert said_in(fork) == ["Begin", "One.", "Yours", "Three."]


async def test_a_session_of_the_terminal_opens_in_the_editor_and_the_other_way_round(project: Path):
    saved = SavedConversation(open_store(), directory=str(project))
    async with Agent("scripted:large", stream_fn=ScriptedModel(["Paris."]), session=saved.session) as agent:
        await agent.run("Capital of France?")
    async with serving(["Berlin."]) as editor:
        await editor.initialize()
        await editor.ask("session/load", sessionId=saved.meta.id, cwd=str(project), mcpServers=[])
        assert editor.words() == "Paris."
        await editor.prompt(saved.meta.id, "And of Germany?")
    assert said_in(saved.meta.id)[-2:] == ["And of Germany?", "Berlin."]


async def _cancel_at(number: int, project: Path) -> bool:
    """Play a turn with a call and a question, and cancel it at a frame; False if there are fewer."""
    replies = [["Let me ", WRITE], "Done.", "After.", "After."]
    async with serving(replies, "--approve", "on") as editor:
        await editor.initialize()
        editor.answers["session/request_permission"] = chosen("y")
        session = await editor.new(project)
        (project / "a.txt").unlink(missing_ok=True)
        seen = 0

        def count(frame: dict[str, Any]) -> None:
            nonlocal seen
            if seen == number:
                editor.tell("session/cancel", sessionId=session)
            seen += 1

        editor.heard = count
        first = await editor.prompt(session, "Write it")
        assert first["stopReason"] in ("cancelled", "end_turn")
        editor.heard = lambda frame: None
        was_reached = seen > number
        assert (await editor.prompt(session, "And now?"))["stopReason"] == "end_turn"
        begun = {each["toolCallId"] for each in editor.updates("tool_call")}
        ended = {
            each["toolCallId"]
            for each in editor.updates("tool_call_update")
            if each["status"] in ("completed", "failed")
        }
        assert begun == ended
        return was_reached


@pytest.mark.parametrize("number", [2, 5])
async def test_a_cancel_at_a_frame_ends_every_call(number: int, project: Path):
    await _cancel_at(number, project)


@left_to_more
async def test_a_cancel_at_any_frame_ends_every_call(project: Path):
    number = 0
    while await _cancel_at(number, project):
        number += 1
    assert number > 8


async def test_requests_out_of_order_are_refused_and_harm_nothing(project: Path):
    async with serving([["one", Pause(60)], "two"]) as editor:
        await editor.initialize()
        await editor.initialize()
        session = await editor.new(project)
        saved = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        with pytest.raises(Refused, match="no saved session"):
            await editor.ask("session/load", **{**saved, "sessionId": "nowhere"})
        turn = asyncio.ensure_future(editor.prompt(session, "Count"))
        while not editor.words():
            await asyncio.sleep(0.01)
        for method in ("session/load", "session/resume"):
            with pytest.raises(Refused, match="a turn of this session goes on"):
                await editor.ask(method, **saved)
        with pytest.raises(Refused, match="no option"):
            await editor.ask("session/set_config_option", sessionId=session, configId="x", value="y")
        await editor.ask("session/close", sessionId=session)
        assert (await turn)["stopReason"] == "cancelled"
        for method in ("session/close", "session/set_mode", "session/prompt"):
            with pytest.raises(Refused, match="no open session"):
                await editor.ask(method, sessionId=session, modeId="plan", prompt=[])
        await editor.ask("session/resume", **saved)
        assert (await editor.prompt(session, "On"))["stopReason"] == "end_turn"
    assert said_in(session) == ["Count", "one", "On", "two"]
