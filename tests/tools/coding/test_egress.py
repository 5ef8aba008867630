"""A network of domains: a command reaches what is on the list or approved, through a proxy outside, and nothing else at all."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from calling import call, named, shell

from swink.errors import MisuseError
from swink.tools import coding_tools
from swink.tools.coding import egress
from swink.tools.coding.addresses import parse_networks
from swink.tools.coding.domains import Domains, canonicalize
from swink.tools.coding.egress import DomainApproval, Egress
from swink.tools.coding.process import Limits
from swink.tools.coding.sandbox import Sandbox, SandboxUnavailable

LOOPBACK = parse_networks(["127.0.0.0/8"])
linux = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")


@asynccontextmanager
async def web(text: str = "hello") -> AsyncIterator[tuple[int, list[bytes]]]:
    """A loopback server: its port, and the requests it got."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode()
            )
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], requests


@asynccontextmanager
async def proxy(
    tmp_path: Path, approval: DomainApproval, allowed: Any = LOOPBACK, **names: str
) -> AsyncIterator[str]:
    async def resolve(host: str, port: int) -> list[str]:
        if host not in names.values() and host.replace(".", "_") not in names:
            raise OSError("unknown name")
        return [names[host.replace(".", "_")]]

    path = str(tmp_path / "proxy")
    async with Egress(path, approval, allowed, resolve):
        yield path


async def ask(path: str, request: str | bytes, *, then: bytes = b"") -> str:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(request.encode("latin-1") if isinstance(request, str) else request)
    try:
        async with asyncio.timeout(20):
            if then:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(then)
            return (await reader.read()).decode()
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Docs.Example.ORG", "docs.example.org"), ("docs.example.org.", "docs.example.org"), ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"), ("localhost", "localhost"), ("a_b.example", "a_b.example"),
        ("127.0.0.1", None), ("127.1", None), ("2130706433", None), ("0x7f.0.0.1", None), ("0x7f000001", None), ("0177.0.0.1", None), ("::1", None),
        ("[::1]", None), ("", None), (".", None), ("a..b", None), ("-a.example", None), ("a b", None), ("a\0.example", None), ("a/b", None),
        ("example.com@evil.org", None), ("x" * 64 + ".example", None), ("a." * 130, None), ("evil.org#.example.com", None), ("１２７.0.0.1", None),
    ],
)  # fmt: skip
def test_names_are_brought_to_one_form_and_addresses_are_none(host: str, name: str | None):
    assert canonicalize(host) == name


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("docs.example.org", 443, True), ("docs.example.org", 80, True), ("docs.example.org", 22, False), ("docs.example.org", 8443, False),
        ("example.org", 443, False), ("a.docs.example.org", 443, False), ("a.example.com", 443, True), ("a.b.example.com", 443, True),
        ("example.com", 443, False), ("evil-example.com", 443, False), ("evilexample.com", 443, False), ("example.com.evil.org", 443, False),
        ("docs.example.org.evil.org", 443, False), ("local.test", 8080, True), ("local.test", 443, False),
    ],
)  # fmt: skip
def test_a_list_allows_what_it_names(host: str, port: int, allowed: bool):
    assert Domains(["docs.example.org", "*.example.com", "local.test:8080"]).allows(host, port) is allowed


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.",
        "http://example.com",
        "example.com/path",
        "127.0.0.1",
        "a*.example.com",
        "a.example:0",
        "a.example:x",
        "*.*.com",
    ],
)
def test_a_list_with_something_else_is_a_mistake(entry: str, tmp_path: Path):
    with pytest.raises(MisuseError, match="is no domain"):
        Sandbox(tmp_path, "workspace+net", net=[entry])


def test_only_the_level_with_a_network_takes_domains(tmp_path: Path):
    for level in ("none", "workspace"):
        with pytest.raises(MisuseError, match=r"choose sandbox='workspace\+net'"):
            coding_tools(tmp_path, sandbox=level, net=["docs.example.org"])


async def test_what_is_allowed_is_passed_on_and_the_rest_is_told_how_to_allow_it(tmp_path: Path):
    async with (
        web() as (port, requests),
        proxy(tmp_path, DomainApproval(Domains([f"docs.test:{port}"]), None), docs_test="127.0.0.1") as path,
    ):
        assert "hello" in await ask(
            path,
            f"GET http://docs.test:{port}/a?b=c HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\nX: y\r\n\r\n",
        )
        assert (
            requests[0]
            == f"GET /a?b=c HTTP/1.1\r\nHost: docs.test:{port}\r\nConnection: close\r\nX: y\r\n\r\n".encode()
        )
        tunnel = await ask(
            path, f"CONNECT DOCS.test.:{port} HTTP/1.1\r\n\r\n", then=b"GET / HTTP/1.1\r\n\r\n"
        )
        assert tunnel.endswith("hello")
        refused = await ask(path, f"CONNECT other.test:{port} HTTP/1.1\r\n\r\n")
        assert refused.startswith("HTTP/1.1 403")
        assert f"net=['other.test:{port}']" in refused
        assert len(requests) == 2


