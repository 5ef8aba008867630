"""Servers of one's own as the program sees them: registered, asked for their models, given up in time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from swink import Agent
from swink.app.assistant import ownproviders
from swink.app.assistant.modelchoice import choose_model
from swink.app.assistant.ownproviders import (
    OwnServer,
    add_provider,
    ask_models,
    learn_models,
    own_servers,
    register_providers,
    remove_provider,
)
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.settings import OwnProvider, UserSettings, load_settings
from swink.errors import MissingKey, MisuseError, NetworkError
from swink.memory.jsonl import JsonlStore
from swink.messages import UserMessage
from swink.models import catalog
from swink.tools.coding.environment import build_environment

KEY = "k3y-0123456789abcdefghij"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    yield tmp_path / "config" / "swink" / "config.toml"
    for server in own_servers():
        catalog.unregister_provider(server.name)


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[str]:
    """A server that gives one answer to everything, or none at all; it ends when its clients have left."""
    talks: list[asyncio.Task[None] | None] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError):  # a client that has left already
            await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await reader.read()
        else:
            head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(answer)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + answer)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        await asyncio.gather(*[task for task in talks if task is not None])


def server_at(url: str, name: str = "mine") -> OwnServer:
    return OwnServer(name, OwnProvider("openai", url))


async def test_a_server_that_does_not_answer_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownproviders, "_SECONDS", 0.05)
    async with answering(None) as url:
        add_provider("mine", "openai", url)
        [told] = await learn_models()
        assert "does not answer within" in told
        assert "mine:MODEL" in told
        assert catalog.models("mine") == []


async def test_a_question_that_is_cancelled_leaves_nothing_behind():
    async with answering(None) as url:
        asking = asyncio.create_task(ask_models(server_at(url)))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"data": [{"name": "m"}]}', b'{"data": null}'])
async def test_an_answer_that_is_no_list_of_models_is_told(answer: bytes):
    async with answering(answer) as url:
        with pytest.raises(NetworkError, match="something else than a list of models"):
            await ask_models(server_at(url))


async def test_models_that_a_server_has_said_stay_known_when_the_settings_are_read_again():
    async with answering(b'{"data": [{"id": "a", "object": "model"}, {"id": "b"}, {"id": "a"}]}') as url:
        add_provider("mine", "openai", url)
        assert await learn_models() == []
    assert register_providers(load_settings()) == []
    assert [str(spec) for spec in catalog.models("mine")] == ["mine:a", "mine:b"]
    assert await learn_models() == [], "it is asked once"
    add_provider("other", "anthropic", "https://a.example", models=["c"])
    assert [str(spec) for spec in catalog.models()][:3] == ["mine:a", "mine:b", "other:c"]


def test_a_server_that_is_gone_from_the_settings_is_asked_no_more(config: Path):
    add_provider("mine", "openai", "https://a.example/v1", "MY_KEY", ["m"])
    assert choose_model("mine:m").model.model_id == "m"
    remove_provider("mine")
    assert own_servers() == []
    add_provider("mine", "openai", "https://a.example/v1", None, ["m"])
    register_providers(UserSettings(config))
    assert not catalog.has_provider("mine")


async def test_a_key_that_is_set_is_held_and_one_that_is_not_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("MY_KEY", raising=False)
    add_provider("mine", "openai", "https://a.example/v1", "MY_KEY", ["m"])
    agent = Agent("mine:m")
    with pytest.raises(MissingKey, match=r"no API key for mine: set MY_KEY, which \[providers.mine\] names"):
        await agent.run("hi")
    monkeypatch.setenv("MY_KEY", KEY)
    register_providers(load_settings())
    saved = SavedConversation(JsonlStore(tmp_path / "sessions").sync)
    await saved.session.append([UserMessage(f"my key is {KEY}")])
    assert KEY.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "sessions").glob("*.jsonl"))
    assert KEY not in repr(own_servers())


def test_a_key_reaches_no_command_whatever_its_variable_is_called(monkeypatch: pytest.MonkeyPatch):
    key = "no pattern finds this one".replace(" ", "")
    monkeypatch.setenv("MINE", key)
    add_provider("mine", "openai", "https://a.example/v1", "MINE", ["m"])
    assert "PATH" in build_environment({})
    assert "MINE" not in build_environment({})


def test_a_file_that_cannot_be_changed_is_told_with_what_to_write(config: Path):
    config.parent.mkdir(parents=True)
    config.write_text("providers = 5\n")
    with pytest.raises(
        MisuseError, match=r"could not be changed(.|\n)*\[providers.mine\]\nkind = \"openai\""
    ):
        add_provider("mine", "openai", "https://a.example/v1")
    assert config.read_text() == "providers = 5\n"
    assert not catalog.has_provider("mine")
