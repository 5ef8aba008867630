"""Keeping a conversation: whatever happens to its file, the conversation goes on and nothing is lost."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from swink import Agent, ModelSpec, ToolCall, tool
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.shell import ShellOutcome
from swink.errors import SessionConflict
from swink.memory.jsonl import JsonlStore
from swink.memory.meta import SessionMeta
from swink.memory.store import SyncStore
from swink.messages import AssistantMessage, Message, UserMessage
from swink.messages.records import ModelChange, Record, TurnOpened
from swink.models.keys.store import store_key
from swink.stream import LlmContext
from swink.testing import ScriptedModel

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyncStore:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return JsonlStore(tmp_path / "sessions").sync


def exchange(number: int) -> list[Message]:
    return [UserMessage(f"prompt {number}"), AssistantMessage(f"reply {number}")]


def texts(store: SyncStore, id: str | None) -> list[str]:
    assert id is not None
    return [message.text for message in store.open(id).messages]


async def test_nothing_is_created_before_something_was_said(store: SyncStore, tmp_path: Path):
    saved = SavedConversation(store)
    first = saved.session.id
    assert saved.saved_id() is None
    assert not (tmp_path / "sessions").exists()
    await saved.session.append(exchange(1))
    assert saved.saved_id() == saved.session.id == first
    assert [meta.title for meta in store.list()] == ["prompt 1"]


async def test_what_was_chosen_before_the_first_prompt_is_written_with_it(store: SyncStore, tmp_path: Path):
    saved = SavedConversation(store)
    agent = Agent("test:one", session=saved.session, stream_fn=ScriptedModel(["Yes."]))
    agent.model = ModelSpec("test", "two")
    agent.system_prompt = "Be brief."
    await agent.aclose()
    assert (saved.saved_id(), saved.is_complete) == (None, True)
    assert not (tmp_path / "sessions").exists()
    agent.model = ModelSpec("test", "three")
    await agent.run("Ready?")
    conversation = store.open(saved.session.id).conversation
    assert (str(conversation.model), conversation.system_prompt) == ("test:three", "Be brief.")
    assert texts(store, saved.saved_id()) == ["Ready?", "Yes."]
    assert saved.take_notices() == []


async def test_a_prompt_is_written_before_a_model_is_asked(store: SyncStore):
    saved = SavedConversation(store)
    known: list[list[str]] = []

    def look(context: LlmContext) -> str:
        known.append(texts(store, saved.saved_id()))
        return "Yes."

    agent = Agent("test:m", session=saved.session, stream_fn=ScriptedModel([look, look]))
    await agent.run("first")
    await agent.run("second")
    assert known == [["first"], ["first", "Yes.", "second"]]


async def test_a_run_that_is_ended_while_its_prompt_is_written_asks_no_model(store: SyncStore):
    saved = SavedConversation(store)
    model = ScriptedModel(["Yes.", "Now."])
    agent = Agent("test:m", session=saved.session, stream_fn=model)
    create = store.backend.create

    def slow(meta: SessionMeta, records: Sequence[Record] = ()) -> SessionMeta:
        agent.abort()
        return create(meta, records)

    store.backend.create = slow
    assert (await agent.run("first")).stop_reason == "aborted"
    assert model.calls == []
    assert texts(store, saved.saved_id()) == ["first"]
    assert (await agent.run("second")).text == "Yes."
    assert texts(store, saved.saved_id()) == ["first", "second", "Yes."]


async def test_a_first_prompt_that_cannot_be_written_is_told_once_and_answered(
    store: SyncStore, tmp_path: Path
):
    (tmp_path / "sessions").write_text("in the way")
    saved = SavedConversation(store)
    agent = Agent("test:m", session=saved.session, stream_fn=ScriptedModel(["Yes."]))
    assert (await agent.run("first")).text == "Yes."
    assert not saved.is_complete
    [notice] = saved.take_notices()
    assert "it goes on unsaved" in notice


async def test_a_conversation_that_begins_with_a_command_of_the_users_is_titled_by_the_command(
    store: SyncStore,
):
    told = UserMessage(ShellOutcome("git log --oneline | head", "a1 one\n", 0, 0.1).for_model())
    saved = SavedConversation(store)
    agent = Agent("test:m", stream_fn=ScriptedModel(["Fine."]), session=saved.session)
    agent.append_messages(told)
    await agent.run("What is new?")
    assert [meta.title for meta in store.list()] == ["! git log --oneline | head"]
    second = SavedConversation(store)
    await second.session.append([UserMessage("prompt"), told])
    third = SavedConversation(store)
    await third.session.append([UserMessage(ShellOutcome("x" * 500, "", 0, 0.1).for_model())])
    titles = [store.read(saved.saved_id() or "").meta.title for saved in (second, third)]
    assert titles[0] == "prompt"
    assert titles[1].startswith("! xxx")
    assert len(titles[1]) < 70


async def test_a_conflict_makes_a_fork_with_everything_that_this_side_has(store: SyncStore):
    id = store.create("One").id
    ours, theirs = (SavedConversation(store, store.read(id)) for _ in range(2))
    await ours.session.append(exchange(1))
    await theirs.session.append(exchange(2))
    await ours.session.append(exchange(3))
    await theirs.session.append(exchange(4))
    assert texts(store, id) == ["prompt 1", "reply 1", "prompt 3", "reply 3"]
    assert texts(store, theirs.saved_id()) == ["prompt 2", "reply 2", "prompt 4", "reply 4"]
    assert [message.text for message in theirs.session.messages] == texts(store, theirs.saved_id())
    assert store.read(theirs.session.id).meta.parent == id
    assert ours.take_notices() == []
    [notice] = theirs.take_notices()
    assert "was continued elsewhere" in notice
    assert theirs.session.id in notice
    assert theirs.take_notices() == []


async def test_an_append_that_was_cancelled_while_a_fork_was_made_is_not_repeated(store: SyncStore):
    saved = SavedConversation(store)
    await saved.session.append(exchange(1))
    other = store.open(saved.session.id)
    other.append(exchange(2))
    before = saved.session.meta.sequence
    appending = asyncio.create_task(saved.session.append(exchange(3)))
    await asyncio.sleep(0)
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await appending
    assert texts(store, saved.saved_id()) == ["prompt 1", "reply 1", "prompt 3", "reply 3"]
    assert saved.session.meta.sequence != before


async def test_a_session_that_was_deleted_meanwhile_is_written_anew(store: SyncStore):
    saved = SavedConversation(store)
    await saved.session.append(exchange(1))
    store.delete(saved.session.id)
    await saved.session.append(exchange(2))
    assert texts(store, saved.saved_id()) == ["prompt 1", "reply 1", "prompt 2", "reply 2"]


@pytest.mark.parametrize("damage", ["a foreign file", "a directory"])
async def test_what_cannot_be_written_waits_until_it_can(store: SyncStore, tmp_path: Path, damage: str):
    saved = SavedConversation(store)
    await saved.session.append(exchange(1))
    path, aside = tmp_path / "sessions" / f"{saved.session.id}.jsonl", tmp_path / "aside"
    path.rename(aside)
    path.mkdir() if damage == "a directory" else path.write_text("my diary\n")
    for number in (2, 3):
        await saved.session.append(exchange(number))
        assert not saved.is_complete
    assert [message.text for message in saved.session.messages][-1] == "reply 3"
    path.rmdir() if damage == "a directory" else path.unlink()
    aside.rename(path)
    await saved.session.append(exchange(4))
    assert saved.is_complete
    assert texts(store, path.stem) == [
        f"{who} {number}" for number in range(1, 5) for who in ("prompt", "reply")
    ]
    unsaved, again = saved.take_notices()
    assert "it goes on unsaved" in unsaved
    assert "being saved again" in again


async def test_keys_that_swink_holds_are_never_written(
    store: SyncStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_API_KEY", "ollama")
    store_key("mistral", "m-987654321-abcdefgh")
    saved = SavedConversation(store)
    said = f"{KEY} and m-987654321-abcdefgh of ollama"
    await saved.session.append([UserMessage(said), AssistantMessage(said)])
    assert texts(store, saved.saved_id()) == ["[redacted] and [redacted] of ollama"] * 2
    written = b"".join(path.read_bytes() for path in (tmp_path / "sessions").iterdir())
    assert KEY.encode() not in written
    assert b"m-987654321" not in written


async def test_two_chats_that_finish_one_turn_run_its_tool_once(store: SyncStore):
    ran: list[int] = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    session = store.create()
    call = AssistantMessage([ToolCall("1", "pay", {"amount": 3})], stop_reason="tool_use")
    session.append([UserMessage("pay 3")], records=[ModelChange(ModelSpec("test", "m")), TurnOpened(call)])
    ours, theirs = (SavedConversation(store, store.read(session.id)) for _ in range(2))
    models = ScriptedModel(["done"]), ScriptedModel(["done", "all right"])
    agents = [
        Agent(session=saved.session, stream_fn=model, tools=[pay])
        for saved, model in zip((ours, theirs), models, strict=True)
    ]
    await agents[0].run()
    with pytest.raises(SessionConflict, match="continued elsewhere"):
        await agents[1].run()
    assert ran == [3]
    await agents[1].run("and now?")
    assert ran == [3]
    assert theirs.saved_id() != session.id, "what follows is kept, in a fork"
    assert texts(store, theirs.saved_id())[-2:] == ["and now?", "done"]
