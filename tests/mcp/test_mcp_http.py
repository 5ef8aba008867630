"""MCP over streamable HTTP."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from mcp_servers import call, http_server, leftovers, results
from session_server import KeptServer, SessionServer

from swink import Image
from swink.errors import MisuseError
from swink.mcp import HttpServer, McpError, McpServers


def web(url: str, **options: Any) -> HttpServer:
    return HttpServer("web", url, **{"requires_approval": False, **options})


async def test_a_real_server_works(http_url: str):
    async with McpServers([web(http_url)]) as servers:
        add, echo, picture, fail = await results(
            servers,
            call("web_add", 1, a=2, b=3),
            call("web_echo", 2, text="hi"),
            call("web_picture", 3),
            call("web_fail", 4, text="no luck"),
        )
    assert (add.text, echo.text, fail.is_error) == ("5", "hi", True)
    assert isinstance(picture.content[0], Image)
    assert leftovers() == []


async def test_cancelling_reaches_the_server(http_url: str, tmp_path: Path):
    mark = tmp_path / "mark"
    async with McpServers([web(http_url, timeout=0.3)]) as servers:
        (result,) = await results(servers, call("web_slow", seconds=60, mark=str(mark)))
        assert "timed out" in result.text
        for _ in range(3_000):
            if mark.exists():
                break
            await asyncio.sleep(0.02)
        assert mark.exists()
        assert (await results(servers, call("web_add", a=1, b=1)))[0].text == "2"


async def test_many_calls_at_once_get_their_own_answers(http_url: str):
    async with McpServers([web(http_url)]) as servers:
        texts = [
            result.text
            for result in await results(
                servers, *(call("web_echo", number, text=f"n{number}") for number in range(30))
            )
        ]
    assert texts == [f"n{number}" for number in range(30)]


async def test_two_clients_of_one_server_do_not_meet(http_url: str):
    async with McpServers([web(http_url)]) as one, McpServers([web(http_url)]) as other:
        answers = await asyncio.gather(
            *(
                results(servers, call("web_echo", text=str(number)))
                for number, servers in enumerate([one, other] * 5)
            )
        )
    assert [answer[0].text for answer in answers] == [str(number) for number in range(10)]


async def test_a_server_that_was_away_is_reached_again():
    with http_server() as (port, process):
        async with McpServers([web(f"http://127.0.0.1:{port}/mcp")]) as servers:
            assert (await results(servers, call("web_add", a=1, b=1)))[0].text == "2"
            process.kill()
            process.wait()
            (lost,) = await results(servers, call("web_add", a=1, b=1))
            assert lost.is_error
            assert "was lost" in lost.text
            (away,) = await results(servers, call("web_add", a=1, b=1))
            assert "cannot be reached" in away.text
            with http_server(port):
                assert (await results(servers, call("web_add", a=2, b=2)))[0].text == "4"


async def test_a_session_the_server_has_forgotten_is_opened_anew_and_no_call_is_lost():
    async with SessionServer() as server, McpServers([web(server.url)]) as servers:
        assert (await results(servers, call("web_who")))[0].text == "session-1"
        server.sessions.clear()
        assert (await results(servers, call("web_who")))[0].text == "session-2"


async def test_nobody_at_the_address_is_an_error_without_the_key():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(McpError) as raised:
        async with McpServers(
            [web(f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer hunter2hunter2"})]
        ):
            pass
    assert "'web' cannot be reached" in str(raised.value)
    assert "hunter2" not in str(raised.value)


async def test_headers_go_with_every_request_and_a_refusal_is_reported():
    seen: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(McpError, match="'web' refuses the Authorization header"):
            async with McpServers(
                [web(f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "Bearer abc"})]
            ):
                pass
    assert seen
    assert all(b"authorization: bearer abc" in request.lower() for request in seen)


@pytest.mark.parametrize(
    "url",
    [
        "http://192.168.0.9/mcp",
        "http://tools.example/mcp",
        "http://localhost.evil.example/mcp",
        "http://0.0.0.0/mcp",
    ],
)
def test_a_header_with_a_secret_does_not_travel_in_clear_text(url: str):
    with pytest.raises(MisuseError, match="use https") as raised:
        web(url, headers={"Authorization": "Bearer hunter2hunter2"})
    assert "hunter2" not in str(raised.value)
    assert web(url, headers={"X-Team": "blue"})
    assert web(url, headers={"Authorization": "Bearer hunter2hunter2"}, allow_http=True)
    assert web(url.replace("http:", "https:"), headers={"Authorization": "Bearer hunter2hunter2"})


async def test_a_call_that_dies_on_a_kept_connection_is_not_sent_on_the_other_kept_ones():
    async with KeptServer() as server, McpServers([web(server.url)]) as servers:
        server.together = asyncio.Barrier(8)  # so that eight connections are kept
        answers = await results(servers, *(call("web_who", number) for number in range(8)))
        assert not any(answer.is_error for answer in answers)
        server.together, server.is_dying = asyncio.Barrier(1), True
        server.calls.clear()
        (lost,) = await results(servers, call("web_who"))
        assert "whether 'who' took effect is unknown" in lost.text
        assert len(server.calls) == 1
        assert server.calls[0] > 0, "it went out on a kept connection"
        server.is_dying = False
        (answer,) = await results(servers, call("web_who"))
        assert not answer.is_error
