"""No key travels over plain http, except to this machine: every adapter, every way a key or an address gets there."""

import io
import re

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from loopback import MemoryClient, read
from tests.counts import crossed

from swink.errors import MisuseError
from swink.providers.anthropic import AnthropicStreamFn
from swink.providers.azure import AzureStreamFn
from swink.providers.azure.entra import ClientCredentials
from swink.providers.bedrock import BedrockStreamFn
from swink.providers.bedrock.sigv4 import Credentials
from swink.providers.endpoint import Endpoint, check_base_url
from swink.providers.http import Request
from swink.providers.ollama import OllamaStreamFn
from swink.providers.openai import OpenAIStreamFn
from swink.providers.proxy import ProxyStreamFn
from swink.stream import Error, StreamOptions
from swink.stream.urls import is_loopback, is_private

ELSEWHERE = [
    "http://192.168.0.9:8000",
    "http://build-server:8000",
    "http://gpu.lan",
    "http://169.254.1.1",
    "http://0.0.0.0:8000",
    "http://sub.localhost:80",
]
HERE = [
    "http://127.0.0.1:9",
    "http://127.8.9.10:9",
    "http://[::1]:9",
    "http://localhost:9",
    "http://LOCALHOST.:9",
    "http://[::ffff:127.0.0.1]:9",
]


async def sent_by(fn, model, **options):
    client = MemoryClient(b"")
    got = await read(fn, model, options=StreamOptions(http=client, **options))
    return client.requests, got.terminal


@crossed(adapter=ADAPTERS.values(), url=ELSEWHERE)
async def test_a_key_is_not_sent_in_clear_text_to_another_machine(adapter: AdapterCase, url: str):
    requests, end = await sent_by(adapter.make(url, KEY), adapter.model)
    assert requests == []
    assert isinstance(end, Error)
    assert end.kind == "auth"
    assert "in clear text" in end.message
    assert "use https" in end.message
    assert KEY not in end.message


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=str)
async def test_a_key_in_the_options_is_not_sent_in_clear_text_either(adapter: AdapterCase):
    requests, end = await sent_by(adapter.make(ELSEWHERE[0], ""), adapter.model, api_key=KEY)
    assert requests == []
    assert "in clear text" in end.message


@crossed(adapter=ADAPTERS.values(), url=HERE)
async def test_a_key_is_sent_to_this_machine(adapter: AdapterCase, url: str):
    requests, _ = await sent_by(adapter.make(url, KEY), adapter.model)
    assert KEY in requests[0].headers[adapter.key_header]


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=str)
async def test_a_server_of_the_private_network_is_asked_without_a_key(adapter: AdapterCase):
    requests, _ = await sent_by(adapter.make(ELSEWHERE[0], ""), adapter.model)
    assert adapter.key_header not in requests[0].headers


async def test_whoever_trusts_the_network_can_say_so():
    fn = OpenAIStreamFn(base_url="http://192.168.0.9/v1", api_key=KEY, allow_http=True)
    requests, _ = await sent_by(fn, ADAPTERS["openai"].model)
    assert requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("name", ["Authorization", "X-Gateway-Token", "Cookie", "Ocp-Apim-Subscription-Key"])
@pytest.mark.parametrize("make", [OpenAIStreamFn, AnthropicStreamFn])
async def test_a_header_with_a_secret_is_a_key_too(make, name: str):
    fn = make(base_url="http://192.168.0.9/v1", api_key="", headers={name: KEY})
    requests, end = await sent_by(fn, ADAPTERS["openai"].model)
    assert requests == []
    assert KEY not in end.message


async def test_a_signature_and_a_token_are_keys_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    signing = BedrockStreamFn(
        base_url="http://10.0.0.1",
        region="us-east-1",
        credentials=Credentials("AKIDEXAMPLE", "secret", "session"),
    )
    assert (await sent_by(signing, ADAPTERS["bedrock"].model))[0] == []
    entra = AzureStreamFn(base_url="http://10.0.0.1", token_provider=lambda: KEY)
    requests, end = await sent_by(entra, ADAPTERS["azure"].model)
    assert requests == []
    assert "in clear text" in end.message
    with pytest.raises(MisuseError, match="clear text"):
        ClientCredentials("tenant", "client", "secret", authority="http://10.0.0.1")
    assert ClientCredentials("tenant", "client", "secret", authority="http://127.0.0.1:1")


