"""Where each adapter's key comes from, and what it says when there is none: every provider of the catalog."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from loopback import LoopbackServer, MemoryClient, read
from tests.counts import in_cells

from swink.errors import AuthError, MissingKey, MisuseError
from swink.messages import ModelSpec
from swink.models.catalog import PROVIDERS, stream_fn_for
from swink.models.keys import store
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.keychain import KeychainFailed
from swink.models.keys.store import keys_file, store_key, stored_key
from swink.providers.anthropic import AnthropicStreamFn
from swink.providers.azure import AzureStreamFn
from swink.providers.bedrock import BedrockStreamFn
from swink.providers.endpoint import endpoint
from swink.providers.openai import OpenAIStreamFn
from swink.stream import Error, StreamOptions
from swink.stream.wrappers import cached, fallback, rate_limited, recorded

OWN = [name for name, target in PROVIDERS.items() if target.startswith("swink.providers.")]
LOCAL = ["ollama", "vllm", "llamacpp", "lmstudio", "sglang"]
REMOTE = [name for name in OWN if name not in LOCAL]
NONE = StreamOptions()


@pytest.fixture(autouse=True)
def _addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What azure, bedrock and the proxy need besides a key; and no keychain."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    monkeypatch.setenv("SWINK_PROXY_URL", "https://proxy.example")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(store, "open_keychain", lambda: None)


def fn_of(provider: str) -> Any:
    return stream_fn_for(ModelSpec(provider, "m"))


async def headers_of(fn: Any, provider: str = "openai", **options: Any) -> str:
    """Everything in the headers of the request that is sent; the error if there is none."""
    client = MemoryClient(b"")
    got = await read(fn, ModelSpec(provider, "m"), options=StreamOptions(http=client, **options))
    if not client.requests:
        assert isinstance(got.terminal, Error)
        return f"{got.terminal.kind}: {got.terminal.message}"
    return str(client.requests[-1].headers)


class Keychain:
    """A keychain that counts how often it is asked, and may be slow or locked."""

    name = "test keychain"

    def __init__(self, key: str | None = KEY, seconds: float = 0.0) -> None:
        self.key = key
        self.seconds = seconds
        self.asked = 0
        self.busy = False

    def read(self, provider: str) -> str | None:
        self.asked += 1
        self.busy = True
        time.sleep(self.seconds)
        self.busy = False
        if self.key is None:
            raise KeychainFailed("the keychain (test keychain) cannot be read: it is locked")
        return self.key

    def write(self, provider: str, key: str) -> None:
        pass


@pytest.fixture
def keychain(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Keychain]:
    """Makes a keychain that has the key of every provider."""

    def make(**keywords: Any) -> Keychain:
        chain = Keychain(**keywords)
        monkeypatch.setattr(store, "open_keychain", lambda: chain)
        keys_file().parent.mkdir(parents=True)
        keys_file().write_text(json.dumps({name: {"place": "keychain"} for name in OWN}))
        return chain

    return make


# A missing key


@pytest.mark.parametrize(
    "provider", [name for name in REMOTE if name != "vertex"]
)  # which has credentials too
async def test_without_a_key_the_variable_and_the_command_are_named(provider: str):
    account = ACCOUNTS[provider]
    with pytest.raises(MissingKey) as raised:
        fn_of(provider).check_key(NONE)
    said = str(raised.value)
    assert isinstance(raised.value, AuthError)
    assert isinstance(raised.value, MisuseError)
    assert f"or run: swink keys set {account.key_name}, or " in said
    assert "pass api_key=" in said
    if provider != "bedrock":
        assert said.startswith(f"no API key for {provider}: set {' or '.join(account.variables)}, or run: ")
    assert await headers_of(fn_of(provider), provider) == f"auth: {said}", "the request says the same"


def test_the_message_is_the_one_of_the_guide():
    with pytest.raises(MissingKey) as raised:
        AnthropicStreamFn().check_key(NONE)
    assert str(raised.value) == (
        "no API key for anthropic: set ANTHROPIC_API_KEY, or run: swink keys set anthropic, or pass api_key="
    )


def test_a_providers_own_command_is_not_promised_for_one_that_the_command_line_does_not_know():
    with pytest.raises(MissingKey) as raised:
        endpoint("parrot", "https://parrot.example", None, None, keys=("PARROT_API_KEY",)).key()
    assert str(raised.value) == "no API key for parrot: set PARROT_API_KEY, or pass api_key="


@pytest.mark.parametrize("provider", LOCAL)
async def test_a_local_server_needs_no_key(provider: str):
    fn_of(provider).check_key(NONE)
    assert "authorization" not in await headers_of(fn_of(provider), provider)


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=str)
async def test_no_key_is_needed_where_the_caller_says_so_nor_by_a_server_on_this_machine(
    adapter: AdapterCase, server: LoopbackServer
):
    for fn, options in (
        (adapter.make("https://elsewhere.example", ""), NONE),
        (adapter.make(server.url, None), NONE),  # pyright: ignore[reportArgumentType]
        (adapter.make("http://192.168.1.7:80", None), NONE),  # pyright: ignore[reportArgumentType]
    ):
        fn.check_key(options)
        assert adapter.key_header not in await headers_of(fn, adapter.name, api_key=options.api_key)


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=str)
async def test_the_body_is_built_before_a_key_is_asked_for(adapter: AdapterCase):
    class Seen:
        name, description = "weather", "Current weather."
        reads = 0

        @property
        def parameters_schema(self) -> dict[str, Any]:
            self.reads += 1
            return {"type": "object", "properties": {}}

    fn, tool = adapter.make("https://elsewhere.example", None), Seen()  # pyright: ignore[reportArgumentType]
    end = (
        await read(fn, adapter.model, tools=[tool], options=StreamOptions(http=MemoryClient(b"")))
    ).terminal
    assert isinstance(end, Error)
    assert end.kind == "auth"
    assert tool.reads


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=str)
async def test_a_stored_key_is_not_sent_to_another_host_and_the_error_says_what_to_pass(adapter: AdapterCase):
    store_key(ACCOUNTS[adapter.name].key_name, KEY)
    fn = adapter.make("https://elsewhere.example", None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MissingKey, match=r"elsewhere\.example.*pass api_key=") as raised:
        fn.check_key(NONE)
    assert KEY not in str(raised.value) + await headers_of(fn, adapter.name)


def test_wrappers_pass_the_check_on(tmp_path: Path):
    inner = AnthropicStreamFn()
    for wrapper in (
        recorded(inner, tmp_path / "r"),
        cached(inner, tmp_path / "c"),
        rate_limited(inner),
        fallback(inner, OpenAIStreamFn(api_key=KEY)),
    ):
        with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY"):
            wrapper.check_key(NONE)  # type: ignore[attr-defined]


# The order of keys


@pytest.mark.parametrize("provider", OWN)
async def test_the_request_wins_then_the_constructor_the_environment_and_the_store(
    provider: str, monkeypatch: pytest.MonkeyPatch
):
    account = ACCOUNTS[provider]
    store_key(account.key_name, "key-that-is-stored")
    fn_of(provider).check_key(NONE)
    assert "key-that-is-stored" in await headers_of(fn_of(provider), provider)
    monkeypatch.setenv(account.variables[-1], " key-of-the-environment\n")
    assert "key-of-the-environment'" in await headers_of(fn_of(provider), provider)
    preset = PROVIDERS[provider].partition("#")[2]
    made = type(fn_of(provider))(api_key="key-of-the-constructor", **({"preset": preset} if preset else {}))
    assert "key-of-the-constructor" in await headers_of(made, provider)
    assert "key-of-the-request" in await headers_of(made, provider, api_key="key-of-the-request")


async def test_a_stored_key_goes_where_the_environment_points(monkeypatch: pytest.MonkeyPatch):
    store_key("openai", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    assert KEY in await headers_of(OpenAIStreamFn())
    monkeypatch.setenv("OPENAI_BASE_URL", "http://192.168.1.7/v1")
    assert "the stored key would travel to 192.168.1.7 in clear text" in await headers_of(OpenAIStreamFn())


def test_a_stored_key_tells_askers_apart():
    askers = {OpenAIStreamFn().asker(), BedrockStreamFn().asker()}
    for key in ("first-key", "second-key"):
        store_key("openai", key)
        store_key("bedrock", key)
        askers |= {OpenAIStreamFn().asker(), BedrockStreamFn().asker()}
    assert len(askers) == 6


# Ways of azure and bedrock


@pytest.mark.parametrize(
    "environ",
    [
        {"AZURE_OPENAI_AD_TOKEN": "t"},
        {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"},
    ],
)
def test_azure_needs_no_key_where_the_environment_has_an_identity(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    AzureStreamFn().check_key(NONE)
    with pytest.raises(MissingKey):
        AzureStreamFn(base_url="https://elsewhere.example").check_key(NONE)


def test_a_check_asks_nobody_for_a_token_or_for_credentials():
    def fail() -> Any:
        raise AssertionError("asked")

    AzureStreamFn(token_provider=fail).check_key(NONE)
    BedrockStreamFn(credentials=fail).check_key(NONE)


async def test_a_stored_key_wins_over_credentials_that_other_programs_use_too(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.setenv(name, "entra")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "Credential=AKID" in await headers_of(fn_of("bedrock"), "bedrock")
    for provider in ("azure", "bedrock"):
        store_key(provider, KEY)
        assert KEY in await headers_of(fn_of(provider), provider)


def test_bedrock_takes_what_the_aws_files_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text(
        "[default]\naws_access_key_id = AKID\naws_secret_access_key = s\n[half]\naws_access_key_id = A\n"
    )
    BedrockStreamFn().check_key(NONE)
    with pytest.raises(MissingKey, match="no secret access key"):
        BedrockStreamFn(profile="half").check_key(NONE)
    with pytest.raises(MissingKey, match="are not used for elsewhere"):
        BedrockStreamFn(base_url="https://elsewhere.example").check_key(NONE)


# The store: looked at once, never in the way


def test_a_keychain_is_asked_once_per_process_and_provider(keychain: Callable[..., Keychain]):
    chain = keychain()
    for _ in range(3):
        for provider in ("openai", "openai-responses", "anthropic"):
            fn_of(provider).check_key(NONE)
            fn_of(provider).asker()
    assert chain.asked == 2, "openai and openai-responses share a key"


def test_threads_that_need_the_same_key_at_once_ask_once(keychain: Callable[..., Keychain]):
    from concurrent.futures import ThreadPoolExecutor

    chain = keychain(seconds=0.05)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(stored_key, ["openai"] * 8)) == {KEY}
    assert chain.asked == 1


async def test_a_keychain_is_not_opened_where_the_key_is_elsewhere_or_nobody_needs_one(
    keychain: Callable[..., Keychain], server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
):
    chain = keychain()
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for fn in (
        AnthropicStreamFn(),
        OpenAIStreamFn(api_key=KEY),
        OpenAIStreamFn(base_url=f"{server.url}/v1"),
        AzureStreamFn(token_provider=lambda: "t"),
        BedrockStreamFn(profile="work", api_key=KEY),
    ):
        fn.check_key(NONE)
        fn.asker()
        await headers_of(fn)
    OpenAIStreamFn().check_key(StreamOptions(api_key=KEY))
    assert chain.asked == 0


@in_cells("provider", REMOTE, every=5)
async def test_a_keychain_that_asks_its_owner_does_not_stop_the_event_loop(
    provider: str, keychain: Callable[..., Keychain]
):
    chain = keychain(seconds=0.2)
    request = asyncio.create_task(headers_of(fn_of(provider), provider))
    turns = 0
    while not request.done():
        await asyncio.sleep(0.01)
        turns += chain.busy
    assert KEY in request.result()
    assert chain.asked == 1
    assert turns, "the event loop turns while the keychain is asked"


@pytest.mark.parametrize("provider", REMOTE)
def test_a_keychain_is_not_opened_to_see_whether_there_is_a_key(
    provider: str, keychain: Callable[..., Keychain]
):
    chain = keychain()
    fn_of(provider).check_key(NONE)
    assert chain.asked == 0


def test_a_locked_keychain_is_a_warning_once_and_then_a_missing_key(
    keychain: Callable[..., Keychain], caplog: pytest.LogCaptureFixture
):
    chain = keychain(key=None)
    fn_of("xai").check_key(NONE)
    assert stored_key("xai") is None
    for _ in range(2):
        with pytest.raises(MissingKey, match="swink keys set xai"):
            fn_of("xai").check_key(NONE)
    OpenAIStreamFn(api_key=KEY).check_key(NONE)
    assert chain.asked == 1
    assert [(record.name, record.levelno) for record in caplog.records] == [("swink.keys", logging.WARNING)]
    assert "it is locked" in caplog.text


async def test_a_damaged_store_is_a_warning_once_and_never_quoted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    keys_file().parent.mkdir(parents=True)
    keys_file().write_text(f'{{"openai": {{"place": "file", "key": "{KEY}", }}')
    monkeypatch.setenv("MISTRAL_API_KEY", "of-mistral")
    assert "of-mistral" in await headers_of(fn_of("mistral"), "mistral")
    assert not caplog.records, "nobody looks where the environment has the key"
    fn_of("ollama").check_key(NONE)
    for provider in ("openai", "xai", "openai"):
        with pytest.raises(MissingKey):
            fn_of(provider).check_key(NONE)
    assert len(caplog.records) == 1
    assert "is damaged" in caplog.text
    assert KEY not in caplog.text


def test_a_key_that_is_stored_while_the_process_runs_is_found():
    fn = AnthropicStreamFn()
    with pytest.raises(MissingKey):
        fn.check_key(NONE)
    store_key("anthropic", KEY)
    fn.check_key(NONE)
    assert stored_key("anthropic") == KEY


def test_without_a_home_directory_there_are_no_stored_keys(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home directory.")))
    fn_of("ollama").check_key(NONE)
    with pytest.raises(MissingKey):
        fn_of("openai").check_key(NONE)


@pytest.mark.parametrize("provider", OWN)
async def test_no_key_shows_in_a_repr_an_error_or_the_log(provider: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    store_key(ACCOUNTS[provider].key_name, KEY)
    fn = fn_of(provider)
    fn.check_key(NONE)
    refused = MemoryClient(f"wrong key {KEY}".encode(), status=401)
    got = await read(fn, ModelSpec(provider, "m"), options=StreamOptions(http=refused))
    assert KEY in str(refused.requests[0].headers)
    assert KEY not in f"{fn!r} {vars(fn)} {fn.asker()} {got.terminal} {caplog.text}"
