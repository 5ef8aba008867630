"""fetch_url: a page or file from the public internet, as text.

Every address is checked where the connection is made: what the name resolves to, what a redirect points at,
and an address written out in the URL, in any spelling. The connection goes to the address that was checked,
so a name that resolves differently the second time does not help an attacker. No proxy, no cookies, no
credentials. Decompressing and converting a page count against the timeout too, and happen off the event loop.
"""

import asyncio
import base64
import codecs
import re
import socket
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urljoin, urlsplit

from msgspec import Meta, Struct

from swink.messages import Base64Source, Image, Text
from swink.system import VERSION
from swink.system.threads import in_thread
from swink.tools import Tool, ToolError, ToolResult, tool
from swink.tools.coding.addresses import (
    Network,
    Resolve,
    is_allowed,
    is_metadata_name,
    parse_address,
    parse_networks,
    resolve_host,
)
from swink.tools.coding.html_text import html_to_text
from swink.tools.coding.text import describe_binary, detect, detect_image, make_printable

if TYPE_CHECKING:
    import aiohttp

MAX_BODY = 2 << 20
MAX_TEXT = 50_000
MAX_REDIRECTS = 5
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.I)
# Other codecs of Python take quadratic time (punycode, idna) or are no charsets of the web.
_CHARSETS = re.compile(
    r"ascii|utf-?(?:8|16|32)(?:-sig|-[lb]e)?|iso8859-\d+|cp(?:125[0-8]|874|866|932|949|950)|koi8-[rut]"
    r"|tis-620|mac-\w+|shift_jis\w*|euc_(?:jp|kr|jis_2004|jisx0213)|iso2022_(?:jp|kr)\w*|gb2312|gbk|gb18030"
    r"|hz|big5\w*|johab"
)

_PACKINGS = ("gzip", "x-gzip", "deflate")


class Page(Struct, frozen=True):
    """An answer of a server, its body as it was sent: packed, and cut if it is too long."""

    url: str
    status: int
    content_type: str
    packing: str
    body: bytes
    is_cut: bool


class UrlRefused(ToolError):
    """The URL leads somewhere that is not fetched."""


def fetch_tools(*, allowed: Iterable[str] = (), resolve: Resolve | None = None) -> list[Tool]:
    """fetch_url. `allowed` are networks to fetch from besides the public internet, such as 127.0.0.0/8.

    Args:
        resolve: finds the addresses of a host instead of the system
    """
    fetcher = Fetcher(parse_networks(allowed), resolve)

    @tool(requires_approval=True, idempotent=True, read_only=True)
    async def fetch_url(url: str, timeout: Annotated[float, Meta(gt=0, le=300)] = 30.0) -> ToolResult:
        """Fetch a page or file from the internet by HTTP and give its text. HTML becomes plain text.

        Args:
            url: The address, beginning with http:// or https://.
            timeout: Seconds to wait at most.
        """
        stopped = threading.Event()
        try:
            async with asyncio.timeout(timeout):
                page = await fetcher.fetch(url)
                return await in_thread(_build_result, page, stopped)
        except TimeoutError:
            raise ToolError(f"{url} did not answer within {timeout:g} s") from None
        finally:
            stopped.set()

    return [fetch_url]


class Fetcher:
    """Fetches URLs from public addresses and the allowed networks."""

    def __init__(self, allowed: Sequence[Network] = (), resolve: Resolve | None = None) -> None:
        self._allowed = allowed
        self._resolve = resolve or resolve_host

    async def fetch(self, url: str) -> Page:
        """The page at a URL, after its redirects."""
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._get(_check_url(url))
            if isinstance(answer, Page):
                return answer
            url = urljoin(url, answer)
        raise ToolError(f"more than {MAX_REDIRECTS} redirects; the last led to {url}")

    async def _get(self, url: str) -> Page | str:
        """One request: the page, or the location it redirects to."""
        import aiohttp

        connector = aiohttp.TCPConnector(
            resolver=_build_resolver(self.addresses),
            use_dns_cache=False,
            force_close=True,
            socket_factory=self._socket,
        )
        headers = {
            "user-agent": f"swink/{VERSION}",
            "accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5",
            "accept-encoding": "identity",
        }
        try:
            jar = aiohttp.DummyCookieJar()
            session = aiohttp.ClientSession(
                connector=connector, cookie_jar=jar, auto_decompress=False, headers=headers
            )
            async with session, session.get(url, allow_redirects=False) as response:
                location = response.headers.get("location")
                if response.status in (301, 302, 303, 307, 308) and location:
                    return location
                packing = response.headers.get("content-encoding", "").strip().lower()
                if packing not in ("", "identity", *_PACKINGS):
                    raise ToolError(f"the server packs its answer with {packing}, which is not understood")
                body, is_cut = await _read(response)
                kind = response.headers.get("content-type", "")
                return Page(url, response.status, kind, packing, body, is_cut)
        except (aiohttp.ClientError, ValueError, OSError) as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, UrlRefused):
                cause = cause.__cause__ or cause.__context__
            text = f"{url} could not be fetched: {type(error).__name__}: {error}"
            raise cause or ToolError(text) from error

    async def addresses(self, host: str, port: int) -> list[str]:
        """What a name resolves to; refused if any of it is not to be fetched from."""
        if is_metadata_name(host):
            raise UrlRefused(f"{host} is a cloud's metadata service, which is not fetched from")
        try:
            found = list(await self._resolve(host, port))
        except OSError as error:
            raise ToolError(f"{host} is not known: {error.strerror or error}") from error
        for text in found:
            self._check(text, host)
        return found

    def _socket(self, info: Any) -> socket.socket:
        """Check the address once more: the socket of every connection is made here, resolved or not."""
        family, kind, protocol, _, address = info
        self._check(address[0], address[0])
        return socket.socket(family, kind, protocol)

    def _check(self, text: str, host: str) -> None:
        address = parse_address(text)
        if address is None or not is_allowed(address, self._allowed):
            where = host if host == text else f"{host} ({text})"
            raise UrlRefused(f"{where} is not an address of the public internet, so it is not fetched")