@pytest.mark.parametrize(
    "request_text",
    [
        "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n", "CONNECT [::1]:{port} HTTP/1.1\r\n\r\n", "CONNECT 127.1:{port} HTTP/1.1\r\n\r\n",
        "CONNECT 2130706433:{port} HTTP/1.1\r\n\r\n", "GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n", "CONNECT docs.test:{port}@127.0.0.1:{port} HTTP/1.1\r\n\r\n",
        "GET http://docs.test:{port}@other.test:{port}/ HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: docs.test\r\n\r\n", "CONNECT docs.test:22 HTTP/1.1\r\n\r\n",
        "GET https://docs.test:{port}/ HTTP/1.1\r\n\r\n", "GET ftp://docs.test:{port}/ HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n", "GET http://docs.test:{port}/ HTTP/2\r\n\r\n",
        "CONNECT other.test\\.docs.test:{port} HTTP/1.1\r\n\r\n", "GET http://docs.test:{port}/ HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n", "CONNECT :{port} HTTP/1.1\r\n\r\n",
        "GET http://docs.test:{port}/ HTTP/1.1\r\nHost : other.test\r\n\r\n", "GET http://docs.test:{port}/ HTTP/1.1\r\n\x0bHost: other.test\r\n\r\n",
        "GET http://docs.test:{port}/ HTTP/1.1\r\nHost\x00: other.test\r\n\r\n", "GET http://docs.test:{port}/ HTTP/1.1\r\nnothing\r\n\r\n",
        "GET http://docs.test:99999/ HTTP/1.1\r\n\r\n", "CONNECT private.test:{port} HTTP/1.1\r\n\r\n",
    ],
)  # fmt: skip
async def test_nothing_else_is_passed_on(tmp_path: Path, request_text: str):
    domains = DomainApproval(Domains(["docs.test:{port}".replace("{port}", "1"), "private.test:1"]), None)
    async with web() as (port, requests):
        approval = DomainApproval(Domains([f"docs.test:{port}", f"private.test:{port}"]), None)
        async with proxy(
            tmp_path, approval, docs_test="127.0.0.1", private_test="10.0.0.1", other_test="127.0.0.1"
        ) as path:
            answer = await ask(path, request_text.replace("{port}", str(port)))
        assert answer.startswith(("HTTP/1.1 403", "HTTP/1.1 400")), answer
        assert requests == []
    assert domains


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "169.254.169.254", "127.0.0.1", "::1", "fd00::1", "::ffff:127.0.0.1", "100.100.100.200"],
)
async def test_names_of_private_addresses_are_refused(tmp_path: Path, address: str):
    async with proxy(tmp_path, DomainApproval(Domains(["docs.test"]), None), (), docs_test=address) as path:
        answer = await ask(path, "CONNECT docs.test:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403")
    assert "not an address of the public internet" in answer


