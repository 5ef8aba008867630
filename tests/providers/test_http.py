"""The client, base URLs, keys, and what a provider's refusals mean."""

import asyncio
import copy
import gc
import gzip
import logging
import pickle
import re
import socket
import struct
import subprocess
import sys
import time
import warnings
from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web
from loopback import LoopbackServer, MemoryClient, cut, read

from swink.errors import AuthError, InvalidInput, MisuseError, NetworkError, StreamError
from swink.messages import ModelSpec
from swink.messages.redact import sent_keys
from swink.providers.endpoint import check_base_url, endpoint, is_private
from swink.providers.exchange import decode_json, encode_body, exchange
from swink.providers.failure import failure, kind_of, parse_error, read_capped, refusal, retry_after
from swink.providers.http import (
    AiohttpClient,
    HttpClient,
    Pools,
    Request,
    Unsent,
    client_for,
    shared_client,
    timeout_for,
)
from swink.providers.notices import Notices
from swink.providers.openai import OpenAIStreamFn
from swink.providers.secretechoes import KEPT_LIMIT, shown
from swink.stream import BlockWriter, Error, Start, StreamOptions, Timeout
from swink.stream.urls import checked_headers

LIMITS = Timeout(connect=5)


async def fetch(client: HttpClient, url: str, **fields: object) -> tuple[int, bytes]:
    response = await client.send(Request(url, **fields), LIMITS)  # type: ignore[arg-type]
    body = b"".join([chunk async for chunk in response])
    await response.aclose()
    return response.status, body


@pytest.fixture
async def client():
    client = AiohttpClient()
    yield client
    await client.aclose()


# --- the client ---------------------------------------------------------------------------------------------------


async def test_a_request_gets_its_answer(server: LoopbackServer, client: AiohttpClient):
    server.reply(chunks=[b"a", b"b"], headers={"X-Kind": "test"})
    response = await client.send(Request(f"{server.url}/v1/x", {"x-api-key": "k"}, b"{}"), LIMITS)
    assert response.status == 200
    assert response.headers["x-kind"] == "test"
    assert b"".join([chunk async for chunk in response]) == b"ab"
    await response.aclose()
    sent = server.requests[0]
    assert (sent.method, sent.path, sent.body) == ("POST", "/v1/x", b"{}")
    assert sent.headers["x-api-key"] == "k"
    assert sent.headers["accept-encoding"] == "identity"


async def test_a_connection_is_used_again(client: AiohttpClient):
    ports: list[int] = []

    async def answer(request: web.Request) -> web.Response:
        ports.append(request.transport.get_extra_info("peername")[1])  # type: ignore[union-attr]
        return web.Response(text="x")

    async with serving(answer) as url:
        for _ in range(3):
            await fetch(client, url)
    assert len(set(ports)) == 1


async def test_a_refused_connection_is_a_network_error(client: AiohttpClient, unused_port: int):
    with pytest.raises(NetworkError, match=r"127\.0\.0\.1:\d+: connection refused: nothing listens there"):
        await client.send(Request(f"http://127.0.0.1:{unused_port}/"), LIMITS)


async def test_a_host_that_does_not_exist_is_told_in_plain_words(client: AiohttpClient):
    with pytest.raises(NetworkError, match=r"^nowhere\.invalid: there is no host of this name"):
        await client.send(Request("https://nowhere.invalid/"), LIMITS)


async def test_a_body_cut_short_is_a_network_error(client: AiohttpClient):
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n")
        writer.close()

    async with raw_server(cut) as url:
        response = await client.send(Request(url), LIMITS)
        with pytest.raises(NetworkError):
            [chunk async for chunk in response]
        await response.aclose()


async def test_a_redirect_is_an_answer_and_the_key_goes_nowhere_else(
    server: LoopbackServer, client: AiohttpClient
):
    async with LoopbackServer() as other:
        other.reply(b"x")
        server.reply(status=307, headers={"location": f"{other.url}/steal"})
        response = await client.send(Request(server.url, {"authorization": "Bearer sk-secret-key"}), LIMITS)
        error = refusal(response, await read_capped(response))
        await response.aclose()
    assert response.status == 307
    assert error.kind == "stream"
    assert "redirect" in str(error)
    assert other.requests == []


