"""Going on with another conversation: new, resumed, forked, rewound, redone; no screen is needed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, tool
from swink.app.assistant import sessionswitcher
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.sessionswitcher import SessionSwitcher
from swink.app.assistant.shell import ShellOutcome
from swink.app.assistant.snapshots.snapshotpolicy import Snapshots
from swink.app.assistant.titles import find_sessions
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.editor.attaching import compose
from swink.app.tui.editor.typed import Typed
from swink.app.tui.look import LOOKS
from swink.app.tui.screens.excerpts import last_blocks
from swink.errors import MisuseError
from swink.events.transcript import PromptBlock, ToolBlock, Transcript, lasting
from swink.memory import JsonlStore
from swink.memory.store import SyncStore
from swink.messages import ModelSpec, ToolCall, UserMessage
from swink.testing import Pause, ScriptedModel


class Desk:
    """A driver with a scripted agent that can write files."""

    def __init__(
        self,
        folder: Path,
        *replies: object,
        resume: str | None = None,
        saved: bool = True,
        asks_title: bool = False,
        tools: Sequence[Any] = (),
        **options: Any,
    ) -> None:
        self.root = folder / "work"
        self.root.mkdir(exist_ok=True)
        self.store: SyncStore = JsonlStore(folder / "sessions").sync
        stored = None if resume is None else self.store.read(resume)
        saved_conversation = SavedConversation(self.store, stored) if saved else None
        snapshots = Snapshots(self.root, saved_conversation, folder=folder / "snapshots") if saved else None

        @tool
        def write(name: str, text: str) -> str:
            """Write a file."""
            (self.root / name).write_text(text)
            return "written"

        self.model = ScriptedModel(replies)
        agent = Agent(
            "scripted:model",
            stream_fn=self.model,
            tools=[write, *tools],
            session=None if saved_conversation is None else saved_conversation.session,
            policies=[] if snapshots is None else [snapshots],
            **options,
        )
        self.driver = ConversationDriver(agent)
        if stored is not None:
            self.driver.adopt(agent, Transcript.of(stored.records))
        self.conversations = SessionSwitcher(
            self.driver,
            self.store if saved else None,
            saved_conversation,
            snapshots=snapshots,
            asks_title=asks_title,
        )

    async def say(self, *prompts: str) -> None:
        for prompt in prompts:
            self.driver.send(prompt)
            await self.driver.wait()
            assert self.driver.activity.state == "idle"

    def shown(self) -> list[str]:
        return [block.text for block in self.driver.transcript.blocks if isinstance(block, PromptBlock)]

    def known(self) -> list[str]:
        return [message.text for message in self.driver.agent.messages if message.role == "user"]

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.root.iterdir()}


def write(id: str, name: str, text: str) -> ToolCall:
    return ToolCall(id, "write", {"name": name, "text": text})


THREE = [write("1", "a", "1"), "one done", write("2", "a", "2"), "two done", "just talk"]


async def test_a_prompt_is_listed_titled_and_given_back_without_the_files_that_went_along(tmp_path: Path):
    desk = Desk(tmp_path, "read")
    (desk.root / "a.md").write_text("secret of the file")
    desk.driver.send(compose(Typed("see @a.md"), desk.root).input)
    await desk.driver.wait()
    assert "secret of the file" in desk.known()[0]
    assert [prompt.text for prompt in desk.conversations.prompts()] == ["see @a.md"]
    assert [meta.title for meta in desk.store.list()] == ["see @a.md"]
    told = UserMessage(ShellOutcome("ls", "a.md\n", 0, 0.1).for_model())
    assert sessionswitcher.NumberedPrompt(1, told).text == "!ls"
    assert "secret" not in last_blocks(desk.driver.transcript.blocks, 80, LOOKS["dark"]).plain


async def test_rewind_of_both_goes_back_to_before_the_prompt_and_redo_undoes_it(tmp_path: Path):
    desk = Desk(tmp_path, *THREE, "again")
    conversations = desk.conversations
    await desk.say("one", "two", "three")
    first = conversations.saved_id()
    before = lasting(desk.driver.transcript.blocks)
    one, two, _ = conversations.prompts()
    assert (one.text, one.number, two.text) == ("one", 0, "two")
    rewound = await conversations.rewind(two.number)
    assert rewound.prompt is not None
    assert rewound.prompt.text == "two"
    assert desk.shown() == desk.known() == ["one"]
    assert desk.files() == {"a": "1"}
    assert conversations.saved_id() != first
    assert await conversations.can_redo()
    await conversations.redo()
    assert conversations.saved_id() == first
    assert desk.shown() == desk.known() == ["one", "two", "three"]
    assert lasting(desk.driver.transcript.blocks) == before
    assert desk.files() == {"a": "2"}
    assert not await conversations.can_redo()
    assert [meta.id for meta in desk.store.list()] == [first]
    await conversations.rewind(one.number)
    assert desk.shown() == []
    assert desk.files() == {}
    await desk.say("other")
    assert len(desk.model.calls[-1].messages) == 1
    await conversations.redo()
    assert desk.shown() == ["other"], "only the files were not touched since"
    assert desk.files() == {"a": "2"}


async def test_rewind_of_the_chat_alone_leaves_files_which_can_be_rewound_later(tmp_path: Path):
    desk = Desk(tmp_path, *THREE)
    await desk.say("one", "two", "three")
    one, two, _ = desk.conversations.prompts()
    await desk.conversations.rewind(two.number, files=False)
    assert desk.files() == {"a": "2"}
    await desk.conversations.rewind(one.number, chat=False)
    assert desk.shown() == ["one"]
    assert desk.files() == {}


async def test_rewind_of_files_alone_leaves_the_chat(tmp_path: Path):
    desk = Desk(tmp_path, *THREE)
    await desk.say("one", "two", "three")
    id = desk.conversations.saved_id()
    rewound = await desk.conversations.rewind(desk.conversations.prompts()[1].number, chat=False)
    assert rewound.prompt is None
    assert desk.files() == {"a": "1"}
    assert desk.shown() == ["one", "two", "three"]
    assert desk.conversations.saved_id() == id


async def test_a_resumed_conversation_is_rewound_as_if_it_had_not_ended(tmp_path: Path):
    desk = Desk(tmp_path, *THREE)
    await desk.say("one", "two", "three")
    id = desk.conversations.saved_id()
    blocks = lasting(desk.driver.transcript.blocks)
    desk = Desk(tmp_path, resume=id)
    await desk.conversations.recover_files()
    assert lasting(desk.driver.transcript.blocks) == blocks
    await desk.conversations.rewind(desk.conversations.prompts()[0].number)
    assert desk.files() == {}
    assert desk.shown() == []
    desk = Desk(tmp_path, resume=desk.conversations.saved_id())
    await desk.conversations.redo()
    assert desk.files() == {"a": "2"}
    assert lasting(desk.driver.transcript.blocks) == blocks


async def test_new_resume_and_fork_keep_conversations_apart(tmp_path: Path):
    desk = Desk(tmp_path, "1", "2", "3", "4")
    conversations = desk.conversations
    await desk.say("one")
    first = conversations.saved_id()
    assert first is not None
    await conversations.new()
    assert (desk.shown(), desk.known(), conversations.saved_id()) == ([], [], None)
    await desk.say("two")
    second = conversations.saved_id()
    await conversations.resume(first)
    assert desk.shown() == desk.known() == ["one"]
    await conversations.fork()
    third = conversations.saved_id()
    await desk.say("three")
    assert desk.shown() == ["one", "three"]
    assert {meta.id: meta.messages for meta in desk.store.list()} == {first: 2, second: 2, third: 4}
    assert conversations.resume_command() is not None


async def test_of_a_conversation_without_a_word_nothing_is_written_forked_or_exported(tmp_path: Path):
    desk = Desk(tmp_path, "1")
    conversations = desk.conversations
    with pytest.raises(
        MisuseError, match="nothing was said in this conversation yet, so it cannot be forked"
    ):
        await conversations.fork()
    with pytest.raises(MisuseError, match="so it cannot be exported"):
        await conversations.export(tmp_path / "page.html")
    with pytest.raises(MisuseError, match="no prompt 0"):
        await conversations.rewind(0)
    desk.driver.switch(ModelSpec("scripted", "other"))
    await conversations.new()
    await desk.driver.close()
    assert not (tmp_path / "sessions").exists()
    assert not (tmp_path / "page.html").exists()
    assert conversations.last_resume_command() is None
    await desk.say("one")
    [meta] = desk.store.list()
    assert meta.model == "scripted:other"


async def test_the_farewell_names_the_last_talk_if_nothing_was_said_since(tmp_path: Path):
    desk = Desk(tmp_path, "1", "2")
    await desk.say("one")
    first = desk.conversations.resume_command()
    await desk.conversations.new()
    assert (desk.conversations.resume_command(), desk.conversations.last_resume_command()) == (None, first)
    await desk.conversations.new()
    assert desk.conversations.last_resume_command() == first
    await desk.say("two")
    assert desk.conversations.last_resume_command() == desk.conversations.resume_command() != first


async def test_sessions_without_a_word_are_not_offered(tmp_path: Path):
    desk = Desk(tmp_path, "1")
    await desk.say("one")
    empty = desk.store.create()
    assert empty.id in [meta.id for meta in desk.store.list()]
    assert [found.meta.title for found in find_sessions(desk.store)] == ["one"]
    await desk.conversations.resume(empty.id)
    assert desk.shown() == []


@pytest.mark.parametrize("failing", ["copying", "adopting"])
async def test_a_switch_that_fails_leaves_plan_mode_and_conversation_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
):
    desk = Desk(tmp_path, "1", "2")
    conversations, driver = desk.conversations, desk.driver
    await desk.say("one")
    driver.set_planning(True)
    before = (conversations.saved_id(), driver.agent, driver.is_planning, driver.agent.tools)

    def fail(*_: object, **__: object) -> object:
        raise MisuseError("planted")

    monkeypatch.setattr(Agent, "copy" if failing == "copying" else "subscribe", fail)
    with pytest.raises(MisuseError, match="planted"):
        await conversations.new()
    monkeypatch.undo()
    assert (conversations.saved_id(), driver.agent, driver.is_planning, driver.agent.tools) == before
    assert conversations.snapshots is not None
    assert conversations.snapshots.saved is conversations.saved_conversation
    await desk.say("two")
    assert desk.model.calls[-1].tools == ()
    assert desk.shown() == desk.known() == ["one", "two"]
    driver.set_planning(False)
    assert [getattr(tool, "name", "") for tool in driver.agent.tools] == ["write"]


async def test_nothing_changes_while_the_agent_is_at_work(tmp_path: Path):
    desk = Desk(tmp_path, "1", ["working", Pause(60)])
    await desk.say("one")
    desk.driver.send("two")
    while not desk.driver.agent.is_running:
        await asyncio.sleep(0)
    for switch in (desk.conversations.new(), desk.conversations.fork(), desk.conversations.rewind(0)):
        with pytest.raises(MisuseError, match="Esc stops it"):
            await switch
    desk.driver.abort()
    await desk.driver.wait()


async def test_a_conversation_that_is_not_saved_can_be_rewound_too(tmp_path: Path):
    desk = Desk(tmp_path, "1", "2", "3", saved=False)
    await desk.say("one", "two")
    rewound = await desk.conversations.rewind(desk.conversations.prompts()[1].number)
    assert rewound.prompt is not None
    assert desk.shown() == desk.known() == ["one"]
    await desk.conversations.new()
    await desk.say("three")
    assert desk.shown() == ["three"]


async def test_rename_and_export(tmp_path: Path):
    desk = Desk(tmp_path, "The sea is **wide**.")
    with pytest.raises(MisuseError, match="not saved yet"):
        await desk.conversations.rename("x")
    await desk.say("What is the sea?")
    await desk.conversations.rename("On the sea")
    [meta] = desk.store.list()
    assert meta.title == "On the sea"
    for name, mark in (("sea.html", "<strong>wide</strong>"), ("sea.md", "**wide**"), ("sea.json", "{")):
        path = await desk.conversations.export(tmp_path / name)
        assert mark in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(MisuseError, match="there already"):
        await desk.conversations.export(tmp_path / "sea.md")
    with pytest.raises(MisuseError, match="not 'pdf'"):
        await desk.conversations.export(tmp_path / "sea.pdf", "pdf")


async def test_an_interrupted_turn_is_shown_and_what_is_left_is_told(tmp_path: Path):
    desk = Desk(tmp_path, write("1", "a", "1"), "done")
    saved_conversation = desk.conversations.saved_conversation
    assert saved_conversation is not None
    await desk.say("one")
    records = desk.store.read(saved_conversation.session.id).records
    cut = next(i for i, record in enumerate(records) if type(record).__name__ == "CallEnded")
    other = desk.store.begin("cut")
    desk.store.backend.append(other.meta.id, 0, records[:cut])
    await desk.conversations.resume(other.meta.id)
    assert desk.conversations.left() == ['write(name="a", text="1"): outcome unknown']
    [block] = [block for block in desk.driver.transcript.blocks if isinstance(block, ToolBlock)]
    assert block.state == "running"


async def test_a_conversation_begun_in_plan_mode_gets_all_tools_when_it_is_left(tmp_path: Path):
    desk = Desk(tmp_path, "1", "2")
    await desk.say("one")
    desk.driver.set_planning(True)
    await desk.conversations.new()
    assert desk.driver.is_planning
    await desk.say("two")
    assert desk.model.calls[-1].tools == ()
    desk.driver.set_planning(False)
    assert [getattr(tool, "name", "") for tool in desk.driver.agent.tools] == ["write"]


async def test_a_system_prompt_belongs_to_its_conversation_alone(tmp_path: Path):
    desk = Desk(tmp_path, "1", "2", "3", "4")
    desk.driver.set_planning(True)
    desk.driver.instruct("Be kind.")
    await desk.say("one")
    first = desk.conversations.saved_id()
    assert first is not None
    desk.driver.set_planning(False)
    await desk.conversations.new()
    await desk.say("two")
    second = desk.conversations.saved_id()
    assert second is not None
    await desk.conversations.resume(first)
    await desk.say("three")
    await desk.conversations.resume(second)
    await desk.say("four")
    prompts = [call.system_prompt for call in desk.model.calls]
    assert prompts[0].startswith("Be kind.\n\n# Plan mode")
    assert prompts[1:] == ["", "Be kind.", ""]


async def test_a_title_by_the_model_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[object] = []

    async def ask(model: object, messages: object) -> tuple[str, None]:
        asked.append(messages)
        return "By the model", None

    monkeypatch.setattr(sessionswitcher, "ask_title", ask)
    desk = Desk(tmp_path, "1", "2", asks_title=True)
    await desk.say("one")
    await desk.conversations.ask_title()
    await desk.say("two")
    await desk.conversations.ask_title()
    assert len(asked) == 1
    assert [meta.title for meta in desk.store.list()] == ["By the model"]
