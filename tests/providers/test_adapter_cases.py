"""What is asked of every adapter alike: behaviour by provider, in one table."""

import json
from typing import Any

import pytest
from adapters import EVERY, KEY, PIECES, AdapterCase
from histories import Stalling, cancel_while_waiting
from loopback import LoopbackServer, MemoryClient, read

from swink.messages import UserMessage
from swink.providers import http
from swink.providers.adapter import LOCAL
from swink.stream import Done, StreamOptions, Timeout

URL = "https://provider.example"
SECRET = "gw-5d2a7f3e9b1c"

every = pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)


async def asked(case: AdapterCase, fn: Any, **options: Any) -> MemoryClient:
    client = MemoryClient(b"".join(case.text), headers={"content-type": case.media_type})
    question = [UserMessage("Hello", timestamp=1.0)]
    result = await read(fn, case.model, question, options=StreamOptions(http=client, **options))
    assert isinstance(result.terminal, Done), result.terminal
    assert result.message.text == "".join(PIECES)
    return client


@every
async def test_headers_go_with_every_request_and_the_last_word_wins(case: AdapterCase):
    plain = await asked(case, case.make(URL, KEY))
    fn = case.make(URL, KEY, headers={"X-Team": "a", "X-Trace": "adapter", case.key_header.title(): SECRET})
    [request] = (await asked(case, fn, headers={"X-TRACE": "request"})).requests
    assert request.headers["x-team"] == "a"
    assert request.headers["x-trace"] == "request"
    assert request.headers[case.key_header] == SECRET
    assert request.headers.keys() == {*plain.requests[0].headers, "x-team", "x-trace"}
    assert json.loads(request.body) == json.loads(plain.requests[0].body)


@every
def test_neither_key_nor_header_shows_and_another_gateway_is_another_asker(case: AdapterCase):
    fn = case.make(URL, KEY, headers={"x-gateway-key": SECRET})
    assert KEY not in repr(fn) + fn.asker()
    assert SECRET not in repr(fn) + fn.asker()
    assert fn.asker() != case.make(URL, KEY).asker()
    assert fn.asker() == case.make(URL, KEY, headers={"X-Gateway-Key": SECRET}).asker()


@every
def test_a_server_on_this_machine_is_given_more_time(case: AdapterCase):
    assert case.make(URL, KEY).timeout == (LOCAL if case.name == "ollama" else Timeout())
    assert case.make("http://127.0.0.1:1", KEY).timeout == (Timeout() if case.name == "proxy" else LOCAL)


@every
async def test_the_raw_payload_is_shown(case: AdapterCase):
    seen: list[Any] = []
    await asked(case, case.make(URL, KEY), on_raw_payload=seen.append)
    said = json.dumps(seen)
    assert all(json.dumps(piece)[1:-1] in said for piece in PIECES)
    assert len(seen) >= len(PIECES) + 1


@pytest.mark.parametrize("status", [200, 500])
@every
async def test_cancelling_gives_the_connection_back(case: AdapterCase, status: int):
    stalling = Stalling(status, case.until_content())
    stalling.headers = {"content-type": case.media_type}
    reading = read(case.make(URL, KEY), case.model, options=StreamOptions(http=stalling))
    await cancel_while_waiting(reading, stalling)


@every
async def test_closing_one_leaves_the_other_its_connections(case: AdapterCase):
    async with LoopbackServer() as server:
        server.reply(b"".join(case.text), headers={"content-type": case.media_type})
        first, second = case.make(server.url, KEY), case.make(server.url, KEY)
        for fn in (first, second):
            assert isinstance((await read(fn, case.model)).terminal, Done)
        await first.aclose()
        await first.aclose()
        assert len(http._shared) == 1
        assert isinstance((await read(second, case.model)).terminal, Done)
        await second.aclose()
        assert len(http._shared) == 0