async def test_a_compressed_answer_is_decoded(server: LoopbackServer, client: AiohttpClient):
    server.reply(gzip.compress(b"data: hello\n\n"), headers={"content-encoding": "gzip"})
    assert await fetch(client, server.url) == (200, b"data: hello\n\n")


async def test_a_gzip_bomb_does_not_fill_the_memory(server: LoopbackServer, client: AiohttpClient):
    server.reply(gzip.compress(bytes(40 * 2**20)), status=500, headers={"content-encoding": "gzip"})
    response = await client.send(Request(server.url), LIMITS)
    largest = 0
    async for chunk in response:
        largest = max(largest, len(chunk))
        break
    error = refusal(response, await read_capped(response))
    await response.aclose()
    assert largest <= 2**20
    assert error.kind == "network"


async def test_a_wrong_compression_is_a_network_error(server: LoopbackServer, client: AiohttpClient):
    server.reply(b"this is not gzip", headers={"content-encoding": "gzip"})
    response = await client.send(Request(server.url), LIMITS)
    with pytest.raises(NetworkError):
        [chunk async for chunk in response]
    await response.aclose()


async def test_a_header_that_http_cannot_carry_is_an_error_without_its_value(
    server: LoopbackServer, client: AiohttpClient
):
    with pytest.raises(StreamError) as caught:
        await client.send(Request(server.url, {"x-api-key": "sekret\r\nx: y"}), LIMITS)
    assert "sekret" not in str(caught.value)


async def test_connecting_is_given_up_after_its_limit(client: AiohttpClient):
    with pytest.raises(NetworkError):
        await client.send(Request("http://192.0.2.1:81/"), Timeout(connect=0.05))


async def test_cancelling_a_request_closes_its_connection(client: AiohttpClient):
    closed = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(4096):
            pass
        closed.set()
        writer.close()

    async with raw_server(silent) as url:
        task = asyncio.create_task(client.send(Request(url), LIMITS))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 20)


class Leaving:
    """A server that answers the first `answers` requests, all at once, and hangs up after reading each later one."""

    def __init__(self, answers: int, last_words: bytes = b"", *, reset: bool = False) -> None:
        self.read: list[bytes] = []
        self.open = 0
        self._answers = answers
        self._last_words = last_words
        self._reset = reset
        self._all_there = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = re.search(rb"content-length: (\d+)", head.lower())
                self.read.append(await reader.readexactly(int(size[1]) if size else 0))
                if len(self.read) > self._answers:
                    writer.write(self._last_words)
                    if self._reset:
                        await asyncio.sleep(0.01)  # or the last words are lost with the connection
                        linger = struct.pack("ii", 1, 0)
                        writer.get_extra_info("socket").setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, linger
                        )
                    return
                if len(self.read) == self._answers:
                    self._all_there.set()
                await self._all_there.wait()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_request_that_dies_on_a_kept_connection_is_sent_once_more_on_a_new_one(
    client: AiohttpClient, method: str
):
    leaving = Leaving(20)
    async with raw_server(leaving) as url:
        await asyncio.gather(*(fetch(client, url, body=b"x") for _ in range(20)))
        with pytest.raises(NetworkError, match="disconnected"):
            await fetch(client, url, body=b"mine", method=method)
        assert leaving.read.count(b"mine") == 2
        while leaving.open:  # the other kept connections are dropped
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("words", [b"H", b"HTTP/1.1 200 OK\r\nx: y", b"HTTP/1.1 102 Processing\r\n\r\n"])
async def test_a_request_whose_answer_has_begun_is_not_sent_again(
    client: AiohttpClient, words: bytes, reset: bool
):
    leaving = Leaving(1, words, reset=reset)
    async with raw_server(leaving) as url:
        await fetch(client, url, body=b"x")
        with pytest.raises(NetworkError):
            await fetch(client, url, body=b"mine")
    assert leaving.read.count(b"mine") == 1


