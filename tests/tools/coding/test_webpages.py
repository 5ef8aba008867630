"""fetch_url: real servers on loopback, and a corpus of ways to reach what must not be reached."""

import asyncio
import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from calling import call, complaint
from tests.counts import in_cells

from swink.messages import Image
from swink.tools import Tool
from swink.tools.coding import webpages
from swink.tools.coding.addresses import is_allowed, parse_address, parse_networks
from swink.tools.coding.html_text import html_to_text
from swink.tools.coding.webpages import MAX_BODY, Fetcher, UrlRefused, fetch_tools

LOOPBACK = ("127.0.0.0/8", "::1/128")
Serve = Callable[..., Awaitable[str]]


@pytest.fixture
async def hits() -> list[str]:
    return []


@pytest.fixture
async def serve(hits: list[str]) -> AsyncIterator[Serve]:
    """Start a server with a route per path; gives its base URL."""
    runners: list[web.AppRunner] = []

    async def start(
        **routes: Callable[[web.Request], Awaitable[web.StreamResponse]] | web.StreamResponse,
    ) -> str:
        async def answer(request: web.Request) -> web.StreamResponse:
            hits.append(request.path)
            route = routes[request.path.strip("/").split("/")[0] or "index"]
            return await route(request) if callable(route) else route  # type: ignore[operator]

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
def fetch_url() -> Tool:
    return fetch_tools(allowed=LOOPBACK)[0]


async def test_html_becomes_text(fetch_url: Tool, serve: Serve):
    page = "<html><head><title>A  Page</title><script>evil()</script></head><body><h1>Head</h1><p>One &amp; <b>two</b></p><ul><li>a<li>b</ul></body></html>"
    base = await serve(index=web.Response(text=page, content_type="text/html"))
    result = await call(fetch_url, url=base)
    assert result.text == f"[{base}, status 200, text/html]\nA Page\n\n# Head\n\nOne & two\n\n- a\n- b"
    assert result.details["status"] == 200


async def test_other_text_is_given_as_it_is(fetch_url: Tool, serve: Serve):
    base = await serve(data=web.json_response({"a": 1}), plain=web.Response(text="<b>not html</b>"))
    assert (await call(fetch_url, url=f"{base}/data")).text.endswith('{"a": 1}')
    assert (await call(fetch_url, url=f"{base}/plain")).text.endswith("<b>not html</b>")


async def test_redirects_are_followed_and_counted(fetch_url: Tool, serve: Serve, hits: list[str]):
    async def hop(request: web.Request) -> web.Response:
        number = int(request.path.rsplit("/", 1)[1])
        return (
            web.Response(text="arrived")
            if number == 0
            else web.Response(status=302, headers={"location": f"/hop/{number - 1}"})
        )

    base = await serve(hop=hop)
    result = await call(fetch_url, url=f"{base}/hop/5")
    assert result.text.endswith("arrived")
    assert result.details["url"] == f"{base}/hop/0"
    assert "more than 5 redirects" in await complaint(fetch_url, url=f"{base}/hop/6")


async def test_an_error_status_is_an_error_with_its_text(fetch_url: Tool, serve: Serve):
    base = await serve(index=web.Response(status=404, text="no such page"))
    result = await call(fetch_url, url=base)
    assert result.is_error
    assert "status 404" in result.text
    assert "no such page" in result.text


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("naïve – ok".encode("cp1252"), "text/plain; charset=windows-1252"),
        ("naïve – ok".encode("utf-16"), "text/plain"),
        ("naïve – ok".encode(), "text/plain"),
        ('<meta charset="iso-8859-15">naïve – ok'.encode("iso-8859-15", "xmlcharrefreplace"), "text/html"),
        ("naïve – ok".encode(), "text/plain; charset=no-such-charset"),
        ("naïve – ok".encode("cp1252"), "text/plain"),
    ],
)
async def test_charsets(fetch_url: Tool, serve: Serve, body: bytes, content_type: str):
    base = await serve(index=web.Response(body=body, headers={"content-type": content_type}))
    assert (await call(fetch_url, url=base)).text.endswith("naïve – ok")


async def test_binary_is_refused_and_images_are_looked_at(fetch_url: Tool, serve: Serve):
    base = await serve(
        zip=web.Response(body=b"PK\x03\x04" + bytes(50)),
        png=web.Response(body=b"\x89PNG\r\n\x1a\n" + bytes(20), content_type="image/png"),
    )
    assert "It is a zip archive" in await complaint(fetch_url, url=f"{base}/zip")
    assert isinstance((await call(fetch_url, url=f"{base}/png")).content[1], Image)