def _check_url(url: str) -> str:
    """The URL, if it is of a kind that is fetched."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UrlRefused(f"{url!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UrlRefused(f"{url!r} is not fetched; give a URL that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise UrlRefused("a URL with a user name or password in it is not fetched")
    if re.search(r"[\x00-\x20\x7f]", url):
        raise UrlRefused("a URL with white space or control characters in it is not fetched; encode them")
    return url


def _build_resolver(addresses: Callable[[str, int], Awaitable[list[str]]]) -> Any:
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Resolver(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host,
                    host=text,
                    port=port,
                    family=socket.AF_INET6 if ":" in text else socket.AF_INET,
                    proto=0,
                    flags=socket.AI_NUMERICHOST,
                )
                for text in await addresses(host, port)
            ]

        async def close(self) -> None:
            pass

    return Resolver()


async def _read(response: "aiohttp.ClientResponse") -> tuple[bytes, bool]:
    """The body up to the cap, as it was sent."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > MAX_BODY:
            return bytes(body[:MAX_BODY]), True
    return bytes(body), False


def _unpack(page: Page, check_stop: Callable[[], None]) -> tuple[bytes, bool]:
    """The body up to the cap, decompressed if the server compressed it unasked; and whether it is cut."""
    if page.packing not in _PACKINGS:
        return page.body, page.is_cut
    body = bytearray()
    data = page.body
    is_raw = page.packing == "deflate" and not _has_header(data)
    while data and len(body) <= MAX_BODY:  # a packed body may have several parts, one after another
        unpack = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)
        while data and not unpack.eof and len(body) <= MAX_BODY:
            check_stop()
            try:
                body += unpack.decompress(data, 1 << 18)
            except zlib.error as error:
                if not body:
                    raise ToolError(f"the server's answer cannot be unpacked: {error}") from error
                return bytes(body[:MAX_BODY]), True
            data = unpack.unconsumed_tail
        data = unpack.unused_data if page.packing != "deflate" else b""
    return bytes(body[:MAX_BODY]), page.is_cut or len(body) > MAX_BODY


def _has_header(data: bytes) -> bool:
    """Whether deflated data begins as the standard says; some servers leave the header out."""
    return len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0


def _build_result(page: Page, stopped: threading.Event) -> ToolResult:
    def check_stop() -> None:
        if stopped.is_set():
            raise ToolError("cancelled")

    body, is_cut = _unpack(page, check_stop)
    details = {"url": page.url, "status": page.status, "content_type": page.content_type}
    details |= {"bytes": len(body), "cut": is_cut}
    is_error = page.status >= 400
    media_type = page.content_type.split(";")[0].strip().lower()
    head = f"[{page.url}, status {page.status}, {media_type or 'no content type'}]"
    if (kind := detect_image(body)) and not is_cut and not is_error:
        return ToolResult((Text(head), Image(Base64Source(base64.b64encode(body).decode(), kind))), details)
    text = _decode(body, page.content_type)
    if text is None:
        raise ToolError(f"{head} It is {describe_binary(body)}, {len(body):,} bytes, not text.", details)
    if media_type in ("text/html", "application/xhtml+xml") or (
        not media_type and text.lstrip()[:9].lower().startswith(("<!doctype", "<html"))
    ):
        title, text = html_to_text(text, page.url, limit=8 * MAX_TEXT, check_stop=check_stop)
        head += f"\n{title}\n" if title else ""
    cut = len(text) - MAX_TEXT
    if cut > 0:
        text = f"{text[:MAX_TEXT]}\n[... {cut:,} characters cut ...]"
    elif is_cut:
        text += f"\n[... cut after {MAX_BODY:,} bytes ...]"
    return ToolResult((Text(f"{head}\n{text}"),), details, is_error)


def _decode(body: bytes, content_type: str) -> str | None:
    """The text, in the charset of header or page, or else a detected one; None if it is not text."""
    encoding = detect(body)
    if encoding is not None and encoding.bom:
        return make_printable(encoding.decode(body))
    start = body[:2048].decode("ascii", "replace")
    named = _CHARSET.search(content_type) or re.search(rf"<meta[^>]{{1,200}}?{_CHARSET.pattern}", start, re.I)
    if named is not None:
        try:
            charset = codecs.lookup(named[1]).name
            text = body.decode(charset, "replace") if _CHARSETS.fullmatch(charset) else "\0"
        except (LookupError, ValueError):  # no such charset: go by the looks
            text = "\0"
        if "\0" not in text:
            return make_printable(text)
    return None if encoding is None else make_printable(encoding.decode(body))