async def test_a_request_that_was_read_once_is_not_called_unsent_when_nobody_is_there_for_the_second(
    client: AiohttpClient,
):
    leaving = Leaving(1)
    server = raw_server(leaving)
    async with server as url:
        await fetch(client, url, body=b"x")
        server._server.close()
        with pytest.raises(NetworkError) as caught:
            await fetch(client, url, body=b"mine")
    assert leaving.read.count(b"mine") == 1
    assert not isinstance(caught.value, Unsent)


async def test_closing_waits_for_answers_still_being_read(server: LoopbackServer):
    client = AiohttpClient()
    server.reply(chunks=[b"a", b"b"])
    response = await client.send(Request(server.url), LIMITS)
    await client.aclose()
    assert b"".join([chunk async for chunk in response]) == b"ab"
    await response.aclose()
    assert len(client._pools) == 0
    assert (await fetch(client, server.url))[1] == b"ab"
    await client.aclose()


async def test_closing_one_client_leaves_the_others_their_connections():
    ports: list[int] = []

    async def answer(request: web.Request) -> web.Response:
        ports.append(request.transport.get_extra_info("peername")[1])  # type: ignore[union-attr]
        return web.Response(text="x")

    pools = Pools()
    first, second, forgotten = (AiohttpClient(pools) for _ in range(3))
    async with serving(answer) as url:
        for client in (first, second, forgotten):
            await fetch(client, url)
        await first.aclose()
        await first.aclose()
        assert (await fetch(second, url))[0] == 200
        assert len(set(ports)) == 1
        del client, forgotten
        gc.collect()
        await second.aclose()
        assert len(pools) == 0
        assert (await fetch(first, url))[0] == 200
        assert len(set(ports)) == 2
        await first.aclose()


async def test_a_pool_that_ends_late_does_not_take_its_successor_along(server: LoopbackServer):
    client = AiohttpClient()
    server.reply(chunks=[b"a", b"b"])
    old = await client.send(Request(server.url), LIMITS)
    await client.aclose()
    await fetch(client, server.url)
    await old.aclose()
    assert len(client._pools) == 1
    await client.aclose()
    assert len(client._pools) == 0


async def test_a_client_that_closes_while_another_sends_its_first_request_closes_nothing_under_it(
    server: LoopbackServer,
):
    server.reply(b"x")
    pools = Pools()
    clients = [AiohttpClient(pools) for _ in range(8)]

    async def once(client: AiohttpClient) -> int:
        status, _ = await fetch(client, server.url)
        await client.aclose()
        return status

    assert await asyncio.gather(*map(once, clients)) == [200] * 8
    assert len(pools) == 0


def test_a_copied_client_is_a_client_of_its_own():
    original = shared_client()
    twin = pickle.loads(pickle.dumps(copy.deepcopy(original)))
    assert twin is not original
    assert twin._pools is original._pools
    assert copy.copy(AiohttpClient())._pools is not original._pools


