"""The transcript that hooks read: complete, private, in the published form, and never slow."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandscene import MODEL
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import left_to_more

from swink.agent import Agent
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.hooktranscript import HookTranscript
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.sessionhooks import SessionHooks
from swink.app.assistant.settings import UserSettings
from swink.memory.jsonl import sessions_dir, transcript_of
from swink.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResultMessage, UserMessage
from swink.testing import ScriptedModel

LAST_TEXT = (
    '[.[] | select(.type == "assistant") | .message.content[]? | select(.type == "text") | .text] | last'
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWINK_SESSIONS_DIR", str(tmp_path / "sessions"))
    return tmp_path


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def texts(path: str) -> list[str]:
    """What was said, of whoever, as scripts collect it."""
    found: list[str] = []
    for line in lines(path):
        content = line["message"]["content"]
        found += [content] if isinstance(content, str) else [block.get("text") for block in content]
    return found


def talk() -> list[Message]:
    call = ToolCall("c1", "edit_file", {"path": "a.py", "edits": [{"old": "1", "new": "2"}]})
    return [
        UserMessage("Fix it."),
        AssistantMessage([Thinking("hm"), Text("I look."), call], model="m", stop_reason="tool_use"),
        ToolResultMessage("c1", "edit_file", "done"),
        AssistantMessage("Fixed.", model="m"),
    ]


async def test_it_has_the_published_form_with_one_line_for_each_block(place: Path):
    saved = SavedConversation(open_store())
    path = await HookTranscript(saved.session, place, {}).follow(talk())
    found = lines(path)
    assert [line["type"] for line in found] == [
        "user",
        "assistant",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]
    assert found[0]["message"] == {"role": "user", "content": "Fix it."}
    assert found[2]["message"]["content"] == [{"type": "text", "text": "I look."}]
    used = found[3]["message"]["content"][0]
    assert (used["type"], used["name"], used["input"]["file_path"]) == (
        "tool_use",
        "Edit",
        str(place / "a.py"),
    )
    assert found[4]["message"]["content"][0]["tool_use_id"] == "c1"
    assert found[1]["message"]["id"] == found[3]["message"]["id"] != found[5]["message"]["id"]
    assert [line["parentUuid"] for line in found] == [None, *(line["uuid"] for line in found[:-1])]
    assert all(line["sessionId"] == saved.session.id for line in found)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


@pytest.mark.skipif(not any(os.access(f"{d}/jq", os.X_OK) for d in os.get_exec_path()), reason="needs jq")
def test_what_people_ask_jq_for_is_there(place: Path):
    transcript = HookTranscript(SavedConversation(open_store()).session, place, {})
    path = asyncio.run(transcript.follow(talk()))
    found = subprocess.run(["jq", "-rs", LAST_TEXT, path], capture_output=True, text=True, check=True).stdout
    assert found == "Fixed.\n"


async def test_no_key_of_ours_is_in_it(place: Path, monkeypatch: pytest.MonkeyPatch):
    key = "sk-ant-api03-" + "k3yK3y" * 8
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    path = await HookTranscript(SavedConversation(open_store()).session, place, {}).follow(
        [
            UserMessage(f"my key is {key}"),
            AssistantMessage([ToolCall("c", "bash", {"command": f"echo {key}"})]),
        ]
    )
    assert key not in Path(path).read_text()
    assert len(lines(path)) == 2


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.booleans())
def test_it_grows_by_what_is_new_however_it_is_asked_for(steps: list[int], is_removed: bool):
    async def scene() -> None:
        saved = SavedConversation(open_store())
        transcript = HookTranscript(saved.session, Path("/"), {})
        messages: list[Message] = []
        path = ""
        for step in steps:
            messages += [UserMessage(str(len(messages) + at)) for at in range(step)]
            path = await transcript.follow(tuple(messages))
        if is_removed:
            os.unlink(path)
            path = await transcript.follow(tuple(messages))
        assert texts(path) == [str(at) for at in range(len(messages))]

    asyncio.run(scene())


async def test_what_a_compaction_drops_stays_and_its_summary_is_no_news(place: Path):
    transcript = HookTranscript(SavedConversation(open_store()).session, place, {})
    talked = [UserMessage("one"), AssistantMessage("two"), UserMessage("three"), AssistantMessage("four")]
    await transcript.follow(talked)
    path = await transcript.follow([talked[0], UserMessage("summary"), talked[3], AssistantMessage("five")])
    assert texts(path) == ["one", "two", "three", "four", "five"]


async def test_a_session_that_is_resumed_has_all_of_it_and_deleting_it_removes_the_file(place: Path):
    store = open_store()
    saved = SavedConversation(store)
    agent = Agent("test:x", stream_fn=ScriptedModel(["first"]), session=saved.session)
    await agent.run("Go.")
    await agent.aclose()
    await HookTranscript(saved.session, place, {}).follow(agent.messages)
    again = SavedConversation(store, store.read(saved.session.id))
    path = await HookTranscript(again.session, place, {}).follow(
        [*again.session.messages, UserMessage("more")]
    )
    assert path == transcript_of(sessions_dir(), saved.session.id)
    assert texts(path) == ["Go.", "first", "more"]
    assert [meta.id for meta in store.list()] == [saved.session.id]
    store.delete(saved.session.id)
    assert not os.path.exists(path)


@left_to_more
@pytest.mark.usefixtures("quick_turns")
async def test_a_long_history_is_written_beside_the_event_loop(place: Path):
    messages = [AssistantMessage("x" * 2_000) for _ in range(5_000)]
    transcript = HookTranscript(SavedConversation(open_store()).session, place, {})
    writing = asyncio.ensure_future(transcript.follow(messages))
    ticks = 0
    while not writing.done():
        await asyncio.sleep(0)
        ticks += 1
    assert ticks > 20, "other work goes on meanwhile"
    size = os.path.getsize(await writing)
    await transcript.follow([*messages, AssistantMessage("end")])
    assert 0 < os.path.getsize(writing.result()) - size < 1_000, "only what is new is written"


async def test_cancelled_it_is_whole_the_next_time(place: Path):
    transcript = HookTranscript(SavedConversation(open_store()).session, place, {})
    messages = [AssistantMessage(str(at)) for at in range(500)]
    task = asyncio.create_task(transcript.follow(messages))
    await asyncio.sleep(0)
    task.cancel()
    assert len(texts(await transcript.follow(messages))) == 500


async def test_where_it_cannot_be_written_hooks_have_none_and_people_know(place: Path):
    (place / "sessions").write_text("a file")
    told: list[str] = []
    hooks = SessionHooks(place, told.append)
    hooks.session = SavedConversation(open_store()).session
    agent = Agent("test:x", stream_fn=ScriptedModel([]), messages=talk())
    hooks.agent = lambda: agent
    assert (await hooks._facts())["transcript_path"] == ""
    assert "no transcript" in told[0]
    hooks.session = None
    assert (await hooks._facts())["transcript_path"] == ""


async def test_a_prompt_that_is_not_answered_yet_is_not_in_it(place: Path):
    hooks = SessionHooks(place, print)
    hooks.session = SavedConversation(open_store()).session
    agent = Agent("test:x", stream_fn=ScriptedModel([]), messages=[*talk(), UserMessage("a secret")])
    hooks.agent = lambda: agent
    path = (await hooks._facts())["transcript_path"]
    assert texts(path)[-1] == "Fixed."


@pytest.mark.skipif(os.name != "posix", reason="commands need a POSIX system")
async def test_a_stop_hook_finds_the_last_answer_in_the_file_it_is_told_of(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(place / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "home" / ".config"))
    script = (
        "import json,sys; path = json.load(sys.stdin)['transcript_path']; "
        "last = [json.loads(line) for line in open(path)][-1]; "
        "open('said', 'w').write(last['message']['content'][0]['text'])"
    )
    (place / "work").mkdir()
    own = {"event": "Stop", "command": f'{sys.executable} -c "{script}"'}
    settings = UserSettings(place / "config.toml", hooks=(own,))
    environment = AgentEnvironment(place / "work", settings=settings)
    saved = SavedConversation(open_store())
    model = ScriptedModel(["The answer."])
    agent = environment.make_agent(MODEL, session=saved.session, stream_fn=model)
    try:
        await agent.run("Go.")
        assert (place / "work/said").read_text() == "The answer."
    finally:
        await agent.aclose()
        await environment.aclose()
