"""No error repeats a secret that the request carried, whatever a server makes of it (E3)."""

import base64
import html
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from hypothesis import example, given
from hypothesis import strategies as st
from loopback import MemoryClient, read, sse
from tests.counts import crossed, tried

from swink.providers.anthropic import AnthropicStreamFn
from swink.providers.azure import AzureStreamFn
from swink.providers.bedrock import BedrockStreamFn
from swink.providers.bedrock.sigv4 import Credentials
from swink.providers.http import Request
from swink.providers.openai import OpenAIStreamFn
from swink.providers.secretechoes import KEPT_LIMIT, secrets_of, shown, without_echoes
from swink.stream import Error, StreamOptions

TOKEN = "FwoGZXIvYXdzEJr//////////wEaDNb0h+7zQ5sk-live-9Zx/" + "kq8R+1/Vb" * 40 + "=="
"""A session token: long, with what every encoding escapes, and with what looks like a key of another's inside."""
ODD_KEY = 'zq/7f+3e"9b1c&adapter<key>=5d2a'

SPELLINGS = {
    "plain": lambda secret: secret,
    "json": lambda secret: json.dumps(secret)[1:-1],
    "json with slashes": lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"),
    "html": html.escape,
    "url": lambda secret: quote(secret, safe=""),
    "lower url": lambda secret: quote(secret, safe="").lower() if "%" in quote(secret, safe="") else secret,
    "form": quote_plus,
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "urlsafe base64": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
}


def pieces(secret: str) -> list[str]:
    """Parts of a secret that would give it away: eight characters anywhere in it."""
    return [secret[at : at + 8] for at in range(0, max(1, len(secret) - 7), 4)]


def hidden(secret: str, error: Error) -> None:
    text = error.message + str(error.cause) + repr(error.cause)
    for spelling in SPELLINGS.values():
        for piece in pieces(spelling(secret)):
            assert piece not in text, (piece, text)


@crossed(adapter=ADAPTERS, spelling=[name for name in SPELLINGS if name != "lower url"])
async def test_a_refusal_that_repeats_the_key_does_not_show_it(adapter: AdapterCase, spelling: str):
    for key in (KEY, ODD_KEY):
        said = SPELLINGS[spelling](key)
        for body in (
            json.dumps({"error": {"message": f"the key {said} is wrong, {said}!"}}).encode(),
            f"<html><body>the key {said} is wrong".encode(),
            f"{'x' * (KEPT_LIMIT - 20)} {said} and more".encode(),
        ):
            client = MemoryClient(body, status=401)
            fn = adapter.make("https://provider.example", key)
            end = (await read(fn, adapter.model, options=StreamOptions(http=client))).terminal
            assert isinstance(end, Error)
            hidden(key, end)


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
async def test_an_error_inside_the_stream_does_not_show_it_either(adapter: AdapterCase):
    error = {"type": "error", "error": {"message": f"the key {ODD_KEY} is wrong", "code": "x"}}
    proxied = {"type": "error", "kind": "auth", "message": f"the key {ODD_KEY} is wrong"}
    body = sse(error) if adapter.name != "proxy" else sse({"type": "start", "version": 2}, proxied)
    if adapter.name == "ollama":
        body = json.dumps({"error": f"the key {ODD_KEY} is wrong"}).encode() + b"\n"
    for answer in (body, b'data: {"broken": ' + ODD_KEY.encode() * 9 + b"\n\n"):
        client = MemoryClient(answer, headers={"content-type": adapter.media_type})
        fn = adapter.make("https://provider.example", ODD_KEY)
        end = (await read(fn, adapter.model, options=StreamOptions(http=client))).terminal
        assert isinstance(end, Error)
        hidden(ODD_KEY, end)