def test_a_session_closes_with_its_event_loop_and_nobody_has_to_ask():
    client = AiohttpClient()

    async def main() -> bytes:
        async with LoopbackServer() as server:
            server.reply(b"x")
            return (await fetch(client, server.url))[1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert asyncio.run(main()) == b"x"
            assert len(client._pools) == 0
        gc.collect()


def test_a_loop_that_is_never_shut_down_leaves_no_warning(tmp_path: Path):
    script = tmp_path / "leave.py"
    script.write_text(
        "import asyncio, sys\n"
        f"sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[2])!r}]\n"
        "from test_http import *\n"
        "async def main():\n"
        "    async with LoopbackServer() as server:\n"
        "        server.reply(b'x')\n"
        "        return await fetch(client_for(StreamOptions()), server.url)\n"
        "for close in (True, False):\n"
        "    loop = asyncio.new_event_loop()\n"
        "    print(loop.run_until_complete(main()))\n"
        "    loop.close() if close else None\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "default", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.count("(200, b'x')") == 2
    assert "Unclosed" not in ran.stderr


async def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
):
    server.reply(b"through the proxy")
    monkeypatch.setenv("http_proxy", server.url.replace("http://", "http://user:pass@"))
    monkeypatch.delenv("no_proxy", raising=False)
    client = AiohttpClient()
    assert await fetch(client, "http://provider.test/v1/x") == (200, b"through the proxy")
    assert server.requests[0].headers["proxy-authorization"].startswith("Basic ")
    async with LoopbackServer() as local:
        local.reply(b"directly")
        assert await fetch(client, local.url) == (200, b"directly")
    await client.aclose()


async def test_passwords_in_netrc_are_not_sent(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.reply(b"x")
    client = AiohttpClient()
    await fetch(client, server.url, headers={"x-api-key": "k"})
    await client.aclose()
    assert "authorization" not in server.requests[0].headers


def test_a_callers_http_client_is_used_instead_of_the_shared_one():
    memory, own = MemoryClient(), shared_client()
    assert client_for(StreamOptions(http=memory), own) is memory
    assert client_for(StreamOptions(), own) is own
    assert isinstance(client_for(StreamOptions(transport="sse")), AiohttpClient)


def test_time_limits_are_the_callers_or_the_adapters():
    assert timeout_for(StreamOptions(), Timeout(idle=600)) == Timeout(idle=600)
    assert timeout_for(StreamOptions(timeout=Timeout(idle=1)), Timeout()) == Timeout(idle=1)
    assert timeout_for(StreamOptions(timeout=5), Timeout()) == Timeout(idle=5, first=5, connect=5)


# --- base URLs and keys ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["https://api.example.com/v1/", "http://127.0.0.1:8080/v1", "http://[::1]:1", "http://localhost", "http://10.1.2.3", "http://ollama:11434",
     "http://host.docker.internal:1234", "http://192.168.0.9/x"],
)  # fmt: skip
def test_https_and_private_http_are_allowed(url: str):
    assert check_base_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    ["http://api.example.com", "http://8.8.8.8/v1", "ftp://x/", "api.example.com", "", "https://user:pw@host/v1", "https://key@host", "https://h/v1?key=x",
     "file:///etc/passwd"],
)  # fmt: skip
def test_other_base_urls_are_refused_without_showing_what_they_hold(url: str):
    with pytest.raises(MisuseError) as caught:
        check_base_url(url)
    assert "pw" not in str(caught.value)
    assert "key=x" not in str(caught.value)


def test_plain_http_to_a_public_host_has_to_be_asked_for():
    assert check_base_url("http://api.example.com", allow_http=True) == "http://api.example.com"


def test_a_public_name_is_not_private():
    assert not is_private("api.example.com")
    assert not is_private("8.8.8.8")
    assert is_private("172.16.0.1")


def place(base_url: str | None = None, api_key: str | None = None):
    return endpoint(
        "prov",
        "https://api.prov.com/v1",
        base_url,
        api_key,
        keys=("PROV_KEY", "PROV_TOKEN"),
        url_variable="PROV_URL",
    )