@pytest.mark.parametrize("kind", ["plain", "async", "raises", "truthy"])
async def test_a_new_domain_is_asked_about_once(tmp_path: Path, kind: str):
    asked: list[str] = []

    def plain(name: str) -> Any:
        asked.append(name)
        if kind == "raises":
            raise RuntimeError("no")
        return "yes" if kind == "truthy" else name.startswith("good")

    async def later(name: str) -> bool:
        await asyncio.sleep(0.01)
        return plain(name)

    async with web() as (port, _):
        approval = DomainApproval(Domains([]), later if kind == "async" else plain)
        async with proxy(tmp_path, approval, good_test="127.0.0.1", bad_test="127.0.0.1") as path:
            for host in ("good.test", "bad.test"):
                answers = await asyncio.gather(
                    *(ask(path, f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n") for _ in range(3))
                )
                passed = host == "good.test" and kind in ("plain", "async")
                assert all(("hello" in answer) is passed for answer in answers), answers
    assert asked == [f"good.test:{port}", f"bad.test:{port}"]


async def test_an_approval_that_fails_is_logged_and_approves_nothing(caplog: pytest.LogCaptureFixture):
    def fail(name: str) -> bool:
        raise LookupError("no answer")

    assert not await DomainApproval(Domains([]), fail).allows("docs.test", 443)
    (record,) = [record for record in caplog.records if record.name == "swink.tools"]
    assert record.getMessage() == "approve_domain failed, so docs.test is not reached"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


async def test_slow_and_long_requests_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(egress, "HEAD_TIMEOUT", 0.2)
    monkeypatch.setattr(egress, "MAX_CONNECTIONS", 3)
    async with proxy(tmp_path, DomainApproval(Domains([]), None)) as path:
        assert (await ask(path, "GET http://a.test/ HTTP/1.1\r\nX: y\r\n")).startswith("HTTP/1.1 408")
        assert (await ask(path, "GET http://a.test/ HTTP/1.1\r\nX: " + "y" * 100_000)).startswith(
            "HTTP/1.1 431"
        )
        silent = [await asyncio.open_unix_connection(path) for _ in range(6)]
        answers: list[bytes] = []
        async with asyncio.timeout(20):
            for reader, writer in silent:
                answers.append(await reader.read())
                writer.close()
        heard = [answer for answer in answers if answer]
        assert 1 <= len(heard) <= 3
        assert all(answer.startswith(b"HTTP/1.1 408") for answer in heard)
        assert (await ask(path, "nonsense\r\n\r\n")).startswith("HTTP/1.1 400")


def open_sockets() -> set[str]:
    """Every open socket of this process; none where there is no list of them."""
    found: set[str] = set()
    for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else ():
        with suppress(OSError):
            if (target := os.readlink(f"/proc/self/fd/{name}")).startswith("socket:"):
                found.add(target)
    return found


async def test_nothing_of_a_proxy_is_left_when_it_ends(tmp_path: Path):
    before = open_sockets()
    async with web() as (port, _):
        async with proxy(
            tmp_path, DomainApproval(Domains([f"a.test:{port}"]), None), a_test="127.0.0.1"
        ) as path:
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(f"CONNECT a.test:{port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            idle = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        writer.close()
        idle[1].close()
        assert not Path(path).exists()
    await asyncio.sleep(0.05)
    assert {task.get_name() for task in asyncio.all_tasks()} == {asyncio.current_task().get_name()}  # type: ignore[union-attr]
    assert open_sockets() <= before


FETCH = (
    'python3 -c "import urllib.request as r, sys; print(r.urlopen(sys.argv[1], timeout=5).read().decode())"'
)


@linux
async def test_a_command_reaches_the_domains_and_nothing_else(tmp_path: Path, need):
    need("bubblewrap")
    with socket.socket() as bystander:
        bystander.bind(("127.0.0.1", 0))
        bystander.listen()
        async with web() as (port, requests):
            box = Sandbox(
                tmp_path,
                "workspace+net",
                net=[f"localhost:{port}"],
                net_from=["127.0.0.0/8"],
                backends=("bubblewrap",),
            )
            # By name through the proxy: the usual exception for localhost is taken away.
            code, output = await shell(
                box, f"no_proxy= NO_PROXY= {FETCH} http://localhost:{port}/ && echo fine"
            )
            assert (code, output) == (0, "hello\nfine\n"), output
            assert len(requests) == 1
            _, output = await shell(
                box,
                f"{FETCH} http://localhost:{port}/; {FETCH} http://127.0.0.1:{bystander.getsockname()[1]}/; {FETCH} http://other.test/ 2>&1;"
                f"echo x > /dev/tcp/127.0.0.1/{port}; echo x > /dev/udp/127.0.0.1/{port}; ls /run/swink; env | grep -i _proxy",
            )
            assert "hello" not in output
            assert "403" in output
            assert "HTTPS_PROXY=http://127.0.0.1:3128" in output
            assert len(requests) == 1
        bystander.setblocking(False)
        with pytest.raises(BlockingIOError):
            bystander.accept()


@linux
async def test_a_new_domain_of_a_command_is_approved_or_refused(tmp_path: Path, need):
    need("bubblewrap")
    asked: list[str] = []

    async def approve(name: str) -> bool:
        asked.append(name)
        return name.startswith("localhost")

    async with web() as (port, _):
        tools = coding_tools(
            tmp_path, sandbox="workspace+net", net=[], approve_domain=approve, fetch_from=["127.0.0.0/8"]
        )
        bash = named(tools, "bash")
        command = f"no_proxy= NO_PROXY= {FETCH} http://localhost:{port}/; {FETCH} http://other.test:81/"
        for _ in range(2):
            result = await call(bash, command=command)
            assert "hello" in result.text, result.text
            assert "403" in result.text
    assert asked == [f"localhost:{port}", "other.test:81"]


@linux
async def test_the_forwarder_is_no_child_of_the_command_and_ends_with_it(tmp_path: Path, need):
    need("bubblewrap")
    box = Sandbox(tmp_path, "workspace+net", net=["docs.test"], backends=("bubblewrap",))
    code, output = await shell(
        box, "python3 -c 'import os; os.wait()' 2>&1 | tail -1; exit 7", Limits(wall=10)
    )
    assert code == 7
    assert "ChildProcessError" in output
    waiting = asyncio.ensure_future(shell(box, "sleep 20"))
    await asyncio.sleep(0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not list(Path(box._own_directory()).glob("proxy-*"))


@linux
async def test_landlock_cannot_have_domains(tmp_path: Path, need):
    need("landlock")
    with pytest.raises(SandboxUnavailable, match="Landlock cannot confine the network to domains"):
        await Sandbox(tmp_path, "workspace+net", net=["docs.test"], backends=("landlock",)).backend()
