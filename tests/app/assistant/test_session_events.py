"""When hooks hear that a session starts, ends or is compacted: with which source, trigger and reason."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commandscene import MODEL

from swink.agent import Agent
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.settings import UserSettings
from swink.messages import AssistantMessage, Message, ToolCall, UserMessage
from swink.testing import ScriptedModel
from swink.tools.coding.workspace import Workspace

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need a POSIX system")

LOG = "cat >> log; echo >> log"
SMALL = MODEL.__class__("test", "large", context_window=40_000)


class Work:
    """An environment in a folder whose hooks are the user's, and what they wrote."""

    def __init__(self, place: Path, hooks: dict[str, str], messages: Sequence[Message] = ()) -> None:
        self.place = place
        tables = tuple({"event": event, "command": command} for event, command in hooks.items())
        self.environment = AgentEnvironment(place, settings=UserSettings(place / "c.toml", hooks=tables))
        self.saved = SavedConversation(open_store())
        self.model = ScriptedModel([f"reply {number}" for number in range(20)])
        for message in messages:
            self.saved.session._append([message], None, ())
        self.agent = self.make()

    def make(self) -> Agent:
        return self.environment.make_agent(SMALL, session=self.saved.session, stream_fn=self.model)

    @property
    def log(self) -> list[dict[str, Any]]:
        path = self.place / "log"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    async def close(self) -> None:
        await self.agent.aclose()
        await self.environment.aclose()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.setenv("SWINK_SESSIONS_DIR", str(tmp_path / "sessions"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def told(work: Work, count: int) -> list[str]:
    """The first words of what hooks wrote, once there is so much."""
    while len(work.log) < count:
        await asyncio.sleep(0.02)
    found = [
        (each, [each[key] for key in ("source", "reason", "trigger") if key in each]) for each in work.log
    ]
    return [f"{each['hook_event_name']} {' '.join(how)}" for each, how in found]


def lines_in(payload: dict[str, Any]) -> int:
    return len(Path(payload["transcript_path"]).read_text().splitlines())


LIFE = {"SessionStart": LOG, "SessionEnd": LOG, "PreCompact": LOG}


async def test_a_session_starts_when_the_environment_is_open_and_ends_when_it_is_closed(place: Path):
    work = Work(place, LIFE)
    await work.environment.open()
    assert await told(work, 1) == ["SessionStart startup"]
    await work.agent.run("Go.")
    work.environment.hooks.events.reason = "prompt_input_exit"
    await work.close()
    assert await told(work, 2) == ["SessionStart startup", "SessionEnd prompt_input_exit"]


async def test_a_resumed_session_says_so_also_if_a_prompt_comes_first(place: Path):
    work = Work(place, LIFE, [UserMessage("before"), AssistantMessage("yes")])
    await work.agent.run("Go.")
    assert await told(work, 1) == ["SessionStart resume"]
    await work.close()


@pytest.mark.parametrize("how", ["clear", "resume"])
async def test_another_conversation_ends_one_and_starts_one_each_with_its_own_name(place: Path, how: Any):
    work = Work(place, LIFE)
    await work.environment.open()
    await work.agent.run("Go.")
    before, said = work.saved, work.agent.messages
    after = before.begin_another()
    work.environment.agent = work.agent = work.agent.copy(session=after.session, messages=())
    work.environment.hooks.go_on_with(after.session, how, said)
    assert (await told(work, 3))[1:] == [f"SessionEnd {how}", f"SessionStart {how}"]
    assert work.log[1]["session_id"] == before.session.id
    assert lines_in(work.log[1]) == 2, "the transcript is that of the old one"
    assert work.log[2]["session_id"] == after.session.id
    assert lines_in(work.log[2]) == 0
    await work.close()


async def test_what_it_says_waits_for_the_next_turn_and_outlasts_a_prompt_that_is_blocked(place: Path):
    block = """grep -q '"prompt":"bad' && { echo no >&2; exit 2; }; exit 0"""
    work = Work(place, {"SessionStart": "echo the deadline is near", "UserPromptSubmit": block})
    await work.environment.open()
    await work.agent.run("bad one")
    assert work.model.calls == []
    await work.agent.run("good one")
    assert "the deadline is near" in work.model.calls[0].messages[-1].text
    await work.agent.run("another")
    texts = [message.text for message in work.model.calls[1].messages]
    assert sum("the deadline is near" in text for text in texts) == 1
    await work.close()


def long_talk() -> list[Message]:
    said: list[Message] = []
    for number in range(40):
        said += [UserMessage(f"question {number} {'x' * 4_000}"), AssistantMessage(f"answer {number}")]
    return said


async def test_a_compaction_by_itself_is_told_before_and_after_it(place: Path):
    work = Work(place, {**LIFE, "SessionStart": LOG + "; echo remember the rules"}, long_talk())
    await work.environment.open()
    await work.agent.run("Go.")
    assert await told(work, 3) == ["SessionStart resume", "PreCompact auto", "SessionStart compact"]
    assert lines_in(work.log[1]) == 80, "nothing of the transcript is lost"
    asked = work.model.calls[-1].messages
    assert len(asked) < 60
    assert sum("remember the rules" in message.text for message in asked[-2:]) >= 1
    await work.close()


async def test_a_hook_that_blocks_it_leaves_the_context_as_it_is(place: Path):
    work = Work(place, {"PreCompact": "cat > asked; echo not now >&2; exit 2"}, long_talk())
    await work.agent.run("Go.")
    assert json.loads((place / "asked").read_text())["trigger"] == "auto"
    assert len(work.model.calls[-1].messages) == 81
    await work.agent.run("And?")
    assert len(work.model.calls[-1].messages) == 83
    await work.close()


async def test_blocked_later_it_goes_on_from_what_was_compacted_before(place: Path):
    work = Work(place, {"PreCompact": "test ! -e closed || { echo no >&2; exit 2; }"}, long_talk())
    await work.agent.run("Go.")
    first = len(work.model.calls[-1].messages)
    assert first < 60
    (place / "closed").touch()
    work.agent.append_messages([UserMessage("y" * 100_000)])
    await work.agent.run("And?")
    sent = work.model.calls[-1].messages
    assert len(sent) == first + 3
    assert sent[-1].text == "And?"
    await work.close()


async def test_the_person_s_own_compaction_is_not_told_as_automatic(place: Path):
    work = Work(place, LIFE, long_talk())
    await work.environment.open()
    events = work.environment.hooks.events
    await told(work, 1)  # it runs beside the rest
    assert await events.before_compaction("manual", "keep names") == ""
    with events.by_hand():
        assert (await work.agent.compact()).dropped
    found = await told(work, 3)
    assert found == ["SessionStart resume", "PreCompact manual", "SessionStart compact"]
    await work.close()


async def ticks(task: "asyncio.Task[Any]", ready: Path) -> AsyncIterator[None]:
    while not ready.exists() and not task.done():
        await asyncio.sleep(0.01)
    yield


@pytest.mark.parametrize("event", ["SessionStart", "PreCompact"])
async def test_an_abort_ends_a_hook_that_hangs_and_the_next_prompt_is_answered(place: Path, event: str):
    once = "test -e ready && exit 0; touch ready; sleep 600"
    work = Work(place, {event: once}, long_talk())
    task = asyncio.create_task(work.agent.run("Go."))
    async for _ in ticks(task, place / "ready"):
        work.agent.abort()
    assert (await task).stop_reason == "aborted"
    assert (await work.agent.run("Again.")).stop_reason == "stop"
    await work.close()


async def test_closing_while_a_session_starts_leaves_nothing_running(place: Path):
    work = Work(place, {"SessionStart": "touch ready; sleep 600", "SessionEnd": "touch ended"})
    await work.environment.open()
    while not (place / "ready").exists():
        await asyncio.sleep(0.01)
    await work.close()
    assert (place / "ended").exists()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "swink-hooks"]


@pytest.mark.parametrize(
    "event", ["UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop"]
)
async def test_an_abort_ends_the_hooks_of_a_run_in_every_event(place: Path, event: str):
    work = Work(place, {event: "touch ready; sleep 600"})
    permissions = Permissions("on", workspace=Workspace(place))
    work.environment.attend(permissions)
    (place / "a.txt").write_text("x")
    if event != "PermissionRequest":
        permissions.word = "off"
    model = ScriptedModel([ToolCall("c1", "read_file", {"path": "a.txt"}), "done"])
    agent = work.environment.make_agent(SMALL, approve=permissions, approval_mode="on", stream_fn=model)
    task = asyncio.create_task(agent.run("Go."))
    async for _ in ticks(task, place / "ready"):
        agent.abort()
    assert (await task).stop_reason == "aborted"
    await work.close()