async def test_a_refusal_in_pieces_does_not_show_a_key_that_stands_in_two_of_them():
    chunk = {"id": "c", "object": "chat.completion.chunk"}
    deltas = [{"refusal": f"no, {ODD_KEY[:15]}"}, {"refusal": f"{ODD_KEY[15:]}, never"}]
    body = sse(
        *({**chunk, "choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    )
    fn = OpenAIStreamFn(api_key=ODD_KEY)
    end = (await read(fn, ADAPTERS["openai"].model, options=StreamOptions(http=MemoryClient(body)))).terminal
    assert isinstance(end, Error)
    assert end.message.startswith("no, ")
    hidden(ODD_KEY, end)


@crossed(spelling=[name for name in SPELLINGS if name != "lower url"], filler=[0, 1500, 2000, 8100])
async def test_the_session_token_of_bedrock_is_not_shown(spelling: str, filler: int):
    fn = BedrockStreamFn(
        region="us-east-1", credentials=Credentials("AKIDEXAMPLE12345", "s3cret-s3cret", TOKEN)
    )
    said = f"{'x ' * (filler // 2)}The canonical string had {SPELLINGS[spelling](TOKEN)} end"
    client = MemoryClient(json.dumps({"message": said}).encode(), status=403)
    end = (await read(fn, ADAPTERS["bedrock"].model, options=StreamOptions(http=client))).terminal
    assert isinstance(end, Error)
    hidden(TOKEN, end)
    signature = client.requests[0].headers["authorization"].rpartition("=")[2]
    assert signature in secrets_of(client.requests[0])
    assert "AKIDEXAMPLE12345" in secrets_of(client.requests[0])


@pytest.mark.parametrize("header", ["Authorization", "X-Gateway", "Ocp-Apim-Subscription-Key", "Cookie"])
@pytest.mark.parametrize("make", [AnthropicStreamFn, OpenAIStreamFn])
async def test_a_header_of_the_callers_own_is_not_shown(make: Any, header: str):
    fn = make(api_key="k-of-the-provider", headers={header: ODD_KEY})
    client = MemoryClient(f"bad header {ODD_KEY}".encode(), status=403)
    end = (await read(fn, ADAPTERS["openai"].model, options=StreamOptions(http=client))).terminal
    assert isinstance(end, Error)
    hidden(ODD_KEY, end)


async def test_a_token_of_entra_is_not_shown():
    fn = AzureStreamFn(base_url="https://a.example", token_provider=lambda: TOKEN)
    client = MemoryClient(f"bad token {TOKEN}".encode(), status=401)
    end = (await read(fn, ADAPTERS["azure"].model, options=StreamOptions(http=client))).terminal
    assert isinstance(end, Error)
    hidden(TOKEN, end)


def test_a_password_of_a_proxy_and_a_key_in_a_query_are_secrets_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("https_proxy", "http://carol:p%40ss-word-9@proxy.example:3128")
    secrets = secrets_of(Request("https://x.example/?key=q-key-1234&alt=sse"))
    assert {"p@ss-word-9", "q-key-1234"} <= set(secrets)
    assert base64.b64encode(b"carol:p@ss-word-9").decode() in secrets
    assert "sse" not in secrets


@tried(60, 1_000)
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=12, max_size=80),
    st.text(max_size=40),
    st.sampled_from(list(SPELLINGS)),
    st.integers(0, 200),
)
@example("\U0001aabe 𐀀𐀀𐀀𐀀𐀀\U0001abfe0000", "", "form", 81)  # the cut end starts like another spelling
def test_no_spelling_and_no_cut_leaves_more_than_a_few_characters(
    secret: str, before: str, spelling: str, kept: int
):
    if spelling == "lower url":
        return
    form = SPELLINGS[spelling](secret)
    text = without_echoes((before + form)[: len(before) + kept], [secret])
    left = text.removeprefix(before)
    assert len(left) <= len("[redacted]") + 2 or form[:8] not in left


def test_what_was_said_besides_is_kept():
    assert (
        shown(f"the key {ODD_KEY} is wrong; see the page", [ODD_KEY])
        == "the key [redacted] is wrong; see the page"
    )
    assert shown("nothing to hide", [ODD_KEY]) == "nothing to hide"


def test_what_a_body_carries_is_a_secret_too():
    assert secrets_of(Request("https://x.example", body=b"{}", secrets=("mcp-token-5d2a",))) == [
        "mcp-token-5d2a"
    ]