def test_the_callers_key_wins_over_the_constructors_which_wins_over_the_environments(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PROV_KEY", "from-env\n")
    assert place(api_key="own").key("given") == "given"
    assert place(api_key="own").key() == "own"
    assert place().key() == "from-env"


def test_a_missing_key_is_an_error_that_names_the_variables():
    with pytest.raises(AuthError, match="PROV_KEY or PROV_TOKEN"):
        place().key()


def test_the_environments_key_is_not_sent_to_another_host(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PROV_KEY", "from-env")
    with pytest.raises(AuthError, match=r"PROV_KEY is not sent there"):
        place("https://elsewhere.example/v1").key()
    with pytest.raises(AuthError):
        place("https://api.prov.com.evil.example/v1").key()
    assert place("https://elsewhere.example/v1", "own").key() == "own"
    assert place("https://elsewhere.example/v1", "").key() == ""


def test_the_environments_key_goes_where_the_environments_url_points(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PROV_KEY", "from-env")
    monkeypatch.setenv("PROV_URL", "https://gateway.example/v1")
    assert place().base_url == "https://gateway.example/v1"
    assert place().key() == "from-env"
    assert place("https://gateway.example/v1").key() == "from-env"


def test_a_local_server_needs_no_key(monkeypatch: pytest.MonkeyPatch):
    assert place("http://127.0.0.1:8080/v1").key() == ""
    assert place("http://127.0.0.1:8080/v1").is_local
    monkeypatch.setenv("PROV_KEY", "from-env")
    assert place("http://127.0.0.1:8080/v1").key() == "from-env"


def test_the_key_shows_in_no_repr():
    assert "sekret" not in repr(place(api_key="sekret"))
    assert "sekret" not in repr(Request("https://x", {"x-api-key": "sekret"}))


# --- what refusals mean ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (401, "invalid_api_key", "Incorrect API key provided", "auth"),
        (403, "permission_error", "not allowed", "auth"),
        (400, "", "API key not valid. Please pass a valid API key.", "auth"),
        (402, "", "Payment required", "auth"),
        (429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.", "auth"),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", "auth"),
        (429, "rate_limit_exceeded", "Rate limit reached for gpt-4o on tokens per min", "throttled"),
        (429, "429", "You exceeded your current quota, please retry in 6 s", "throttled"),
        (408, "", "timeout", "network"),
        (409, "", "lock", "network"),
        (500, "", "oops", "network"),
        (502, "", "Bad gateway", "network"),
        (503, "", "no capacity", "network"),
        (529, "overloaded_error", "Overloaded", "network"),
        (413, "request_too_large", "Request exceeds the maximum size", "context_window_exceeded"),
        (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.", "context_window_exceeded"),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "context_window_exceeded"),
        (400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 3", "context_window_exceeded"),
        (400, "", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "context_window_exceeded"),
        (400, "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", "context_window_exceeded"),
        (400, "exceed_context_size_error", "the request exceeds the available context size", "context_window_exceeded"),
        (500, "", "the request exceeds the available context size", "context_window_exceeded"),
        (400, "", "Your input exceeds the context window of this model.", "context_window_exceeded"),
        (400, "content_filter", "The response was filtered due to Azure's content management policy.", "content_filtered"),
        (400, "content_policy_violation", "no", "content_filtered"),
        (403, "", "Content violates usage guidelines. Failed check: SAFETY_CHECK", "content_filtered"),
        (404, "not_found_error", "model: claude-1", "model_retired"),
        (404, "model_not_found", "The model `gpt-3` does not exist or you do not have access to it.", "model_retired"),
        (404, "", "model 'llama9' not found", "model_retired"),
        (400, "model_decommissioned", "The model `mixtral` has been decommissioned", "model_retired"),
        (410, "", "This model version has been retired", "model_retired"),
        (404, "DeploymentNotFound", "The API deployment for this resource does not exist.", "model_retired"),
        (400, "1500", "Invalid model: mistral-tiny-1", "model_retired"),
        (404, "", "Not Found", "stream"),
        (400, "invalid_request_error", "messages: at least one message is required", "stream"),
        (422, "", "unprocessable", "stream"),
        (None, "overloaded_error", "Overloaded", "network"),
        (None, "rate_limit_error", "slow down", "throttled"),
        (None, "502", "Provider returned error", "network"),
        (None, "server_error", "The server had an error", "network"),
        (None, "", "something", "stream"),
        # What other servers say.
        (400, "context_length_exceeded invalid_request_error", "Please reduce it.", "context_window_exceeded"),
        (400, "400 exceed_context_size_error", "no", "context_window_exceeded"),
        (400, "string_above_max_length", "String too long.", "context_window_exceeded"),
        (413, "rate_limit_exceeded tokens", "Request too large for model `x` on tokens per minute (TPM)", "context_window_exceeded"),
        (400, "invalid_request_error", "max_tokens exceeds the limit of 8192", "stream"),
        (400, "", "The maximum tokens you requested exceeds the model limit of 4096.", "stream"),
        (429, "exceeded_current_quota_error", "Your account is suspended, please check your plan", "auth"),
        (429, "engine_overloaded_error", "The engine is currently overloaded", "throttled"),
        (498, "", "Flex tier capacity exceeded", "throttled"),
        (499, "", "Client closed request", "network"),
        (403, "403", "The model requires moderation. Your input was flagged for \"violence\"", "content_filtered"),
        (400, "invalid_request_error", "Content Exists Risk", "content_filtered"),
        (400, "data_inspection_failed", "Input data may contain inappropriate content.", "content_filtered"),
        (400, "content_filter", "The request was rejected because it was considered high risk", "content_filtered"),
        (404, "resource_not_found_error", "Not found the model kimi-x or Permission denied", "model_retired"),
        (400, "400", "acme/x is not a valid model ID", "model_retired"),
        (404, "404", "No endpoints found for acme/x.", "model_retired"),
        (404, "404", "No endpoints found that support tool use.", "stream"),
        (400, "", "The provided model identifier is invalid.", "model_retired"),
        (400, "invalid_authentication_error", "Invalid Authentication", "auth"),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", "auth"),
        (400, "Arrearage", "Access denied, please make sure your account is in good standing.", "auth"),
        (404, "", "This model version has reached the end of its life.", "model_retired"),
        (400, "model_not_supported", "The requested model 'x' is not supported by any provider", "model_retired"),
        (None, "400 INVALID_ARGUMENT", "bad schema", "stream"),
        (None, "503 UNAVAILABLE", "try later", "network"),
        (None, "invalid_request_error", "messages: a timeout is no role", "stream"),
        (None, "internal_error", "Internal server error", "network"),
        (None, "", "Rate limit reached", "throttled"),
    ],
)  # fmt: skip
def test_status_code_and_wording_decide_the_kind(status: int | None, code: str, message: str, kind: str):
    assert kind_of(status, code, message) == kind
    assert failure(message, status=status, code=code).kind == kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None):
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date_is_the_time_until_then():
    seconds = retry_after({"retry-after": formatdate(time.time() + 90, usegmt=True)})
    assert seconds is not None
    assert 85 < seconds <= 90


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error": {"message": "m", "type": "t", "code": "c"}}', ("m", "c t")),
        (
            b'{"error": {"message": "m", "code": 400, "metadata": {"raw": "prompt is too long"}}}',
            ("m: prompt is too long", "400"),
        ),
        (b'{"error": {"message": "m", "type": "t", "code": null}}', ("m", "t")),
        (
            b'{"type": "error", "error": {"type": "overloaded_error", "message": "m"}}',
            ("m", "overloaded_error"),
        ),
        (
            b'{"code": "Client specified an invalid argument", "error": "m"}',
            ("m", "Client specified an invalid argument"),
        ),
        (b'{"error": "m"}', ("m", "")),
        (b'{"message": "m", "code": 400}', ("m", "400")),
        (b'{"detail": "m"}', ("m", "")),
        (
            b'[{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}]',
            ("m", "429 RESOURCE_EXHAUSTED"),
        ),
        (b'{"detail": [{"msg": "field required"}]}', ('{"detail":[{"msg":"field required"}]}', "")),
        (
            b"<!DOCTYPE html><html><style>b{}</style><body><h1>502 Bad\n Gateway</h1></body></html>",
            ("502 Bad Gateway", ""),
        ),
        (b"upstream connect error", ("upstream connect error", "")),
        (b"", ("", "")),
        (b"\xff\xfe", ("\ufffd\ufffd", "")),
    ],
)
def test_error_bodies_of_every_shape_are_read(body: bytes, expected: tuple[str, str]):
    assert parse_error(body) == expected


