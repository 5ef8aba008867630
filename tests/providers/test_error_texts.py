"""Every adapter, every kind of failure: the error names the model, says what can be done, and has its cause (E1)."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import trustme
from adapters import ADAPTERS, KEY, AdapterCase
from faults import Connection, FaultServer, Talk, answering

from swink import Agent, ExponentialBackoff, ModelSpec
from swink.errors import AgentError, ModelError, StreamError
from swink.providers.exchange import HttpAnswer
from swink.stream import StreamOptions, Timeout

PAGE = b"<!DOCTYPE html><html><body><h1>Blocked</h1><p>Talk to the <b>proxy team</b></p></body></html>"


def refusing(status: int, message: str = "it went wrong", **headers: str) -> Callable[[AdapterCase], Talk]:
    return lambda adapter: answering(
        status, f'{{"error": {{"message": "{message}"}}}}'.encode(), "application/json", **headers
    )


def cut_off(adapter: AdapterCase) -> Talk:
    async def talk(connection: Connection) -> None:
        await connection.head(200, adapter.media_type)
        await connection.chunk(adapter.until_content())
        connection.close()

    return talk


def ended_early(adapter: AdapterCase) -> Talk:
    return answering(200, adapter.until_content(), adapter.media_type)


def garbled(adapter: AdapterCase) -> Talk:
    garbage = b"\x00\x00\x00\x10garbage-in-frame" if adapter.name == "bedrock" else b'data: {"choices": [\n\n'
    return answering(200, b'{"a": [\n' if adapter.name == "ollama" else garbage, adapter.media_type)


# What the server does, the kind of the error, and a word of what the text says happened.
FAILURES: dict[str, tuple[Callable[[AdapterCase], Talk], set[str], str]] = {
    "400": (refusing(400), {"stream"}, "400"),
    "401": (refusing(401), {"auth"}, "401"),
    "402": (refusing(402), {"auth"}, "402"),
    "403": (refusing(403), {"auth"}, "403"),
    "404": (refusing(404, "The model is not found, or not available"), {"model_retired"}, "404"),
    "404 elsewhere": (refusing(404, "no such path"), {"stream"}, "404"),
    "408": (refusing(408), {"network"}, "408"),
    "409": (refusing(409), {"network"}, "409"),
    "413": (refusing(413), {"context_window_exceeded"}, "413"),
    "429": (refusing(429), {"throttled"}, "429"),
    "500": (refusing(500), {"network"}, "500"),
    "502": (refusing(502), {"network"}, "502"),
    "503": (refusing(503), {"network"}, "503"),
    "529": (refusing(529), {"network"}, "529"),
    "redirect": (refusing(307), {"stream"}, "307"),
    "filtered": (refusing(400, "stopped by the content policy"), {"content_filtered"}, "content policy"),
    "a proxy's page": (lambda adapter: answering(403, PAGE, "text/html"), {"auth"}, "proxy team"),
    "a page with 200": (lambda adapter: answering(200, PAGE, "text/html"), {"stream"}, "proxy team"),
    "another type": (lambda adapter: answering(200, b"[]", "text/plain"), {"stream", "network"}, ""),
    "cut off": (cut_off, {"network"}, ""),
    "ended early": (ended_early, {"network"}, "ended before"),
    "malformed": (garbled, {"stream", "network"}, ""),
}


async def error_of(fn: Any, model: ModelSpec) -> AgentError:
    agent = Agent(
        model,
        stream_fn=fn,
        options=StreamOptions(timeout=Timeout(idle=20, first=20, connect=20)),
        retry=ExponentialBackoff(max_attempts=1),
    )
    async with asyncio.timeout(60):
        result = await agent.run("Hello")
    assert result.exception is not None
    assert result.error_kind == result.exception.kind
    return result.exception


def check(error: AgentError, model: ModelSpec) -> None:
    """What every error of a model has."""
    text = str(error)
    assert text.startswith(f"{model}: "), text
    assert isinstance(error, ModelError)
    if type(error) is StreamError:
        assert "base_url" in text or "change the request" in text, text
    else:
        assert error.advice in text, text
    assert error.__cause__ is not None, text
    assert str(error.__cause__)
    assert KEY not in text + repr(error.__cause__) + str(error.__cause__)


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
async def test_an_error_names_its_model_says_what_to_do_and_has_its_cause(adapter: AdapterCase):
    for failure, (talk, kinds, said) in FAILURES.items():
        async with FaultServer(talk(adapter)) as server:
            fn = adapter.make(server.url, KEY)
            error = await error_of(fn, adapter.model)
            await fn.aclose()
        check(error, adapter.model)
        assert error.kind in kinds, (failure, error)
        assert said in str(error), failure


@pytest.fixture(scope="module")
def unknown_authority() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
async def test_an_error_below_http_does_too(adapter: AdapterCase, unknown_authority: ssl.SSLContext):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        for url, said in (
            (f"http://127.0.0.1:{port}", "127.0.0.1"),
            ("https://nobody.invalid", "nobody.invalid"),
        ):
            fn = adapter.make(url, KEY)
            error = await error_of(fn, adapter.model)
            await fn.aclose()
            check(error, adapter.model)
            assert error.kind == "network"
            assert said in str(error)
    async with FaultServer(refusing(200)(adapter), tls=unknown_authority) as server:
        fn = adapter.make(server.url, KEY)
        error = await error_of(fn, adapter.model)
        await fn.aclose()
    check(error, adapter.model)
    assert "certificate" in str(error).lower()


async def test_the_cause_of_a_refusal_has_the_status_and_the_id_of_the_request():
    adapter = ADAPTERS["anthropic"]
    async with FaultServer(refusing(503, request_id="req_011CX")(adapter)) as server:
        fn = adapter.make(server.url, KEY)
        error = await error_of(fn, adapter.model)
        await fn.aclose()
    cause = error.__cause__
    assert isinstance(cause, HttpAnswer)
    assert (cause.status, cause.request_id) == (503, "req_011CX")
    assert str(cause) == f"HTTP 503 from 127.0.0.1:{server.port}, request req_011CX"
