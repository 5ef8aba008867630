"""Keys that swink holds never enter a session, wherever they come from and whoever says them."""

from pathlib import Path
from typing import Any

import pytest

from swink import Agent, StreamOptions, ToolCall, ToolContext, tool
from swink.memory import JsonlStore
from swink.memory.heldkeys import without_keys
from swink.messages import UserMessage
from swink.messages.records import saved
from swink.messages.redact import MARK, hold, sent_keys
from swink.models.keys import store as keys
from swink.testing import ScriptedModel

KEY = "zq-7f3a91c0de55b1e2"


@tool
async def leak(what: str, ctx: ToolContext) -> str:
    """Say it, and keep it."""
    ctx.state[what] = {what: [what]}
    return f"the key is {what}!"


@pytest.mark.parametrize("source", ["options", "get_api_key", "environment", "key store"])
async def test_a_key_is_in_no_session_file(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    key = f"{KEY}-{source.replace(' ', '-')}"
    options: dict[str, Any] = {}
    match source:
        case "options":
            options["options"] = StreamOptions(api_key=key)
        case "get_api_key":
            options["get_api_key"] = lambda provider: key
        case "environment":
            monkeypatch.setenv("MISTRAL_API_KEY", key)
        case _:
            monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
            monkeypatch.setattr(keys, "open_keychain", lambda: None)
            keys.store_key("mistral", key)
    store = JsonlStore(tmp_path / "sessions")
    session = await store.create()
    model = ScriptedModel([[f"I use {key}", ToolCall("a", "leak", {"what": key})], f"again {key}"])
    agent = Agent("test:m", stream_fn=model, tools=[leak], session=session, system_prompt=key, **options)
    agent.steer(f"steered {key}")
    await agent.run(f"mine is {key}")
    agent.follow_up(f"later {key}")
    await agent.aclose()
    for file in (tmp_path / "sessions").rglob("*"):
        assert file.is_dir() or key.encode() not in file.read_bytes(), file
    assert sum(key in message.text for message in agent.messages) == 5, "the conversation goes on as it is"
    opened = await store.open(session.id)
    assert [message.text for message in opened.messages] == [
        message.text.replace(key, MARK) for message in agent.messages
    ]
    assert opened.state == {MARK: {MARK: [MARK]}}


async def test_a_key_is_in_no_title(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    store = JsonlStore(tmp_path)
    session = await store.create(title=f"about {KEY}")
    assert session.meta.title == f"about {MARK}"
    await store.rename(session.id, f"now {KEY}")
    fork = await store.fork(session.id)
    assert [meta.title for meta in await store.list()].count(f"now {MARK}") >= 1
    assert KEY not in fork.meta.title
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or KEY.encode() not in file.read_bytes(), file


def test_records_without_a_key_are_written_as_they_are():
    hold(KEY)
    records = [saved(UserMessage("hello"), 0)]
    assert without_keys(records) is records
    (record,) = without_keys([saved(UserMessage(f"a {KEY} b {KEY}"), 3)])
    assert record.message.text == f"a {MARK} b {MARK}"  # type: ignore[union-attr]
    assert record.number == 3  # type: ignore[union-attr]


def test_only_the_last_keys_are_remembered_and_words_are_none():
    for number in range(300):
        hold(f"{KEY}-{number}")
    hold("ollama")
    assert len(sent_keys()) < 101
    assert f"{KEY}-299" in sent_keys()
    assert "ollama" not in sent_keys()


async def test_a_list_of_keys_that_cannot_be_looked_at_keeps_no_session_from_being_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "swink").symlink_to(tmp_path / "swink")  # a loop, which even an administrator cannot follow
    session = await JsonlStore(tmp_path / "sessions").create()
    await session.append([UserMessage("hello")])
    assert session.meta.messages == 1
    assert keys.stored_key("mistral") is None
    assert "keys.json cannot be read" in caplog.text