async def test_an_error_body_is_read_up_to_its_limit_kept_short_and_redacted():
    client = MemoryClient([b"sk-abcdefghijklmnop my-own-key "] + [b"x" * 4096] * 1000, status=400)
    response = await client.send(Request("https://x"), LIMITS)
    text = shown(refusal(response, await read_capped(response)).message, ["my-own-key"])
    assert len(text.encode()) <= KEPT_LIMIT + 16
    assert "abcdefghijklmnop" not in text
    assert "my-own-key" not in text
    assert len([chunk async for chunk in response]) > 900


async def test_a_key_that_a_provider_repeats_in_its_stream_is_redacted():
    class Echo:
        def __init__(self, reply: BlockWriter) -> None:
            pass

        def feed(self, chunk: bytes) -> None:
            raise StreamError(f"bad key {chunk.decode()}")

        def end(self) -> None: ...

    async def request() -> Request:
        return Request("https://x", {"authorization": "Bearer hunter2hunter2"})

    options = StreamOptions(http=MemoryClient(b"hunter2hunter2"))
    events = [event async for event in exchange(request, Echo, options, LIMITS)]
    start, error = events
    assert (start, error.kind) == (Start(), "stream")
    assert error.message.startswith("bad key [redacted]")


@pytest.mark.parametrize(
    ("headers", "body", "kind", "text"),
    [
        (
            {"content-type": "text/html; charset=utf-8"},
            b"<html><h1>Log in</h1></html>",
            "stream",
            "text/html instead of a stream",
        ),
        (
            {"content-type": "application/json"},
            b'{"choices": []}',
            "stream",
            "application/json instead of a stream",
        ),
        (
            {"content-type": "application/json"},
            b'{"error": {"message": "Overloaded", "type": "overloaded_error"}}',
            "network",
            "Overloaded",
        ),
    ],
)
async def test_an_answer_that_is_no_stream_is_refused(
    headers: dict[str, str], body: bytes, kind: str, text: str
):
    async def request() -> Request:
        return Request("https://x")

    options = StreamOptions(http=MemoryClient(body, headers=headers))
    start, error = [event async for event in exchange(request, lambda _: None, options, LIMITS)]  # type: ignore[arg-type, return-value]
    assert start == Start()
    assert isinstance(error, Error)
    assert error.kind == kind
    assert text in error.message