async def test_a_large_body_is_cut(fetch_url: Tool, serve: Serve):
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"content-type": "text/plain"})
        await response.prepare(request)
        while sent < 200 << 20:
            await response.write(b"x" * 65536)
            sent += 65536
        return response

    base = await serve(index=endless)
    result = await call(fetch_url, url=base)
    assert result.details["cut"]
    assert result.details["bytes"] == MAX_BODY
    assert len(result.text) < 60_000
    assert sent < 100 << 20


@in_cells("packing", ["gzip", "deflate"], every=2)
async def test_a_packed_bomb_is_unpacked_only_to_the_cap(fetch_url: Tool, serve: Serve, packing: str):
    bomb = gzip.compress(b"z" * (64 << 20)) if packing == "gzip" else zlib.compress(b"z" * (64 << 20))
    base = await serve(
        index=web.Response(body=bomb, headers={"content-encoding": packing, "content-type": "text/plain"})
    )
    result = await call(fetch_url, url=base)
    assert result.details["bytes"] == MAX_BODY
    odd = await serve(
        index=web.Response(body=b"x", headers={"content-encoding": "br", "content-type": "text/plain"})
    )
    assert "packs its answer with br" in await complaint(fetch_url, url=odd)


async def test_packed_bodies_of_every_form_are_unpacked(fetch_url: Tool, serve: Serve):
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    forms = {
        "parts": ("gzip", gzip.compress(b"first ") + gzip.compress(b"second")),
        "raw": ("deflate", raw.compress(b"first second") + raw.flush()),
        "wrapped": ("deflate", zlib.compress(b"first second")),
        "old": ("x-gzip", gzip.compress(b"first second")),
        "trailing": ("gzip", gzip.compress(b"first second") + b"\0" * 50),
    }
    base = await serve(
        **{
            name: web.Response(body=body, headers={"content-encoding": packing, "content-type": "text/plain"})
            for name, (packing, body) in forms.items()
        }
    )
    for name in forms:
        assert "]\nfirst second" in (await call(fetch_url, url=f"{base}/{name}")).text, name


