"""The login at one HTTP server: requests are signed, tokens renewed, and the user asked to log in if need be.

request ─→ refused (401, or 403 for want of a scope) ─→ renew the token ─→ else discover the authorisation
server, register, and send the person there with PKCE ─→ the request once more

The protocol is the SDK's; where its requests may go, how large replies may be and where tokens are kept is
decided here. Without `on_login` a request that needs a login fails at once, and says what to do.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from swink.errors import AgentError, InvalidInput
from swink.mcp.logins import Login, Logins
from swink.mcp.redirects import Listener, LoginFailed
from swink.mcp.sdk import Sdk, first_error
from swink.mcp.serverconfig import HttpServer
from swink.mcp.timeouts import PausableTimeouts, Withdrawn
from swink.mcp.webaddress import web_address
from swink.messages.redact import describe_traceback, redact_text
from swink.stream.urls import is_loopback, is_private
from swink.system.aio import is_async, resolve
from swink.system.threads import in_thread

log = logging.getLogger("swink.mcp")

OnLogin = Callable[[str, str], object]
"""Shows the user where to log in: it is given the server's name and the URL; swink waits for the browser.
Sync functions run in a thread."""

Deliver = Callable[[Any], Awaitable[Any]]

_TIMES = 2
"""Logins for one request; a server may always ask for more."""
_MOST_RENEWALS = 2
"""Requests for another token that a call may cost: one whose connection died is sent once more."""
_PATIENCE = 300.0
"""Seconds that a user has for a login."""
_MOST_BYTES = 1 << 20
_MOST_TEXT = 500


class Authorisation:
    """The login at one server, shared by its connections."""

    def __init__(
        self, server: HttpServer, sdk: Sdk, limits: PausableTimeouts, on_login: OnLogin | None, *, fresh: bool
    ) -> None:
        self._server = server
        self._sdk = sdk
        self._limits = limits
        self._on_login = on_login
        self._logins = Logins(server.url)
        self._fresh = fresh
        self._login: Login | None = None
        self._alone = asyncio.Lock()
        self.failure = ""
        """Why there is no login; until it is forgotten the user is not asked again."""
        self._renewals = 0
        """Requests for another token since a call began."""

    def forget_failure(self) -> None:
        """A call begins: a login may be tried again."""
        self.failure = ""
        self._renewals = 0

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in a log or an error."""
        return () if self._login is None else self._login.secrets

    async def send(self, request: Any, deliver: Deliver) -> Any:
        """The response to a request, signed; one that says why if the server still refuses it."""
        login, times = await self._ready(request), 0
        while True:
            if login.tokens is not None:
                request.headers["Authorization"] = f"Bearer {login.tokens['access_token']}"
            response = await deliver(request)
            if not _is_refused(response):
                return response
            await response.aclose()
            try:
                if times == _TIMES:
                    raise LoginFailed("refuses what it has just been given a login for")
                login, times = await self._login_again(login, request, response), times + 1
            except LoginFailed as error:
                self.failure = str(error)
                return self._sdk.oauth.refusal(request, response.status_code, self.failure)

    async def name_status(self, request: Any, response: Any) -> Any:
        """The response; of an error without an explanation the SDK would not tell which it is."""
        kind, status = response.headers.get("content-type", ""), response.status_code
        if request.method != "POST" or status < 500 or "json" in kind:
            return response
        await response.aclose()
        return self._sdk.oauth.refusal(request, status, f"it answers HTTP {status}")

    async def _ready(self, request: Any) -> Login:
        """The login, renewed if it has expired."""
        if self._login is not None and not self._login.is_expired:
            return self._login  # without waiting for a login that is under way
        async with self._alone:
            if self._login is None:
                self._login = Login() if self._why_not() else await self._logins.read()
                if self._fresh:
                    self._login = replace(self._login, tokens=None, expires=None)
            if self._login.is_expired:
                await self._renew(self._login, request)
            return self._login

    async def _login_again(self, refused: Login, request: Any, response: Any) -> Login:
        """Another login than the one that was refused; calls at the same time get the same."""
        async with self._alone:
            assert self._login is not None
            if self._login.tokens != refused.tokens:
                return self._login
            if self.failure:
                raise LoginFailed(self.failure)
            if why_not := self._why_not():
                raise LoginFailed(why_not)
            if response.status_code == 401 and await self._renew(refused, request):
                return self._login
            if self._on_login is None or not self._limits.are_open:
                raise LoginFailed(await self._say_what_to_do(response))
            try:
                await self._limits.ask(self._ask(request, response))
            except Withdrawn:
                raise LoginFailed("was left before anybody had logged in") from None
            return self._login

    def _why_not(self) -> str:
        """Why no token may go to this server."""
        if not self._server.logs_in:
            return "refuses the Authorization header that its settings have"
        parts = urlsplit(self._server.url)
        if parts.scheme == "https" or is_loopback(parts.hostname or "") or self._server.allow_http:
            return ""
        return "wants a login, which needs https: a token would go there in clear text"

    async def _say_what_to_do(self, response: Any) -> str:
        name = self._server.name
        if response.status_code == 401:
            return f"needs a login: swink mcp login {name}"
        scope = self._sdk.oauth.scope_of(response)
        await self._keep(replace(self._login or Login(), wanted=scope))
        return f"needs more rights ({scope or 'it does not say which'}): swink mcp login {name}"

    async def _renew(self, refused: Login, request: Any) -> bool:
        """Whether there is a better token, without asking anybody: another program may have renewed it."""
        if await self._find_newer(refused):
            return True
        if not (refused.tokens or {}).get("refresh_token") or self._client_of(refused) is None:
            return False
        if self._renewals == _MOST_RENEWALS:
            return False
        self._renewals += 1
        provider = self._provider(refused, None, None, None)
        provider.context.token_expiry_time = 1.0
        try:
            async with asyncio.timeout(self._server.connect_timeout):
                await self._drive(provider, request, None)
        except (*self._sdk.failures, LoginFailed):
            return await self._find_newer(refused)
        renewed = self._sdk.oauth.login_of(provider)
        if renewed.tokens is None or renewed.tokens == refused.tokens:
            return await self._find_newer(refused)
        self._renewals = 0
        await self._keep(replace(renewed, wanted=refused.wanted))
        return True

    async def _find_newer(self, refused: Login) -> bool:
        """Whether another program has stored a better login."""
        stored = Login() if self._fresh else await self._logins.read()
        if stored.tokens is None or stored.tokens == refused.tokens or stored.is_expired:
            return False
        self._login = stored
        return True

    async def _ask(self, request: Any, response: Any) -> None:
        """Send the user to the authorisation server, and keep what it gives us."""
        known = self._login or Login()
        async with Listener(await self._port(known)) as listener:

            async def show(given: str) -> None:
                try:
                    url = web_address(given)
                except InvalidInput as error:
                    raise LoginFailed(f"cannot be logged in to: {error}") from None
                self._check(url)
                self._sdk.oauth.check_offer(provider, self._server.client_id)
                listener.expect(parse_qs(urlsplit(url).query)["state"][0])
                await self._show(url)

            async def come_back() -> Any:
                found = await listener.redirect()
                return self._sdk.oauth.came_back(found.code, found.state, found.issuer)

            provider = self._provider(known, listener.uri, show, come_back)
            response = self._sdk.oauth.with_scope(response, known.wanted)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._drive(provider, request, response)
            except TimeoutError:
                raise LoginFailed(f"needs a login, and nobody logged in within {_PATIENCE:g} s") from None
            except self._sdk.failures as error:
                text = self._describe(first_error(error), provider)
                # Its own words may hold a code.
                raise LoginFailed(f"cannot be logged in to: {text}") from None
            await self._keep(self._sdk.oauth.login_of(provider))

    async def _show(self, url: str) -> None:
        on_login, name = self._on_login, self._server.name
        assert on_login is not None
        try:  # in a thread if it may block: to start a browser takes its time
            await resolve(on_login(name, url) if is_async(on_login) else await in_thread(on_login, name, url))
        except Exception as error:
            # It is the application's code, and its bug is its own to see.
            log.error("on_login failed for MCP server %r\n%s", name, describe_traceback(error))
            raise LoginFailed(f"needs a login, and on_login failed: {type(error).__name__}") from None

    def _describe(self, error: BaseException, provider: Any) -> str:
        """What went wrong; a reply of the authorisation server may be quoted in it."""
        text = "".join(letter if letter.isprintable() else " " for letter in str(error)[:_MOST_TEXT])
        known = self._sdk.oauth.login_of(provider)
        return redact_text(text, *self._server.secrets, *known.secrets) or type(error).__name__

    async def _port(self, known: Login) -> int:
        """The port to come back to: the one that the client was registered with, if it is free."""
        if self._server.redirect_port:
            return self._server.redirect_port
        for uri in (known.client or {}).get("redirect_uris") or ():
            port = urlsplit(str(uri)).port or 0
            try:
                async with Listener(port):
                    return port
            except LoginFailed:
                pass
        return 0

    def _provider(self, known: Login, uri: str | None, show: Any, come_back: Any) -> Any:
        """The SDK's view of one login, with what is known of it."""
        client = self._client_of(known)
        uris = (client or {}).get("redirect_uris") or ()
        is_ours = client is not None and client["client_id"] == self._server.client_id
        if uri is not None and not is_ours and uri not in [str(one) for one in uris]:
            client = None  # it was registered with another address to come back to
        return self._sdk.oauth.provider(self._server, replace(known, client=client), uri, show, come_back)

    def _client_of(self, known: Login) -> dict[str, Any] | None:
        """The client that the user has registered by hand, else the one that we registered."""
        own, secret = self._server.client_id, self._server.client_secret
        if own is None or own.startswith("https://"):
            return known.client
        method = "client_secret_basic" if secret else "none"
        return {"client_id": own, "client_secret": secret, "token_endpoint_auth_method": method}

    async def _drive(self, provider: Any, request: Any, refused: Any) -> None:
        """Run the SDK's protocol up to where it would send the request itself, which is done by `send`."""
        patience = self._server.connect_timeout
        flow = provider.async_auth_flow(request)
        async with self._sdk.http(patience, patience, {}) as http:
            try:
                outgoing = await anext(flow)
                while True:
                    if outgoing is request and refused is None:
                        return
                    if outgoing is request:
                        response, refused = refused, None
                    else:
                        response = await self._fetch(http, outgoing)
                    outgoing = await flow.asend(response)
            finally:
                await flow.aclose()

    async def _fetch(self, http: Any, request: Any) -> Any:
        """The response of an authorisation server, if it is where one may be and not too large."""
        self._check(str(request.url))
        body = bytearray()
        try:
            async with asyncio.timeout(self._server.connect_timeout):
                response = await http.send(request, stream=True, follow_redirects=False)
                try:
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > _MOST_BYTES:
                            raise LoginFailed(f"cannot be logged in to: {request.url.host} sends too much")
                finally:
                    await response.aclose()
        except TimeoutError:
            raise LoginFailed(f"cannot be logged in to: {request.url.host} does not answer") from None
        return self._sdk.oauth.read_response(response, bytes(body))

    def _check(self, url: str) -> None:
        """Refuse an address that a server must not send us to: plain http, or into our own network."""
        ours = urlsplit(self._server.url).hostname or ""
        parts = urlsplit(url)
        host = parts.hostname or ""
        near = is_loopback(ours) and is_loopback(host)
        if parts.scheme != "https" and not (parts.scheme == "http" and near):
            place = f"{parts.scheme}://{host}"
            raise LoginFailed(f"cannot be logged in to: it names {place}, and a login needs https")
        if is_private(host) and not is_private(ours):
            raise LoginFailed(f"cannot be logged in to: it names {host}, which is not on the internet")

    async def _keep(self, login: Login) -> None:
        self._login = login
        try:
            await self._logins.write(login)
        except AgentError as error:
            name = self._server.name
            log.warning("the login at MCP server %r is good for now, and not kept: %s", name, error)


class AuthorisedClient:
    """An HTTP client for the SDK whose requests are signed."""

    def __init__(self, http: Any, authorisation: Authorisation) -> None:
        self._http = http
        self._authorisation = authorisation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._http, name)

    async def send(self, request: Any, **options: Any) -> Any:
        """Send a request, and log in if the server wants it."""

        async def deliver(request: Any) -> Any:
            response = await self._http.send(request, **options)
            return await self._authorisation.name_status(request, response)

        return await self._authorisation.send(request, deliver)


def _is_refused(response: Any) -> bool:
    said = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in said)