async def test_a_stream_under_the_name_of_json_is_read(server: LoopbackServer):
    server.reply(
        b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\n',
        headers={"content-type": "application/json"},
    )
    result = await read(OpenAIStreamFn(base_url=server.url), ModelSpec("openai", "m"))
    assert result.message.text == "x"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("begin", [b"", b": ping\n\n", b"\n", b"event: x\n", b"\xef\xbb\xbf"])
async def test_a_stream_under_the_name_of_json_is_read_however_its_bytes_come(begin: bytes, size: int):
    body = begin + b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\n'
    client = MemoryClient(cut(body, size), headers={"content-type": "application/json"})
    model = ModelSpec("openai", "m")
    result = await read(OpenAIStreamFn(api_key="k"), model, options=StreamOptions(http=client))
    assert result.message.text == "x"


@pytest.mark.parametrize("body", [b"da", b"d{", b" ", b"{", b"\xef\xbb"])
async def test_a_short_body_under_the_name_of_json_is_refused(body: bytes):
    client = MemoryClient(cut(body, 1), headers={"content-type": "application/json"})
    model = ModelSpec("openai", "m")
    result = await read(OpenAIStreamFn(api_key="k"), model, options=StreamOptions(http=client))
    assert isinstance(result.terminal, Error)
    assert "instead of a stream" in result.terminal.message


def test_a_body_takes_extra_fields_but_its_own_win():
    assert decode_json(encode_body({"model": "a"}, {"model": "b", "top_p": 0.5})) == {
        "model": "a",
        "top_p": 0.5,
    }