async def test_addresses_and_keys_of_the_environment_are_no_exception(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OLLAMA_HOST", "192.168.1.5:8080")
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    requests, end = await sent_by(OllamaStreamFn(), ADAPTERS["ollama"].model)
    assert requests == []
    assert "OLLAMA_API_KEY" in end.message
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway.example/v1")
    with pytest.raises(MisuseError, match="https"):
        OpenAIStreamFn()


async def test_a_key_of_the_environment_stays_off_the_private_network(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    requests, _ = await sent_by(OpenAIStreamFn(base_url="https://192.168.0.9/v1"), ADAPTERS["openai"].model)
    assert "authorization" not in requests[0].headers


@pytest.mark.parametrize(
    "host", ["localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0", "localhost.localdomain", "x.localhost", "127.0.0.1.", "::", "128.0.0.1", "127", "ⓛocalhost"]
)  # fmt: skip
def test_what_only_looks_like_this_machine_is_not(host: str):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.255.0.3", "127.1", "2130706433", "::1", "::ffff:127.0.0.1", "localhost", "localhost."],
)
def test_every_spelling_of_this_machine_is_known(host: str):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["134744072", "0x08080808", "8.8.2056", "::ffff:8.8.8.8"])
def test_a_public_address_in_an_odd_spelling_is_not_private(host: str):
    assert not is_private(host)
    with pytest.raises(MisuseError, match="clear text"):
        check_base_url(f"http://[{host}]" if ":" in host else f"http://{host}")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1\\@evil.example", "http://[::1]evil.example", "https://a%2eb", "http://localhost:80:80", "http://[::1", "https://h:99999", "http://@localhost"]
)  # fmt: skip
def test_a_host_that_two_readers_would_read_differently_is_refused(url: str):
    with pytest.raises(MisuseError):
        check_base_url(url)


def test_no_key_shows_in_a_pretty_print():
    rich = pytest.importorskip("rich.pretty")
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=200)
    values = [
        Endpoint("p", "https://x.example", KEY),
        Credentials("AKID", KEY, KEY),
        Request("https://x.example", {"authorization": KEY}),
        StreamOptions(api_key=KEY, extra={"api_key": KEY}),
    ]
    for value in values:
        rich.pprint(value, console=console)
        assert KEY not in repr(value)
    assert not re.search(KEY, console.file.getvalue())


# Keys of the environment that belong to an address of the environment


async def test_the_environments_key_for_azure_is_of_the_resource_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("AZURE_OPENAI_AD_TOKEN", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    model = ADAPTERS["azure"].model
    for variable in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.setenv(variable, KEY)
        requests, _ = await sent_by(AzureStreamFn(), model)
        assert KEY in str(requests[0].headers)
        requests, _ = await sent_by(AzureStreamFn(base_url="https://mine.openai.azure.com/openai/v1"), model)
        assert KEY in str(requests[0].headers)
        requests, end = await sent_by(AzureStreamFn(base_url="https://other.example"), model)
        assert (requests, end.kind) == ([], "auth")
        monkeypatch.delenv(variable)
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    requests, _ = await sent_by(AzureStreamFn(base_url="https://the-only-one.example"), model)
    assert KEY in str(requests[0].headers)


async def test_the_environments_token_is_of_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("SWINK_PROXY_URL", "https://proxy.example")
    monkeypatch.setenv("SWINK_PROXY_TOKEN", KEY)
    requests, end = await sent_by(ProxyStreamFn(base_url="https://other.example"), ADAPTERS["proxy"].model)
    assert (requests, end.kind) == ([], "auth")
    requests, _ = await sent_by(ProxyStreamFn(), ADAPTERS["proxy"].model)
    assert KEY in str(requests[0].headers)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x.amazonaws.com/",
        "https://amazonaws.com.evil.example",
        "https://evilamazonaws.com",
    ],
)
async def test_the_environments_keys_for_aws_go_to_aws(url: str, monkeypatch: pytest.MonkeyPatch):
    model = ADAPTERS["bedrock"].model
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    requests, end = await sent_by(BedrockStreamFn(base_url=url, region="us-east-1"), model)
    assert (requests, end.kind) == ([], "auth")
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", KEY)
    requests, end = await sent_by(BedrockStreamFn(base_url=url, region="us-east-1"), model)
    assert (requests, end.kind) == ([], "auth")
    assert "credentials=" in end.message
    for own in ("https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com", None):
        requests, _ = await sent_by(BedrockStreamFn(base_url=own, region="us-east-1"), model)
        assert requests[0].headers["x-amz-security-token"] == KEY
    requests, _ = await sent_by(
        BedrockStreamFn(base_url=url, region="us-east-1", credentials=Credentials("AKID", "own")), model
    )
    assert "AKID/" in requests[0].headers["authorization"]