async def test_what_follows_a_packed_body_is_not_kept(fetch_url: Tool, serve: Serve):
    """A small gzip member, and then garbage without end."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/plain", "content-encoding": "gzip"})
        await response.prepare(request)
        await response.write(gzip.compress(b"kept"))
        while True:
            await response.write(bytes(65536))

    base = await serve(index=endless)
    async with asyncio.timeout(60):
        assert "kept" in (await call(fetch_url, url=base, timeout=50)).text


SLOW = {
    "punycode": (b"a-" + b"b" * 1_000_000, "text/plain; charset=punycode"),
    "idna": (b"a" * 1_000_000, "text/plain; charset=idna"),
    "spaces": (b"<pre>" + b" " * 1_900_000, "text/html"),
    "dropped": (b"<svg>" * 180_000 + b"</math>" * 140_000, "text/html"),
    "tags": (b"<x>" * 600_000, "text/html"),
    "links": (b"<a href=y>z</a>" * 120_000, "text/html"),
}


@pytest.mark.parametrize("kind", SLOW)
async def test_reading_a_page_is_inside_the_time_limit_and_off_the_event_loop(
    fetch_url: Tool, serve: Serve, kind: str, monkeypatch: pytest.MonkeyPatch
):
    build, threads = webpages._build_result, []

    def note(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return build(*arguments)

    monkeypatch.setattr(webpages, "_build_result", note)
    body, content_type = SLOW[kind]
    base = await serve(index=web.Response(body=body, headers={"content-type": content_type}))
    task = asyncio.create_task(call(fetch_url, url=base + "/" + "d/" * 500, timeout=0.7))
    await asyncio.wait([task])
    assert threading.get_ident() not in threads
    if error := task.exception():
        assert "did not answer within 0.7 s" in str(error)


async def test_a_server_that_stalls_is_given_up(fetch_url: Tool, serve: Serve):
    async def stall(request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    base = await serve(index=stall)
    assert "did not answer within 0.3 s" in await complaint(fetch_url, url=base, timeout=0.3)


async def test_cancellation_closes_the_connection(fetch_url: Tool, serve: Serve, hits: list[str]):
    async def stall(request: web.Request) -> web.Response:
        await asyncio.sleep(600)
        return web.Response()

    base = await serve(index=stall)
    task = asyncio.create_task(call(fetch_url, url=base))
    async with asyncio.timeout(60):
        while not hits:
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_dead_server_is_an_error_with_the_reason(fetch_url: Tool):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    assert "could not be fetched: ClientConnectorError" in await complaint(
        fetch_url, url=f"http://127.0.0.1:{port}/"
    )


async def test_no_cookie_no_credential_no_proxy(
    serve: Serve, fetch_url: Tool, monkeypatch: pytest.MonkeyPatch, hits: list[str]
):
    headers: dict[str, str] = {}

    async def show(request: web.Request) -> web.Response:
        headers.update(request.headers)
        return web.Response(text="ok", headers={"set-cookie": "a=b"})

    base = await serve(index=show)
    proxy = await serve(index=web.Response(text="proxied"))
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("HTTP_PROXY", proxy)
    for _ in range(2):
        assert (await call(fetch_url, url=base)).text.endswith("ok")
    assert not {"cookie", "authorization", "referer"} & {name.lower() for name in headers}


# ---- what must not be reached


FORBIDDEN = [
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://127.1:{port}/", "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://0177.0.0.1:{port}/",
    "http://0:{port}/", "http://0.0.0.0:{port}/", "http://[::1]:{port}/", "http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://[::]:{port}/",
    "http://127.0.0.1.:{port}/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/",
    "http://[fd00::1]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://224.0.0.1/", "http://255.255.255.255/",
    "http://[ff02::1]/", "http://192.0.2.1/", "http://198.18.0.1/", "http://[2001:db8::1]/", "http://[::127.0.0.1]/", "http://①②⑦.⓪.⓪.①:{port}/", "http://127。0。0。1:{port}/",
]  # fmt: skip
NOT_FETCHED = [
    "file:///etc/passwd", "ftp://example.com/", "gopher://127.0.0.1/", "data:text/plain,x", "//127.0.0.1/", "example.com", "", "http://", "http:///x", "javascript:alert(1)",
    "http://user:password@example.com/", "http://example.com:99999/", "http://exa mple.com/", "http://example.com/a\r\nHost: evil", "http://[::1", "https:example.com",
]  # fmt: skip


@pytest.mark.parametrize("url", FORBIDDEN)
async def test_private_and_special_addresses_are_not_reached(url: str, serve: Serve, hits: list[str]):
    base = await serve(index=web.Response(text="CANARY"))
    said = await complaint(fetch_tools()[0], url=url.format(port=base.rsplit(":", 1)[1]), timeout=5)
    assert "CANARY" not in said
    assert (
        "not an address of the public internet" in said
        or "not known" in said
        or "not a URL" in said
        or "could not be fetched: InvalidU" in said
    )
    assert hits == []


@pytest.mark.parametrize("url", NOT_FETCHED)
async def test_other_urls_are_refused(url: str):
    said = await complaint(fetch_tools()[0], url=url, timeout=5)
    assert "not fetched" in said or "not a URL" in said


@pytest.mark.parametrize(
    "target",
    [
        "http://10.0.0.1/",
        "http://127.0.0.2:{port}/",
        "//127.0.0.2:{port}/",
        "http://[::1]:{port}/",
        "file:///etc/passwd",
        "http://u:p@127.0.0.1/",
        "http://2130706434:{port}/",
    ],
)
async def test_a_redirect_is_checked_like_the_first_address(target: str, serve: Serve, hits: list[str]):
    other = await serve(index=web.Response(text="CANARY"))
    base = await serve(
        start=web.Response(status=302, headers={"location": target.format(port=other.rsplit(":", 1)[1])})
    )
    said = await complaint(fetch_tools(allowed=["127.0.0.1/32"])[0], url=f"{base}/start", timeout=5)
    assert (
        "not an address of the public internet" in said
        or "not fetched" in said
        or "could not be fetched: InvalidU" in said
    )
    assert hits == ["/start"]


METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.42.42",
    "169.254.0.23",
    "169.254.1.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:42::42",
    "fe80::a9fe:a9fe",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
    "2001:0:808:808:0:0:5601:5601",
    "::ffff:0:a9fe:a9fe",
    "2606:4700::5efe:a9fe:a9fe",
    "2606:4700::200:5efe:a9fe:aa02",
    "2606:4700:64::a9fe:a9fe",
    "64:ff9b::a83f:8110",
    "::ffff:168.63.129.16",
]
EVERYTHING = parse_networks(
    [
        "0.0.0.0/0",
        "::/0",
        "169.254.0.0/16",
        "169.254.169.254/31",
        "fd00:ec2::/32",
        "64:ff9b::/96",
        "100.64.0.0/10",
        "fe80::/10",
    ]
)


@pytest.mark.parametrize("text", METADATA)
def test_metadata_services_are_refused_even_in_allowed_networks(text: str):
    address = parse_address(text)
    assert address is not None
    assert not is_allowed(address)
    assert not is_allowed(address, EVERYTHING)
    assert is_allowed(address, parse_networks([text if "ffff:1" not in text else text.rsplit(":", 1)[1]]))


def test_an_address_inside_an_address_is_judged_too():
    for text in ("64:ff9b::7f00:1", "2002:7f00:1::", "64:ff9b::a00:1", "2001:0:808:808:0:0:80ff:fffe"):
        assert not is_allowed(parse_address(text), parse_networks(["::/0"])), text  # type: ignore[arg-type]
    assert is_allowed(parse_address("64:ff9b::808:808"), parse_networks(["64:ff9b::/96"]))  # type: ignore[arg-type]
    assert is_allowed(parse_address("::1"), parse_networks(["::/0"]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "0xa9.254.0251.254", "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]", "169%2e254%2e169%2e254", "metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data",
        "168.63.129.16", "100.100.100.200", "[fd00:ec2::254]", "169。254。169。254",
    ],
)  # fmt: skip
async def test_metadata_services_are_not_reached_in_any_spelling(host: str):
    async def resolve(name: str, port: int) -> list[str]:
        if name.startswith(("metadata", "METADATA", "instance")):
            return ["127.0.0.1"]
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        return [str(address[0]) for *_, address in found]

    tool = fetch_tools(allowed=["0.0.0.0/0", "::/0"], resolve=resolve)[0]
    said = await complaint(tool, url=f"http://{host}/latest/meta-data/", timeout=5)
    assert "not fetched" in said or "not known" in said or "InvalidU" in said, said


async def test_one_bad_answer_among_good_ones_is_enough(serve: Serve, hits: list[str]):
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1", "10.0.0.1"]

    base = await serve(index=web.Response(text="CANARY"))
    tool = fetch_tools(allowed=["127.0.0.1/32"], resolve=resolve)[0]
    said = await complaint(tool, url=f"http://mixed.test:{base.rsplit(':', 1)[1]}/")
    assert "mixed.test (10.0.0.1) is not an address of the public internet" in said
    assert hits == []


async def test_a_name_that_resolves_differently_the_second_time_gains_nothing(serve: Serve, hits: list[str]):
    """DNS rebinding: the connection goes to the address that was checked, not to what the name says by then."""
    answers = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"]]
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    base = await serve(
        index=web.Response(text="checked"), again=web.Response(status=302, headers={"location": "/"})
    )
    port = base.rsplit(":", 1)[1]
    tool = fetch_tools(allowed=["127.0.0.1/32"], resolve=resolve)[0]
    assert (await call(tool, url=f"http://rebind.test:{port}/")).text.endswith("checked")
    assert len(asked) == 1
    asked.clear()
    assert "rebind.test (127.0.0.2)" in await complaint(tool, url=f"http://rebind.test:{port}/again")


async def test_the_gate_is_where_the_socket_is_made():
    """Even if the check of names were skipped, no socket is made for a forbidden address."""
    fetcher = Fetcher()
    with pytest.raises(UrlRefused):
        fetcher._socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80)))


async def test_certificates_are_checked(fetch_url: Tool, tmp_path):
    pytest.importorskip("cryptography")
    context = _self_signed(tmp_path)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        said = await complaint(fetch_url, url=f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert "Certificate" in said


def _self_signed(tmp_path) -> ssl.SSLContext:
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1)).sign(key, hashes.SHA256())
    )  # fmt: skip
    (tmp_path / "key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    (tmp_path / "cert").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    return context


def test_public_addresses_are_public():
    for text in (
        "8.8.8.8",
        "1.1.1.1",
        "172.15.255.255",
        "172.32.0.1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "::ffff:8.8.8.8",
        "192.0.1.1",
    ):
        address = parse_address(text)
        assert address is not None
        assert is_allowed(address), text
    assert is_allowed(parse_address("::ffff:127.0.0.1"), parse_networks(["127.0.0.0/8"]))  # type: ignore[arg-type]


# ---- HTML


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<br>b", "a\nb"),
        ("<pre>x\n  y</pre>z", "```\nx\n  y\n```\nz"),
        ("<p>see <a href='/x'>this</a>.</p>", "see this <http://h/x>."),
        ("<a href='javascript:x'>no</a>", "no"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "| 1 | 2\n| 3"),
        ("<style>p{}</style><script>if (a<b) x</script>t", "t"),
        ("a &lt;b&gt; &#x41; &nbsp;c", "a <b> A c"),
        ("<p>unclosed <b>tags", "unclosed tags"),
        ("<img alt='cat'><code>f()</code>", "[image: cat]`f()`"),
        ("x<!-- hidden -->y", "xy"),
        ("<svg><text>no</text></svg>yes", "yes"),
        ("", ""),
    ],
)
def test_html_to_text(html: str, text: str):
    assert html_to_text(html, "http://h/")[1].strip() == text


@in_cells(
    "html",
    [
        "<" * 100_000,
        "<a " * 60_000,
        "<!--" * 50_000,
        "</" * 50_000,
        "<![CDATA[" * 30_000,
        "&" * 200_000,
        "<div>" * 50_000,
        '<a "' * 50_000,
        "<p x='" * 40_000,
        "<script>" * 20_000,
        "<title>" * 20_000,
        "<a href=x>" * 20_000,
    ],
    every=4,
)
def test_hostile_html_takes_no_time(html: str):
    html_to_text(html)  # its square would take longer than a test may