def test_a_body_with_half_a_surrogate_pair_is_mended():
    assert decode_json(encode_body({"text": "a\ud800b", "list": ["\udc00"]}, {})) == {
        "text": "a\ufffdb",
        "list": ["\ufffd"],
    }


def test_an_integer_too_long_to_be_written_is_sent_in_hexadecimal():
    assert decode_json(encode_body({"number": 10**5_000, "small": 7}, {})) == {
        "number": hex(10**5_000),
        "small": 7,
    }


def test_a_body_that_is_not_json_is_an_error_that_says_so():
    with pytest.raises(StreamError, match="not JSON-able"):
        encode_body({"x": object()}, {})


def test_malformed_json_shows_its_first_bytes_only():
    with pytest.raises(StreamError) as caught:
        decode_json(b'{"a": "sk-abcdefghijklmnop' + b"x" * 1000)
    assert '{"a": "' in caught.value.message
    assert len(caught.value.message) < 400
    assert "abcdefghijklmnop" not in shown(caught.value.message, [])


def test_half_a_surrogate_pair_from_a_provider_is_replaced():
    assert decode_json(b'{"text": "a\\ud83d"}') == {"text": "a\ufffd"}
    with pytest.raises(StreamError):
        decode_json(b'{"text": "a\\ud83d"')


def test_an_option_that_cannot_be_honoured_is_reported_once(caplog: pytest.LogCaptureFixture):
    notices = Notices("prov", ("temperature", "transport"))
    options = StreamOptions(temperature=1, session_id="s", cache=False, transport="websocket")
    with caplog.at_level(logging.WARNING, "swink.providers"):
        notices.check(options)
        notices.check(options)
    assert sorted(record.getMessage() for record in caplog.records) == [
        "prov: option 'cache' is ignored: this provider has no such option",
        "prov: option 'session_id' is ignored: this provider has no such option",
        "prov: option 'transport' is ignored: replies are streamed over HTTP",
    ]


# --- servers ---------------------------------------------------------------------------------------------------------


class serving:
    """An aiohttp server with one function for every request."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def __aenter__(self) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)  # type: ignore[arg-type]
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


class raw_server:
    """A TCP server with one function for every connection."""

    def __init__(self, talk: object) -> None:
        self._talk = talk

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)  # type: ignore[arg-type]
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()


@pytest.fixture
async def unused_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


# --- headers that somebody wants sent ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{"Host": "h"}, {"content-length": "1"}, {"Transfer-Encoding": "chunked"}, {"Proxy-Authorization": "Basic eA=="}, {"a b": "c"}, {"": "c"},
     {"x": "two\r\nlines"}, {"x": "nul\0"}, {"x": "日本"}, {"x": 5}, {5: "x"}, "x: y", None],
)  # fmt: skip
def test_headers_of_the_connection_and_headers_that_are_none_are_refused_without_their_values(
    headers: object,
):
    with pytest.raises(InvalidInput) as caught:
        checked_headers(headers)
    assert not any(value in str(caught.value) for value in ("eA==", "two", "nul", "日本"))


def test_a_later_header_wins_and_betas_add_up(monkeypatch: pytest.MonkeyPatch):
    given = checked_headers({"X-Trace": " 1 ", "Anthropic-Beta": "b"})
    own = {"x-trace": "0", "accept": "*/*", "anthropic-beta": "a"}
    assert place(api_key="").check_headers(own, given, {"accept": "text/plain"}) == {
        "x-trace": "1",
        "accept": "text/plain",
        "anthropic-beta": "a,b",
    }


def test_a_secret_header_does_not_travel_in_clear_text_and_is_known_as_a_secret():
    with pytest.raises(AuthError, match="in clear text") as caught:
        place("http://10.1.2.3").check_headers({}, {"x-gateway-key": "gw-5d2a7f3e9b1c"})
    assert "gw-5d2a7f3e9b1c" not in str(caught.value)
    place("https://other.example").check_headers({}, {"x-gateway-auth": "Token gw-5d2a7f3e9b1d"})
    assert "gw-5d2a7f3e9b1d" in sent_keys()
